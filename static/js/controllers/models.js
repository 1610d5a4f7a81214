/** The list of models: loads it, asks again while one is being prepared, starts downloads. Answers `model`, `download`. */

import * as api from '../api.js';

const AGAIN = 1500; // ms between looks at a model that is being prepared

/** Loads the list at once and chooses its first usable model. */
export function controlModels(store) {
  let timer = 0;

  async function load() {
    clearTimeout(timer);
    try {
      const list = await api.getModels();
      const { modelId } = store.state;
      const known = list.some((model) => model.id === modelId);
      store.set({ models: { status: 'ready', list, error: null }, modelId: known ? modelId : preferred(list) });
      if (list.some((model) => model.state === 'preparing')) timer = setTimeout(load, AGAIN);
    } catch (error) {
      store.set({ models: { status: 'error', list: [], error } });
    }
  }

  function change(id, fields) {
    const list = store.state.models.list.map((model) => (model.id === id ? { ...model, ...fields } : model));
    store.patch('models', { list });
  }

  store.on('model', ({ id }) => store.set({ modelId: id }));
  store.on('models', load);
  store.on('download', async ({ id }) => {
    change(id, { state: 'preparing', progress: 0, reason: null });
    try {
      await api.startDownload(id);
    } catch (error) {
      change(id, { state: 'needs_download', progress: null, error });
      return;
    }
    const onEvent = (name, data) => {
      if (name === 'progress') change(id, { progress: data.progress ?? null });
      else load();
    };
    api.followDownload(id, onEvent, load);
  });
  load();
}

function preferred(list) {
  const usable = list.find((model) => model.state === 'ready' || model.state === 'preparing');
  return (usable ?? list[0])?.id ?? null;
}
