/**
 * Text, examples, options, the Run button, the token count and what went wrong.
 * Listens to text, count, run, models; emits type, example, run, cancel, special.
 */

import { isRunId } from '../address-fields.js';
import { el, fill, ref } from '../dom.js';
import { errorText } from '../errors.js';
import { duration, t, whole } from '../i18n.js';
import { changedSince } from '../inputs.js';
import { chosenModel, isBusy, tokensOf } from '../select.js';
import { mountField } from './fields.js';

const NOTICED = 500; // ms of preparing a model

function countLine({ count, run, text, modelId, ...state }) {
  const model = chosenModel({ ...state, modelId });
  if (count.status === 'error') return ['text_empty', run.refusal?.code].includes(count.error.code) ? '' : errorText(count.error);
  if (count.status === 'loading' && count.count === null) return t('count.loading');
  if (count.count === null) return model?.max_tokens ? t('count.limit', { limit: whole(model.max_tokens) }) : '';
  const shown = isShown({ ...state, count, run, text, modelId });
  const kept = shown && run.summary.text.cut ? tokensOf({ run }, 'source').length : null;
  const line = t(count.over && kept === null ? 'count.over' : 'count.of', { count: whole(kept ?? count.count), limit: whole(count.limit) });
  return shown ? [line, tookText(run.summary.timings)].filter(Boolean).join(' · ') : line;
}

/** Whether the picture is that of the text in the field. */
const isShown = (state) => state.run.phase === 'done' && state.run.text === state.text && changedSince(state) === null;

/** How long the run took, and apart from it how long its model was prepared, where one would notice. */
function tookText({ total_ms: total, wait_ms: wait, prepare_ms: prepare }) {
  if (!total) return null;
  const work = duration(total - (wait ?? 0) - (prepare ?? 0));
  return (prepare ?? 0) < NOTICED ? work : t('count.prepared', { work, prepare: duration(prepare) });
}

/** What is said of a picture that is not of what the form holds: not what Run would do, where it has nothing to run. */
function staleText(state) {
  const changed = isBusy(state) ? null : changedSince(state);
  if (!changed || state.run.refusal?.code === 'text_empty') return '';
  return state.text.trim() ? t(`stale.${changed}`, { model: state.run.summary.model.name }) : t('stale.no_text');
}

function tooLong(store, details) {
  const cut = (truncate) => el('button', { type: 'button', class: 'small-button', onclick: () => store.emit('run', { truncate }) }, t(`error.${truncate}`));
  const gone = whole(details.count - details.limit);
  return [el('p', {}, t('error.cut', { gone })), el('p', { class: 'button-row' }, details.choices.map(cut))];
}

function again(store, key = 'run.again') {
  return el('button', { type: 'button', class: 'small-button', onclick: () => store.emit('run') }, t(key));
}

/** What went wrong with the run, with what can be done about it; nothing when all is well. */
function problem(state, store) {
  const { run, text } = state;
  if (run.phase === 'gone' && !run.refusal) {
    const whole = Boolean(run.carried?.trim());
    const ready = whole && text === run.carried; // what was typed instead is run by Run
    const why = isRunId(run.id) ? 'gone' : 'broken';
    return [el('p', {}, t(`${why}.${whole ? 'text' : 'no_text'}`)), ready ? el('p', { class: 'button-row' }, again(store, 'gone.again')) : null];
  }
  const error = run.refusal ?? (run.phase === 'failed' ? run.error : null);
  if (!error) return [];
  const parts = [el('p', {}, errorText(error))];
  if (error.code === 'text_too_long' && error.details.choices?.length) parts.push(...tooLong(store, error.details));
  else if (['offline', 'queue_full', 'internal', 'run_failed'].includes(error.code)) parts.push(el('p', { class: 'button-row' }, again(store)));
  return parts;
}

function cutNote(state) {
  const cut = state.run.phase === 'done' && !state.run.refusal ? state.run.summary.text.cut : null;
  if (!cut) return [];
  return [el('p', {}, t(`cut.${cut}`, { kept: whole(tokensOf(state, 'source').length), before: whole(state.run.summary.text.tokens_before_cut) }))];
}

/** Mounts the composer. */
export function mountCompose(root, store) {
  const run = ref(root, 'run');
  const special = ref(root, 'special');
  const problemBox = ref(root, 'problem');
  mountField(ref(root, 'text'), store, 'text');
  special.addEventListener('change', () => store.emit('special', { on: special.checked }));
  ref(root, 'examples').addEventListener('click', ({ target }) => target.dataset.src && store.emit('example', { src: target.dataset.src }));
  run.addEventListener('click', () => store.emit(isBusy(store.state) ? 'cancel' : 'run'));

  store.subscribe(['addSpecial'], ({ addSpecial }) => {
    special.checked = addSpecial;
  });
  store.subscribe(['run', 'text', 'pair', 'target', 'modelId', 'models', 'addSpecial', 'implementation'], (state) => {
    const note = staleText(state);
    const node = ref(root, 'stale');
    if (node.textContent !== note) node.textContent = note;
    node.hidden = !note;
  });
  store.subscribe(['count', 'run', 'models', 'modelId', 'text', 'pair', 'target', 'addSpecial', 'implementation'], (state) => {
    const busy = isBusy(state);
    run.textContent = t(busy ? 'run.cancel' : 'run.go');
    run.classList.toggle('is-busy', busy);
    run.disabled = !busy && !['ready', 'preparing'].includes(chosenModel(state)?.state);
    const count = ref(root, 'count');
    count.textContent = countLine(state);
    count.classList.toggle('is-over', state.count.over && !isShown(state));
    const wrong = problem(state, store);
    const said = [...wrong, ...cutNote(state)];
    problemBox.classList.toggle('is-problem', wrong.length > 0);
    problemBox.hidden = said.length === 0;
    fill(problemBox, said);
  });
}
