/**
 * A box of a flame graph: its elements, its name, what is told of it, and its place in the whole picture.
 *
 * @typedef {{ group: SVGGElement, rect: SVGRectElement, text: SVGTextElement, name: string, told: string, x: number,
 *   width: number }} Box
 */

/** As harness/report/flamegraphs.py: the picture's width, the edge of a box, and a letter. */
const WHOLE = 1200;
const EDGE = 4;
const LETTER = 6.65;

/** A flame graph as wide as its place. A click zooms to a box, and a search marks boxes. */
class Flame {
  /** @param {HTMLElement} figure */
  constructor(figure) {
    this.svg = one(figure, "svg", SVGSVGElement);
    this.place = one(figure, ".wide", HTMLElement);
    this.status = one(figure, "[role=status]", HTMLElement);
    this.height = this.svg.viewBox.baseVal.height;
    this.boxes = [...this.svg.querySelectorAll("g")].map((group) => this.#box(group));
    this.seen = { x: 0, width: WHOLE };
    const input = one(figure, "input", HTMLInputElement);
    input.addEventListener("input", () => this.#search(input.value));
    input.addEventListener("keydown", ({ key }) => {
      const [widest] = this.#search(input.value);
      if (key === "Enter" && widest) {
        this.#zoom(widest);
      }
    });
    one(figure, ".reset", HTMLButtonElement).addEventListener("click", () => {
      input.value = "";
      this.#search("");
      this.#see({ x: 0, width: WHOLE });
    });
    one(figure, ".tools", HTMLElement).hidden = false;
    new ResizeObserver(() => this.#draw()).observe(this.place);
  }

  /**
   * @param {SVGGElement} group
   * @returns {Box}
   */
  #box(group) {
    const rect = one(group, "rect", SVGRectElement);
    const text = group.querySelector("text") ?? document.createElementNS(this.svg.namespaceURI ?? "", "text");
    text.setAttribute("y", String(rect.y.baseVal.value + rect.height.baseVal.value - EDGE));
    group.append(text);
    const [name, told] = (one(group, "title", SVGTitleElement).textContent ?? "").split("\n");
    const box = { group, rect, text: /** @type {SVGTextElement} */ (text), name, told, x: rect.x.baseVal.value, width: rect.width.baseVal.value };
    group.addEventListener("click", () => this.#zoom(box));
    return box;
  }

  /** @param {Box} box */
  #zoom(box) {
    this.status.textContent = `${box.name}: ${box.told}`;
    this.#see(box);
  }

  /** @param {{ x: number, width: number }} part of the whole picture */
  #see({ x, width }) {
    this.seen = { x, width };
    this.#draw();
  }

  #draw() {
    const pixels = this.place.clientWidth;
    const scale = pixels / this.seen.width;
    this.svg.setAttribute("viewBox", `0 0 ${pixels} ${this.height}`);
    this.svg.dataset.drawn = "";
    for (const { group, rect, text, name, x, width } of this.boxes) {
      // what contains the seen part is as wide as the picture
      const left = Math.max(0, (x - this.seen.x) * scale);
      const right = Math.min(pixels, (x + width - this.seen.x) * scale);
      group.style.display = right - left < 0.3 ? "none" : "";
      rect.setAttribute("x", left.toFixed(1));
      rect.setAttribute("width", Math.max(0.3, right - left - 0.6).toFixed(1));
      text.setAttribute("x", (left + EDGE).toFixed(1));
      text.textContent = shortened(name, right - left);
    }
  }

  /**
   * Mark the boxes whose names contain some text.
   *
   * @param {string} asked
   * @returns {Box[]} the widest first
   */
  #search(asked) {
    const wanted = asked.trim().toLowerCase();
    const matching = this.boxes.filter(({ group, name }) => {
      const matches = wanted !== "" && name.toLowerCase().includes(wanted);
      group.classList.toggle("match", matches);
      return matches;
    });
    matching.sort((one, other) => other.width - one.width);
    // a box inside a wider one that matches is not counted again
    const outer = matching.filter(({ x, width }, at) => !matching.slice(0, at).some((box) => box.x <= x && x + width <= box.x + box.width + 0.01));
    const share = (outer.reduce((sum, { width }) => sum + width, 0) / Math.max(...this.boxes.map(({ width }) => width))) * 100;
    this.status.textContent = wanted ? say(this.status.dataset.words, { count: matching.length, share: share.toFixed(1) }) : "";
    return matching;
  }
}

/**
 * A name that fits into a box: without its module, or cut.
 *
 * @param {string} name
 * @param {number} width pixels
 */
function shortened(name, width) {
  const letters = Math.floor((width - 2 * EDGE) / LETTER);
  const base = name.slice(name.lastIndexOf(".") + 1);
  const fitting = [name, base].find((text) => text.length <= letters);
  return fitting ?? (letters >= 4 ? `${base.slice(0, letters - 1)}…` : "");
}

for (const figure of document.querySelectorAll(".flames")) {
  new Flame(/** @type {HTMLElement} */ (figure));
}
