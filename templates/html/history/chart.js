/**
 * A part of a series along its horizontal axis, in milliseconds since 1970.
 *
 * @typedef {{ from: number, to: number }} Span
 * @typedef {{ label: string, kind: "cut" | "mark" | "note", at: number, words: string[], point: number }} Flag
 */

const MINUTE = 60_000;

/**
 * Where each point of a series stands.
 *
 * @param {Nights} nights
 * @param {Series} series
 * @returns {number[]}
 */
function places(nights, series) {
  return series.runs.map((run) => nights.runs[run][1] * 1000);
}

/**
 * The span of some points, with a little room at both ends.
 *
 * @param {number[]} at the places of all points
 * @param {number} [last] the number of its newest points; all without it
 * @returns {Span}
 */
function spanOf(at, last = Infinity) {
  const [first, end] = [at[Math.max(0, at.length - last)], at[at.length - 1]];
  const room = (end - first) * 0.03 || 10 * MINUTE;
  return { from: first - room, to: end + room };
}

/**
 * The place halfway between a point and the one before it.
 *
 * @param {number[]} at
 * @param {number} point
 */
function before(at, point) {
  return point ? (at[point - 1] + at[point]) / 2 : at[0];
}

/**
 * The breaks of a series with letters, one for all that changed between two runs, and the notes with numbers.
 *
 * @param {Nights} nights
 * @param {Series} series
 * @returns {Flag[]}
 */
function flags(nights, series) {
  const at = places(nights, series);
  /** @type {Map<number, Flag>} */
  const breaks = new Map();
  for (const [point, kind, words] of series.breaks) {
    if (kind !== "cut" && kind !== "mark") {
      continue;
    }
    const flag = breaks.get(point) ?? { label: letters(breaks.size), kind, at: before(at, point), words: [], point };
    flag.words.push(words);
    flag.kind = kind === "cut" ? "cut" : flag.kind;
    breaks.set(point, flag);
  }
  const notes = nights.notes.map(([when, words], place) => {
    const next = series.runs.findIndex((run) => nights.runs[run][1] >= when);
    const point = next < 0 ? series.runs.length : next;
    return { label: String(place + 1), kind: /** @type {const} */ ("note"), at: when * 1000, words: [words], point };
  });
  return [...breaks.values(), ...notes].sort((one, other) => one.at - other.at);
}

/**
 * A, B, …, Z, AA, …
 *
 * @param {number} place
 * @returns {string}
 */
function letters(place) {
  return (place >= 26 ? letters(Math.floor(place / 26) - 1) : "") + String.fromCharCode(65 + (place % 26));
}

/**
 * The rows that the chart of a series draws (harness/history/chart.py).
 *
 * @param {Nights} nights
 * @param {Series} series
 * @param {number[]} at
 */
function rows(nights, series, at) {
  const ratio = (/** @type {number} */ log) => Math.exp(log / LOG);
  const { from, to } = spanOf(at);
  let segment = 0;
  const cuts = new Set(series.breaks.filter(([, kind]) => kind === "cut").map(([point]) => point));
  const points = series.ratio.map((log, point) => {
    segment += cuts.has(point) ? 1 : 0;
    const known = log === null ? {} : { ratio: ratio(log), low: ratio(log - series.down[point]), high: ratio(log + series.up[point]) };
    return { point, at: at[point], segment, seconds: series.seconds[point], ratio: null, low: null, high: null, ...known };
  });
  const levels = series.levels.map(([first, end, log]) => ({
    start: first ? before(at, first) : from,
    end: end < at.length ? before(at, end) : to,
    level: ratio(log),
    low: ratio(log) / (1 + nights.margin),
    high: ratio(log) * (1 + nights.margin),
  }));
  const changes = series.changes.map(([point, earlier, later, size]) => ({
    at: before(at, point),
    before: ratio(earlier),
    after: ratio(later),
    middle: ratio((earlier + later) / 2),
    moved: later > earlier ? "slower" : "faster",
    size,
  }));
  const flagged = flags(nights, series);
  const notes = flagged.filter(({ kind }) => kind === "note");
  return { points, levels, breaks: flagged.filter(({ kind }) => kind !== "note"), notes, changes };
}

/**
 * What an axis of flags shows.
 *
 * @param {Flag[]} flagged
 */
function labeled(flagged) {
  return { places: flagged.map(({ at }) => at), labels: flagged.map(({ label }) => label) };
}

/**
 * The ends of the axes for a span: all ratios are seen and, unless they are much wider than these, all intervals.
 *
 * @param {Nights} nights
 * @param {Series} series
 * @param {number[]} at
 * @param {Span} span
 */
function ranges(nights, series, at, { from, to }) {
  const margin = Math.log1p(nights.margin) * LOG;
  let [least, most, down, up] = [Infinity, -Infinity, Infinity, -Infinity];
  let [shortest, longest, visible] = [Infinity, 0, 0];
  series.ratio.forEach((value, point) => {
    const took = series.seconds[point];
    if (at[point] < from || at[point] > to) {
      return;
    }
    visible += 1;
    if (value !== null) {
      [least, most] = [Math.min(least, value), Math.max(most, value)];
      [down, up] = [Math.min(down, value - series.down[point]), Math.max(up, value + series.up[point])];
    }
    if (took !== null) {
      [shortest, longest] = [Math.min(shortest, took), Math.max(longest, took)];
    }
  });
  if (least > most) {
    [least, most] = [0, 0];
  }
  const reach = Math.max(most - least, 4 * margin);
  const low = Math.max(Math.min(least - margin, down), least - reach);
  const high = Math.min(Math.max(most + margin, up), most + reach);
  const room = (high - low) * 0.06;
  const [first, last] = longest ? [shortest, longest] : [0, 1];
  const space = Math.max((last - first) * 0.15, last * 0.02);
  return {
    from,
    to,
    low: Math.exp((low - room) / LOG),
    high: Math.exp((high + room) / LOG),
    least: Math.max(0, first - space),
    most: last + space,
    visible,
  };
}
