// Light and dark theme: that of the system, unless the user selects one.

const THEMES = ["auto", "light", "dark"];
const THEME_KEY = "mcpspy-theme";

function stored() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    return null; // Some browsers store nothing for a page from a file.
  }
}

function store(theme) {
  try {
    localStorage.setItem(THEME_KEY, theme);
  } catch {
    // Then the choice is lost when the page closes.
  }
}

function useTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const words = `Theme: ${theme}`;
  Object.assign(byId("theme"), { textContent: theme, title: words, ariaLabel: words });
}

/** Start with the last selected theme; `changed` is called after each change, also of the system's theme. */
function setUpTheme(changed) {
  let theme = THEMES.includes(stored()) ? stored() : "auto";
  useTheme(theme);
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    store(theme);
    useTheme(theme);
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
