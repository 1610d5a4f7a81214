/** The largest changes, each leading to its place, and the figures of both heads. Listens to found, heads, view, sides; emits show-change. */

import { el, fill, ref } from '../dom.js';
import { fixedText, has, t, weightText } from '../i18n.js';
import { sharedTokens } from './link.js';
import { differenceText, positionText, signedText } from './readout.js';
import { tokenNode } from './sides.js';
import { answerOf, axesOf, headOf, isReady, SIDES } from './state.js';

const DIGITS = 3;
const number = (value, text, attributes = {}) => el('td', { class: 'number' }, el('data', { value, ...attributes }, text));

function changeRow(change, answer, tokens, store) {
  const end = (which, at) => [tokenNode(tokens[which][at]), el('span', { class: 'aside' }, ` ${positionText(answer[`axis_${which}`][at])}`)];
  const place = el('button', { type: 'button', class: 'change-button', onclick: () => store.emit('show-change', change) },
    end('rows', change.row), el('span', { class: 'arrow' }, ' → '), end('cols', change.col));
  return el('tr', { 'data-change': `${change.row}:${change.col}` }, el('td', {}, place),
    number(change.a, weightText(change.a)), number(change.b, weightText(change.b)),
    number(change.difference, signedText(change.difference), { class: change.difference > 0 ? 'is-a' : 'is-b' }));
}

function mountChanges(root, store) {
  const body = ref(root, 'changes');
  let shown = null;
  store.subscribe(['found', 'view', 'sides'], (state) => {
    const answer = state.found.status === 'ready' ? answerOf(state) : null;
    if (answer === shown) return;
    shown = answer;
    if (!answer?.largest.length) {
      fill(body, el('p', { class: 'fine' }, answer ? t(answer.aligned ? 'compare.no_change' : `compare.apart.${answer.reason}`) : ''));
      return;
    }
    const axes = axesOf(state, 'a');
    const tokens = { rows: sharedTokens(answer.axis_rows, axes.rows), cols: sharedTokens(answer.axis_cols, axes.cols) };
    const names = [t('compare.query_key'), 'A', 'B', t('compare.less')];
    fill(body, el('table', { class: 'compare-table' },
      el('thead', {}, el('tr', {}, names.map((name) => el('th', { scope: 'col' }, name)))),
      el('tbody', {}, answer.largest.map((change) => changeRow(change, answer, tokens, store)))));
  });
  store.subscribe(['cursor'], ({ cursor }) => {
    const place = cursor?.d ? `${cursor.d.rows[0]}:${cursor.d.cols[0]}` : null;
    for (const row of body.querySelectorAll('tr[data-change]')) row.classList.toggle('is-here', row.dataset.change === place);
  });
}

/** The figures of one head as [[key, value, chance]]; a value is null where the text cannot show it. */
function figuresOf(head) {
  const scores = Object.entries(head.scores ?? {}).map(([name, score]) => [name, score?.score ?? null, score?.chance ?? null]);
  return [...scores,
    ['entropy', head.entropy?.normalised ?? null, null],
    ['distance', head.distance?.mean ?? null, head.distance?.uniform ?? null],
    ['concentration', head.concentration?.share ?? null, head.concentration?.chance ?? null]];
}

function figureCell(entry) {
  const [, value, chance] = entry ?? [null, null, null];
  if (value === null) return el('td', { class: 'number quiet' }, el('span', { title: t('compare.untested') }, '—'));
  const beside = chance === null ? null : el('span', { class: 'aside beside' }, ` ${t('compare.chance', { n: fixedText(chance, DIGITS) })}`);
  return el('td', { class: 'number' }, el('data', { value }, fixedText(value, DIGITS)), beside);
}

const scoreName = (name) => (has(`score.${name}`) ? t(`score.${name}`) : name);

function roleText(head) {
  const role = head?.role;
  if (!role) return '—';
  const name = role.name === null || role.name === undefined ? t('role.untested') : t(`role.${role.name}`);
  const sinks = (role.sinks ?? []).length && role.name !== 'sink' ? ` · ${t('role.sinks')}` : '';
  return `${name}${sinks}`;
}

function figuresTable(heads) {
  const figures = Object.fromEntries(SIDES.map((side) => [side, new Map((heads[side] ? figuresOf(heads[side]) : []).map((one) => [one[0], one]))]));
  const names = [...new Set(SIDES.flatMap((side) => [...figures[side].keys()]))];
  const rows = names.map((name) => {
    const [a, b] = SIDES.map((side) => figures[side].get(name));
    const both = typeof a?.[1] === 'number' && typeof b?.[1] === 'number';
    return el('tr', { 'data-figure': name }, el('th', { scope: 'row' }, scoreName(name)), figureCell(a), figureCell(b),
      both ? number(a[1] - b[1], differenceText(a[1] - b[1], DIGITS)) : el('td', { class: 'number quiet' }, '—'));
  });
  const role = el('tr', { 'data-figure': 'role' }, el('th', { scope: 'row' }, t('compare.role')), SIDES.map((side) => el('td', { class: 'number role' }, roleText(heads[side]))), el('td', {}));
  return el('table', { class: 'compare-table' },
    el('thead', {}, el('tr', {}, ['', 'A', 'B', t('compare.less')].map((name) => el(name ? 'th' : 'td', name ? { scope: 'col' } : {}, name)))),
    el('tbody', {}, role, rows));
}

function mountFigures(root, store) {
  const body = ref(root, 'figures');
  store.subscribe(['heads', 'view', 'sides'], (state) => {
    if (!isReady(state)) return;
    const heads = Object.fromEntries(SIDES.map((side) => {
      const { layer, head } = headOf(state, side);
      return [side, state.heads[side]?.list.find((one) => one.layer === layer && one.head === head) ?? null];
    }));
    const status = SIDES.map((side) => state.heads[side]?.status);
    if (status.includes('error')) fill(body, el('p', { class: 'fine' }, t('compare.figures_failed')));
    else if (status.some((one) => one !== 'ready')) fill(body, el('p', { class: 'fine' }, t('compare.figures_loading')));
    else if (!heads.a && !heads.b) fill(body, el('p', { class: 'fine' }, t('compare.figures_single')));
    else fill(body, figuresTable(heads));
  });
}

/** Mounts both tables. */
export function mountTables(root, store) {
  mountChanges(root, store);
  mountFigures(root, store);
}
