/** Light, dark, or as the system says; remembered in this browser only. */

const KEY = 'everyhead.theme';
export const THEMES = ['auto', 'light', 'dark'];

const dark = matchMedia('(prefers-color-scheme: dark)');

/** The theme chosen before: 'auto' where none was, or where storage is closed to us. */
export function savedTheme() {
  try {
    const saved = localStorage.getItem(KEY);
    return THEMES.includes(saved) ? saved : 'auto';
  } catch {
    return 'auto';
  }
}

/** Remembers a theme; a browser that refuses storage keeps it until the page is left. */
export function saveTheme(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return false;
  }
  return true;
}

/** Shows a theme and gives the scheme, 'light' or 'dark', that results. */
export function applyTheme(theme) {
  const scheme = theme === 'auto' ? (dark.matches ? 'dark' : 'light') : theme;
  document.documentElement.dataset.scheme = scheme;
  document.documentElement.dataset.theme = theme;
  return scheme;
}

/** Calls `listener` when the system changes between light and dark. */
export const onSystemScheme = (listener) => dark.addEventListener('change', listener);
