/** Changes of the view that need no server: heads, colour scale, linked zoom; and the address. Answers head, scale, zoom…, copy-link. */

import { copyLink } from '../controllers/copy.js';
import { formatCompare } from './address.js';
import { segmentsOf } from './link.js';
import { SIDES, WHOLE } from './state.js';

const SMALLEST = 4; // segments across at the closest zoom

function around(centre, size, length) {
  const width = Math.min(length, Math.max(SMALLEST, Math.round(size)));
  const start = Math.min(length - width, Math.max(0, Math.round(centre - width / 2)));
  return [start, start + width];
}

/** Both ranges of equal size round their middles; null where they hold everything. */
function squared(answer, rows, cols) {
  const size = Math.max(rows[1] - rows[0], cols[1] - cols[0]);
  const lengths = [answer.axis_rows.length, answer.axis_cols.length];
  const [down, across] = [rows, cols].map((range, at) => around((range[0] + range[1]) / 2, size, lengths[at]));
  const all = down[1] - down[0] === lengths[0] && across[1] - across[0] === lengths[1];
  return all ? WHOLE : { rows: down, cols: across };
}

/** Connects the intentions; `begin` reads the address anew. */
export function controlView(store, begin) {
  const view = (fields) => store.patch('view', fields);
  const axes = () => (store.state.found.answer?.aligned ? store.state.found.answer : null);

  store.on('head', ({ side, ...fields }) => {
    const site = fields.site && fields.site !== store.state.view[side].site;
    view({ [side]: { ...store.state.view[side], ...fields }, ...(site ? WHOLE : {}) });
    if (site) store.emit('let-go');
  });
  store.on('scale', ({ scale }) => view({ scale }));
  store.on('zoom', ({ map, rows, cols }) => {
    const answer = axes();
    if (answer) view(squared(answer, segmentsOf(answer.axis_rows, map, rows), segmentsOf(answer.axis_cols, map, cols)));
  });
  store.on('zoom-by', ({ factor, map, row, col }) => {
    const answer = axes();
    if (!answer) return;
    const scaled = (axis, range, place) => {
      const [from, to] = range ?? [0, axis.length];
      const fixed = place === undefined ? (from + to) / 2 : segmentsOf(axis, map, [place, place + 1])[0] + 0.5;
      return [fixed - (fixed - from) * factor, fixed + (to - fixed) * factor];
    };
    const { rows, cols } = store.state.view;
    view(squared(answer, scaled(answer.axis_rows, rows, row), scaled(answer.axis_cols, cols, col)));
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
  store.subscribe(['sides', 'view'], (state) => {
    if (SIDES.every((side) => !state.sides[side].id)) return;
    const fragment = fragmentOf(state);
    if (fragment === location.hash) return;
    written = fragment;
    history.replaceState(null, '', fragment);
  });
  addEventListener('hashchange', () => {
    if (location.hash === written) return;
    written = location.hash;
    begin();
  });
}
