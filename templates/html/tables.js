/**
 * The table of all cells: its columns of what cells differ in, a choice for each, and a line a cell.
 *
 * @param {Data} data
 */
function allCells(data) {
  const box = one(document, "#all-cells", HTMLElement);
  const head = one(box, "thead tr", HTMLTableRowElement);
  const first = head.cells[0];
  const parts = data.columns.map((name) => ({ name, of: (/** @type {Cell} */ cell) => part(data, cell, name) }));
  parts.forEach(({ name, of }) => {
    const heading = element("th", name);
    heading.scope = "col";
    head.insertBefore(heading, first);
    choice(box, name, `.${name}`, new Set(data.cells.map(of)));
  });
  const status = one(head, "[data-key=status]", HTMLElement).textContent ?? "";
  choice(box, status, "-status", new Set(data.cells.map((cell) => cell.status)));
  const time = one(head, "[data-key=time]", HTMLElement);
  time.textContent = say(time.dataset.words, { unit: data.unit });
  // no column of marks where there are none
  box.dataset.marked = String(data.cells.some((cell) => cell.marks));
  return new Table(
    box,
    data.cells.map((cell, place) => {
      const texts = parts.map(({ of }) => of(cell));
      const count = cell.launches.filter((launch) => launch[5]).length;
      return {
        keys: [
          ...texts.map((text) => text || null),
          cell.seconds,
          cell.low,
          cell.rounds || null,
          count || null,
          cell.status,
          cell.marks || null,
        ],
        filters: {
          ...Object.fromEntries(texts.map((text, at) => [`.${parts[at].name}`, [text]])),
          "-status": [cell.status],
        },
        text: [cell.name, cell.status, cell.marks].join(" ").toLowerCase(),
        element: once(() => cellRow(cell, place, texts, count)),
      };
    }),
    "cells",
  );
}

/**
 * What a cell has in one column.
 *
 * @param {Data} data
 * @param {Cell} cell
 * @param {string} column
 * @returns {string}
 */
function part(data, cell, column) {
  switch (column) {
    case "scenario":
      return data.scenarios[cell.scenario].name;
    case "device":
      return cell.device;
    case "environment":
      return cell.environment;
    default:
      // an axis may be called like anything
      return Object.hasOwn(cell.axes, column) ? cell.axes[column] : "";
  }
}

/**
 * A line of the table of all cells. Its number, or what stands in its place, opens the cell.
 *
 * @param {Cell} cell
 * @param {number} place
 * @param {string[]} texts
 * @param {number} count
 */
function cellRow(cell, place, texts, count) {
  const row = document.createElement("tr");
  row.append(...texts.map((text) => element("td", text)));
  const number = element("td", "", "number");
  number.dataset.cells = String(place);
  number.textContent = cell.time || "–";
  row.append(
    number,
    element("td", cell.interval, "number"),
    element("td", cell.rounds ? String(cell.rounds) : "", "number"),
    element("td", count ? String(count) : "", "number"),
    element("td", cell.status),
    element("td", cell.marks),
  );
  openable(row);
  return row;
}

/**
 * A choice among the values of one column, before the field for text.
 *
 * @param {HTMLElement} box
 * @param {string} title
 * @param {string} name of what is filtered by: a dot before that of a column of the data, a hyphen before others
 * @param {Set<string>} values
 */
function choice(box, title, name, values) {
  if (values.size < 2) {
    return;
  }
  const label = copied("choice");
  const select = one(label, "select", HTMLSelectElement);
  one(label, "span", HTMLElement).textContent = title;
  select.name = name;
  for (const value of values) {
    if (value) {
      const option = element("option", value);
      option.value = value;
      select.append(option);
    }
  }
  one(box, ".tools", HTMLElement).insertBefore(label, one(box, ".tools label:last-of-type", HTMLElement));
}

/**
 * A table that stands in the page already: its lines are sorted by data-sort, or else by their text.
 *
 * @param {HTMLElement} box
 * @param {string} name of the table in the page's address
 */
function standing(box, name) {
  const rows = [...one(box, "tbody", HTMLTableSectionElement).rows].map((row) => ({
    keys: [...row.cells].map((cell) => key(cell)),
    filters: { "-verdict": [row.dataset.verdict ?? "", ...("settled" in row.dataset ? ["settled"] : [])] },
    text: (row.textContent ?? "").toLowerCase(),
    element: () => row,
  }));
  return new Table(box, rows, name);
}

/**
 * @param {HTMLTableCellElement} cell
 * @returns {string | number | null}
 */
function key(cell) {
  const { sort } = cell.dataset;
  if (sort !== undefined) {
    return sort === "" ? null : Number(sort);
  }
  return cell.textContent?.trim() || null;
}

/**
 * @template Made
 * @param {() => Made} make
 * @returns {() => Made}
 */
function once(make) {
  /** @type {Made | undefined} */
  let made;
  return () => (made ??= make());
}
