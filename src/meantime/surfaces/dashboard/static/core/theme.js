// @ts-check
/** Light, dark, or as the system has it. */

const THEME_KEY = "meantime.theme";
const THEMES = /** @type {const} */ (["auto", "light", "dark"]);

/** @returns {"auto"|"light"|"dark"} */
export function theme() {
  const kept = localStorage.getItem(THEME_KEY);
  return THEMES.find((each) => each === kept) ?? "auto";
}

export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

/** @returns {string} the next theme, which is now shown */
export function nextTheme() {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  localStorage.setItem(THEME_KEY, next);
  applyTheme();
  return next;
}
