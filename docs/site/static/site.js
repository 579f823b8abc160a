// A browser doesn't let a page read other files of the disk, so results of a search have no excerpts there.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// A keyboard can scroll a wide table or a long line only if it can be focused.
const focusable = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
document.addEventListener("DOMContentLoaded", () => {
  for (const each of document.querySelectorAll("pre, .table-wrapper")) focusable.observe(each);
});
