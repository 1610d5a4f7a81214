/**
 * The figures over reference texts: looks whether the model has them, has them computed, and puts them in the place of the
 * run's own where the reader wants that. Answers figures-of, reference-compute, reference-cancel. Listens to run, reference,
 * view, heads.
 */

import * as api from '../api.js';
import { finished, siteOf } from '../select.js';
import { asError } from './runs.js';

const keyOf = ({ model }) => `${model.id}|${model.implementation}`;

/** Half-open ranges of distances: 0, 1, then doubling, as many as there are shares. */
function binsFor(heads) {
  const count = Math.max(0, ...heads.map((head) => head.distance?.bins.length ?? 0));
  return Array.from({ length: count }, (_, at) => [at === 0 ? 0 : 2 ** (at - 1), 2 ** at]);
}

/** Connects the intentions to the server and keeps `heads` to what is wanted. */
export function controlReference(store) {
  let stopFollowing = () => {};
  let own = null; // the run's own figures while others stand in their place
  let starting = Promise.resolve(); // settled once the service has been asked to compute
  const patch = (key, fields) => store.state.reference.key === key && store.patch('reference', fields);

  async function read(key, model, implementation) {
    stopFollowing();
    store.patch('reference', { status: 'loading', key, progress: null, texts: [], heads: [], error: null });
    try {
      const status = await api.getReferenceState(model, implementation);
      if (store.state.reference.key !== key) return;
      if (status === 'absent') patch(key, { status });
      else if (status !== 'done') follow(key, model, implementation);
      else {
        const { texts, heads } = await api.getReference(model, implementation);
        patch(key, { status: 'ready', texts, heads });
      }
    } catch (error) {
      patch(key, { status: 'error', error });
    }
  }

  function follow(key, model, implementation) {
    patch(key, { status: 'running' });
    const again = () => store.state.reference.key === key && read(key, model, implementation);
    stopFollowing = api.followReference(model, implementation, (name, data) => {
      if (name === 'progress') patch(key, { progress: data.progress });
      else if (name === 'failed') patch(key, { status: 'error', error: asError(data.error) });
      else again();
    }, () => setTimeout(again, 500));
  }

  /** Puts the wanted figures into `heads`, and the run's own back. */
  function place(state) {
    const { reference, heads } = state;
    const site = finished(state) && siteOf(state)?.site;
    const wanted = reference.on && reference.status === 'ready' && site && reference.key === keyOf(finished(state));
    if (wanted && heads.status === 'ready' && heads.of !== reference.heads) {
      own = heads.of ? own : heads;
      const list = reference.heads.filter((head) => head.site === site);
      store.set({ heads: { status: 'ready', list, bins: binsFor(list), of: reference.heads } });
    } else if (!wanted && heads.of) {
      const back = own;
      own = null;
      if (back) store.set({ heads: back });
    }
  }

  store.on('figures-of', ({ source }) => store.patch('reference', { on: source === 'reference' }));
  store.on('reference-compute', async () => {
    const { key } = store.state.reference;
    const { id, implementation } = finished(store.state).model;
    patch(key, { status: 'running', progress: null, error: null });
    try {
      starting = api.startReference(id, implementation);
      await starting;
      if (store.state.reference.key === key) follow(key, id, implementation);
    } catch (error) {
      patch(key, { status: 'error', error });
    }
  });
  store.on('reference-cancel', async () => {
    const { id, implementation } = finished(store.state).model;
    await starting.catch(() => {}); // there is nothing to stop before
    api.cancelReference(id, implementation).catch(() => {}); // over already is as good as cancelled
  });
  store.subscribe(['run', 'reference'], (state) => {
    const run = finished(state);
    if (run && state.reference.on && state.reference.key !== keyOf(run)) read(keyOf(run), run.model.id, run.model.implementation);
  });
  store.subscribe(['heads', 'reference', 'run', 'view'], place);
}
