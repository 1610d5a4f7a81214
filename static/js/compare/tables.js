/** The largest changes, each leading to its place, and the figures of both heads. Listens to found, heads, view, sides; emits show-change, retry-heads. */

import { el, fill, ref } from '../dom.js';
import { errorText } from '../errors.js';
import { figureOf, FINDER, MEASURES, missingAt, roleOf, SHARES } from '../finder.js';
import { t, weightText } from '../i18n.js';
import { figureText } from '../table-columns.js';
import { roleName, scoreName } from '../views/finder-bar.js';
import { roleSource, sinkTags } from '../views/role-parts.js';
import { sharedTokens } from './link.js';
import { positionText, signedText } from './readout.js';
import { tokenNode } from './sides.js';
import { answerOf, axesOf, headOf, isReady, SIDES, siteOf } from './state.js';

const number = (value, text) => el('td', { class: 'number' }, el('data', { value }, text));

function changeRow(change, answer, tokens, store) {
  const end = (which, at) => [tokenNode(tokens[which][at]), el('span', { class: 'aside' }, ` ${positionText(answer[`axis_${which}`][at])}`)];
  const place = el('button', { type: 'button', class: 'change-button', onclick: () => store.emit('show-change', change) },
    end('rows', change.row), el('span', { class: 'arrow' }, ' → '), end('cols', change.col));
  return el('tr', { 'data-change': `${change.row}:${change.col}` }, el('td', {}, place),
    number(change.a, weightText(change.a)), number(change.b, weightText(change.b)),
    number(change.difference, signedText(change.difference)));
}

function mountChanges(root, store) {
  const body = ref(root, 'changes');
  let shown = null;
  store.subscribe(['found', 'view', 'sides'], (state) => {
    const { status, error } = state.found;
    const answer = status === 'ready' ? answerOf(state) : null;
    if (shown === (answer ?? status)) return;
    shown = answer ?? status;
    if (!answer?.largest.length) {
      fill(body, el('p', { class: 'fine' }, answer ? t(answer.aligned ? 'compare.no_change' : `compare.apart.${answer.reason}`) : error ? errorText(error) : ''));
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

/** A dash with its reason, which is read aloud as well as shown on pointing. */
const missing = (reason) => el('td', { class: 'number quiet', title: reason }, el('span', { 'aria-hidden': 'true' }, '—'), el('span', { class: 'visually-hidden' }, reason));

function figureCell(name, figure, reason) {
  if (!figure) return missing(reason);
  const { value, chance } = figure;
  const beside = chance === null ? null : el('span', { class: 'aside beside' }, ` ${t('compare.chance', { n: figureText(name, chance) })}`);
  return el('td', { class: 'number' }, el('data', { value }, figureText(name, value)), beside);
}

/** The figures below it are of all weights: a sign says where the role was read from others. */
function roleCell(entry) {
  if (!entry) return missing(t('compare.figures_single'));
  const role = roleOf(entry, FINDER.threshold);
  const { name, best, of } = role;
  const sinks = sinkTags(entry);
  const source = best && of !== 'all' ? roleSource(entry, role) : null;
  return el('td', { class: 'number role' }, name === 'sink' ? null : roleName(name), source, sinks.map((tag) => [' ', tag]).flat());
}

/** A difference of two figures with its sign, unless it is 0 in the digits that are shown. */
const differenceText = (value, text) => (value > 0 && Number(text) !== 0 ? `+${text}` : text);

function figureRow(state, heads, name) {
  const figures = SIDES.map((side) => heads[side] && figureOf(heads[side], name));
  const cells = SIDES.map((side, at) =>
    figureCell(name, figures[at], t(heads[side] ? missingAt(siteOf(state, side), name) : 'compare.figures_single')));
  const [a, b] = figures.map((figure) => figure?.value);
  const both = figures.every(Boolean);
  return el('tr', { 'data-figure': name }, el('th', { scope: 'row' }, scoreName(name)), cells,
    both ? number(a - b, differenceText(a - b, figureText(name, a - b))) : el('td', { class: 'number quiet', 'aria-hidden': 'true' }, '—'));
}

function figuresTable(state, heads) {
  const role = el('tr', { 'data-figure': 'role' }, el('th', { scope: 'row' }, t('compare.role')), SIDES.map((side) => roleCell(heads[side])), el('td', {}));
  return el('table', { class: 'compare-table' },
    el('thead', {}, el('tr', {}, ['', 'A', 'B', t('compare.less')].map((name) => el(name ? 'th' : 'td', name ? { scope: 'col' } : {}, name)))),
    el('tbody', {}, role, [...SHARES, ...MEASURES].map((name) => figureRow(state, heads, name))));
}

function mountFigures(root, store) {
  const body = ref(root, 'figures');
  const say = (words, more) => fill(body, el('p', { class: 'fine' }, words), more);
  body.addEventListener('click', ({ target }) => target.closest('[data-retry]') && store.emit('retry-heads'));
  store.subscribe(['heads', 'view', 'sides'], (state) => {
    if (!isReady(state)) return;
    const heads = Object.fromEntries(SIDES.map((side) => {
      const { layer, head } = headOf(state, side);
      return [side, state.heads[side]?.list.find((one) => one.layer === layer && one.head === head) ?? null];
    }));
    const status = SIDES.map((side) => state.heads[side]?.status);
    if (status.includes('error')) say(t('compare.figures_failed'), el('button', { type: 'button', class: 'small-button', 'data-retry': '' }, t('run.again')));
    else if (status.some((one) => one !== 'ready')) say(t('compare.figures_loading'));
    else if (!heads.a && !heads.b) say(t('compare.figures_single'));
    else fill(body, figuresTable(state, heads));
  });
}

/** Mounts both tables. */
export function mountTables(root, store) {
  mountChanges(root, store);
  mountFigures(root, store);
}
