/** The weight under the pointer in words: both tokens, their positions and the number. Listens to cursor, map, line, run. */

import { byTouch, el, fill, ref, tokenLabel } from '../dom.js';
import { t, weightText, whole } from '../i18n.js';
import { labelParts } from '../labels.js';
import { axesOf, finished, mapKey } from '../select.js';
import { cellAt } from '../window.js';

/** A sentence whose {names} are replaced by elements. */
export function sentence(key, parts) {
  return t(key).split(/(\{\w+\})/).map((piece) => parts[piece.slice(1, -1)] ?? piece);
}

const named = (token, index) => [el('span', { class: 'read-token' }, tokenLabel(labelParts(token))), el('span', { class: 'aside' }, ` (${whole(index)})`)];

const span = ([from, to]) => (to - from === 1 ? whole(from) : `${whole(from)}–${whole(to - 1)}`);

function exact(state, cursor, cell) {
  const { rows, cols } = axesOf(state);
  const parts = { query: el('span', {}, named(rows[cursor.row], cursor.row)), key: el('span', {}, named(cols[cursor.col], cursor.col)) };
  if (cell.value === null) return sentence('readout.masked', parts);
  const number = el('data', { value: cell.value, class: 'read-weight' }, weightText(cell.value));
  return sentence('readout.weight', { ...parts, weight: number });
}

function pooled(cell, pool) {
  const parts = { rows: span(cell.rows), cols: span(cell.cols) };
  if (cell.value === null) return sentence('readout.pooled_masked', parts);
  return sentence(`readout.pooled_${pool}`, { ...parts, weight: el('data', { value: cell.value, class: 'read-weight' }, weightText(cell.value)) });
}

function words(state) {
  const { cursor, map, view } = state;
  if (!finished(state)) return [];
  if (!cursor) return [el('span', { class: 'quiet' }, t(byTouch() ? 'readout.hint_touch' : 'readout.hint'))];
  if (map.key !== mapKey(state) || !map.window) return [t('readout.loading')];
  const cell = cellAt(map.window, cursor.row, cursor.col);
  if (!cell) return [];
  if (!map.window.exact) return [t('readout.loading')];
  const one = cell.rows[1] - cell.rows[0] === 1 && cell.cols[1] - cell.cols[0] === 1;
  return one ? exact(state, cursor, cell) : pooled(cell, view.pool);
}

/** Mounts the readout. */
export function mountReadout(root, store) {
  const readout = ref(root, 'readout');
  store.subscribe(['cursor', 'map', 'run', 'view', 'preview'], (state) => fill(readout, words(state)));
}
