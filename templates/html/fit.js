/**
 * A Vega-Lite specification, as far as it is looked at here.
 *
 * @typedef {{ field?: string, axis?: { title?: string | string[] | null } | null,
 *   scale?: { domain?: unknown[], paddingInner?: number, paddingOuter?: number } }} Channel
 * @typedef {{ encoding: Record<string, Channel> }} Layer
 * @typedef {{ width?: number, height?: number | { step: number }, layer?: Layer[], concat?: Chart[],
 *   usermeta?: { beside: number, steps: { beside: number, above: number } } }} Chart
 */

/** The narrowest that charts are made for, the widest that one gets, and a panel of several at least; pixels. */
const NARROW = 350;
const WIDEST = 1280;
const PANEL = 360;

/** What a panel's vertical axis takes, a letter, and the border of a chart, in pixels. */
const AXIS = 84;
const LETTER = 6;
const BORDER = 8;

/** Charts are made with letters of 11 pixels, which are enlarged as far as there is room. */
const LARGER = 1.2;

/**
 * How much a chart is enlarged in a place.
 *
 * @param {number} place its pixels
 */
function enlarged(place) {
  return Math.min(LARGER, Math.max(1, place / NARROW));
}

/**
 * The chart as wide as its place, or as many panels side by side as there is room for.
 *
 * @param {Chart} chart
 * @param {number} place pixels
 * @returns {object} Vega-Lite
 */
function fitted(chart, place) {
  const width = Math.min(place, WIDEST);
  if (chart.concat) {
    const columns = Math.max(1, Math.min(chart.concat.length, Math.floor(width / PANEL)));
    const each = Math.floor(width / columns) - AXIS;
    return { ...chart, columns, concat: chart.concat.map((panel) => ({ ...panel, width: each })) };
  }
  return {
    ...chart,
    layer: chart.layer?.map((each) => titled(each, width / LETTER)),
    width,
    height: tall(chart, width),
    autosize: { type: "fit-x", contains: "padding" },
  };
}

/**
 * A layer whose horizontal axis has a title in lines of at most so many letters.
 *
 * @param {Layer} layer
 * @param {number} letters
 * @returns {Layer}
 */
function titled(layer, letters) {
  const { x } = layer.encoding;
  if (!x?.axis?.title) {
    return layer;
  }
  /** @type {string[]} */
  const lines = [];
  for (const line of [x.axis.title].flat()) {
    lines.push("");
    for (const word of line.split(" ")) {
      if (lines[lines.length - 1] && lines[lines.length - 1].length + word.length >= letters) {
        lines.push("");
      }
      lines[lines.length - 1] += ` ${word}`;
    }
  }
  const title = lines.map((line) => line.trim());
  return { ...layer, encoding: { ...layer.encoding, x: { ...x, axis: { ...x.axis, title } } } };
}

/**
 * The plot's height in pixels, where its rows say how high each of them is: what fits a width takes no steps. A row is
 * higher where its name is above its marks (harness/report/charts/forest.py).
 *
 * @param {Chart} chart
 * @param {number} width pixels
 */
function tall({ layer = [], height, usermeta }, width) {
  const rows = layer.find(({ encoding }) => encoding.y?.field === "name")?.encoding;
  if (typeof height !== "object" || !rows) {
    return height;
  }
  const step = usermeta ? usermeta.steps[width - BORDER >= usermeta.beside ? "beside" : "above"] : height.step;
  // as Vega-Lite where nothing is said
  const { domain = [], paddingInner = 0.1, paddingOuter = paddingInner / 2 } = rows.y.scale ?? {};
  const nested = rows.yOffset?.scale?.domain?.length;
  const row = nested ? (nested * step) / (1 - paddingInner) : step;
  return (domain.length - paddingInner + 2 * paddingOuter) * row;
}
