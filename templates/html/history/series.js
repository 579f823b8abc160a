/** The series that is open, what is seen of it, and the run that is looked at. */
class Opened {
  /** @param {Nights} nights */
  constructor(nights) {
    this.nights = nights;
    this.box = one(document, "#series", HTMLElement);
    this.plot = one(this.box, ".plot.ratios", HTMLElement);
    this.timed = one(this.box, ".plot.seconds", HTMLElement);
    this.along = one(this.box, "[name=along]", HTMLSelectElement);
    this.shown = one(this.box, "[name=shown]", HTMLSelectElement);
    this.series = nights.series[0];
    /** @type {View} */
    this.view = viewOf(nights, this.series, "date");
    this.point = this.series.runs.length - 1;
    /** @type {Frame | null} */
    this.frame = null;
    /** @type {number | null} where a drag began */
    this.dragged = null;
    this.#listen();
  }

  /** @param {Series} series */
  open(series) {
    this.series = series;
    this.point = series.runs.length - 1;
    const { box, nights } = this;
    one(box, "h2", HTMLElement).textContent = series.name;
    const told = one(box, "[data-slot=told]", HTMLElement);
    told.textContent = series.told;
    told.dataset.state = series.state;
    one(box, "[data-slot=left]", HTMLElement).textContent = series.left
      ? say(box.dataset.left, { count: series.left })
      : "";
    this.#listed();
    this.#runs();
    this.#all();
  }

  /** Everything of the series, or as many runs of it as are chosen. */
  #all() {
    const along = this.along.value === "run" ? "run" : "date";
    this.view = viewOf(this.nights, this.series, along, Number(this.shown.value) || Infinity);
    this.draw();
  }

  draw() {
    const { nights, series, view } = this;
    const width = Math.max(280, this.plot.clientWidth);
    const { picture, frame } = ratios(nights, series, view, width);
    this.frame = frame;
    this.plot.replaceChildren(picture);
    this.timed.replaceChildren(seconds(nights, series, view, width).picture);
    this.#look();
  }

  /** What is said of the run that is looked at, and where it stands. */
  #look() {
    const { plot, series, point } = this;
    plot.setAttribute("aria-valuemin", "1");
    plot.setAttribute("aria-valuemax", String(series.runs.length));
    plot.setAttribute("aria-valuenow", String(point + 1));
    plot.setAttribute("aria-valuetext", this.#lines(point).map((each) => each.join(" ")).join(", "));
    plot.querySelector(".looked")?.remove();
    const value = series.ratio[point];
    const at = places(this.nights, series, this.view.along)[point];
    if (this.frame && value !== null && at >= this.view.from && at <= this.view.to) {
      plot.firstElementChild?.append(shape("circle", { class: "looked", cx: this.frame.x(at), cy: this.frame.y(value), r: 7 }));
    }
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
      lines.push([words.changed, each[2]]);
    }
    return lines;
  }

  /** The breaks and notes by name, as they are flagged. */
  #listed() {
    const { nights, series, box } = this;
    const list = one(box, ".flags", HTMLElement);
    const last = series.runs.length - 1;
    list.replaceChildren(
      ...flags(nights, series, "run").map(({ label, kind, words, point }) => {
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
    this.along.addEventListener("change", () => this.#all());
    this.shown.addEventListener("change", () => this.#all());
    for (const button of box.querySelectorAll("[data-move]")) {
      button.addEventListener("click", () => this.#move(/** @type {HTMLElement} */ (button).dataset.move ?? ""));
    }
    plot.addEventListener("keydown", (event) => this.#key(event));
    plot.addEventListener("pointermove", (event) => this.#pointed(event));
    plot.addEventListener("pointerleave", (event) => tell(null, event, null, null));
    plot.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && event.pointerType !== "touch") {
        this.dragged = this.#there(event);
        plot.setPointerCapture(event.pointerId);
      }
    });
    plot.addEventListener("pointerup", (event) => this.#released(event));
    plot.addEventListener("dblclick", () => this.#move("all"));
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let soon;
    addEventListener("resize", () => {
      clearTimeout(soon);
      soon = setTimeout(() => this.draw(), 150);
    });
  }

  /**
   * @param {MouseEvent} event
   * @returns {number} where that is along the horizontal axis
   */
  #there(event) {
    const frame = /** @type {Frame} */ (this.frame);
    const { from, to } = this.view;
    const x = event.clientX - this.plot.getBoundingClientRect().left + this.plot.scrollLeft;
    const share = (x - frame.left) / (frame.right - frame.left);
    return from + Math.min(1, Math.max(0, share)) * (to - from);
  }

  /** @param {PointerEvent} event */
  #pointed(event) {
    const there = this.#there(event);
    if (this.dragged !== null) {
      tell(null, event, null, null);
      const frame = /** @type {Frame} */ (this.frame);
      const ends = [this.dragged, there].map(frame.x).sort((one, other) => one - other);
      this.plot.querySelector(".chosen")?.remove();
      this.plot.firstElementChild?.append(
        shape("rect", { class: "chosen", x: ends[0], width: ends[1] - ends[0], y: frame.top, height: frame.bottom - frame.top }),
      );
      return;
    }
    const at = places(this.nights, this.series, this.view.along);
    let nearest = -1;
    for (let point = 0; point < at.length; point += 1) {
      if (at[point] >= this.view.from && at[point] <= this.view.to && (nearest < 0 || Math.abs(at[point] - there) < Math.abs(at[nearest] - there))) {
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

  /** @param {PointerEvent} event */
  #released(event) {
    const began = this.dragged;
    this.dragged = null;
    this.plot.querySelector(".chosen")?.remove();
    const frame = this.frame;
    const ended = frame && this.#there(event);
    if (began !== null && frame && ended !== null && Math.abs(frame.x(began) - frame.x(ended)) > 8) {
      this.#see(Math.min(began, ended), Math.max(began, ended));
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
    const at = places(this.nights, this.series, this.view.along)[this.point];
    const { from, to } = this.view;
    if (at < from || at > to) {
      const half = (to - from) / 2;
      this.#see(at - half, at + half);
    }
    this.#look();
    const box = this.plot.getBoundingClientRect();
    const x = box.left + (this.frame?.x(at) ?? 0);
    tell(null, new MouseEvent("pointermove", { clientX: x, clientY: box.top + box.height / 2 }), null, Object.fromEntries(this.#lines(this.point)));
  }

  /** @param {string} how */
  #move(how) {
    const { from, to } = this.view;
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
        return this.#all();
    }
  }

  /**
   * See from one place to another, as far as there is anything there; never less than a run.
   *
   * @param {number} from
   * @param {number} to
   */
  #see(from, to) {
    const { along } = this.view;
    const all = viewOf(this.nights, this.series, along);
    const least = along === "run" ? 1 : 5 * MINUTE;
    const length = Math.min(Math.max(to - from, least), all.to - all.from);
    const centre = (from + to) / 2;
    const start = Math.min(Math.max(centre - length / 2, all.from), all.to - length);
    this.view = { along, from: start, to: start + length };
    this.draw();
  }
}
