/** What a chart's mark tells when it is pointed at, as text; beside the pointer, and within an open dialog. */
const tooltip = element("dl", "", "tooltip");
tooltip.hidden = true;

/**
 * Vega calls this whenever the pointer enters or leaves a mark.
 *
 * @param {unknown} _
 * @param {MouseEvent} event
 * @param {unknown} __
 * @param {Record<string, unknown> | null | undefined} value
 */
function tell(_, event, __, value) {
  tooltip.hidden = value === null || value === undefined || typeof value !== "object";
  if (tooltip.hidden) {
    return;
  }
  const lines = Object.entries(/** @type {object} */ (value));
  tooltip.replaceChildren(...lines.flatMap(([name, text]) => [element("dt", name), element("dd", String(text))]));
  // what is under a dialog is not seen
  (document.querySelector("dialog[open]") ?? document.body).append(tooltip);
  const { width, height } = tooltip.getBoundingClientRect();
  tooltip.style.left = `${Math.max(0, Math.min(event.clientX + 12, innerWidth - width - 4))}px`;
  tooltip.style.top = `${event.clientY + 16 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 16}px`;
}
