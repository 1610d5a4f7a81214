/**
 * Find by example: the button that marks links, the links that are marked, and the heads that make them.
 * Answers press-mark. Listens to run, view, preview, units, pairs, marking, pinned; emits mark, mark-extend, mark-cell, unmark, unmark-all, head, show-head, retry-figures.
 */

import { byTouch, el, fill, ref, refill, tokenLabel } from '../dom.js';
import { errorText } from '../errors.js';
import { fixedText, t, weightText, whole } from '../i18n.js';
import { labelParts } from '../labels.js';
import { keptCell } from '../kept-cell.js';
import { linkText, problemOf, ranked, sidesKey } from '../links.js';
import { axesOf, finished, mapAxes, shownHead, shownSides } from '../select.js';
import { sentence, short } from './readout.js';
import { retryButton } from './retry.js';

const SHOWN = 10; // heads in the list

/** The tokens of a span as they stand in the text: the first and the last where there are more than two. */
function spanLabel(tokens, [first, last]) {
  if (last >= tokens.length) return el('span', { class: 'aside' }, first === last ? whole(first) : `${whole(first)}–${whole(last)}`);
  const name = (index) => tokenLabel(labelParts(tokens[index]));
  if (first === last) return el('span', { class: 'link-side' }, name(first));
  return el('span', { class: 'link-side' }, name(first), last - first > 1 ? ' … ' : ' ', name(last));
}

/** The tokens of a link, as it knows them itself: the shown attention may be of other texts. Of one that no run had, the places. */
function sidesOf({ query, key, here }) {
  return [[here?.query, query], [here?.key, key]].map(([known, span]) => (known
    ? spanLabel({ [known.span[0]]: known.names[0], [known.span[1]]: known.names[1], length: Infinity }, known.span)
    : spanLabel([], span)));
}

const places = ({ query, key }) => [query, key].map(([first, last]) => (first === last ? whole(first) : `${whole(first)}–${whole(last)}`)).join(' → ');

function linkRow({ link, problem }, at) {
  const [query, key] = sidesOf(link);
  const note = problem ?? (link.apart ? 'other_text' : null);
  const remove = el('button', { type: 'button', class: 'icon-button', 'data-remove': at, 'data-key': `remove-${at}`, 'aria-label': t('links.remove', { link: places(link) }) }, '×');
  return el('li', { class: problem ? 'link is-apart' : 'link' },
    el('span', { class: 'link-text' }, query, el('span', { class: 'aside' }, ' → '), key,
      problem === 'lost' ? null : el('span', { class: 'aside' }, ` (${places(link)})`),
      note ? el('span', { class: 'link-problem' }, ` ${t(`links.${note}`)}`) : null),
    remove);
}

