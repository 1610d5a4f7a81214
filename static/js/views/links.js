/**
 * Find by example: the button that marks links, the links that are marked, and the heads that make them.
 * Listens to run, view, pairs, marking, pinned; emits mark, mark-extend, mark-cell, unmark, unmark-all, head, show-head.
 */

import { byTouch, el, fill, ref, tokenLabel } from '../dom.js';
import { fixedText, t, weightText, whole } from '../i18n.js';
import { labelParts } from '../labels.js';
import { problemOf, ranked } from '../links.js';
import { axesOf, finished, shownHead, shownSides } from '../select.js';
import { sentence } from './readout.js';

const SHOWN = 10; // heads in the list

/** The tokens of a span as they stand in the text: the first and the last where there are more than two. */
function spanLabel(tokens, [first, last]) {
  if (last >= tokens.length) return el('span', { class: 'aside' }, first === last ? whole(first) : `${whole(first)}–${whole(last)}`);
  const name = (index) => tokenLabel(labelParts(tokens[index]));
  if (first === last) return el('span', { class: 'link-side' }, name(first));
  return el('span', { class: 'link-side' }, name(first), last - first > 1 ? ' … ' : ' ', name(last));
}

const places = ({ query, key }) => [query, key].map(([first, last]) => (first === last ? whole(first) : `${whole(first)}–${whole(last)}`)).join(' → ');

function linkRow(state, link, at) {
  const { rows, cols } = axesOf(state);
  const problem = problemOf(state, link);
  const remove = el('button', { type: 'button', class: 'icon-button', 'data-remove': at, 'aria-label': t('links.remove', { link: places(link) }) }, '×');
  return el('li', { class: problem ? 'link is-apart' : 'link' },
    el('span', { class: 'link-text' }, spanLabel(rows, link.query), el('span', { class: 'aside' }, ' → '), spanLabel(cols, link.key),
      el('span', { class: 'aside' }, ` (${places(link)})`), problem ? el('span', { class: 'link-problem' }, ` ${t(`links.${problem}`)}`) : null),
    remove);
}

/** The best heads: layer · head and the weight; chance beside each where it is not the same for all. */
function headList(state) {
  const { heads } = state.pairs;
  const best = ranked(heads).slice(0, SHOWN);
  const shown = shownHead(state);
  const same = new Set(best.map(({ chance }) => chance)).size === 1;
  const buttons = best.filter(({ mean }) => mean !== null).map(({ layer, head, mean, chance }) => el('li', {}, el('button', {
    type: 'button', class: 'link-head', 'data-layer': layer, 'data-head': head,
    'aria-pressed': String(shown.layer === layer && shown.head === head),
    'aria-label': t('links.head', { layer, head, weight: weightText(mean), chance: weightText(chance) }),
  }, el('span', { class: 'aside' }, `${layer} · ${head}`), ' ', el('data', { value: mean }, fixedText(mean, 3)),
  same ? null : el('span', { class: 'aside' }, ` / ${fixedText(chance, 3)}`))));
  const title = t(same ? 'links.heads' : 'links.heads_chances', { n: whole(heads.length), chance: fixedText(best[0]?.chance ?? 0, 3) });
  return [el('p', { class: 'fine' }, title), el('ol', { class: 'link-heads' }, buttons)];
}

/** What the next token that is chosen will be. */
function prompt(state) {
  const { marking, pairs } = state;
  const { rows, cols } = axesOf(state);
  const side = shownSides(state).rows === shownSides(state).cols ? '' : '_cross';
  const touch = byTouch() ? '_touch' : '';
  if (marking.extending) return [t('links.extend_now')];
  if (marking.query === null) return [t(pairs.last ? `links.again${touch}` : `links.query${side}`)];
  return sentence(`links.key${side}`, { query: el('b', {}, spanLabel(rows, marking.query)) });
}

function answer(state) {
  const { status, error } = state.pairs;
  if (status === 'loading' && !state.pairs.heads.length) return [el('p', { class: 'fine' }, t('links.loading'))];
  if (status === 'error') return [el('p', { class: 'fine' }, t('links.failed', { why: error.message }))];
  return state.pairs.heads.length ? headList(state) : [];
}

/** Mounts the control under the strips. */
export function mountLinks(root, store) {
  const mark = ref(root, 'mark');
  const extend = ref(root, 'mark-extend');
  const cell = ref(root, 'mark-cell');
  const strip = () => {
    const { rows, cols } = shownSides(store.state);
    const side = store.state.marking?.query ? cols : rows;
    ref(root, side === 'target' ? 'target-strip' : 'strip').focus();
  };
  mark.addEventListener('click', () => {
    store.emit('mark');
    if (store.state.marking) strip();
  });
  extend.addEventListener('click', () => {
    store.emit('mark-extend');
    if (!byTouch()) strip();
  });
  cell.addEventListener('click', () => store.emit('mark-cell', store.state.pinned));
  ref(root, 'unmark-all').addEventListener('click', () => store.emit('unmark-all'));
  ref(root, 'link-list').addEventListener('click', ({ target }) => {
    if (target.dataset.remove) store.emit('unmark', { index: Number(target.dataset.remove) });
  });
  ref(root, 'link-answer').addEventListener('click', ({ target }) => {
    const chosen = target.closest('.link-head');
    if (!chosen) return;
    store.emit('head', { layer: Number(chosen.dataset.layer), head: Number(chosen.dataset.head) });
    store.emit('show-head');
  });

  store.subscribe(['run', 'view', 'pairs', 'marking'], (state) => {
    const done = finished(state) !== null;
    const { list } = state.pairs;
    ref(root, 'links').hidden = !done;
    ref(root, 'page').classList.toggle('is-linked', done && (list.length > 0 || state.marking !== null));
    if (!done) return;
    mark.setAttribute('aria-pressed', String(state.marking !== null));
    mark.textContent = t(state.marking ? 'links.stop' : 'links.mark');
    extend.hidden = !state.marking || (state.marking.query === null && !state.pairs.last);
    extend.setAttribute('aria-pressed', String(state.marking?.extending ?? false));
    ref(root, 'unmark-all').hidden = list.length === 0;
    fill(ref(root, 'link-prompt'), state.marking ? prompt(state) : list.length ? [] : [t('links.what')]);
    fill(ref(root, 'link-list'), list.map((link, at) => linkRow(state, link, at)));
    fill(ref(root, 'link-answer'), answer(state));
  });
  store.subscribe(['pinned', 'run', 'view'], (state) => {
    const { rows, cols } = axesOf(state);
    const { pinned } = state;
    const known = finished(state) && pinned && rows[pinned.row] && cols[pinned.col];
    cell.hidden = !known;
    if (!known) return;
    const name = (token) => tokenLabel(labelParts(token));
    fill(cell, sentence('links.mark_cell', { query: name(rows[pinned.row]), key: name(cols[pinned.col]) }));
  });
}
