/**
 * A Vega-Lite specification, as far as it is looked at here.
 *
 * @typedef {{ field?: string, axis?: { title?: string | string[] | null } | null,
 *   scale?: { domain?: unknown[], paddingInner?: number, paddingOuter?: number } }} Channel
 * @typedef {{ mark: { type: string, dy?: number, limit?: { expr: string } }, encoding: Record<string, Channel> }} Layer
 * @typedef {{ width?: number, height?: number | { step: number }, layer?: Layer[], concat?: Chart[] }} Chart
 */

/** The narrowest that charts are made for, the widest that one gets, and a panel of several at least; pixels. */
const NARROW = 350;
const WIDEST = 1280;
const PANEL = 360;

/** What a panel's vertical axis takes, a letter, and a line of letters, in pixels. */
const AXIS = 84;
const LETTER = 6;
const LINE = 15;

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
  const apart = lifted(chart, width);
  return {
    ...apart,
    layer: apart.layer?.map((each) => titled(each, width / LETTER)),
    width,
    height: tall(apart),
    autosize: { type: "fit-x", contains: "padding" },
  };
}

/**
 * The chart with its rows' names in a line of their own, where what stands to their right would cut them.
 *
 * @param {Chart} chart
 * @param {number} width pixels
 * @returns {Chart}
 */
function lifted(chart, width) {
  const { layer = [], height } = chart;
  const names = layer.filter(({ mark, encoding }) => mark.type === "text" && encoding.text?.field === "name" && mark.limit);
  const beside = Math.max(0, ...names.map(({ mark }) => Number(mark.limit?.expr.replace("width - ", ""))));
  const longest = Math.max(0, ...(names[0]?.encoding.y?.scale?.domain ?? []).map((name) => String(name).length));
  if (!beside || LETTER * longest + beside < width || typeof height !== "object") {
    return chart;
  }
  const up = (/** @type {Layer} */ { mark, encoding }) => ({
    mark: { ...mark, dy: (mark.dy ?? 0) - LINE, limit: { expr: "width" } },
    encoding,
  });
  return {
    ...chart,
    height: { step: height.step + LINE },
    layer: layer.map((each) => (names.includes(each) ? { ...each, ...up(each) } : each)),
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
 * The plot's height in pixels, where its rows say how high each of them is: what fits a width takes no steps.
 *
 * @param {Chart} chart
 */
function tall({ layer = [], height }) {
  const rows = layer.find(({ encoding }) => encoding.y?.field === "name")?.encoding;
  if (typeof height !== "object" || !rows) {
    return height;
  }
  // as Vega-Lite where nothing is said
  const { domain = [], paddingInner = 0.1, paddingOuter = paddingInner / 2 } = rows.y.scale ?? {};
  const nested = rows.yOffset?.scale?.domain?.length;
  const row = nested ? (nested * height.step) / (1 - paddingInner) : height.step;
  return (domain.length - paddingInner + 2 * paddingOuter) * row;
}