/** The best heads: layer · head and the weight; chance beside each where it is not the same for all. */
function headList(state) {
  const { heads } = state.pairs;
  const best = ranked(heads).slice(0, SHOWN);
  const same = new Set(best.map(({ chance }) => chance)).size === 1;
  const buttons = best.filter(({ mean }) => mean !== null).map(({ layer, head, mean, chance }) => el('li', {}, el('button', {
    type: 'button', class: 'link-head', 'data-layer': layer, 'data-head': head, 'data-key': `head-${layer}.${head}`, 'aria-pressed': 'false',
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
  return sentence(`links.key${side}${touch}`, { query: el('b', {}, spanLabel(rows, marking.query)) });
}

function answer(state, again) {
  const { status, error } = state.pairs;
  if (status === 'loading' && !state.pairs.heads.length) return [el('p', { class: 'fine' }, t('links.loading'))];
  if (status === 'error') return [el('p', { class: 'fine' }, t('links.failed', { why: errorText(error) }), ' ', again())];
  return state.pairs.heads.length ? headList(state) : [];
}

/** Calls `build` when one of the values that it shows is another: what is read out or has the focus is not made anew for less. */
function onChange(build) {
  let seen = null;
  return (values, ...args) => {
    if (seen?.length === values.length && values.every((value, at) => value === seen[at])) return;
    seen = values;
    build(...args);
  };
}

/** Takes what the reader presses to the store. */
function listen(root, store, [mark, extend, cell]) {
  const strip = () => {
    const { rows, cols } = shownSides(store.state);
    const side = store.state.marking?.query ? cols : rows;
    ref(root, side === 'target' ? 'target-strip' : 'strip').focus();
  };
  const press = () => {
    store.emit('mark');
    if (store.state.marking) strip();
  };
  mark.addEventListener('click', press);
  store.on('press-mark', press); // its key, wherever the focus is
  extend.addEventListener('click', () => {
    store.emit('mark-extend');
    if (!byTouch()) strip();
  });
  cell.addEventListener('click', () => store.emit('mark-cell', keptCell(store.state)));
  ref(root, 'unmark-all').addEventListener('click', () => {
    store.emit('unmark-all');
    mark.focus(); // the button is gone
  });
  ref(root, 'link-list').addEventListener('click', ({ target }) => {
    if (target.dataset.remove) store.emit('unmark', { index: Number(target.dataset.remove) });
  });
  ref(root, 'link-answer').addEventListener('click', ({ target }) => {
    const chosen = target.closest('.link-head');
    if (!chosen) return;
    store.emit('head', { layer: Number(chosen.dataset.layer), head: Number(chosen.dataset.head) });
    store.emit('show-head');
  });
}

/** The button that marks the cell that was pressed in the picture: a token, or the unit that the cell counts. */
function showCell(cell, state) {
  const { rows, cols } = mapAxes(state);
  const kept = keptCell(state);
  const [query, key] = kept ? [rows[kept.row], cols[kept.col]] : [];
  cell.hidden = !query || !key;
  if (cell.hidden) return;
  const name = (token) => tokenLabel(labelParts(short(token)));
  fill(cell, sentence('links.mark_cell', { query: name(query), key: name(key) }));
}

/** Mounts the control under the strips. */
export function mountLinks(root, store) {
  const [mark, extend, cell] = ['mark', 'mark-extend', 'mark-cell'].map((name) => ref(root, name));
  const [list, result] = ['link-list', 'link-answer'].map((name) => ref(root, name));
  listen(root, store, [mark, extend, cell]);

  const showPrompt = onChange((state) =>
    fill(ref(root, 'link-prompt'), state.marking ? prompt(state) : state.pairs.list.length ? [] : [t('links.what')]));
  const showList = onChange((links) => {
    const kept = refill(list, links.map(linkRow));
    if (!kept) (list.querySelector('li:last-child button') ?? mark).focus(); // the last of them was taken away
  });
  const showAnswer = onChange((state) => refill(result, answer(state, () => retryButton(store, 'retry-figures', () => mark))));
  const press = (state) => {
    const { layer, head } = shownHead(state);
    for (const button of result.querySelectorAll('.link-head')) {
      button.setAttribute('aria-pressed', String(button.dataset.layer === String(layer) && button.dataset.head === String(head)));
    }
  };

  store.subscribe(['run', 'view', 'preview', 'pairs', 'marking'], (state) => {
    const done = finished(state);
    const { pairs, marking } = state;
    ref(root, 'links').hidden = !done;
    if (!done) return;
    mark.setAttribute('aria-pressed', String(marking !== null));
    mark.textContent = t(marking ? 'links.stop' : 'links.mark');
    extend.hidden = !marking || (marking.query === null && !pairs.last);
    extend.setAttribute('aria-pressed', String(marking?.extending ?? false));
    ref(root, 'unmark-all').hidden = pairs.list.length === 0;
    const links = pairs.list.map((link) => ({ link, problem: problemOf(state, link) }));
    const sides = sidesKey(state);
    const { id } = state.run;
    showPrompt([id, sides, marking, pairs.last, pairs.list.length], state);
    showList([id, sides, ...links.flatMap(({ link, problem }) => [linkText(link), problem, link.apart])], links);
    const waiting = pairs.status === 'loading' && pairs.heads.length > 0; // those of before stay meanwhile
    showAnswer([waiting ? 'ready' : pairs.status, pairs.heads, pairs.error], state);
    press(state);
  });
  store.subscribe(['pinned', 'run', 'view', 'units'], (state) => showCell(cell, state));
}
