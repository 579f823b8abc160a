/**
 * Make the numbers of a part of the page buttons that open their cells.
 *
 * @param {ParentNode} root
 */
function openable(root) {
  for (const cell of root.querySelectorAll("[data-cells]")) {
    const button = element("button", "", "opens");
    button.type = "button";
    button.append(...cell.childNodes);
    cell.append(button);
  }
}

const boxes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const wide = target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight;
    if (wide) {
      target.setAttribute("tabindex", "0");
    } else {
      target.removeAttribute("tabindex");
    }
  }
});

/**
 * What is wider than its box is scrolled by keys too.
 *
 * @param {ParentNode} root
 */
function scrollable(root) {
  for (const box of root.querySelectorAll(".scroll, .plot, pre")) {
    boxes.observe(box);
  }
}

/**
 * Open the launches of the cells that a number is of, one below the other.
 *
 * @param {Data} data
 * @param {number[]} places
 */
function open(data, places) {
  const dialog = one(document, "dialog", HTMLDialogElement);
  const cells = places.map((place) => data.cells[place]);
  const domain = reach(cells, data);
  one(dialog, "h2", HTMLElement).textContent = say(dialog.dataset[cells.length > 1 ? "several" : "single"], {
    scenario: data.scenarios[cells[0].scenario].title,
  });
  one(dialog, ".cells", HTMLElement).replaceChildren(...cells.map((cell, index) => shown(data, cell, index, domain)));
  scrollable(dialog);
  dialog.showModal();
  dialog.scrollTop = 0;
}

/**
 * All that the page knows of one cell.
 *
 * @param {Data} data
 * @param {Cell} cell
 * @param {number} index
 * @param {[number, number] | null} domain
 */
function shown(data, cell, index, domain) {
  const scenario = data.scenarios[cell.scenario];
  const box = copied("cell");
  const slot = (/** @type {string} */ name) => one(box, `[data-slot=${name}]`, HTMLElement);
  const launches = drawn(cell, scenario);
  slot("name").textContent = cell.name;
  const counted = cell.launches.filter((launch) => launch[5]).length;
  slot("number").textContent = cell.number
    ? say(slot("number").dataset.words, { number: cell.number, rounds: cell.rounds, launches: counted })
    : cell.status;
  const absence = data.absences[cell.absence];
  slot("absence").textContent = absence ? [absence.reason, absence.advice].filter(Boolean).join(" ") : "";
  slot("absence").hidden = !absence;
  const words = { ...slot("strips").dataset, times: say(slot("strips").dataset.times, { unit: scenario.unit }) };
  if (domain && launches.some(({ samples }) => samples.length)) {
    draw(slot("strips"), strips(launches, words, domain), data.config);
  } else {
    /** @type {HTMLElement} */ (slot("strips").closest("section")).hidden = true;
  }
  if (launches.some(({ centre, started }) => centre !== null && started !== null)) {
    const { seconds, low, high } = cell;
    const [at, from, to] = [seconds, low, high].map((each) => (each ?? 0) * scenario.factor);
    const number = seconds === null ? null : { at, low: low === null ? at : from, high: high === null ? at : to };
    draw(slot("times"), inTime(launches, words, number), data.config);
  } else {
    /** @type {HTMLElement} */ (slot("times").closest("section")).hidden = true;
  }
  rows(box, data, cell, scenario);
  slot("after").before(...facts(data, cell));
  slot("find").textContent = find(data, cell, scenario);
  slot("group").textContent = cell.group;
  for (const [place, heading] of box.querySelectorAll("h3, h4").entries()) {
    heading.id = `cell-${index}-${place}`;
  }
  return box;
}

/**
 * From where to where the cells' samples go, in their scenario's unit; null where there are none.
 *
 * @param {Cell[]} cells
 * @param {Data} data
 * @returns {[number, number] | null}
 */
function reach(cells, data) {
  let low = Infinity;
  let high = -Infinity;
  for (const cell of cells) {
    for (const { samples } of drawn(cell, data.scenarios[cell.scenario])) {
      for (const sample of samples) {
        low = Math.min(low, sample);
        high = Math.max(high, sample);
      }
    }
  }
  if (low > high) {
    return null;
  }
  const room = 0.03 * (high - low) || 0.01 * high || 1;
  return [low - room, high + room];
}

/**
 * The table of a cell's launches.
 *
 * @param {HTMLElement} box
 * @param {Data} data
 * @param {Cell} cell
 * @param {Scenario} scenario
 */
function rows(box, data, cell, scenario) {
  const body = one(box, "tbody", HTMLTableSectionElement);
  const head = one(box, "[data-key=centre]", HTMLElement);
  head.textContent = say(head.dataset.words, { unit: scenario.unit });
  const { aside } = body.dataset;
  for (const [place, launch] of cell.launches.entries()) {
    const [round, attempt, order, role, status, counted, started, disturbed, error, centre, of] = launch;
    const row = document.createElement("tr");
    row.className = !counted ? "aside" : disturbed ? "disturbed" : "";
    const name = element("th", String(place + 1), "number");
    name.scope = "row";
    row.append(
      name,
      element("td", String(round), "number"),
      element("td", String(attempt), "number"),
      element("td", String(order), "number"),
      element("td", role),
      element("td", clock(data.began, started)),
      element("td", centre === null ? "" : four.format(centre * scenario.factor), "number"),
      element("td", whole.format(of), "number"),
      element("td", counted ? status : `${status}, ${aside}`),
      element("td", [disturbed, error].filter(Boolean).join("; "), "long"),
    );
    body.append(row);
  }
}

/**
 * When a launch began: the time of day, UTC.
 *
 * @param {number | null} began
 * @param {number | null} started
 */
function clock(began, started) {
  const instant = began === null || started === null ? NaN : (began + started) * 1000;
  return Math.abs(instant) < 8.64e15 ? new Date(instant).toISOString().slice(11, 19) : "";
}

/**
 * What the report's tables say of the cell.
 *
 * @param {Data} data
 * @param {Cell} cell
 * @returns {HTMLElement[]}
 */
function facts(data, cell) {
  return cell.told
    .filter(([, values]) => values.some(Boolean))
    .map(([place, values]) => {
      const list = element("dl", "", "facts");
      for (const [at, value] of values.entries()) {
        if (value) {
          const pair = document.createElement("div");
          pair.append(element("dt", data.tables[place].headings[at]), element("dd", value));
          list.append(pair);
        }
      }
      const section = document.createElement("section");
      section.append(element("h4", data.tables[place].title), list);
      return section;
    });
}

/**
 * The command that prints the cell's lines of launches.jsonl.
 *
 * @param {Data} data
 * @param {Cell} cell
 * @param {Scenario} scenario
 */
function find(data, cell, scenario) {
  const { environment, device, axes } = cell;
  const wanted = JSON.stringify({ scenario: scenario.name, environment, device, axes });
  const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  return `jq -c ${quoted(`select(.cell == ${wanted})`)} ${quoted(`${data.folder}/launches.jsonl`)}`;
}
