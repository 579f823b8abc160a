/**
 * What harness/history/page.py writes. Of a point, `runs` has the place of its run in the page's list. Ratios are
 * natural logarithms times 100,000, `down` and `up` how far the ends of the 95 % interval are from them.
 *
 * @typedef {{ anchor: string, name: string, parts: string[], runs: number[], ratio: (number | null)[], down: number[],
 *   up: number[], seconds: (number | null)[], breaks: [point: number, kind: "cut" | "mark" | "version" | "reason", words: string][],
 *   changes: [point: number, before: number, after: number, told: string][],
 *   levels: [first: number, end: number, level: number][], state: string, since: number | null, size: number | null,
 *   told: string, left: number }} Series
 * @typedef {{ margin: number, states: string[], columns: string[], runs: [id: string, began: number][],
 *   notes: [when: number, words: string][], series: Series[] }} Nights
 */

/** One natural logarithm in what the page's ratios are counted in. */
const LOG = 1e5;

const SVG = "http://www.w3.org/2000/svg";

/** Months as the page's sentences have them: English browsers do not agree on September. */
const NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/**
 * A moment in UTC as `18 Nov 2026`, or as `18 Nov 2026, 03:12`.
 *
 * @param {number} at milliseconds since 1970
 * @param {"day" | "minute"} how
 * @returns {string}
 */
function dated(at, how) {
  const date = new Date(at);
  const day = `${date.getUTCDate()} ${NAMES[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  return how === "day" ? day : `${day}, ${date.toISOString().slice(11, 16)}`;
}

const three = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const percents = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1, signDisplay: "exceptZero" });

/**
 * A shape of a picture.
 *
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Element | string)} inside
 * @returns {SVGElement}
 */
function shape(tag, attributes, ...inside) {
  const made = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  made.append(...inside);
  return made;
}

/**
 * A logarithm of the data as a ratio: `1.08×`.
 *
 * @param {number} log
 */
function times(log) {
  return `${three.format(Math.exp(log / LOG))}×`;
}

/**
 * Seconds with their unit.
 *
 * @param {number} seconds
 */
function lasting(seconds) {
  const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-4 ? [1e3, "ms"] : [1e6, "µs"];
  return `${three.format(seconds * factor)} ${unit}`;
}

/**
 * The stretches of a series within which ratios may be compared: from one cut to the next.
 *
 * @param {Series} series
 * @returns {[first: number, end: number][]}
 */
function stretches(series) {
  const cuts = series.breaks.filter(([, kind]) => kind === "cut").map(([point]) => point);
  const ends = [...new Set([0, ...cuts, series.runs.length])].sort((one, other) => one - other);
  return ends.slice(0, -1).map((first, at) => [first, ends[at + 1]]);
}

/**
 * A path through points, in pieces: a point without a number begins a new one.
 *
 * @param {([x: number, y: number] | null)[]} points
 */
function line(points) {
  let path = "";
  let pen = "M";
  for (const point of points) {
    if (point) {
      path += `${pen}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
      pen = "L";
    } else {
      pen = "M";
    }
  }
  return path;
}
