/**
 * What is drawn of a launch: its name, what it is, and its numbers in the scenario's unit.
 *
 * @typedef {{ name: string, kind: string, started: number | null, centre: number | null, samples: number[] }} Drawn
 */

/** What launches are, each with a look of its own, as in harness/report/charts/timeline.py; their names stand in the page. */
const KINDS = [
  { key: "measured", shape: "circle", stroke: "#0072B2", fill: "#0072B2" },
  { key: "control", shape: "diamond", stroke: "#222222", fill: "white" },
  { key: "disturbed", shape: "triangle-up", stroke: "#D55E00", fill: "#D55E00" },
  { key: "aside", shape: "square", stroke: "#666666", fill: "white" },
];

/**
 * @param {Launch} launch
 * @returns {string} the key of its kind
 */
function kind([, , , role, , counted, , disturbed]) {
  if (!counted) {
    return "aside";
  }
  return disturbed ? "disturbed" : role === "control" ? "control" : "measured";
}

/**
 * A cell's launches in the order in which they began, for its charts and its table.
 *
 * @param {Cell} cell
 * @param {Scenario} scenario
 * @returns {Drawn[]}
 */
function drawn(cell, scenario) {
  const scale = 10 ** cell.exponent * scenario.factor;
  return cell.launches.map((launch, place) => ({
    name: String(place + 1),
    kind: kind(launch),
    started: launch[6],
    centre: launch[9] === null ? null : launch[9] * scenario.factor,
    samples: launch[11].map((sample) => sample * scale),
  }));
}

/**
 * How the kinds that occur are drawn.
 *
 * @param {Drawn[]} launches
 * @param {DOMStringMap} words
 */
function looks(launches, words) {
  const kinds = KINDS.filter(({ key }) => launches.some((launch) => launch.kind === key));
  const domain = kinds.map(({ key }) => words[key]);
  const legend = kinds.length > 1 ? {} : { legend: null };
  const by = (/** @type {"shape" | "stroke" | "fill"} */ look) => ({
    field: "kind",
    type: "nominal",
    scale: { domain, range: kinds.map((each) => each[look]) },
    ...legend,
  });
  return { shape: by("shape"), stroke: by("stroke"), fill: by("fill") };
}

/**
 * Every sample of every launch, a line a launch in order of time, with the launches' centres.
 *
 * @param {Drawn[]} launches
 * @param {DOMStringMap} words
 * @param {[number, number]} domain of the times
 */
function strips(launches, words, domain) {
  const x = { type: "quantitative", scale: { domain, nice: false, zero: false }, axis: { title: words.times } };
  const y = {
    field: "name",
    type: "nominal",
    scale: { type: "band", domain: launches.map(({ name }) => name) },
    axis: { title: words.launch, domain: false, ticks: false, grid: true },
  };
  const tooltip = [
    { field: "name", title: words.launch },
    { field: "kind", title: " " },
    { field: "time", type: "quantitative", title: words.times, format: ".5~g" },
  ];
  const told = named(launches, words);
  return {
    height: { step: launches.length > 40 ? 10 : 18 },
    layer: [
      {
        data: { values: told.flatMap(({ name, kind, samples }) => samples.map((time) => ({ name, kind, time }))) },
        mark: { type: "point", size: 26, strokeWidth: 1, opacity: 0.6 },
        encoding: { x: { field: "time", ...x }, y, ...looks(launches, words), tooltip },
      },
      {
        data: { values: centres(told) },
        mark: { type: "tick", orient: "vertical", thickness: 2, size: 14, color: "#222222" },
        encoding: { x: { field: "time", ...x }, y },
      },
    ],
  };
}

/**
 * The launches' centres by when they began, with the cell's number and its interval.
 *
 * @param {Drawn[]} launches
 * @param {DOMStringMap} words
 * @param {{ at: number, low: number, high: number } | null} number
 */
function inTime(launches, words, number) {
  const told = named(launches, words);
  const y = { type: "quantitative", scale: { zero: false, padding: 10 }, axis: { title: words.times, tickCount: 5 } };
  const tooltip = [
    { field: "name", title: words.launch },
    { field: "kind", title: " " },
    { field: "time", type: "quantitative", title: words.times, format: ".4~g" },
  ];
  return {
    height: 150,
    layer: [
      ...(number
        ? [
            {
              data: { values: [number] },
              mark: { type: "rect", color: "#dddddd" },
              encoding: { y: { field: "low", ...y }, y2: { field: "high" } },
            },
            {
              data: { values: [number] },
              mark: { type: "rule", color: "#666666" },
              encoding: { y: { field: "at", ...y } },
            },
          ]
        : []),
      {
        data: { values: centres(told).filter(({ minutes }) => minutes !== null) },
        mark: { type: "point", size: 60, strokeWidth: 1.5, opacity: 1 },
        encoding: {
          x: {
            field: "minutes",
            type: "quantitative",
            scale: { padding: 8 },
            axis: { title: words.minutes, grid: false },
          },
          y: { field: "time", ...y },
          ...looks(launches, words),
          tooltip,
        },
      },
    ],
  };
}

/**
 * The launches with the names of their kinds in place of the keys.
 *
 * @param {Drawn[]} launches
 * @param {DOMStringMap} words
 * @returns {Drawn[]}
 */
function named(launches, words) {
  return launches.map((launch) => ({ ...launch, kind: words[launch.kind] ?? "" }));
}

/** @param {Drawn[]} launches */
function centres(launches) {
  return launches
    .filter(({ centre }) => centre !== null)
    .map(({ name, kind, started, centre }) => ({
      name,
      kind,
      minutes: started === null ? null : started / 60,
      time: centre,
    }));
}
