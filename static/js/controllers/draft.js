/**
 * Keeps what was typed and chosen while this tab lives, so that changing the language or reloading loses nothing. A run opened from
 * a link or by Back fills the fields, where nothing else was typed: with what this tab asked for, else from its tokens where they
 * hold the whole text. Answers `example`.
 */

import { getExample } from '../api.js';
import { inputsOf, inputsOfRun, inputsOfTokens } from '../inputs.js';
import { finished } from '../select.js';
import { keepTexts } from '../texts.js';

const KEY = 'everyhead.draft';
const FORM = { text: '', pair: '', target: '', modelId: null, addSpecial: true, implementation: null };

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
}

function write(draft) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(draft));
  } catch {
    return false; // storage closed or full: typing goes on, only the draft is not kept
  }
  return true;
}

/** Restores the draft once, then follows texts, model and options. */
export function controlDraft(store) {
  const names = Object.keys(FORM);
  const pick = (form) => Object.fromEntries(names.map((name) => [name, form[name]]));
  store.set(pick({ ...FORM, ...read() }));
  store.subscribe(names, (state) => write(pick(state)), { now: false });

  let asked = 0;
  store.on('example', async ({ src, run = false }) => {
    asked += 1;
    const ticket = asked;
    const example = await getExample(src).catch(() => null);
    if (ticket !== asked || example === null) return;
    store.set({ text: example.trimEnd(), pair: '', target: '', truncate: 'error' });
    if (run) store.emit('run', {});
  });
  store.on('type', ({ text: typed, field = 'text' }) => {
    asked += 1; // an example still on its way must not replace what was typed
    store.set({ [field]: typed, truncate: 'error' }); // a link's wish to cut was for the link's text
  });
  store.on('special', ({ on }) => store.set({ addSpecial: on }));
  store.on('implementation', ({ name }) => store.set({ implementation: name }));

  let shown = null; // the texts of the last picture: still in the fields, they give way to those of the next
  store.subscribe(['run'], (state) => {
    const summary = finished(state);
    if (!summary) return;
    const known = state.run.text !== null;
    if (known && !state.run.opened) {
      shown = inputsOfRun(state);
      keepTexts(summary.id, shown);
      return;
    }
    const whole = known ? inputsOfRun(state) : inputsOfTokens(summary);
    const { text, pair, target } = whole;
    if (text === null || pair === null || target === null) return;
    const free = !state.text.trim() || sameTexts(inputsOf(state), shown);
    if (!free && state.text !== text) return;
    const { id: modelId, implementation } = summary.model;
    const form = { modelId, implementation, addSpecial: summary.options.add_special_tokens, ...(free ? whole : {}) };
    store.set({ ...form, run: { ...state.run, ...whole, opened: false } });
  });
}

const sameTexts = (one, other) => Boolean(other) && ['text', 'pair', 'target'].every((name) => one[name] === other[name]);
