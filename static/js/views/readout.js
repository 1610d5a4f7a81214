/** The weight under the pointer in words: both tokens, their positions and the number. Without a pointer it is of the kept cell. Listens to cursor, pinned, map, run. */

import { byTouch, el, fill, ref, tokenLabel } from '../dom.js';
import { rangeText, t, weightText, whole } from '../i18n.js';
import { labelParts } from '../labels.js';
import { readCell } from '../kept-cell.js';
import { finished, mapAxes, mapKey } from '../select.js';
import { cellAt } from '../window.js';

const LONGEST = 32; // letters of a token or unit

/** A sentence whose {names} are replaced by elements. */
export function sentence(key, parts) {
  return t(key).split(/(\{\w+\})/).map((piece) => parts[piece.slice(1, -1)] ?? piece);
}

/** A sentence as a unit would fill the line: its beginning and end tell it from others. */
export function short(token) {
  const letters = Array.from(token.text);
  return letters.length <= LONGEST ? token : { ...token, text: `${letters.slice(0, LONGEST - 8).join('')}…${letters.slice(-7).join('')}` };
}

const named = (token, index) => [el('span', { class: 'read-token' }, tokenLabel(labelParts(short(token)))), el('span', { class: 'aside' }, ` (${whole(index)})`)];

function exact(state, cursor, cell) {
  const { rows, cols } = mapAxes(state);
  const { lens } = state.view;
  const parts = { query: el('span', {}, named(rows[cursor.row], cursor.row)), key: el('span', {}, named(cols[cursor.col], cursor.col)) };
  const removed = state.map.window.removed?.[cursor.row - state.map.window.rows[0]] ?? null;
  const rest = removed === null ? [] : [t('readout.removed', { n: weightText(removed) })];
  if (cell.value === null) return [...sentence(lens === 'raw' ? 'readout.masked' : 'readout.hidden', parts), ...rest];
  const number = el('data', { value: cell.value, class: 'read-weight' }, weightText(cell.value));
  return [...sentence(lens === 'raw' ? 'readout.weight' : 'readout.value', { ...parts, what: t(`legend.${lens}`), weight: number }), ...rest];
}

function pooled(cell, { pool, lens }) {
  const parts = { rows: rangeText(cell.rows), cols: rangeText(cell.cols), what: t(`legend.${lens}`) };
  if (cell.value === null) return sentence('readout.pooled_masked', parts);
  return sentence(`readout.pooled_${pool}${lens === 'raw' ? '' : '_value'}`, { ...parts, weight: el('data', { value: cell.value, class: 'read-weight' }, weightText(cell.value)) });
}

function words(state) {
  const { map, view } = state;
  const cursor = readCell(state);
  if (!finished(state)) return [];
  const hint = [el('span', { class: 'quiet' }, t(byTouch() ? 'readout.hint_touch' : 'readout.hint'))];
  if (!cursor) return hint;
  if (map.key !== mapKey(state) || !map.window) return [t('readout.loading')];
  const cell = cellAt(map.window, cursor.row, cursor.col);
  if (!cell) return hint; // what is kept lies outside the part that is shown
  if (!map.window.exact) return [t(map.status === 'error' ? 'readout.coarse' : 'readout.loading')];
  const one = cell.rows[1] - cell.rows[0] === 1 && cell.cols[1] - cell.cols[0] === 1;
  return one ? exact(state, cursor, cell) : pooled(cell, view);
}

/** Mounts the readout. */
export function mountReadout(root, store) {
  const readout = ref(root, 'readout');
  store.subscribe(['cursor', 'pinned', 'map', 'run', 'view', 'preview'], (state) => fill(readout, words(state)));
}
