/** How far each layer looks, with what uniform attention would do. Listens to layers, similarity, finder, run, view, preview; emits head, show-head, find, retry-figures. */

import { alikeInLayers } from '../alike.js';
import { el, ref, refill } from '../dom.js';
import { errorText } from '../errors.js';
import { fixedText, t, whole } from '../i18n.js';
import { finished, isCross, shownHead, siteOf } from '../select.js';
import { curve, scaleLine } from './layer-curve.js';
import { findings } from './layer-findings.js';
import { retryButton } from './retry.js';

/** Distances are whole tokens; halves of them come from a mean over heads. */
const far = (value) => (value === null || value === undefined ? '–' : Number.isInteger(value) ? whole(value) : fixedText(value, 1));

/** The same uniform figures for all layers, or null where masks differ. */
function commonUniform(layers) {
  const known = layers.filter((layer) => layer.distance);
  const text = (layer) => JSON.stringify([layer.distance.uniform, layer.window?.uniform_50, layer.window?.uniform_90, layer.uniform_curve]);
  return known.length && known.every((layer) => text(layer) === text(known[0])) ? known[0] : null;
}

/** A second number of a cell, with the word that says what it is. */
const quiet = (shown, words) => (shown ? el('span', { class: 'layer-uniform' }, ` ${words()}`) : null);

/** The figures that a row shows: with all weights those of what remains where the service reads the layer without its sink. */
const figuresOf = (layer, version) => (version === 'all' ? layer[layer.of] ?? layer.all : layer[version]);

/** Whether a row shows what remains beside a sink. */
const isBeside = (layer, version) => version === 'all' && layer.of === 'first' && Boolean(layer.first);

const withSink = (layer) => t('layers.with_sink', { n: far(layer.all.distance.mean), share: fixedText(layer.sink, 2) });

function alikeCell(alike) {
  if (!alike.length) return el('td');
  const words = alike.map(([one, other, distance]) => `${one} ≈ ${other} (${fixedText(distance, 3)})`);
  const more = alike.length > 1 ? ` +${whole(alike.length - 1)}` : '';
  return el('td', { class: 'layer-alike', title: words.join(', ') }, `${alike[0][0]} ≈ ${alike[0][1]}${more}`);
}

function layerRow(entry, figures, given) {
  const { layer } = entry;
  const { distance, window } = figures ?? {};
  const apart = !given.common;
  const beside = isBeside(entry, given.version);
  const label = distance ? t('layers.row', {
    layer, mean: fixedText(distance.mean, 1), spread: fixedText(distance.spread, 1), uniform: fixedText(distance.uniform, 1), half: far(window?.within_50), most: far(window?.within_90),
  }) : t('finder.untested');
  const button = el('button', { type: 'button', tabindex: -1, 'data-key': `layer-${layer}`, 'aria-label': label }, String(layer));
  return el('tr', { 'data-layer': layer }, el('th', { scope: 'row' }, button),
    el('td', {}, figures?.curve ? curve(figures.curve, figures.uniform_curve, given) : '–'),
    el('td', { class: 'number' }, distance ? [fixedText(distance.mean, 1), el('span', { class: 'layer-spread' }, ` ± ${fixedText(distance.spread, 1)}`),
      quiet(apart, () => t('layers.uniform_is', { n: far(distance.uniform) })), quiet(beside, () => withSink(entry))] : '–'),
    el('td', { class: 'number' }, window ? [`${far(window.within_50)} / ${far(window.within_90)}`, 
      quiet(apart, () => t('layers.uniform_is', { n: `${far(window.uniform_50)} / ${far(window.uniform_90)}` }))] : '–'),
    given.anyAlike ? alikeCell(given.alike[layer] ?? []) : null);
}

function uniformRow({ distance, window, uniform_curve: uniform }, given) {
  return el('tr', { class: 'layer-common' }, el('th', { scope: 'row' }, t('layers.uniform_row')), el('td', {}, curve(null, uniform, given)),
    el('td', { class: 'number' }, fixedText(distance.uniform, 1)), el('td', { class: 'number' }, window ? `${far(window.uniform_50)} / ${far(window.uniform_90)}` : '–'), given.anyAlike ? el('td') : null);
}

function headRow(bins, given) {
  const names = ['layers.layer', null, 'layers.mean', 'layers.window', ...(given.anyAlike ? ['layers.alike'] : [])];
  return el('tr', {}, names.map((name, at) => el('th', { scope: 'col', class: at === 2 || at === 3 ? 'number' : null }, name ? t(name) : [t('layers.curve'), scaleLine(bins)])));
}

