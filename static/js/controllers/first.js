/**
 * The first visit: puts in the first example and runs it, so that heads are seen before anything was asked for. Only where
 * the address asks for nothing, no text is kept from before, and the catalogue's default model can run at once.
 */

import { getExample } from '../api.js';

/** Decides once, when the models are known. Anything typed or run meanwhile is left alone. */
export function controlFirst(store, { exampleFor }) {
  const waits = ({ run, text, pair, target }) => run.phase === 'empty' && !run.refusal && !(text + pair + target).trim();
  if (location.hash || !waits(store.state)) return;
  const stop = store.subscribe(['models'], async ({ models, modelId }) => {
    if (models.status === 'loading') return;
    stop();
    const [usual] = models.list;
    if (usual?.state !== 'ready' || usual.id !== modelId) return;
    const text = await getExample(exampleFor(usual.id)).catch(() => null);
    if (text === null || location.hash || store.state.modelId !== modelId || !waits(store.state)) return;
    store.set({ text: text.trimEnd() });
    store.emit('run', { first: true });
  }, { now: false });
}
