/**
 * Draw a chart, without evaluating any text as a script: the page's policy forbids that.
 *
 * @param {HTMLElement} place
 * @param {object} specification Vega-Lite, without `config`
 * @param {object} config
 * @returns {Promise<void>}
 */
async function draw(place, specification, config) {
  // @ts-ignore: of the script before this one
  await globalThis.vegaEmbed(place, { ...specification, config }, {
    mode: "vega-lite",
    renderer: "svg",
    actions: false,
    ast: true,
    defaultStyle: false,
    tooltip: tell,
  });
  // the place says what the chart shows
  place.querySelector("svg")?.setAttribute("aria-hidden", "true");
  place.dataset.drawn = "";
}

/**
 * Draw the report's charts one after the other, so that the page answers meanwhile.
 *
 * @param {Data} data
 */
async function drawAll(data) {
  for (const place of document.querySelectorAll("[data-chart]")) {
    if (place instanceof HTMLElement && place.dataset.chart !== undefined) {
      await draw(place, data.charts[place.dataset.chart], data.config);
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
}
