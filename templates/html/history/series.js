/** Vega's level of messages without warnings: it warns of each kind of mark that a series has none of. */
const ERRORS = 1;

/** The series that is open, what is seen of it, and the run that is looked at. */
class Opened {
  /** @param {Nights} nights */
  constructor(nights) {
    this.nights = nights;
    this.box = one(document, "#series", HTMLElement);
    this.plot = one(this.box, ".plot", HTMLElement);
    this.shown = one(this.box, "[name=shown]", HTMLSelectElement);
    this.charts = JSON.parse(one(document, "#charts", HTMLElement).textContent ?? "");
    this.series = nights.series[0];
    /** @type {number[]} the places of its points */
    this.at = [];
    /** @type {Span} */
    this.span = { from: 0, to: 1 };
    this.point = this.series.runs.length - 1;
    /** @type {any} Vega's view of the chart */
    this.view = null;
    /** The chart that was asked for last, and the one before it, which is finished first. */
    this.wanted = 0;
    this.drawing = Promise.resolve();
    this.#listen();
  }

  /** @param {Series} series */
  open(series) {
    this.series = series;
    this.point = series.runs.length - 1;
    const { box } = this;
    one(box, "h2", HTMLElement).textContent = series.name;
    const told = one(box, "[data-slot=told]", HTMLElement);
    told.textContent = series.told;
    told.dataset.state = series.state;
    one(box, "[data-slot=left]", HTMLElement).textContent = series.left
      ? say(box.dataset.left, { count: series.left })
      : "";
    this.#listed();
    this.#runs();
    this.#anew();
  }

