/**
 * What is seen of a series: along dates (milliseconds) or runs (their places in the series), from where to where.
 *
 * @typedef {{ along: "date" | "run", from: number, to: number }} View
 * @typedef {{ label: string, kind: "cut" | "mark" | "note", at: number, words: string[], point: number }} Flag
 * @typedef {{ left: number, right: number, top: number, bottom: number, width: number, height: number,
 *   x: (value: number) => number, y: (value: number) => number, low: number, high: number }} Frame
 */

/** Room around a plot for what stands beside it, and the height of a row of flags, in pixels. */
const ROOM = { left: 62, right: 20, top: 10, bottom: 30, flags: 20 };

/** More points than these are drawn without a dot for each. */
const DOTS = 300;

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const SPANS = [MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, DAY / 24, DAY / 8, DAY / 4, DAY / 2, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
const MONTHS = [1, 2, 3, 6, 12, 24, 60];


/**
 * Where each point of a series stands.
 *
 * @param {Nights} nights
 * @param {Series} series
 * @param {View["along"]} along
 * @returns {number[]}
 */
function places(nights, series, along) {
  return series.runs.map((run, point) => (along === "run" ? point : nights.runs[run][1] * 1000));
}

/**
 * All of a series, with a little room at both ends.
 *
 * @param {Nights} nights
 * @param {Series} series
 * @param {View["along"]} along
 * @param {number} [last] so many of its newest runs, in place of all
 * @returns {View}
 */
function viewOf(nights, series, along, last = Infinity) {
  const at = places(nights, series, along).slice(-Math.min(last, series.runs.length));
  const [first, end] = [at[0], at[at.length - 1]];
  const room = along === "run" ? 0.5 : Math.max((end - first) * 0.03, 10 * MINUTE);
  return { along, from: first - room, to: end + room };
}

/**
 * Between which places something of before a point stands: halfway from the point before it.
 *
 * @param {number[]} at
 * @param {number} point
 */
function before(at, point) {
  return point ? (at[point - 1] + at[point]) / 2 : at[0];
}

/**
 * What is flagged in a series: its breaks by letter, a letter for all that changed between two runs, and the notes of
 * its time by number.
 *
 * @param {Nights} nights
 * @param {Series} series
 * @param {View["along"]} along
 * @returns {Flag[]}
 */
function flags(nights, series, along) {
  const at = places(nights, series, along);
  /** @type {Map<number, Flag>} */
  const breaks = new Map();
  for (const [point, kind, words] of series.breaks) {
    const flag = breaks.get(point) ?? { label: letters(breaks.size), kind, at: before(at, point), words: [], point };
    flag.words.push(words);
    flag.kind = kind === "cut" ? "cut" : flag.kind;
    breaks.set(point, flag);
  }
  const notes = nights.notes.map(([when, words], place) => {
    const next = series.runs.findIndex((run) => nights.runs[run][1] >= when);
    const point = next < 0 ? series.runs.length : next;
    const there = along === "date" ? when * 1000 : point - 0.5;
    return { label: String(place + 1), kind: /** @type {const} */ ("note"), at: there, words: [words], point };
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
 * The levels of a series: between its cuts and changes, a level for each stretch.
 *
 * @param {Series} series
 * @returns {{ first: number, end: number, level: number, told: string, rises: boolean }[]}
 */
function levels(series) {
  return stretches(series).flatMap(([first, end]) => {
    const changes = series.changes.filter(([point]) => point > first && point < end);
    const starts = [first, ...changes.map(([point]) => point)];
    return starts.flatMap((start, place) => {
      const stop = starts[place + 1] ?? end;
      const own = series.ratio.slice(start, stop).filter((value) => value !== null);
      if (!own.length) {
        return [];
      }
      const change = changes[place - 1];
      const level = change ? change[2] : (changes[0]?.[1] ?? middle(own));
      return [{ first: start, end: stop, level, told: change ? change[3] : "", rises: change ? change[2] > change[1] : false }];
    });
  });
}

/**
 * The median.
 *
 * @param {number[]} values at least one
 */
function middle(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/**
 * Round numbers between two ends, some five of them.
 *
 * @param {number} low
 * @param {number} high
 * @param {number} [most]
 */
function rounds(low, high, most = 6) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10) * power;
  const found = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count += 1) {
    found.push(count * step);
  }
  return { values: found, decimals: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/**
 * Where dates are told, and as what.
 *
 * @param {View} view
 * @param {number} most
 * @returns {[at: number, text: string][]}
 */
function dates(view, most) {
  const span = SPANS.find((each) => (view.to - view.from) / each <= most);
  /** @type {[number, string][]} */
  const found = [];
  if (span) {
    // weeks begin on Mondays; 1970 began on a Thursday
    const origin = span % (7 * DAY) ? 0 : 4 * DAY;
    let told = "";
    for (let at = Math.ceil((view.from - origin) / span) * span + origin; at <= view.to; at += span) {
      const date = dated(at, "date");
      found.push([at, span >= DAY ? date : date === told ? dated(at, "clock") : `${date}, ${dated(at, "clock")}`]);
      told = date;
    }
    return found;
  }
  const months = MONTHS.find((each) => (view.to - view.from) / (each * 30.4 * DAY) <= most) ?? 120;
  const start = new Date(view.from);
  for (let month = Math.ceil(start.getUTCMonth() / months) * months; ; month += months) {
    const at = Date.UTC(start.getUTCFullYear(), month);
    if (at > view.to) {
      return found;
    }
    if (at >= view.from) {
      found.push([at, dated(at, "month")]);
    }
  }
}

/**
 * A plot's axes, and where values stand in it.
 *
 * @param {SVGElement} picture
 * @param {Nights} nights
 * @param {Series} series
 * @param {View} view
 * @param {{ width: number, height: number, top: number, low: number, high: number, ticks: [number, string][] }} of
 * @returns {Frame}
 */
function framed(picture, nights, series, view, of) {
  const [left, right] = [ROOM.left, of.width - ROOM.right];
  const bottom = of.height - ROOM.bottom;
  const x = (/** @type {number} */ value) => left + ((value - view.from) / (view.to - view.from || 1)) * (right - left);
  const y = (/** @type {number} */ value) => of.top + ((of.high - value) / (of.high - of.low || 1)) * (bottom - of.top);
  for (const [value, text] of of.ticks) {
    picture.append(
      shape("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
      shape("text", { class: "label", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, text),
    );
  }
  const most = Math.max(2, Math.floor((right - left) / 90));
  /** @type {[number, string][]} */
  let marks;
  if (view.along === "date") {
    marks = dates(view, most);
  } else {
    const step = Math.max(1, Math.ceil((view.to - view.from) / most));
    marks = series.runs.flatMap((run, point) =>
      (series.runs.length - 1 - point) % step === 0 && point >= view.from && point <= view.to
        ? [[point, dated(nights.runs[run][1] * 1000, "date")]]
        : [],
    );
  }
  for (const [at, text] of marks) {
    const anchor = x(at) - left < 30 ? "start" : right - x(at) < 30 ? "end" : "middle";
    picture.append(
      shape("line", { class: "tick", x1: x(at), x2: x(at), y1: bottom, y2: bottom + 4 }),
      shape("text", { class: "label", x: x(at), y: bottom + 18, "text-anchor": anchor }, text),
    );
  }
  picture.append(shape("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  return { left, right, top: of.top, bottom, width: of.width, height: of.height, x, y, low: of.low, high: of.high };
}

/**
 * Points of a view, and one beyond it on each side, so that lines go on to the edge.
 *
 * @param {number[]} at
 * @param {View} view
 * @returns {[first: number, end: number]}
 */
function within(at, view) {
  const first = at.findIndex((value) => value >= view.from);
  const after = at.findIndex((value) => value > view.to);
  return [Math.max(0, (first < 0 ? at.length : first) - 1), after < 0 ? at.length : after + 1];
}

/**
 * The ratios of a series: its line and band from cut to cut, its levels with the margin around them, changes and flags.
 *
 * @param {Nights} nights
 * @param {Series} series
 * @param {View} view
 * @param {number} width
 * @returns {{ picture: SVGElement, frame: Frame }}
 */
function ratios(nights, series, view, width) {
  const height = 380;
  const picture = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const at = places(nights, series, view.along);
  const [from, to] = within(at, view);
  const margin = Math.log1p(nights.margin) * LOG;
  const shown = [];
  for (let point = from; point < to; point += 1) {
    const value = series.ratio[point];
    if (value !== null && at[point] >= view.from && at[point] <= view.to) {
      shown.push({ value, low: value - series.down[point], high: value + series.up[point] });
    }
  }
  const values = shown.map(({ value }) => value);
  let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [-margin, margin];
  // an interval that is much wider than all there is does not flatten the rest: it is cut at the edge
  const most = Math.max(high - low, 4 * margin);
  low = Math.max(Math.min(low - margin, ...shown.map((each) => each.low)), low - most);
  high = Math.min(Math.max(high + margin, ...shown.map((each) => each.high)), high + most);
  const room = (high - low) * 0.06;
  [low, high] = [low - room, high + room];
  const flagged = flags(nights, series, view.along).filter(({ at: there }) => there >= view.from && there <= view.to);
  const top = ROOM.top + (flagged.length ? 2 * ROOM.flags : 0);
  const frame = framed(picture, nights, series, view, { width, height, top, low, high, ticks: ratioTicks(low, high) });
  const { x, y } = frame;
  const inside = shape("g", { "clip-path": "url(#plotted)" });
  const clip = shape("clipPath", { id: "plotted" });
  clip.append(shape("rect", { x: frame.left, y: top, width: frame.right - frame.left, height: frame.bottom - top }));
  picture.append(clip, inside);
  for (const level of levels(series)) {
    const [start, stop] = [level.first ? before(at, level.first) : view.from, level.end < at.length ? before(at, level.end) : view.to];
    const [left, right] = [x(Math.max(start, view.from)), x(Math.min(stop, view.to))];
    if (right > left) {
      inside.append(
        shape("rect", { class: "within", x: left, width: right - left, y: y(level.level + margin), height: y(level.level - margin) - y(level.level + margin) }),
        shape("line", { class: "level", x1: left, x2: right, y1: y(level.level), y2: y(level.level) }),
      );
    }
  }
  for (const flag of flagged) {
    inside.append(shape("line", { class: flag.kind, x1: x(flag.at), x2: x(flag.at), y1: top, y2: frame.bottom }));
  }
  for (const [first, end] of stretches(series)) {
    const [begin, stop] = [Math.max(first, from), Math.min(end, to)];
    course(inside, series, at, begin, stop, frame);
  }
  const visible = to - from <= DOTS;
  for (let point = from; visible && point < to; point += 1) {
    const value = series.ratio[point];
    if (value !== null) {
      inside.append(shape("circle", { class: "dot", cx: x(at[point]), cy: y(value), r: to - from > 100 ? 2 : 3.5 }));
    }
  }
  for (const [point, earlier, later, told] of series.changes) {
    const there = before(at, point);
    if (there >= view.from && there <= view.to) {
      changed(picture, inside, frame, x(there), earlier, later, told);
    }
  }
  flag(picture, flagged, frame);
  return { picture, frame };
}

/**
 * The line of a stretch, and the band of its intervals.
 *
 * @param {SVGElement} inside
 * @param {Series} series
 * @param {number[]} at
 * @param {number} first
 * @param {number} end
 * @param {Frame} frame
 */
function course(inside, series, at, first, end, frame) {
  const { x, y } = frame;
  /** @type {([number, number] | null)[]} */
  const points = [];
  /** @type {[upper: [number, number], lower: [number, number]][]} */
  let piece = [];
  const close = () => {
    if (piece.length === 1) {
      const [[upper, lower]] = piece;
      inside.append(shape("path", { class: "whisker", d: line([upper, lower]) }));
    } else if (piece.length) {
      const edge = [...piece.map(([upper]) => upper), ...piece.map(([, lower]) => lower).reverse()];
      inside.append(shape("path", { class: "band", d: `${line(edge)}Z` }));
    }
    piece = [];
  };
  for (let point = first; point < end; point += 1) {
    const value = series.ratio[point];
    if (value === null) {
      close();
      points.push(null);
    } else {
      const there = x(at[point]);
      points.push([there, y(value)]);
      piece.push([[there, y(value + series.up[point])], [there, y(value - series.down[point])]]);
    }
  }
  close();
  inside.append(shape("path", { class: "course", d: line(points) }));
}

/**
 * A change: a stroke from level to level, and what it is.
 *
 * @param {SVGElement} picture
 * @param {SVGElement} inside
 * @param {Frame} frame
 * @param {number} at
 * @param {number} earlier
 * @param {number} later
 * @param {string} told
 */
function changed(picture, inside, frame, at, earlier, later, told) {
  const [from, to] = [frame.y(earlier), frame.y(later)];
  const kind = later > earlier ? "slower" : "faster";
  const tip = to + (to < from ? 7 : -7);
  inside.append(
    shape("line", { class: `change ${kind}`, x1: at, x2: at, y1: from, y2: tip }),
    shape("path", { class: `tip ${kind}`, d: `M${at.toFixed(1)} ${to.toFixed(1)}L${(at - 5).toFixed(1)} ${tip.toFixed(1)}H${(at + 5).toFixed(1)}Z` }),
  );
  const fits = 7 * told.length + 12 < at - frame.left;
  const y = Math.min(Math.max((from + to) / 2 + 4, frame.top + 14), frame.bottom - 6);
  picture.append(shape("text", { class: `told ${kind}`, x: fits ? at - 10 : at + 10, y, "text-anchor": fits ? "end" : "start" }, told));
}

/**
 * The labels of flags above a plot, in two rows where they are close; those for which neither has room are in the list.
 *
 * @param {SVGElement} picture
 * @param {Flag[]} flagged
 * @param {Frame} frame
 */
function flag(picture, flagged, frame) {
  const taken = [-Infinity, -Infinity];
  for (const { label, kind, at } of flagged) {
    const width = 10 + 7 * label.length;
    const x = frame.x(at);
    const row = taken.findIndex((end) => x - width / 2 > end + 3);
    if (row >= 0) {
      taken[row] = x + width / 2;
      const y = frame.top - ROOM.flags * (row + 1);
      picture.append(
        shape("line", { class: kind, x1: x, x2: x, y1: y + 16, y2: frame.top }),
        shape("rect", { class: `flag ${kind}`, x: x - width / 2, y, width, height: 16, rx: kind === "note" ? 8 : 2 }),
        shape("text", { class: `flag ${kind}`, x, y: y + 12, "text-anchor": "middle" }, label),
      );
    }
  }
}

/**
 * Where ratios are told: at equal distances; far apart, at 1, 2 and 5 times powers of ten.
 *
 * @param {number} low a logarithm
 * @param {number} high
 * @returns {[number, string][]}
 */
function ratioTicks(low, high) {
  const [least, most] = [Math.exp(low / LOG), Math.exp(high / LOG)];
  if (most / least > 12) {
    const found = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power += 1) {
      for (const digit of most / least > 1e3 ? [1] : [1, 2, 5]) {
        found.push(digit * 10 ** power);
      }
    }
    return found.filter((each) => each >= least && each <= most).map((each) => [Math.log(each) * LOG, `${Number(each.toPrecision(1))}×`]);
  }
  const { values, decimals } = rounds(least, most, 8);
  return values.filter((each) => each > 0).map((each) => [Math.log(each) * LOG, `${each.toFixed(Math.max(1, decimals))}×`]);
}

/**
 * The times of a series: drawn, as a machine has its days; no change is looked for in them.
 *
 * @param {Nights} nights
 * @param {Series} series
 * @param {View} view
 * @param {number} width
 * @returns {{ picture: SVGElement, frame: Frame }}
 */
function seconds(nights, series, view, width) {
  const height = 170;
  const picture = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const at = places(nights, series, view.along);
  const [from, to] = within(at, view);
  const shown = series.seconds.filter((value, point) => value !== null && at[point] >= view.from && at[point] <= view.to);
  const values = shown.map(Number);
  const [least, most] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  const room = Math.max((most - least) * 0.15, most * 0.02);
  const [low, high] = [Math.max(0, least - room), most + room];
  const [factor, unit] = most >= 1 ? [1, "s"] : most >= 1e-4 ? [1e3, "ms"] : [1e6, "µs"];
  const { values: told, decimals } = rounds(low * factor, high * factor, 5);
  /** @type {[number, string][]} */
  const ticks = told.map((each) => [each / factor, `${each.toFixed(decimals)} ${unit}`]);
  const frame = framed(picture, nights, series, view, { width, height, top: ROOM.top, low, high, ticks });
  const clip = shape("clipPath", { id: "timed" });
  clip.append(shape("rect", { x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top }));
  const inside = shape("g", { "clip-path": "url(#timed)" });
  picture.append(clip, inside);
  for (const [first, end] of stretches(series)) {
    /** @type {([number, number] | null)[]} */
    const points = [];
    for (let point = Math.max(first, from); point < Math.min(end, to); point += 1) {
      const value = series.seconds[point];
      points.push(value === null ? null : [frame.x(at[point]), frame.y(value)]);
      if (value !== null && to - from <= DOTS) {
        inside.append(shape("circle", { class: "dot quiet", cx: frame.x(at[point]), cy: frame.y(value), r: 2 }));
      }
    }
    inside.append(shape("path", { class: "course quiet", d: line(points) }));
  }
  return { picture, frame };
}
