/** The page's keys: arrows walk heads, Enter pins, Escape lets go, [ and ] change layer, s the site, / goes to the text, ? lists keys. */

import { finished, shownHead, siteOf } from '../select.js';

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const OWN_KEYS = 'input, select, textarea, [contenteditable], dialog, [data-own-keys], [popover]';

const clamp = (value, count) => Math.min(count - 1, Math.max(0, value));
const asNumber = (index) => (Number.isInteger(index) ? index : 0);

function walk(store, [down, across]) {
  const site = siteOf(store.state);
  const { layer, head } = shownHead(store.state);
  store.emit('preview', {
    layer: clamp(asNumber(layer) + down, site.n_layers),
    head: clamp(asNumber(head) + across, site.n_heads),
  });
}

function changeLayer(store, by) {
  const { layer, head } = store.state.view;
  store.emit('head', { layer: clamp(asNumber(layer) + by, siteOf(store.state).n_layers), head });
}

function nextSite(store) {
  const { sites } = store.state.run.summary;
  const at = sites.findIndex(({ site }) => site === siteOf(store.state).site);
  store.emit('site', sites[(at + 1) % sites.length]);
}

function onHeads(event, store) {
  if (event.key in STEPS) walk(store, STEPS[event.key]);
  else if (event.key === '[') changeLayer(store, -1);
  else if (event.key === ']') changeLayer(store, 1);
  else if (event.key === 's' && store.state.run.summary.sites.length > 1) nextSite(store);
  else if (event.key === 'Enter' && store.state.preview && !event.target.closest('button, a, summary')) {
    store.emit('head', store.state.preview);
    store.emit('show-head');
  } else if (event.key === 'Escape') store.emit('let-go');
  else return false;
  return true;
}

/** Listens on the whole page; fields and widgets with keys of their own are left alone. */
export function controlKeyboard(store, { focusText }) {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest(OWN_KEYS)) return;
    let used = true;
    if (event.key === '/') focusText();
    else if (event.key === '?') store.emit('keys');
    else used = finished(store.state) !== null && onHeads(event, store);
    if (used) event.preventDefault();
  });
}
