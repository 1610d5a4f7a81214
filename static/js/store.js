/**
 * One state for the page. Immutable: every change makes a new object. Views subscribe to keys of it and emit intentions;
 * controllers answer intentions. It knows neither what a state means nor who listens.
 */

import { FINDER } from './finder.js';

/**
 * No run. `text`, `pair` and `target` are what it was asked for; `text` is null while that is not known. `carried` is the
 * text in the link that the run was opened by; `opened`: by a link or by Back, and the fields do not hold its texts yet.
 */
export const NO_RUN = Object.freeze({
  phase: 'empty', id: null, summary: null, progress: null, error: null, text: null, pair: '', target: '',
  carried: null, opened: false, first: false, checking: false, sending: false, refusal: null,
});

/** What the page knows when it opens. */
export const INITIAL = Object.freeze({
  models: { status: 'loading', list: [], error: null },
  modelId: null,
  text: '',
  pair: '',
  target: '',
  addSpecial: true,
  implementation: null,
  truncate: 'error',
  count: { status: 'idle', count: null, limit: null, over: false, error: null },
  run: NO_RUN,
  overview: { status: 'none', pool: null, shape: null, cells: null, error: null },
  heads: { status: 'none', list: [], bins: [], error: null },
  finder: FINDER,
  reference: { on: false, status: 'none', key: null, progress: null, texts: [], heads: [], error: null },
  grid: null,
  layers: { status: 'none', key: null, answer: null, error: null },
  similarity: { status: 'none', key: null, answer: null, distances: null, error: null },
  view: { site: null, layer: 0, head: 0, token: null, dir: 'row', rows: null, cols: null, pool: 'max', scale: 'sqrt', lens: 'raw', unit: 'token' },
  pairs: { list: [], sides: null, last: null, refused: [], status: 'none', heads: [], error: null },
  marking: null,
  pinned: null,
  preview: null,
  unasked: null, // the head that was opened without being chosen: {layer, head}
  figure: null,
  map: { status: 'none', key: null, window: null, error: null },
  units: { status: 'none', key: null, rows: null, cols: null, error: null },
  line: { status: 'none', key: null, index: null, dir: 'row', weights: null, error: null },
  hoverToken: null,
  cursor: null,
  scheme: 'light',
  plotlyWanted: false,
  notice: null,
});

/** A store over `initial`: `state`, `set(patch)`, `subscribe(keys, listener)`, `emit(intention, detail)`, `on(intention, answer)`. */
export function createStore(initial = INITIAL) {
  let state = Object.freeze({ ...initial });
  const target = new EventTarget();

  function set(patch) {
    const previous = state;
    state = Object.freeze({ ...state, ...patch });
    target.dispatchEvent(new CustomEvent('change', { detail: previous }));
  }

  function subscribe(keys, listener, { now = true } = {}) {
    let seen = keys.map((key) => (now ? undefined : state[key]));
    const check = () => {
      const values = keys.map((key) => state[key]);
      if (values.every((value, at) => value === seen[at])) return;
      const before = seen;
      seen = values;
      listener(state, Object.fromEntries(keys.map((key, at) => [key, before[at]])));
    };
    target.addEventListener('change', check);
    if (now) check();
    return () => target.removeEventListener('change', check);
  }

  function on(intention, answer) {
    const listener = (event) => answer(event.detail);
    target.addEventListener(`do:${intention}`, listener);
    return () => target.removeEventListener(`do:${intention}`, listener);
  }

  return {
    get state() {
      return state;
    },
    set,
    subscribe,
    on,
    emit: (intention, detail = {}) => target.dispatchEvent(new CustomEvent(`do:${intention}`, { detail })),
    /** Changes one object of the state, keeping its other fields. */
    patch: (key, fields) => set({ [key]: { ...state[key], ...fields } }),
  };
}
