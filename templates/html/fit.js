/**
 * A part of a Vega-Lite specification, as far as it is looked at here.
 *
 * @typedef {{ field?: string, value?: unknown, axis?: Record<string, unknown> | null, legend?: object | null,
 *   scale?: { domain?: unknown[], paddingInner?: number } }} Channel
 * @typedef {{ mark: { type: string, dx?: number }, data?: { values?: Record<string, unknown>[] }, encoding: Record<string, Channel> }} Layer
 * @typedef {{ width?: number, height?: number | { step: number }, layer?: Layer[], concat?: Chart[] }} Chart
 */

/** The widest that a chart gets, and what its plot has at least where the lines' names stand beside it. In pixels. */
const WIDEST = 1280;
const PLOT = 340;

/** About as much as a letter takes, a line's name over its marks, and a vertical axis with its words. In pixels. */
const LETTER = 7;
const NAME = 20;
const AXIS = 84;

/** The letters of those names, and a legend's symbol with the space around it, in pixels; the channels with a legend. */
const SMALL = 12;
const SYMBOL = 34;
const LOOKS = new Set(["color", "stroke", "fill", "shape"]);

/**
 * The chart as wide as its place. Where its lines' names would leave the plot no room, they stand over their marks.
 *
 * @param {Chart} chart
 * @param {number} place pixels
 * @returns {object} Vega-Lite
 */
function fitted(chart, place) {
  const width = Math.min(place, WIDEST);
  if (chart.concat) {
    const columns = Math.max(1, Math.min(chart.concat.length, Math.floor(width / (PLOT + AXIS))));
    const each = Math.floor(width / columns) - AXIS;
    return { ...chart, columns, concat: chart.concat.map((panel) => single(panel, each)) };
  }
  const room = width - beside(chart);
  const named = room - LETTER * longest(names(chart));
  const over = named < PLOT;
  return { ...single(chart, over ? room : named, over ? width : 0), width, autosize: { type: "fit-x", contains: "padding" } };
}

/**
 * A single plot, about as wide as is said.
 *
 * @param {Chart} chart
 * @param {number} width pixels
 * @param {number} [over] as wide the lines' names may be that stand over their marks; 0: they stand beside them
 * @returns {Chart}
 */
function single(chart, width, over = 0) {
  const { layer = [], height } = chart;
  // words within marks fit into them at the width that they were made for
  const shown = layer.filter(({ mark, encoding }) => mark.type !== "text" || !encoding.x?.field || width >= (chart.width ?? 0));
  if (typeof height !== "object") {
    return { ...chart, width, layer: shown.map((each) => ({ ...each, encoding: channels(each.encoding, width) })) };
  }
  const nested = layer.find(({ encoding }) => encoding.yOffset)?.encoding.yOffset?.scale?.domain?.length;
  const marks = (nested ?? 0.8) * height.step;
  const apart = over ? NAME : 0.25 * marks;
  const line = { marks, apart: apart / (marks + apart), over };
  return {
    ...chart,
    width,
    height: (names(chart).length + line.apart) * (marks + apart),
    layer: shown.map((each) => ({ ...each, encoding: channels(each.encoding, width, line) })),
  };
}

/**
 * The channels of a layer, with titles and legends that are no wider than the plot.
 *
 * @param {Record<string, Channel>} encoding
 * @param {number} width pixels
 * @param {{ marks: number, apart: number, over: number }} [line] how high its marks are, which share of a line is
 *   apart from them, and how wide its name may be that stands there
 */
function channels(encoding, width, line) {
  return Object.fromEntries(
    Object.entries(encoding).map(([name, channel]) => {
      if (name === "x" && typeof channel.axis?.title === "string") {
        return [name, { ...channel, axis: { ...channel.axis, title: wrapped(channel.axis.title, width / LETTER) } }];
      }
      if (name === "y" && line && channel.scale?.domain) {
        const scale = { ...channel.scale, paddingInner: line.apart, paddingOuter: line.apart };
        const moved = {
          labelAlign: "left",
          labelPadding: 0,
          labelOffset: -(line.marks + NAME) / 2,
          labelFontSize: SMALL,
          labelLimit: line.over - 16,
          // before the marks, where a grid would hide them
          zindex: 1,
          grid: false,
        };
        return [name, { ...channel, scale, axis: { ...channel.axis, ...(line.over ? moved : {}) } }];
      }
      if (LOOKS.has(name) && channel.legend !== null && channel.scale?.domain) {
        return [name, { ...channel, legend: { ...channel.legend, columns: abreast(channel.scale.domain.map(String), width) } }];
      }
      return [name, channel];
    }),
  );
}

/**
 * The names of a chart's lines.
 *
 * @param {Chart} chart
 */
function names({ layer = [] }) {
  const lines = layer.find(({ encoding }) => encoding.y?.field === "name");
  return lines?.encoding.y.scale?.domain?.map(String) ?? [];
}

/**
 * About how wide is what stands to the right of a chart's plot, in pixels.
 *
 * @param {Chart} chart
 */
function beside({ layer = [] }) {
  const texts = layer.filter(({ mark, encoding }) => mark.type === "text" && encoding.x?.value === "width");
  const ends = texts.map(({ mark, data, encoding }) => {
    const told = data?.values?.map((value) => String(value[encoding.text?.field ?? ""])) ?? [];
    return (mark.dx ?? 0) + LETTER * longest(told);
  });
  return Math.max(0, ...ends);
}

/** @param {string[]} texts */
function longest(texts) {
  return Math.max(0, ...texts.map((text) => text.length));
}

/**
 * How many entries of a legend have room side by side.
 *
 * @param {string[]} entries
 * @param {number} width pixels
 */
function abreast(entries, width) {
  const all = entries.reduce((sum, entry) => sum + LETTER * entry.length + SYMBOL, 0);
  return all < width ? entries.length : Math.max(1, Math.floor(width / (LETTER * longest(entries) + SYMBOL)));
}

/**
 * A title in lines of about so many letters.
 *
 * @param {string} text
 * @param {number} letters
 */
function wrapped(text, letters) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < letters) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}
