/** Changes of the view that need no server: heads, colour scale, linked zoom; and the address. Answers head, scale, zoom…, copy-link; emits link-read. */

import { copyLink } from '../controllers/copy.js';
import { headBeside } from '../select.js';
import { scaled, squared, WHOLE } from '../zoom.js';
import { formatCompare } from './address.js';
import { segmentsOf } from './link.js';
import { SIDES } from './state.js';

const lengthsOf = (answer) => ({ rows: answer.axis_rows.length, cols: answer.axis_cols.length });

/** Connects the intentions; `begin` reads the address anew. */
export function controlView(store, begin) {
  const view = (fields) => store.patch('view', fields);
  const axes = () => (store.state.found.answer?.aligned ? store.state.found.answer : null);

  store.on('head', ({ side, ...fields }) => {
    const site = fields.site && fields.site !== store.state.view[side].site;
    const given = { ...store.state.view[side], ...fields };
    view({ [side]: { ...given, head: headBeside(given.layer, given.head) }, ...(site ? WHOLE : {}) });
    if (site) store.emit('let-go');
  });
  store.on('scale', ({ scale }) => view({ scale }));
  store.on('zoom', ({ map, rows, cols }) => {
    const answer = axes();
    if (answer) view(squared(lengthsOf(answer), segmentsOf(answer.axis_rows, map, rows), segmentsOf(answer.axis_cols, map, cols)));
  });
  store.on('zoom-by', ({ factor, ...at }) => {
    const answer = axes();
    if (!answer) return;
    const { map, row, col } = at.row === undefined && store.state.cursor?.pinned ? store.state.cursor : at; // a button zooms to what is kept
    const again = (axis, range, place) => {
      const fixed = place === undefined ? undefined : segmentsOf(axis, map, [place, place + 1])[0] + 0.5;
      return scaled(range ?? [0, axis.length], factor, fixed);
    };
    const { rows, cols } = store.state.view;
    view(squared(lengthsOf(answer), again(answer.axis_rows, rows, row), again(answer.axis_cols, cols, col)));
  });
  store.on('zoom-out', () => view(WHOLE));

  /** A change of the list: its place must be on the maps. */
  store.on('show-change', ({ row, col }) => {
    store.emit('let-go');
    store.emit('cursor', { map: 'd', cell: { row, col }, pinned: true });
  });

  const fragmentOf = ({ sides, view: shown }) => formatCompare({ a: sides.a.id, b: sides.b.id }, shown);
  store.on('copy-link', () => copyLink(store, `${location.pathname}${fragmentOf(store.state)}`));

  let written = location.hash;
  store.emit('link-read', { fragment: written }); // the runs have begun with it
  store.subscribe(['sides', 'view'], (state) => {
    if (SIDES.every((side) => !state.sides[side].id)) return;
    const fragment = fragmentOf(state);
    if (fragment === location.hash) return;
    written = fragment;
    history.replaceState(null, '', fragment);
  });
  addEventListener('hashchange', () => {
    const fragment = location.hash;
    if (fragment === written) return;
    written = fragment;
    begin();
    store.emit('link-read', { fragment });
  });
}
