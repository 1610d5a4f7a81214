/** The page's keys: arrows walk heads, Enter pins, Escape stops marking or lets go, [ and ] change layer, s the site, m marks, / goes to the text, ? lists keys. */

import { isRanked, surveyOf } from '../finder.js';
import { finished, shownHead, siteOf } from '../select.js';

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const SCROLLS = '[data-scrolls]'; // boxes that have the focus only to be scrolled by the arrows
const OWN_KEYS = 'input, select, textarea, [contenteditable], dialog, [data-own-keys], [popover]';

const clamp = (value, count) => Math.min(count - 1, Math.max(0, value));
const asNumber = (index) => (Number.isInteger(index) ? index : 0);

/** How many heads lie side by side where they are in order of a score; null where layers lie down and heads across. */
function columnsOf({ finder, grid }) {
  if (finder.tab === 'table') return 1;
  return finder.tab === 'pictures' && isRanked(finder) ? grid?.columns ?? 1 : null;
}

function walkRanked(store, down, across, columns) {
  const { list, order } = surveyOf(store.state);
  const { layer, head } = shownHead(store.state);
  const rank = order.findIndex((at) => list[at].layer === layer && list[at].head === head);
  const next = list[order[rank < 0 ? 0 : clamp(rank + down * columns + across, order.length)]];
  if (next) store.emit('preview', next);
}

function walk(store, [down, across]) {
  const columns = columnsOf(store.state);
  if (columns !== null) {
    walkRanked(store, down, columns === 1 ? 0 : across, columns);
    return;
  }
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
  if (event.key in STEPS && event.target.closest(SCROLLS)) return false;
  if (event.key in STEPS) walk(store, STEPS[event.key]);
  else if (event.key === '[') changeLayer(store, -1);
  else if (event.key === ']') changeLayer(store, 1);
  else if (event.key === 'm') store.emit(store.state.cursor ? 'mark-cell' : 'press-mark', store.state.cursor ?? {});
  else if (event.key === 's' && store.state.run.summary.sites.length > 1) nextSite(store);
  else if (event.key === 'Enter' && store.state.preview && !event.target.closest('button, a, summary')) {
    store.emit('head', store.state.preview);
    store.emit('show-head');
  } else if (event.key === 'Escape' && store.state.marking) store.emit('mark');
  else if (event.key === 'Escape' && (store.state.preview || store.state.view.token !== null)) store.emit('let-go');
  else return false;
  return true;
}

/** Listens on the whole page; fields and widgets with keys of their own are left alone, an open popover has its Escape. */
export function controlKeyboard(store, { focusText }) {
  document.addEventListener('keydown', (event) => {
    const open = event.key === 'Escape' && document.querySelector(':popover-open');
    if (open) event.stopPropagation(); // the browser closes it
  }, { capture: true });
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
