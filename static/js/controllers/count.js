/** Counts the tokens of the text (or the pair) against the model's limit while one types, without running the model. */

import * as api from '../api.js';
import { debounce } from '../dom.js';
import { inputsOf } from '../inputs.js';
import { chosenModel } from '../select.js';

const PAUSE = 300; // ms without typing
const IDLE = { status: 'idle', count: null, limit: null, over: false, error: null };

/** Follows text, model and options. */
export function controlCount(store) {
  let fetching = new AbortController();

  const count = debounce(async () => {
    const { modelId, addSpecial } = store.state;
    const { text, pair } = inputsOf(store.state);
    const { signal } = fetching;
    try {
      const request = { model: modelId, text, add_special_tokens: addSpecial, ...(pair ? { text_pair: pair } : {}) };
      const answer = await api.tokenize(request, signal);
      if (signal.aborted) return;
      store.set({ count: { status: 'ready', count: answer.count, limit: answer.limit, over: answer.over_limit, error: null } });
    } catch (error) {
      if (!signal.aborted) store.set({ count: { ...IDLE, status: 'error', error } });
    }
  }, PAUSE);

  let model = null; // id and state: a model that becomes ready can count
  store.subscribe(['text', 'pair', 'modelId', 'addSpecial', 'models'], (state, before) => {
    const chosen = chosenModel(state);
    const now = `${chosen?.id} ${chosen?.state}`;
    const typed = before.text !== state.text || before.pair !== state.pair || before.addSpecial !== state.addSpecial;
    const other = now !== model; // what another one counted, and its limit, are not this one's
    if (!other && !typed) return;
    model = now;
    fetching.abort();
    fetching = new AbortController();
    count.cancel();
    if (!state.text.trim() || chosen?.state !== 'ready') {
      store.set({ count: { ...IDLE, limit: chosen?.max_tokens ?? null } });
      return;
    }
    store.patch('count', other ? { ...IDLE, status: 'loading', limit: chosen.max_tokens } : { status: 'loading' });
    count();
  });
}
