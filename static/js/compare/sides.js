/** The two sides' choices: run, site, layer and head, with the beginning of the text. Listens to sides, view, recent; emits choose, head, retry, copy-link. */

import { isRunId, readIndex } from '../address-fields.js';
import { el, fill, ref, tokenLabel } from '../dom.js';
import { errorText } from '../errors.js';
import { t, whole } from '../i18n.js';
import { labelParts, shownText } from '../labels.js';
import { entryOf } from '../recent.js';
import { groupTokens, segmentsOf } from '../text.js';
import { indexOptions, showChoice } from '../views/head-choice.js';
import { siteName } from '../views/sites.js';
import { runOf, siteOf } from './state.js';

const EXCERPT = 24; // tokens of the text that are shown

const time = (text) => new Intl.DateTimeFormat(document.documentElement.lang, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }).format(new Date(text));
const entryText = ({ model, tokens, time: at }) => t('compare.entry', { model, tokens: whole(tokens), time: time(at) });

/** The list to choose from: recent runs, and the shown one where it is not among them. */
function runOptions(state, side) {
  const { id } = state.sides[side];
  const run = runOf(state, side);
  const list = run && !state.recent.some((one) => one.id === id) ? [entryOf(run), ...state.recent] : state.recent;
  const options = list.map((entry) => el('option', { value: entry.id }, entryText(entry)));
  if (!id || !list.some((one) => one.id === id)) options.unshift(el('option', { value: id ?? '' }, t(id ? 'compare.this_run' : 'compare.choose')));
  return options;
}

function excerpt(run) {
  const tokens = run.tokens.source.filter(({ special }) => !special);
  const shown = segmentsOf(tokens.slice(0, EXCERPT)).map((segment) =>
    groupTokens(segment, null).map(({ gap, tokens: [first] }) => gap + first.text).join('').trim());
  return [el('bdi', {}, shown.map(shownText).join(' · ')), tokens.length > EXCERPT ? ' …' : null];
}

function trouble({ id, phase, error, progress }) {
  if (phase === 'loading') return [t('compare.loading_run')];
  if (phase === 'active') return [progress?.total ? t('compare.active_of', { done: whole(progress.done), total: whole(progress.total) }) : t('compare.active')];
  if (phase === 'gone') return [t(isRunId(id) ? 'compare.gone' : 'compare.broken')];
  if (phase === 'error') return [errorText(error)];
  return [];
}

function mountSide(root, store, side) {
  const part = (name) => ref(root, `${name}-${side}`);
  const [run, site, layer, head] = ['run', 'site', 'layer', 'head'].map(part);
  run.addEventListener('change', () => run.value && store.emit('choose', { side, id: run.value }));
  site.addEventListener('change', () => store.emit('head', { side, site: site.value, layer: 0, head: 0 }));
  layer.addEventListener('change', () => store.emit('head', { side, layer: readIndex(layer.value) }));
  head.addEventListener('change', () => store.emit('head', { side, head: readIndex(head.value) }));
  part('retry').addEventListener('click', () => store.emit('retry', { side }));

  store.subscribe(['sides', 'recent'], (state) => {
    fill(run, runOptions(state, side));
    run.value = state.sides[side].id ?? '';
    const own = state.sides[side];
    const words = trouble(own);
    part('trouble').hidden = !words.length;
    part('trouble').classList.toggle('is-problem', own.phase === 'gone' || own.phase === 'error');
    fill(part('trouble-text'), words);
    part('retry').hidden = own.phase !== 'error';
  });

  let built = null;
  store.subscribe(['sides', 'view'], (state) => {
    const summary = runOf(state, side);
    part('place').hidden = !summary;
    part('excerpt').hidden = !summary;
    if (!summary) {
      built = null;
      return;
    }
    const shown = siteOf(state, side);
    if (built !== `${summary.id}|${shown.site}`) {
      built = `${summary.id}|${shown.site}`;
      fill(layer, indexOptions(shown.n_layers));
      fill(head, indexOptions(shown.n_heads));
      fill(site, summary.sites.map(({ site: name }) => el('option', { value: name }, siteName(name))));
      part('site-label').hidden = summary.sites.length < 2;
      fill(part('excerpt'), excerpt(summary));
    }
    const view = state.view[side];
    site.value = shown.site;
    showChoice({ layer, head }, view);
    part('open').href = `/#${new URLSearchParams({ run: summary.id, site: shown.site, layer: view.layer, head: view.head })}`;
    part('map-title').textContent = t('compare.map', { side: side.toUpperCase(), layer: placeName(view.layer), head: placeName(view.head) });
  });
}

const placeName = (index) => (Number.isInteger(index) ? String(index) : t(`head.all_${index}`));

/** A token as it is written in running text. */
export const tokenNode = (token) => el('span', { class: 'read-token' }, tokenLabel(labelParts(token)));

/** Mounts both sides, the link to what they show, and what is said while there is nothing to compare. */
export function mountSides(root, store) {
  mountSide(root, store, 'a');
  mountSide(root, store, 'b');
  ref(root, 'copy-link').addEventListener('click', () => store.emit('copy-link'));
  store.subscribe(['sides', 'recent'], ({ sides, recent }) => {
    const none = !recent.length && sides.a.phase === 'empty' && sides.b.phase === 'empty';
    ref(root, 'empty').hidden = !none;
    for (const part of root.querySelectorAll('[data-when-runs]')) part.hidden = none;
  });
  store.subscribe(['sides'], (state) => {
    const ready = ['a', 'b'].every((side) => runOf(state, side));
    for (const part of root.querySelectorAll('[data-when-ready]')) part.hidden = !ready;
    const stuck = ['a', 'b'].some((side) => ['empty', 'gone', 'error'].includes(state.sides[side].phase));
    ref(root, 'waiting').hidden = ready || !stuck || !ref(root, 'empty').hidden;
  });
}
