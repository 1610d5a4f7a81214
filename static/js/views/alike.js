/**
 * How alike heads are: which of three views is open, the list of near-duplicates, and the heads closest to the chosen one.
 * Listens to similarity, finder, view, preview, scheme; emits find, head, show-head, retry-figures.
 */

import { CLOSE, distanceOf, headOf, isComparable, nearestTo, shortName } from '../alike.js';
import { el, ref, refill } from '../dom.js';
import { errorText } from '../errors.js';
import { fixedText, t, whole } from '../i18n.js';
import { shownHead, siteOf } from '../select.js';
import { gradient, likenessColour } from '../tints.js';
import { mountAlikeMap } from './alike-map.js';
import { mountAlikePoints } from './alike-points.js';
import { retryButton } from './retry.js';
import { mountSegments } from './segments.js';

const NEAREST = 8;

/** A button that opens a head; `key` names its place where the list is made anew. */
function headButton(head, key = null) {
  return el('button', { type: 'button', class: 'head-button', 'data-open': `${head.layer}.${head.head}`, 'data-key': key, 'aria-label': t('finder.open', head) }, shortName(head));
}

function pairRow([one, other, distance], heads) {
  return el('li', {}, headButton(headOf(one, heads)), el('span', { 'aria-hidden': 'true' }, '≈'), headButton(headOf(other, heads)),
    el('span', { class: 'number' }, fixedText(distance, 3)));
}

function pairList({ duplicates, duplicates_in_all: all = duplicates.length }, heads) {
  const given = { n: whole(all), shown: whole(duplicates.length), limit: CLOSE };
  const key = all === 0 ? 'alike.duplicates_none' : all > duplicates.length ? 'alike.duplicates_some' : 'alike.duplicates';
  return [el('p', { class: 'fine' }, t(key, given)), el('ol', { class: 'pairs' }, duplicates.map((pair) => pairRow(pair, heads)))];
}

/** The heads closest to the one on the screen. */
function nearestLine(state, { heads, distances }) {
  const chosen = shownHead(state);
  if (!Number.isInteger(chosen.layer) || !Number.isInteger(chosen.head)) return el('p', { class: 'fine' }, t('alike.near_none'));
  const near = nearestTo(distances, chosen.layer * heads + chosen.head, NEAREST);
  const items = near.map(({ index, distance }, at) => el('li', {}, headButton(headOf(index, heads), at), el('span', { class: 'number' }, fixedText(distance, 3))));
  return [el('h3', {}, t('alike.near', { place: shortName(chosen) })), el('ol', {}, items)];
}

function legendOf(scheme, rows) {
  const bar = el('span', { class: 'tint-bar', 'aria-hidden': 'true' });
  bar.style.backgroundImage = gradient((place) => likenessColour(scheme, place));
  return [el('span', {}, t('alike.legend')), `0 ${t('alike.same')}`, bar, `1 ${t('alike.different')}`, el('span', { class: 'quiet' }, t('alike.foot', { n: whole(rows.length) }))];
}

/** Mounts the tab. */
export function mountAlike(root, store) {
  const state = ref(root, 'alike-state');
  const [map, points, list] = ['alike-map', 'alike-points', 'alike-list'].map((name) => ref(root, name));
  const [legend, nearest] = ['alike-legend', 'nearest'].map((name) => ref(root, name));
  mountSegments(ref(root, 'alike-view'), store, ({ finder }) => finder.view, (view) => store.emit('find', { view }), ['finder']);
  const colour = ref(root, 'alike-colour');
  colour.addEventListener('change', () => store.emit('find', { colour: colour.value }));
  const pairWords = (one, other) => {
    const { similarity: { distances } } = store.state;
    const heads = siteOf(store.state).n_heads;
    const [first, second] = [headOf(one, heads), headOf(other, heads)];
    return t('alike.pair', { one: shortName(first), other: shortName(second), n: fixedText(distanceOf(distances, one, other), 3) });
  };
  mountAlikeMap(root, store, pairWords);
  mountAlikePoints(root, store);

  /** Rebuilds a part when one of the values that it shows is another. */
  const built = new Map();
  function keep(node, values, children) {
    if (built.get(node)?.every((value, at) => value === values[at])) return;
    built.set(node, values);
    refill(node, children());
  }

  function show(now) {
    if (now.finder.tab !== 'alike') return;
    const { status, answer, distances, error } = now.similarity;
    const ready = isComparable(now.similarity);
    const heads = siteOf(now)?.n_heads;
    state.hidden = ready;
    if (status === 'error') keep(state, [error], () => [errorText(error), ' ', retryButton(store)]);
    else keep(state, [status], () => (ready ? [] : t(status === 'ready' ? 'finder.untested' : 'alike.loading')));
    for (const [name, node] of Object.entries({ map, points, list })) node.hidden = !ready || now.finder.view !== name;
    ref(root, 'alike-points-legend').hidden = points.hidden;
    ref(root, 'alike-colour-label').hidden = points.hidden;
    colour.value = now.finder.colour;
    legend.hidden = !ready || now.finder.view !== 'map';
    nearest.hidden = !ready || now.finder.view === 'list';
    if (!ready) return;
    const { layer, head } = shownHead(now);
    keep(legend, [now.scheme, answer], () => legendOf(now.scheme, answer.rows));
    keep(list, [answer], () => pairList(answer, heads));
    keep(nearest, [answer, layer, head], () => nearestLine(now, { heads, distances }));
  }

  for (const node of [list, nearest]) {
    node.addEventListener('click', ({ target }) => {
      const open = target.closest('[data-open]')?.dataset.open;
      if (!open) return;
      const [layer, head] = open.split('.').map(Number);
      store.emit('head', { layer, head });
      store.emit('show-head');
    });
  }
  store.subscribe(['similarity', 'finder', 'view', 'preview', 'scheme'], show);
}
