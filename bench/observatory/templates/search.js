"use strict";

/* The search box: each word of the query begins a word of the entry. Titles count more than other words. */
const form = document.querySelector("form.search");
const query = document.querySelector("#query");
const found = document.querySelector("#found");
const answers = document.querySelector("#answers");
const MOST = 12;
let entries;

const load = () => {
  entries ??= fetch("search.json")
    .then((response) => response.json())
    .then((rows) => rows.map(([kind, title, address, words]) => {
      return { kind, title, address, main: split(title), rest: split(words) };
    }));
  return entries;
};

const split = (text) => text.toLowerCase().match(/[a-z]+|\d+(?:\.\d+)*/g) ?? [];

const score = (entry, words) => {
  let sum = 0;
  for (const word of words) {
    if (entry.main.some((other) => other.startsWith(word))) sum += 2;
    else if (entry.rest.some((other) => other.startsWith(word))) sum += 1;
    else return 0;
  }
  return sum + (entry.kind === "step" ? 1 : 0);
};

const search = async () => {
  const words = split(query.value);
  const rows = words.length ? await load() : [];
  const ranked = rows
    .map((entry) => [score(entry, words), entry])
    .filter(([value]) => value > 0)
    .sort(([first], [second]) => second - first);
  answers.replaceChildren(...ranked.slice(0, MOST).map(([, entry]) => {
    const link = Object.assign(document.createElement("a"), { href: entry.address, textContent: entry.title });
    const item = document.createElement("li");
    item.append(`${entry.kind}: `, link);
    return item;
  }));
  const more = ranked.length > MOST ? `, of which the best ${MOST} are shown` : "";
  found.textContent = words.length ? `${ranked.length} found${more}` : "";
};

form.hidden = false;
form.addEventListener("submit", (event) => event.preventDefault());
query.addEventListener("focus", load);
query.addEventListener("input", search);