  /** Draw the series from its first run, or as many runs of it as are chosen. */
  #anew() {
    this.at = places(this.nights, this.series);
    this.span = spanOf(this.at, Number(this.shown.value) || Infinity);
    this.#draw();
  }

  /** Draw what is seen of the series, as wide as the page is. */
  #draw() {
    const wanted = (this.wanted += 1);
    this.drawing = this.drawing.then(() => (wanted === this.wanted ? this.#drawn() : undefined));
  }

  async #drawn() {
    const { nights, series, at, span, plot } = this;
    const datasets = rows(nights, series, at);
    const values = {
      ...ranges(nights, series, at, span),
      selected: this.point,
      breaks: labeled(datasets.breaks),
      notes: labeled(datasets.notes),
    };
    const { chart, beside } = this.charts;
    const width = Math.max(280, plot.clientWidth) - beside;
    this.view?.finalize();
    // inside of the slider, as Vega gives its place another role
    const place = one(plot, "div", HTMLElement);
    this.view = await embed(place, {
      ...chart,
      vconcat: chart.vconcat.map((/** @type {object} */ part) => ({ ...part, width })),
      datasets,
      params: Object.entries(values).map(([name, value]) => ({ name, value })),
    }, { tooltip: false, logLevel: ERRORS });
    plot.dataset.drawn = String(plot.clientWidth);
    if (!this.view) {
      place.textContent = plot.dataset.none ?? "";
    }
    this.view?.addSignalListener("zoom", (/** @type {string} */ _, /** @type {{ at?: number[] }} */ zoom) => {
      const [from, to] = zoom.at ?? [this.span.from, this.span.to];
      if (Number(from) !== this.span.from || Number(to) !== this.span.to) {
        this.span = { from: Number(from), to: Number(to) };
        // Vega takes no signals while it calls this
        queueMicrotask(() => this.#set(ranges(nights, this.series, this.at, this.span)));
      }
    });
    this.#look();
  }

  /** @param {Record<string, unknown>} signals values of the chart */
  #set(signals) {
    for (const [name, value] of Object.entries(signals)) {
      this.view?.signal(name, value);
    }
    this.view?.runAsync();
  }

  /** What is said of the run that is looked at, and where it stands. */
  #look() {
    const { plot, series, point } = this;
    plot.setAttribute("aria-valuemin", "1");
    plot.setAttribute("aria-valuemax", String(series.runs.length));
    plot.setAttribute("aria-valuenow", String(point + 1));
    plot.setAttribute("aria-valuetext", this.#lines(point).map((each) => each.join(" ")).join(", "));
    this.#set({ selected: point });
  }

  /**
   * @param {number} point
   * @returns {[string, string][]}
   */
  #lines(point) {
    const { nights, series, box } = this;
    const [id, began] = nights.runs[series.runs[point]];
    const value = series.ratio[point];
    const took = series.seconds[point];
    const words = JSON.parse(box.dataset.words ?? "{}");
    /** @type {[string, string][]} */
    const lines = [[words.run, id], [words.began, dated(began * 1000, "minute")]];
    if (value !== null) {
      lines.push([words.ratio, times(value)], [words.interval, `${times(value - series.down[point])} to ${times(value + series.up[point])}`]);
    }
    if (took !== null) {
      lines.push([words.time, lasting(took)]);
    }
    for (const each of series.breaks.filter(([there]) => there === point)) {
      lines.push([words[each[1]], each[2]]);
    }
    return lines;
  }

  /** The breaks and notes by name, as they are flagged. */
  #listed() {
    const { nights, series, box } = this;
    const list = one(box, ".flags", HTMLElement);
    const last = series.runs.length - 1;
    list.replaceChildren(
      ...flags(nights, series).map(({ label, kind, words, point }) => {
        const item = element("li");
        const name = element("span", label, `flag ${kind}`);
        const when = kind === "note" ? nights.notes[Number(label) - 1][0] : nights.runs[series.runs[Math.min(point, last)]][1];
        item.append(name, element("span", `${box.dataset[kind]} ${dated(when * 1000, "day")}: ${words.join("; ")}`));
        return item;
      }),
    );
    list.hidden = !list.childElementCount;
  }

  /** Its runs as a table, the newest first. */
  #runs() {
    const { nights, series, box } = this;
    one(box, "[data-slot=count]", HTMLElement).textContent = whole.format(series.runs.length);
    const rows = [];
    for (let point = series.runs.length - 1; point >= Math.max(0, series.runs.length - SLICE); point -= 1) {
      const [id, began] = nights.runs[series.runs[point]];
      const [value, took] = [series.ratio[point], series.seconds[point]];
      const row = document.createElement("tr");
      row.append(
        element("td", dated(began * 1000, "minute")),
        element("td", id),
        element("td", value === null ? "–" : times(value), "number"),
        element("td", value === null ? "" : `${times(value - series.down[point])} to ${times(value + series.up[point])}`, "number"),
        element("td", took === null ? "–" : lasting(took), "number"),
        element("td", series.breaks.filter(([there]) => there === point).map((each) => each[2]).join("; "), "long"),
      );
      rows.push(row);
    }
    one(box, "tbody", HTMLTableSectionElement).replaceChildren(...rows);
  }

  #listen() {
    const { plot, box } = this;
    this.shown.addEventListener("change", () => this.#anew());
    for (const button of box.querySelectorAll("[data-move]")) {
      button.addEventListener("click", () => this.#move(/** @type {HTMLElement} */ (button).dataset.move ?? ""));
    }
    plot.addEventListener("keydown", (event) => this.#key(event));
    plot.addEventListener("pointermove", (event) => this.#pointed(event));
    plot.addEventListener("pointerleave", (event) => tell(null, event, null, null));
    plot.addEventListener("dblclick", () => this.#move("all"));
    // the pointer may have left the plot by then
    addEventListener("pointerup", () => this.#released());
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let soon;
    addEventListener("resize", () => {
      clearTimeout(soon);
      soon = setTimeout(() => this.#draw(), 150);
    });
  }

  /** Where the plot begins in its place, in pixels. */
  #left() {
    return this.view.origin()[0] + this.view.padding().left;
  }

  /** @param {PointerEvent} event */
  #pointed(event) {
    if (!this.view || this.view.signal("brush").at) {
      tell(null, event, null, null);
      return;
    }
    const { at, span } = this;
    const x = event.clientX - this.plot.getBoundingClientRect().left - this.#left();
    const there = Number(this.view.scale("x").invert(x));
    let nearest = -1;
    for (let point = 0; point < at.length; point += 1) {
      if (at[point] >= span.from && at[point] <= span.to && (nearest < 0 || Math.abs(at[point] - there) < Math.abs(at[nearest] - there))) {
        nearest = point;
      }
    }
    if (nearest < 0) {
      return;
    }
    this.point = nearest;
    this.#look();
    tell(null, event, null, Object.fromEntries(this.#lines(nearest)));
  }

  /** See the part that was chosen by a drag. */
  #released() {
    const chosen = this.view?.signal("brush").at;
    if (chosen) {
      const [from, to] = chosen.map(Number);
      const x = this.view.scale("x");
      if (x(to) - x(from) > 8) {
        this.#see(from, to);
      }
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const last = this.series.runs.length - 1;
    /** @type {Record<string, number>} */
    const to = { ArrowLeft: this.point - 1, ArrowDown: this.point - 1, ArrowRight: this.point + 1, ArrowUp: this.point + 1, PageDown: this.point - 10, PageUp: this.point + 10, Home: 0, End: last };
    /** @type {Record<string, string>} */
    const moves = { "+": "closer", "=": "closer", "-": "wider", 0: "all" };
    if (event.key in to) {
      this.point = Math.max(0, Math.min(last, to[event.key]));
      this.#follow();
    } else if (event.key in moves) {
      this.#move(moves[event.key]);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** The run that is looked at is seen. */
  #follow() {
    const at = this.at[this.point];
    const { from, to } = this.span;
    if (at < from || at > to) {
      const half = (to - from) / 2;
      this.#see(at - half, at + half);
    }
    this.#look();
    const box = this.plot.getBoundingClientRect();
    const x = box.left + (this.view ? this.#left() + this.view.scale("x")(at) : 0);
    tell(null, new MouseEvent("pointermove", { clientX: x, clientY: box.top + box.height / 2 }), null, Object.fromEntries(this.#lines(this.point)));
  }

  /** @param {string} how */
  #move(how) {
    const { from, to } = this.span;
    const all = spanOf(this.at);
    const [length, centre] = [to - from, (from + to) / 2];
    switch (how) {
      case "closer":
        return this.#see(centre - length / 4, centre + length / 4);
      case "wider":
        return this.#see(centre - length, centre + length);
      case "earlier":
        return this.#see(from - length / 2, to - length / 2);
      case "later":
        return this.#see(from + length / 2, to + length / 2);
      default:
        this.shown.value = "";
        return this.#see(all.from, all.to);
    }
  }

  /**
   * See from one place to another, as far as there is anything there; never less than a run.
   *
   * @param {number} from
   * @param {number} to
   */
  #see(from, to) {
    const all = spanOf(this.at);
    const length = Math.min(Math.max(to - from, 5 * MINUTE), all.to - all.from);
    const start = Math.min(Math.max((from + to - length) / 2, all.from), all.to - length);
    this.span = { from: start, to: start + length };
    this.#set({ ...ranges(this.nights, this.series, this.at, this.span), zoom_at: [start, start + length] });
  }
}