function versionChoice(version, store, beside) {
  const button = (value) => el('button', { type: 'button', 'data-key': `version-${value}`, 'aria-pressed': String(version === value), onclick: () => store.emit('find', { version: value }) }, t(`layers.version_${value === 'all' && beside ? 'beside' : value}`));
  return el('div', { class: 'segments', role: 'group', 'aria-label': t('layers.version') }, button('all'), button('first'));
}

function content({ bins, near, layers, verdicts, warnings }, wanted, alike, store) {
  const some = layers.some(({ first }) => first);
  const version = some ? wanted : 'all';
  const figures = layers.map((layer) => figuresOf(layer, version));
  const beside = layers.some((layer) => isBeside(layer, 'all'));
  if (!figures.some(Boolean)) return [el('p', { class: 'fine' }, t('finder.untested'))];
  const known = figures.filter(Boolean);
  const largest = Math.max(...known.flatMap((one) => [...(one.curve ?? []), ...(one.uniform_curve ?? [])]));
  const common = commonUniform(known);
  const given = { version, bins, largest, common, alike, anyAlike: alike.some((pairs) => pairs.length) };
  return [
    findings(verdicts[version], warnings[version], alike, near),
    some ? versionChoice(version, store, beside) : null,
    beside && version === 'all' ? el('p', { class: 'fine' }, t('layers.beside_what')) : null,
    el('table', { class: 'layers-table' }, el('thead', {}, headRow(bins, given)),
      el('tbody', {}, common ? uniformRow(common, given) : null, layers.map((layer, at) => layerRow(layer, figures[at], given)))),
    el('p', { class: 'fine layers-legend' }, el('span', { class: 'key-bar', 'aria-hidden': 'true' }), t('layers.legend_bar'), el('span', { class: 'key-line', 'aria-hidden': 'true' }), t('layers.legend_line')),
  ];
}

const problem = (words, store) => el('p', { class: 'fine', role: 'alert' }, words, ' ', retryButton(store));

/** What stands where no layers can: why there are none, or that they are on their way. */
function insteadOf(state, store) {
  const { status, error } = state.layers;
  if (status === 'error' && !isCross(state)) return problem(errorText(error), store);
  return el('p', { class: 'fine', role: 'status' }, t(isCross(state) ? 'layers.none' : 'layers.loading'));
}

/** Mounts the view of layers. */
export function mountLayers(root, store) {
  const box = ref(root, 'layers-box');

  let marked = null; // the layer that is marked
  function mark(state) {
    const { layer } = shownHead(state);
    marked = layer;
    for (const row of box.querySelectorAll('[data-layer]')) {
      if (row.dataset.layer === String(layer)) row.setAttribute('aria-current', 'true');
      else row.removeAttribute('aria-current');
    }
  }

  /** The row that the keys walked to comes into the picture, where the box scrolls by itself. */
  function follow(state) {
    const before = marked;
    mark(state);
    if (marked === before || state.finder.tab !== 'layers' || box.scrollHeight <= box.clientHeight) return;
    box.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }

  box.addEventListener('click', ({ target }) => {
    const row = target.closest('[data-layer]');
    const opens = target.closest('[data-open]');
    if (opens) {
      const [layer, head] = opens.dataset.open.split('.').map(Number);
      store.emit('head', { layer, head });
    } else if (row) store.emit('head', { layer: Number(row.dataset.layer) });
    else return;
    store.emit('show-head');
  });
  let built = [];
  store.subscribe(['layers', 'finder', 'similarity', 'run', 'view'], (state) => {
    const { layers: { status, answer }, similarity: { distances, error: unlike }, finder } = state;
    if (finder.tab !== 'layers' || !finished(state)) return;
    const wanted = [status, answer, finder.version, distances, unlike, isCross(state)];
    if (wanted.every((value, at) => value === built[at])) return;
    built = wanted;
    const alike = distances ? alikeInLayers(distances, siteOf(state).n_heads) : [];
    const shown = status === 'ready' && answer.layers.length > 0;
    refill(box, shown ? [unlike ? problem(t('layers.alike_failed', { why: errorText(unlike) }), store) : null, ...content(answer, finder.version, alike, store)] : insteadOf(state, store));
    mark(state);
  });
  store.subscribe(['view', 'preview'], follow);
}
