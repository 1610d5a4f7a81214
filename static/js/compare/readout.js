/** The place under the cursor in words: query, key, both weights and their difference; and the tools above the maps. */

import { byTouch, el, fill, ref } from '../dom.js';
import { errorText } from '../errors.js';
import { rangeText, t, weightText, whole } from '../i18n.js';
import { mountZoomButtons } from '../views/head-choice.js';
import { mountSegments } from '../views/segments.js';
import { sentence } from '../views/readout.js';
import { sharedTokens } from './link.js';
import { pictureOf } from './map.js';
import { tokenNode } from './sides.js';
import { answerOf, axesOf, isReady, isSameHead, SIDES } from './state.js';

/** A difference with its sign, as long as the weights beside it. */
export function signedText(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text = size >= 0.001 ? size.toFixed(4) : size.toExponential(3);
  return `${value > 0 ? '+' : '−'}${text}`;
}

/** Where a shared segment stands: one position where it is the same in both runs, else A's and B's. */
export function positionText(segment) {
  const positions = SIDES.map((side) => rangeText(segment[side]));
  return positions[0] === positions[1] ? positions[0] : positions.join(' / ');
}

/** One axis of the cursor: the segment's characters, with positions on each side. */
function placeNode(answer, cursor, which, axesOfSides) {
  if (cursor.d) {
    const at = cursor.d[which][0];
    const segment = answer[`axis_${which}`][at];
    const tokens = sharedTokens([segment], axesOfSides.a[which]);
    return el('span', {}, tokenNode(tokens[0]), el('span', { class: 'aside' }, ` (${positionText(segment)})`));
  }
  const side = cursor.a ? 'a' : 'b';
  const index = cursor[side][which][0];
  return el('span', {}, tokenNode(axesOfSides[side][which][index]), el('span', { class: 'aside' }, ` (${whole(index)})`));
}

function weightNode(side, cursor) {
  const name = el('b', { class: 'side-letter' }, side.toUpperCase());
  if (!cursor[side]) return el('span', { class: 'read-side' }, name, ` ${t('compare.no_counterpart')}`);
  const weight = cursor.weights[side];
  const error = cursor.errors[side];
  if (error) return el('span', { class: 'read-failed' }, name, ` ${errorText(error)}`);
  if (weight === undefined) return el('span', { class: 'read-side' }, name, ' …');
  if (weight === null) return el('span', { class: 'read-side' }, name, ` ${t('compare.masked')}`);
  return el('span', { class: 'read-side' }, name, ' ', el('data', { value: weight, class: 'read-weight', 'data-side': side }, weightText(weight)));
}

function words(state) {
  const { cursor } = state;
  const answer = answerOf(state);
  if (!isReady(state)) return [];
  if (!cursor || !answer) return [el('span', { class: 'quiet' }, t(byTouch() ? 'compare.hint_touch' : 'compare.hint'))];
  const axes = { a: axesOf(state, 'a'), b: axesOf(state, 'b') };
  const [query, key] = ['rows', 'cols'].map((which) => placeNode(answer, cursor, which, axes));
  const numbers = SIDES.map((side) => weightNode(side, cursor));
  const { a, b } = cursor.weights;
  const both = typeof a === 'number' && typeof b === 'number';
  const difference = both ? el('span', { class: 'read-side' }, t('compare.less'), ' ',
    el('data', { value: a - b, class: 'read-weight', 'data-side': 'd' }, signedText(a - b))) : null;
  const retry = cursor.pinned && Object.keys(cursor.errors).length ? el('button', { type: 'button', class: 'small-button', 'data-retry': '' }, t('run.again')) : null;
  return [el('span', { class: 'read-place' }, sentence('compare.place', { query, key })), ...numbers, difference, retry,
    cursor.pinned ? el('span', { class: 'aside' }, t(byTouch() ? 'compare.pinned_touch' : 'compare.pinned')) : null];
}

/** What a cell of one map stands for. */
function cellText(name, { rowStep: rows, colStep: cols }) {
  if (rows === 1 && cols === 1) return t('pooling.one');
  return t(name === 'd' ? 'compare.pooling_mean' : 'pooling.max', { rows, cols });
}

/** What a cell stands for, on the sides and in the difference; texts of other lengths are pooled by other steps. */
function poolingText(state) {
  const windows = ['a', 'b', 'd'].map((name) => [name, pictureOf(state, name)?.window]).filter(([, window]) => window);
  const texts = Object.fromEntries(windows.map(([name, window]) => [name, cellText(name, window)]));
  if (new Set(Object.values(texts)).size < 2) return Object.values(texts)[0] ?? '';
  const { d, ...sides } = texts;
  const alike = sides.a === sides.b ? [t('compare.pooling_both', { cell: sides.a })]
    : Object.entries(sides).map(([side, cell]) => t('compare.pooling_of', { side: side.toUpperCase(), cell }));
  return [...alike, ...(d ? [t('compare.pooling_of', { side: t('compare.less'), cell: d })] : [])].join(' · ');
}

function alignedText(state) {
  const answer = answerOf(state);
  if (!answer) return '';
  if (!answer.aligned) return t(`compare.apart.${answer.reason}`);
  if (isSameHead(state)) return t('compare.same_head');
  const lengths = SIDES.map((side) => axesOf(state, side).rows.length);
  const values = { n: whole(answer.axis_rows.length), a: whole(lengths[0]), b: whole(lengths[1]) };
  const same = answer.axis_rows.length === lengths[0] && answer.axis_rows.length === lengths[1];
  return t(`compare.by.${answer.by}${same ? '_all' : ''}`, values);
}

/** Mounts the readout and the tools. */
export function mountReadout(root, store) {
  const readout = ref(root, 'readout');
  store.subscribe(['cursor', 'found', 'sides', 'view', 'maps'], (state) => fill(readout, words(state)));
  readout.addEventListener('click', ({ target }) => target.closest('[data-retry]') && store.emit('retry-cursor'));
  mountSegments(ref(root, 'scale'), store, (state) => state.view.scale, (scale) => store.emit('scale', { scale }));
  const showZoom = mountZoomButtons(root, store);
  store.subscribe(['view', 'found'], (state) => showZoom(state.view, Boolean(answerOf(state)?.aligned)));
  store.subscribe(['maps', 'found', 'sides', 'view'], (state) => {
    ref(root, 'pooling').textContent = isReady(state) ? poolingText(state) : '';
    ref(root, 'aligned').textContent = isReady(state) ? alignedText(state) : '';
  });
}
