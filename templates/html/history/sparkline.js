/** A sparkline's size in pixels, and the most points that it has: others are left out evenly. */
const SPARK = { width: 176, height: 34, points: 176 };

/**
 * A series as a small picture: its ratios, each change with a stroke, and its last run. What is on one height is at most
 * the margin apart, so that noise looks like noise.
 *
 * @param {Series} series
 * @param {number} margin of the ratio
 * @returns {SVGElement}
 */
function sparkline(series, margin) {
  const known = series.ratio.filter((value) => value !== null);
  const { width, height } = SPARK;
  const picture = shape("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
  if (!known.length) {
    return picture;
  }
  let [low, high] = [Math.min(...known), Math.max(...known)];
  const least = 6 * Math.log1p(margin) * LOG;
  const missing = Math.max(0, least - (high - low)) / 2;
  [low, high] = [low - missing, high + missing];
  const last = series.ratio.length - 1;
  const x = (/** @type {number} */ point) => 4 + (last ? (point / last) * (width - 8) : (width - 8) / 2);
  const y = (/** @type {number} */ value) => 4 + ((high - value) / (high - low)) * (height - 8);
  const step = Math.max(1, Math.ceil(series.ratio.length / SPARK.points));
  for (const [first, end] of stretches(series)) {
    /** @type {([number, number] | null)[]} */
    const points = [];
    for (let point = first; point < end; point += 1) {
      const value = series.ratio[point];
      if (point % step === 0 || point === end - 1 || point === first) {
        points.push(value === null ? null : [x(point), y(value)]);
      }
    }
    picture.append(shape("path", { class: "course", d: line(points) }));
    if (first) {
      picture.append(shape("path", { class: "cut", d: `M${x(first - 0.5).toFixed(1)} 2V${height - 2}` }));
    }
  }
  for (const [point, before, after] of series.changes) {
    picture.append(shape("path", { class: after > before ? "slower" : "faster", d: `M${x(point - 0.5).toFixed(1)} 2V${height - 2}` }));
  }
  const ending = series.ratio[last];
  if (ending !== null) {
    picture.append(shape("circle", { class: "end", cx: x(last), cy: y(ending), r: 2.5 }));
  }
  return picture;
}
