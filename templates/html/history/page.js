/** @type {Nights} */
const nights = JSON.parse(one(document, "#data", HTMLElement).textContent ?? "");

/**
 * A line of the index: its name and its sparkline open the series.
 *
 * @param {Series} series
 */
function indexRow(series) {
  const row = document.createElement("tr");
  row.id = `of-${series.anchor}`;
  const name = element("th", "", "long");
  name.scope = "row";
  const link = element("a", series.name);
  link.href = `#${series.anchor}`;
  name.append(link);
  const drawn = element("td", "", "sparked");
  drawn.append(sparkline(series, nights.margin));
  drawn.addEventListener("click", () => link.click());
  const value = latest(series);
  const state = element("td", "", "verdicts");
  const moved = series.size === null ? "" : series.size > 0 ? "slower" : "faster";
  const told = element("span", nights.states[Number(series.state)], "state");
  told.dataset.state = series.state;
  told.dataset.moved = moved;
  state.append(told);
  /** @type {[head: string, text: string, kind: string][]} */
  const facts = [
    ["ratio now", value === null ? "–" : times(value), "number"],
    ["change", series.size === null ? "" : changing(series.size), "number"],
    ["since", series.since === null ? "" : dated(nights.runs[series.since][1] * 1000, "day"), ""],
  ];
  const cells = facts.map(([head, text, kind]) => {
    const cell = element("td", text, kind);
    cell.dataset.head = head;
    return cell;
  });
  row.append(name, state, drawn, ...cells);
  return row;
}

/**
 * A change as it is told elsewhere: in percent, a large one as a factor.
 *
 * @param {number} size
 */
function changing(size) {
  return Math.abs(size) < Math.log(3) * LOG ? `${percents.format(100 * Math.expm1(size / LOG))} %` : times(size);
}

/** @param {Series} series its last ratio */
function latest(series) {
  return series.ratio.findLast((value) => value !== null) ?? null;
}

/** @param {Series} series how far its ratios lie apart: by which courses are sorted */
function span(series) {
  const known = series.ratio.filter((value) => value !== null);
  return known.length ? Math.max(...known) - Math.min(...known) : null;
}

/** The index: a choice for each part in which series differ, and a line a series. */
function index() {
  const box = one(document, "#index", HTMLElement);
  nights.columns.forEach((name, at) => {
    choice(box, name, `.${name}`, new Set(nights.series.map((series) => series.parts[at])));
  });
  choice(box, one(box, "[data-key=state]", HTMLElement).textContent ?? "", "-state", new Set(nights.states.filter((_, at) => nights.series.some((series) => series.state === String(at)))));
  return new Table(
    box,
    nights.series.map((series) => ({
      keys: [
        series.name,
        Number(series.state),
        span(series),
        latest(series),
        series.size,
        series.since === null ? null : nights.runs[series.since][1],
      ],
      filters: {
        ...Object.fromEntries(series.parts.map((text, at) => [`.${nights.columns[at]}`, [text]])),
        "-state": [nights.states[Number(series.state)]],
      },
      text: [series.name, ...series.parts, nights.states[Number(series.state)]].join(" ").toLowerCase(),
      element: once(() => indexRow(series)),
    })),
    "series",
  );
}

if (nights.series.length) {
  for (const part of document.querySelectorAll("[data-screen]")) {
    part.removeAttribute("hidden");
  }
  for (const link of document.querySelectorAll(".found a")) {
    const series = nights.series.find(({ anchor }) => `#${anchor}` === link.getAttribute("href"));
    if (series) {
      link.before(sparkline(series, nights.margin));
    }
  }
  const table = index();
  const opened = new Opened(nights);
  /** @param {Series} series */
  const show = (series) => {
    document.querySelector("[aria-current]")?.removeAttribute("aria-current");
    document.querySelector(`#of-${series.anchor}`)?.setAttribute("aria-current", "true");
    opened.open(series);
  };
  const follow = () => {
    const asked = nights.series.find(({ anchor }) => `#${anchor}` === location.hash);
    if (asked) {
      show(asked);
      opened.box.scrollIntoView();
      one(opened.box, "h2", HTMLElement).focus({ preventScroll: true });
    }
    return asked;
  };
  addEventListener("hashchange", follow);
  for (const button of opened.box.querySelectorAll("[data-step]")) {
    // through the index as it is filtered and sorted
    button.addEventListener("click", () => {
      const anchors = table.matching().map((row) => row.element().id);
      const at = anchors.indexOf(`of-${opened.series.anchor}`);
      const next = anchors.at((at + Number(/** @type {HTMLElement} */ (button).dataset.step)) % anchors.length);
      const found = nights.series.find(({ anchor }) => `of-${anchor}` === next);
      if (found) {
        show(found);
      }
    });
  }
  if (!follow()) {
    show(nights.series[0]);
  }
}
