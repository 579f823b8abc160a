/**
 * What harness/report/html/data.py writes. A launch is an array, see LaunchData there.
 *
 * @typedef {[round: number, attempt: number, order: number, role: string, status: string, counted: boolean,
 *   started: number | null, disturbed: string, error: string, centre: number | null, of: number, samples: number[]]} Launch
 * @typedef {{ name: string, scenario: number, environment: string, device: string, axes: Record<string, string>,
 *   group: string, status: string, absence: number, seconds: number | null, low: number | null, high: number | null,
 *   time: string, interval: string, number: string, rounds: number, marks: string,
 *   told: [table: number, values: string[]][], exponent: number, launches: Launch[] }} Cell
 * @typedef {{ name: string, title: string, unit: string, factor: number }} Scenario
 * @typedef {{ folder: string, began: number | null, unit: string, columns: string[], scenarios: Scenario[],
 *   tables: { title: string, headings: string[] }[], absences: { status: string, reason: string, advice: string }[],
 *   cells: Cell[], config: object, charts: Record<string, Chart> }} Data
 */

const four = new Intl.NumberFormat("en", { minimumSignificantDigits: 4, maximumSignificantDigits: 4 });
const whole = new Intl.NumberFormat("en");

/**
 * The sentence with its {names} replaced. Sentences stand in the page, as data-words.
 *
 * @param {string | undefined} sentence
 * @param {Record<string, number | string>} values
 */
function say(sentence, values) {
  return (sentence ?? "").replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? whole.format(value) : value;
  });
}

/**
 * An element with text in it, whatever that text is.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} [text]
 * @param {string} [className]
 * @returns {HTMLElementTagNameMap[Tag]}
 */
function element(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) {
    made.className = className;
  }
  return made;
}

/**
 * The element of a kind that a page, or a part of it, is sure to have.
 *
 * @template {Element} Kind
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
function one(root, selector, kind) {
  const found = root.querySelector(selector);
  if (!(found instanceof kind)) {
    throw new Error(`the page has no ${selector}`);
  }
  return found;
}

/**
 * A copy of what is in a <template>.
 *
 * @param {string} id
 * @returns {HTMLElement}
 */
function copied(id) {
  const template = one(document, `template#${id}`, HTMLTemplateElement);
  return /** @type {HTMLElement} */ (/** @type {Element} */ (template.content.firstElementChild).cloneNode(true));
}
