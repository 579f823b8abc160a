/** What is drawn where, so that it is let go before it is drawn anew. */
const views = new WeakMap();

/**
 * Draw a chart as wide as its place.
 *
 * @param {HTMLElement} place
 * @param {Chart} chart Vega-Lite, without `config`
 * @param {object} config
 * @returns {Promise<void>}
 */
async function draw(place, chart, config) {
  // by then it is in the page
  await null;
  const room = roomOf(place);
  views.get(place)?.finalize();
  const view = await embed(place, { ...fitted(chart, room / enlarged(room)), config }, { tooltip: tell });
  if (!view) {
    // without Vega, the report has no figures, but a dialog has the headings and notes of its charts
    place.closest("section")?.setAttribute("hidden", "");
    return;
  }
  views.set(place, view);
  // what lies beyond the plot is known once it has its width
  await view.resize().runAsync();
  const svg = one(place, "svg", SVGSVGElement);
  for (const side of ["width", "height"]) {
    svg.setAttribute(side, String(Number(svg.getAttribute(side)) * enlarged(room)));
  }
  place.dataset.drawn = String(room);
}

/**
 * How wide a place is, in pixels; one that is folded away, as it will be.
 *
 * @param {HTMLElement} place
 */
function roomOf(place) {
  return place.clientWidth || one(document, ".sections", HTMLElement).clientWidth;
}

/**
 * Draw the report's charts one after the other, so that the page answers meanwhile. What is as wide as its place stays.
 *
 * @param {Data} data
 */
async function drawAll(data) {
  for (const place of document.querySelectorAll("[data-chart]")) {
    if (place instanceof HTMLElement && place.dataset.chart !== undefined && place.dataset.drawn !== String(roomOf(place))) {
      await draw(place, data.charts[place.dataset.chart], data.config);
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
}

/**
 * Draw them again where the window is another width.
 *
 * @param {Data} data
 */
function redrawn(data) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let soon;
  addEventListener("resize", () => {
    clearTimeout(soon);
    soon = setTimeout(() => drawAll(data), 200);
  });
}
