/** Which theme was chosen, in this page or an earlier one: "light", "dark", or null for the system's. */
const THEME = "harness-theme";

/** @returns {string | null} */
function storedTheme() {
  try {
    return localStorage.getItem(THEME);
  } catch {
    // some browsers keep nothing for files
    return null;
  }
}

/** @param {string} theme */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(THEME, theme);
  } catch {
    // then it holds for this page
  }
}

const stored = storedTheme();
if (stored === "light" || stored === "dark") {
  document.documentElement.dataset.theme = stored;
}

document.addEventListener("DOMContentLoaded", () => {
  const button = /** @type {HTMLButtonElement} */ (document.getElementById("theme"));
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => button.setAttribute("aria-pressed", String(dark()));
  button.addEventListener("click", () => {
    setTheme(dark() ? "light" : "dark");
    show();
  });
  system.addEventListener("change", show);
  button.hidden = false;
  show();
});
