// Light and dark: as the system has it, until somebody says otherwise.

const THEMES = ["auto", "light", "dark"];
const THEME_KEY = "mcpspy-theme";

function stored() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    return null; // Some browsers keep nothing for a page that is a file.
  }
}

function store(theme) {
  try {
    localStorage.setItem(THEME_KEY, theme);
  } catch {
    // Then it lasts as long as the page.
  }
}

function useTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const words = `Theme: ${theme}`;
  Object.assign(byId("theme"), { textContent: theme, title: words, ariaLabel: words });
}

/** Begin with the theme that was chosen last; `changed` is called after each change, the system's too. */
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
