/** @type {Data} */
const data = JSON.parse(one(document, "#data", HTMLElement).textContent ?? "");

/** The page's contents, from its headings. */
function contents() {
  const nav = one(document, "nav", HTMLElement);
  const list = document.createElement("ol");
  for (const heading of document.querySelectorAll("main h2[id]")) {
    const link = element("a", heading.textContent ?? "");
    link.href = `#${heading.id}`;
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
  nav.append(list);
  nav.hidden = false;
}

/**
 * All is unfolded on paper.
 *
 * @param {Table[]} tables
 */
function printable(tables) {
  /** @type {HTMLDetailsElement[]} */
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details")].filter((each) => !each.open);
    for (const each of opened) {
      each.open = true;
    }
    for (const table of tables) {
      table.showAll();
    }
  });
  addEventListener("afterprint", () => {
    for (const each of opened) {
      each.open = false;
    }
  });
}

contents();
openable(document);
const tables = [...document.querySelectorAll("[data-sortable]")].map((box) => standing(/** @type {HTMLElement} */ (box)));
if (document.querySelector("#all-cells")) {
  allCells(data);
}
document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const cell = target?.closest(".opens")?.closest("[data-cells]");
  if (cell instanceof HTMLElement) {
    open(data, (cell.dataset.cells ?? "").split(" ").map(Number));
  }
});
one(document, "dialog .close", HTMLButtonElement).addEventListener("click", () => one(document, "dialog", HTMLDialogElement).close());
scrollable(document);
printable(tables);
drawAll(data);
