/**
 * The first visit: puts in the first example and runs it, so that heads are seen before anything was asked for. Only where
 * the address asks for nothing, no text is kept from before, and the catalogue's default model can run at once.
 */

import { getExample } from '../api.js';

/** Decides when the models are known. Anything typed or run meanwhile is left alone. Answers `begin-anew`. */
export function controlFirst(store, { exampleFor }) {
  const waits = ({ run, text, pair, target }) => run.phase === 'empty' && !run.refusal && !(text + pair + target).trim();

  async function decide({ models, modelId }) {
    const [usual] = models.list;
    if (usual?.state !== 'ready' || usual.id !== modelId) return;
    const text = await getExample(exampleFor(usual.id)).catch(() => null);
    if (text === null || location.hash || store.state.modelId !== modelId || !waits(store.state)) return;
    store.set({ text: text.trimEnd() });
    store.emit('run', { first: true });
  }

  function begin() {
    if (location.hash || !waits(store.state)) return;
    if (store.state.models.status !== 'loading') {
      decide(store.state);
      return;
    }
    const stop = store.subscribe(['models'], (state) => {
      if (state.models.status === 'loading') return;
      stop();
      decide(state);
    }, { now: false });
  }

  store.on('begin-anew', begin);
  begin();
}
