/** Changes of the view that need no server: which head, token, range, pooling and colour scale is shown. */

import { clampView } from '../address.js';
import { clampFinder } from '../finder-address.js';
import { keptCell } from '../kept-cell.js';
import { headBeside, isCross, mapSize, shownRange, shownSides, sidesOf, siteOf, tokensOf } from '../select.js';
import { scaled, squared, towards, WHOLE } from '../zoom.js';

/** View and finder of another site. The chosen token stays where it is on the same axis of both. */
function ofSite(state, name) {
  const site = state.run.summary.sites.find((one) => one.site === name);
  const axis = state.view.dir === 'row' ? 'rows' : 'cols';
  const kept = sidesOf(name, tokensOf(state, 'target').length > 0)[axis] === shownSides(state)[axis];
  const view = clampView({ ...state.view, ...WHOLE, token: kept ? state.view.token : null }, site);
  return { view, finder: clampFinder(state.finder, site) };
}

/** Answers `head`, `preview`, `token`, `direction`, `zoom`, `zoom-by`, `zoom-out`, `pool`, `scale`, `lens`, `unit`, `let-go` and the pointer's wishes. */
export function controlView(store) {
  const view = (fields) => store.patch('view', fields);

  store.on('head', ({ layer, head, unasked = false }) => {
    const { state } = store;
    const at = layer ?? state.view.layer;
    const given = { layer: at, head: headBeside(at, head ?? state.view.head) };
    store.set({ view: { ...state.view, ...given }, preview: null, cursor: null, unasked: unasked ? given : null });
  });
  store.on('preview', (head) => {
    const { preview, view: { layer, head: chosen } } = store.state;
    const same = head && head.layer === layer && head.head === chosen;
    const next = head && !same ? { layer: head.layer, head: head.head } : null;
    if (next?.layer !== preview?.layer || next?.head !== preview?.head) store.set({ preview: next, cursor: null });
  });
  store.on('token', ({ index, dir, stay = false }) => {
    const { view: now } = store.state;
    const again = !stay && now.token === index && (dir ?? now.dir) === now.dir;
    view({ token: again ? null : index, dir: dir ?? now.dir });
  });
  store.on('hover-token', ({ index, dir }) => {
    const now = store.state.hoverToken;
    const next = index === null ? null : { index, dir: dir ?? store.state.view.dir };
    if (now?.index !== next?.index || now?.dir !== next?.dir) store.set({ hoverToken: next });
  });
  // Where rows and columns are different texts, the other direction is about other tokens.
  store.on('direction', ({ dir }) => view(isCross(store.state) && dir !== store.state.view.dir ? { dir, token: null } : { dir }));
  store.on('pool', ({ pool }) => view({ pool }));
  store.on('site', ({ site }) => {
    const { state } = store;
    if (site !== siteOf(state).site) store.set({ ...ofSite(state, site), preview: null, hoverToken: null, cursor: null });
  });
  store.on('scale', ({ scale }) => view({ scale }));
  store.on('lens', ({ lens }) => view({ lens }));
  store.on('unit', ({ unit }) => {
    if (unit !== store.state.view.unit) store.set({ view: { ...store.state.view, ...WHOLE, unit }, cursor: null, pinned: null });
  });
  store.on('cursor', (cursor) => {
    const now = store.state.cursor;
    if (now?.row !== cursor?.row || now?.col !== cursor?.col) store.set({ cursor });
  });
  store.on('zoom', ({ rows, cols }) => view(squared(mapSize(store.state), rows, cols)));
  store.on('zoom-out', () => view(WHOLE));
  store.on('zoom-by', ({ factor, row, col }) => {
    const { rows, cols } = shownRange(store.state);
    const kept = row === undefined ? keptCell(store.state) : null; // a button zooms to what is kept
    const at = (range, place, cell) => (cell === undefined ? scaled(range, factor, place) : towards(range, factor, cell));
    view(squared(mapSize(store.state), at(rows, row, kept?.row), at(cols, col, kept?.col)));
  });
  store.on('let-go', () => {
    if (store.state.preview) store.set({ preview: null });
    else view({ token: null });
  });
}
