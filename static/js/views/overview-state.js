/** What the overview and the head show while there is no picture: empty, queued, running, failed. Listens to run, overview, map, scheme, plotlyWanted; emits retry-map, retry-figures. */

import { isRunId } from '../address-fields.js';
import { el, fill, ref } from '../dom.js';
import { errorText } from '../errors.js';
import { t, whole } from '../i18n.js';
import { colourOf, stepOf } from '../ramp.js';
import { finished } from '../select.js';
import { retryButton } from './retry.js';

const percent = (done, total) => Math.round((100 * done) / total);

/** The stage in words, with how far it is; `share` is 0…1 or null where unknown. */
function stageOf({ phase, progress }) {
  if (phase === 'submitting' || !progress) return { words: t('progress.starting'), share: null };
  const { stage, done, total, queue_position: place } = progress;
  const share = total ? done / total : null;
  if (stage === 'queued') return { words: place ? t('progress.queued', { n: whole(place) }) : t('progress.next'), share: null };
  if (stage === 'preparing') return { words: total ? t('progress.preparing_share', { n: percent(done, total) }) : t('progress.preparing'), share };
  if (stage === 'forward') return { words: t('progress.forward', { done: whole(done), total: whole(total) }), share };
  return { words: t(`progress.${stage}`), share };
}

function progressBox(run) {
  const { words, share } = stageOf(run);
  const bar = el('progress', { class: 'progress', max: 1, value: share, 'aria-label': words });
  return el('div', { class: 'state-box' }, el('p', { role: 'status' }, words), bar);
}

/** A small head made up for the empty page: each token looks at itself, at the one before and at the first. */
function emptyPicture(scheme) {
  const weight = (row, col) => (col === row ? 0.3 : col === row - 1 ? 0.55 : col === 0 ? 0.2 : 0.012 * ((row * 7 + col * 5) % 4));
  return el('div', { class: 'empty-picture', 'aria-hidden': 'true' }, Array.from({ length: 100 }, (_, at) => {
    const [row, col] = [Math.floor(at / 10), at % 10];
    const cell = el('span', { class: col > row ? 'is-masked' : '' });
    if (col <= row) cell.style.backgroundColor = colourOf(scheme, stepOf(weight(row, col), 'sqrt'));
    return cell;
  }));
}

function emptyBox({ scheme }) {
  const drawing = emptyPicture(scheme);
  return el('div', { class: 'state-box' }, drawing, el('p', { class: 'state-title' }, t('empty.title')), el('p', {}, t('empty.how')));
}

function overviewBox(state, store) {
  const { run, overview } = state;
  if (run.phase === 'submitting' || run.phase === 'active') return progressBox(run);
  if (run.phase === 'cancelled') return el('div', { class: 'state-box' }, el('p', {}, t('empty.cancelled')));
  if (run.phase === 'failed' || run.phase === 'gone') {
    const why = run.phase === 'gone' && !isRunId(run.id) ? 'broken' : run.phase;
    return el('div', { class: 'state-box is-problem' }, el('p', {}, t(`empty.${why}`)));
  }
  if (run.phase === 'empty') return emptyBox(state);
  if (overview.status === 'error') return el('div', { class: 'state-box is-problem' }, el('p', { role: 'alert' }, errorText(overview.error)), retryButton(store));
  if (overview.status !== 'ready' && !overview.cells) return el('div', { class: 'state-box' }, el('p', { role: 'status' }, t('overview.loading')));
  return null;
}

/** Why a head's weights are not there. What stands over the pictures or by the text already is not said again. */
function whyNoWeights({ run, overview, map }) {
  const told = [run.refusal?.code, overview.status === 'error' ? overview.error?.code : null].includes(map.error?.code);
  const why = told ? t('figure.not_arrived') : errorText(map.error);
  return map.window ? `${t('figure.coarse')} ${why}` : why;
}

/** The map's own state: what covers the figure, or stands beside a coarse picture; null where the picture speaks for itself. */
function headBox(state, store) {
  const { map } = state;
  if (!finished(state)) return null;
  if (map.status === 'error') {
    const settled = map.error?.code === 'lens_refused'; // it will be refused again
    const look = `state-box${map.window ? '' : ' is-problem'}`;
    return el('div', { class: look }, el('p', { role: 'alert' }, whyNoWeights(state)), settled ? null : retryButton(store, 'retry-map'));
  }
  if (state.plotlyWanted === 'failed') return el('div', { class: 'state-box is-problem' }, el('p', { role: 'alert' }, t('figure.no_plotly')));
  if (map.status === 'loading' && !map.window) return el('div', { class: 'state-box' }, el('p', { role: 'status' }, t('figure.loading')));
  return null;
}

/** Mounts both drawn states. */
export function mountOverviewState(root, store) {
  const overview = ref(root, 'overview-state');
  const head = ref(root, 'head-state');
  const parts = ['head-top', 'head-tools', 'foot', 'top', 'from-zero'].map((name) => ref(root, name));
  const page = ref(root, 'page');
  let progress = null;

  store.subscribe(['run', 'overview', 'scheme'], (state) => {
    const box = overviewBox(state, store);
    const stage = state.run.phase === 'active' ? stageOf(state.run) : null;
    const bar = overview.querySelector('progress');
    if (stage && bar && progress === state.run.id) { // the same elements, so that the bar moves on
      overview.querySelector('p').textContent = stage.words;
      if (stage.share === null) bar.removeAttribute('value');
      else bar.value = stage.share;
      return;
    }
    progress = state.run.phase === 'active' ? state.run.id : null;
    overview.hidden = !box;
    fill(overview, box);
  });
  store.subscribe(['run', 'map', 'overview', 'plotlyWanted'], (state) => {
    const box = headBox(state, store);
    head.hidden = !box;
    head.classList.toggle('is-beside', state.map.status === 'error' && state.map.window !== null);
    fill(head, box);
    const shown = finished(state) !== null;
    page.classList.toggle('is-blank', !shown);
    for (const part of parts) part.hidden = !shown;
  });
}
