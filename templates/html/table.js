/**
 * One line of a table: a value for each column to sort by (null: none), the values that each choice finds it by, and its
 * element, which is made when it is first shown.
 *
 * @typedef {{ keys: (string | number | null)[], filters: Record<string, string[]>, text: string,
 *   element: () => HTMLTableRowElement }} Row
 */

/** So many lines are shown at first, and so many more each time: a browser is slow with thousands. */
const SLICE = 200;

const byText = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * A table that is sorted by its headings and filtered by the controls beside it. Lines are sorted in arrays. The filters
 * and the order are in the page's address: `?cells.mode=eager&cells-text=fit&cells-sort=-rounds`.
 */
class Table {
  /**
   * @param {HTMLElement} box what holds the controls (.tools), the table, and the button for more
   * @param {Row[]} rows
   * @param {string} name of the table in the address
   */
  constructor(box, rows, name) {
    this.rows = rows;
    this.name = name;
    this.table = one(box, "table", HTMLTableElement);
    this.body = one(this.table, "tbody", HTMLTableSectionElement);
    this.status = one(box, "[role=status]", HTMLElement);
    this.more = one(box, ".more", HTMLButtonElement);
    this.input = one(box, "input[type=search]", HTMLInputElement);
    this.selects = [...box.querySelectorAll("select")];
    this.shown = SLICE;
    /** @type {number | null} the column that is sorted by */
    this.column = null;
    this.descending = false;
    this.headings = [...one(this.table, "thead tr", HTMLTableRowElement).cells].map((head) => head.textContent ?? "");
    this.#listen(box);
    this.asked = location.search;
    this.#read();
    if (this.#isFiltered()) {
      box.closest("details")?.setAttribute("open", "");
    }
    addEventListener("popstate", () => {
      if (location.search !== this.asked) {
        this.asked = location.search;
        this.#read();
      }
    });
  }

  /** Filter and sort as the address asks; what it asks that does not exist is left out. */
  #read() {
    const asked = new URLSearchParams(this.asked);
    const value = (/** @type {string} */ of) => asked.get(this.name + of) ?? "";
    this.input.value = value("-text");
    for (const select of this.selects) {
      const chosen = value(select.name);
      select.value = [...select.options].some((option) => option.value === chosen) ? chosen : "";
    }
    const sort = value("-sort");
    this.descending = sort.startsWith("-");
    const column = sort ? this.headings.indexOf(sort.slice(Number(this.descending))) : -1;
    this.column = column < 0 ? null : column;
    this.shown = SLICE;
    this.show();
  }

  /** Whether a filter or an order is chosen. */
  #isFiltered() {
    return this.column !== null || [this.input, ...this.selects].some((control) => control.value);
  }

  /** Put filters and order into the address. To go back undoes one choice, or all that was typed. */
  #write() {
    const address = new URL(location.href);
    const asked = address.searchParams;
    const before = asked.get(`${this.name}-text`);
    const isTyping = before && this.input.value && before !== this.input.value;
    const sort = this.column === null ? "" : (this.descending ? "-" : "") + this.headings[this.column];
    const values = [["-text", this.input.value], ["-sort", sort], ...this.selects.map(({ name, value }) => [name, value])];
    for (const [of, value] of values) {
      if (value) {
        asked.set(this.name + of, value);
      } else {
        asked.delete(this.name + of);
      }
    }
    if (address.href === location.href) {
      return;
    }
    try {
      history[isTyping ? "replaceState" : "pushState"](null, "", address);
    } catch {
      // some browsers let no script change a file's address
    }
    this.asked = location.search;
  }

  /** @param {HTMLElement} box */
  #listen(box) {
    const again = () => {
      this.shown = SLICE;
      this.show();
      this.#write();
    };
    this.input.addEventListener("input", again);
    for (const select of this.selects) {
      select.addEventListener("change", again);
    }
    one(box, ".reset", HTMLButtonElement).addEventListener("click", () => {
      this.input.value = "";
      for (const select of this.selects) {
        select.value = "";
      }
      again();
    });
    this.more.addEventListener("click", () => {
      const first = this.shown;
      this.shown += SLICE;
      this.show();
      // the button may be gone now: go on where the new lines begin
      const link = this.body.rows[first]?.querySelector("button");
      if (this.more.hidden && link) {
        link.focus();
      }
    });
    [...one(this.table, "thead tr", HTMLTableRowElement).cells].forEach((head, column) => {
      const button = element("button", "", "sort");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => this.#sort(column));
      head.append(button);
    });
    box.querySelector(".tools")?.removeAttribute("hidden");
  }

  /** @param {number} column upwards first, then downwards, then as it was */
  #sort(column) {
    if (this.column !== column) {
      this.column = column;
      this.descending = false;
    } else if (!this.descending) {
      this.descending = true;
    } else {
      this.column = null;
    }
    this.show();
    this.#write();
  }

  /** The lines that pass the filters, in order. */
  matching() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = this.selects.filter((select) => select.value);
    const passing = this.rows.filter(
      (row) =>
        chosen.every((select) => row.filters[select.name].includes(select.value)) &&
        words.every((word) => row.text.includes(word)),
    );
    const { column } = this;
    if (column === null) {
      return passing;
    }
    return passing.sort((one, other) => compare(one.keys[column], other.keys[column], this.descending));
  }

  show() {
    const matching = this.matching();
    const shown = matching.slice(0, this.shown);
    this.body.replaceChildren(...shown.map((row) => row.element()));
    [...one(this.table, "thead tr", HTMLTableRowElement).cells].forEach((head, column) => {
      if (column === this.column) {
        head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      } else {
        head.removeAttribute("aria-sort");
      }
    });
    const { words, some } = this.status.dataset;
    this.status.textContent = say(shown.length < matching.length ? some : words, {
      all: this.rows.length,
      matching: matching.length,
      shown: shown.length,
    });
    this.more.hidden = shown.length === matching.length;
  }

  /** For paper: every line that passes the filters, none of a run that would take hundreds of pages. */
  showAll() {
    this.shown = Math.max(this.shown, 5 * SLICE);
    this.show();
  }
}

/**
 * Numbers by size, text by the numbers in it; what is missing comes last, either way.
 *
 * @param {string | number | null} one
 * @param {string | number | null} other
 * @param {boolean} descending
 */
function compare(one, other, descending) {
  if (one === null || other === null) {
    return Number(one === null) - Number(other === null);
  }
  const order =
    typeof one === "number" && typeof other === "number" ? one - other : byText.compare(String(one), String(other));
  return descending ? -order : order;
}
