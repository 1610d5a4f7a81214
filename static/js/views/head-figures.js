/** Every figure of the head on the screen as a table. Built only while it is open. Listens to heads, view, preview, run. */

import { el, fill, ref, tokenLabel } from '../dom.js';
import { entryOf, figureOf, MEASURES, missingReason, SHARES } from '../finder.js';
import { fixedText, t, whole } from '../i18n.js';
import { labelParts } from '../labels.js';
import { axesOf, finished, shownHead } from '../select.js';
import { figureText } from '../table-columns.js';
import { curve, scaleLine } from './layer-curve.js';
import { scoreName } from './finder-bar.js';

const FIELDS = ['value', 'chance', 'corrected'];

/** The cells of one version's figures; where it has none, one cell that says why. */
function numberCells(figure, name, fields, reason) {
  if (!figure) return el('td', { class: 'quiet', colspan: fields.length }, t(reason));
  return fields.map((field) => {
    const value = figure[field] ?? null;
    return el('td', { class: 'number' }, value === null ? '' : field === 'rows' ? whole(value) : figureText(field === 'corrected' ? '' : name, value));
  });
}

function scoreRow(state, entry, name) {
  const figure = figureOf(entry, name);
  const left = figureOf(entry, name, 'first');
  const label = el('th', { scope: 'row' }, scoreName(name));
  if (!figure && !left) return el('tr', {}, label, el('td', { colspan: 6, class: 'quiet' }, t(missingReason(state, name, 'all'))));
  return el('tr', { 'data-score': name }, label, numberCells(figure, name, [...FIELDS, 'rows'], missingReason(state, name, 'all')),
    numberCells(left, name, ['value', 'corrected'], missingReason(state, name, 'first')));
}

function headRow() {
  const names = [null, 'table.value', 'table.chance', 'table.corrected', 'table.rows', 'figures.left', 'table.corrected'];
  return el('tr', {}, names.map((name) => el('th', { scope: 'col', class: name ? 'number' : null }, name ? t(name) : el('span', { class: 'visually-hidden' }, t('finder.score')))));
}

function lines(state, entry) {
  const { distance, concentration, without } = entry;
  const key = concentration && axesOf(state).cols[concentration.key];
  return [
    Number.isFinite(without?.first?.removed) ? el('p', {}, t('figures.removed', { n: fixedText(without.first.removed, 3) })) : null,
    distance?.within_50 === undefined || distance === null ? null
      : el('p', {}, t('figures.within', { half: whole(distance.within_50), most: whole(distance.within_90) })),
    key ? el('p', {}, t('figures.key', { n: fixedText(concentration.share, 3), at: whole(concentration.key) }), ' ', tokenLabel(labelParts(key))) : null,
  ];
}

function bins(state, entry) {
  const shares = entry.distance?.bins;
  if (!shares?.length || !state.heads.bins.length) return null;
  return el('div', { class: 'figure-bins' }, el('p', {}, t('figures.bins')), curve(shares, null, { bins: state.heads.bins, largest: Math.max(...shares) }), scaleLine(state.heads.bins));
}

/** Mounts the table under the picture. */
export function mountHeadFigures(root, store) {
  const details = ref(root, 'figures');
  const body = ref(root, 'figures-body');
  function show() {
    const { state } = store;
    const entry = finished(state) ? entryOf(state, shownHead(state)) : undefined;
    details.hidden = !entry;
    if (!details.open || !entry) return;
    const rows = [...SHARES, ...MEASURES].map((name) => scoreRow(state, entry, name));
    fill(body, el('table', {}, el('thead', {}, headRow()), el('tbody', {}, rows)), lines(state, entry), bins(state, entry));
  }
  details.addEventListener('toggle', show);
  store.subscribe(['heads', 'view', 'preview', 'run'], show);
}
