/** @type {Data} */
const data = JSON.parse(one(document, "#data", HTMLElement).textContent ?? "");

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

openable(document);
const tables = [...document.querySelectorAll("[data-sortable]")].map((box, at) => standing(/** @type {HTMLElement} */ (box), `table${at + 1}`));
allCells(data);
for (const part of document.querySelectorAll("[data-screen]")) {
  part.removeAttribute("hidden");
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
redrawn(data);
