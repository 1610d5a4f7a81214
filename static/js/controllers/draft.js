/**
 * Keeps what was typed while this tab lives, so that changing the language or reloading loses nothing. A run opened from
 * a link fills an empty text field again from its tokens, where they hold the whole text. Answers `example`.
 */

import { getExample } from '../api.js';
import { finished } from '../select.js';
import { textOfTokens } from '../text.js';

const KEY = 'everyhead.draft';

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

/** Restores the draft once, then follows text, model and options. */
export function controlDraft(store) {
  const { text = '', modelId = null, addSpecial = true } = read();
  store.set({ text, modelId, addSpecial });
  store.subscribe(['text', 'modelId', 'addSpecial'], (state) =>
    write({ text: state.text, modelId: state.modelId, addSpecial: state.addSpecial }), { now: false });

  let asked = 0;
  store.on('example', async ({ src }) => {
    asked += 1;
    const ticket = asked;
    const example = await getExample(src).catch(() => null);
    if (ticket === asked && example !== null) store.set({ text: example.trimEnd(), truncate: 'error' });
  });
  store.on('type', ({ text: typed }) => {
    asked += 1; // an example still on its way must not replace what was typed
    store.set({ text: typed, truncate: 'error' }); // a link's wish to cut was for the link's text
  });
  store.on('special', ({ on }) => store.set({ addSpecial: on }));

  store.subscribe(['run'], (state) => {
    const summary = finished(state);
    if (!summary || state.run.text !== null) return;
    const whole = textOfTokens(summary);
    const known = state.text.trim() ? state.text : whole;
    if (known === null || known !== whole) return;
    store.set({ text: known, modelId: summary.model.id, addSpecial: summary.options.add_special_tokens, run: { ...state.run, text: known } });
  });
}
