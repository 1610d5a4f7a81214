/**
 * The bar over the views of all heads: by which score they are shown, in which order, and which of them.
 * Listens to finder, run, heads, view; emits find, find-all, order.
 */

import { el, fill, ref } from '../dom.js';
import { FILTERS, FINDER, isRanked, OWN_TABS, scoresOf, surveyOf, versionFor } from '../finder.js';
import { t, whole } from '../i18n.js';
import { finished, siteOf } from '../select.js';
import { mountSegments } from './segments.js';

const PARTS = ['role', 'layers', 'threshold', 'version'];

/** A score's name as a reader meets it. */
export const scoreName = (name) => t(`score.${name}`);

/** A role's name; of a head whose role this text cannot show, that. */
export const roleName = (name) => t(name === null ? 'role.untested' : `role.${name}`);

function fillScores(select, names, chosen) {
  if (select.dataset.names !== names.join()) {
    select.dataset.names = names.join();
    fill(select, names.map((name) => el('option', { value: name }, scoreName(name))));
  }
  select.value = chosen;
}

function mountLayers(root, store) {
  const [from, to] = ['filter-from', 'filter-to'].map((name) => ref(root, name));
  const last = () => siteOf(store.state).n_layers - 1;
  const read = (input, usual) => (input.value === '' ? usual : Math.min(last(), Math.max(0, Math.round(Number(input.value)))));
  const changed = () => {
    const [low, high] = [read(from, 0), read(to, last())].sort((one, other) => one - other);
    store.emit('find', { layers: low === 0 && high === last() ? null : [low, high] });
  };
  for (const input of [from, to]) input.addEventListener('change', changed);
  return ({ finder }) => {
    for (const input of [from, to]) input.max = last();
    from.value = finder.layers?.[0] ?? 0;
    to.value = finder.layers?.[1] ?? last();
  };
}

/** Mounts the bar and its filters. */
export function mountFinderBar(root, store) {
  const bar = ref(root, 'finder');
  const score = ref(root, 'finder-score');
  const [role, threshold, version] = ['filter-role', 'filter-threshold', 'filter-version'].map((name) => ref(root, name));
  fill(role, el('option', { value: '' }, t('finder.any_role')), FILTERS.map((name) => el('option', { value: name }, t(`role.${name}`))));
  score.addEventListener('change', () => store.emit('find', { score: score.value }));
  role.addEventListener('change', () => store.emit('find', { role: role.value || null }));
  threshold.addEventListener('input', () => store.emit('find', { threshold: Number(threshold.value) }));
  version.addEventListener('change', () => store.emit('find', { version: version.value }));
  ref(root, 'filter-clear').addEventListener('click', () => store.emit('find-all'));
  mountSegments(ref(root, 'finder-order'), store, ({ finder }) => (isRanked(finder) ? 'score' : 'layer'), (by) => store.emit('order', { by }), ['finder']);
  const showLayers = mountLayers(root, store);

  store.subscribe(['finder', 'run', 'heads', 'pairs', 'view'], (state) => {
    const shown = finished(state) !== null;
    bar.hidden = !shown || OWN_TABS.includes(state.finder.tab);
    if (!shown) return;
    const { finder } = state;
    ref(root, 'finder-order').hidden = finder.tab === 'scatter';
    ref(root, 'finder-axes').hidden = finder.tab !== 'scatter';
    fillScores(score, scoresOf(state), finder.score);
    score.parentElement.hidden = finder.tab === 'scatter';
    role.value = finder.role ?? '';
    threshold.value = String(finder.threshold);
    ref(root, 'filter-threshold-text').textContent = String(finder.threshold);
    const counted = versionFor(finder);
    version.value = counted;
    version.disabled = finder.score === 'pairs' && finder.tab !== 'scatter';
    ref(root, 'filter-version-what').textContent = t(version.disabled ? 'finder.version_pairs' : 'finder.version_what');
    showLayers(state);
    const changed = PARTS.filter((name) => (name === 'version' ? counted : finder[name]) !== FINDER[name]).length;
    ref(root, 'finder-more').textContent = changed ? t('finder.filter_n', { n: whole(changed) }) : t('finder.filter');
    ref(root, 'filter-clear').disabled = changed === 0;
  });
  store.subscribe(['finder', 'run', 'heads', 'pairs', 'view'], (state) => {
    ref(root, 'overview-title').textContent = titleOf(state);
  });
}

function titleOf(state) {
  const site = finished(state) && siteOf(state);
  if (!site) return t('overview.label');
  if (state.finder.tab === 'layers') return t('layers.title', { n: whole(site.n_layers) });
  const all = site.n_layers * site.n_heads;
  const { list, order } = surveyOf(state);
  const partly = list.length && order.length < list.length && state.finder.tab !== 'alike';
  return partly ? t('overview.some', { n: whole(order.length), all: whole(all) }) : t('overview.all', { n: whole(all) });
}
