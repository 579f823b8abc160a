/**
 * Draw a chart without evaluating any text as a script: the page's policy forbids that.
 *
 * @param {HTMLElement} place
 * @param {object} chart Vega-Lite
 * @param {object} [options] of vega-embed
 * @returns {Promise<any>} Vega's view; null if the page has no Vega
 */
async function embed(place, chart, options = {}) {
  // @ts-ignore: of the script before this one
  const drawn = await globalThis.vegaEmbed(place, chart, {
    mode: "vega-lite",
    renderer: "svg",
    actions: false,
    ast: true,
    defaultStyle: false,
    ...options,
  });
  // the place says what the chart shows
  place.querySelector("svg")?.setAttribute("aria-hidden", "true");
  return drawn?.view ?? null;
}
