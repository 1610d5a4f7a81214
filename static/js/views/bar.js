/** The bar: links, language, theme, keys, and the short notices. Listens to run, text; emits copy-link, keys. */

import { fitsLink } from '../address.js';
import { ref } from '../dom.js';
import { t } from '../i18n.js';
import { inputsOfRun } from '../inputs.js';
import { applyTheme, onSystemScheme, saveTheme, savedTheme, THEMES } from '../theme.js';
import { mountNotice } from './notice.js';

const SIGNS = { auto: '◐', light: '☀', dark: '☾' };
const YEAR = 31536000; // seconds

/** Mounts the button for light, dark or as the system. */
export function mountTheme(button, store) {
  let theme = savedTheme();
  const show = () => {
    store.set({ scheme: applyTheme(theme) });
    button.textContent = SIGNS[theme];
    button.setAttribute('aria-label', t('bar.theme_now', { theme: t(`theme.${theme}`) }));
    button.title = t(`theme.${theme}`);
  };
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    saveTheme(theme);
    show();
  });
  onSystemScheme(show);
  show();
}

/** Mounts the link to the other language: the page stays as it is. */
export function mountLanguage(link) {
  link.addEventListener('click', (event) => {
    event.preventDefault();
    const lang = new URL(link.href).searchParams.get('lang');
    document.cookie = `lang=${lang}; path=/; max-age=${YEAR}; samesite=lax`;
    if (location.search) location.assign(`${location.pathname}${location.hash}`);
    else location.reload();
  });
}

function mountKeys(dialog, button, store) {
  const open = () => dialog.open || dialog.showModal();
  button.addEventListener('click', open);
  store.on('keys', open);
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
}

/** Mounts the bar. */
export function mountBar(root, store) {
  mountTheme(ref(root, 'theme'), store);
  mountLanguage(ref(root, 'language'));
  mountKeys(ref(root, 'keys'), ref(root, 'show-keys'), store);
  mountNotice(ref(root, 'notice'), store);
  const copy = ref(root, 'copy-link');
  const withText = ref(root, 'copy-text');
  copy.addEventListener('click', () => store.emit('copy-link', { withText: false }));
  withText.addEventListener('click', () => store.emit('copy-link', { withText: true }));
  store.subscribe(['run'], (state) => {
    copy.hidden = state.run.phase !== 'done';
    withText.hidden = state.run.phase !== 'done' || !fitsLink(inputsOfRun(state));
  });
}
