/**
 * Runs: start, follow, cancel, open from a link, check the whole pass. Answers `run`, `cancel`, `open`, `check`.
 * Every answer is dropped when another run was asked for meanwhile. It knows nothing of pictures.
 */

import * as api from '../api.js';
import { clampView } from '../address.js';
import { clampFinder } from '../finder-address.js';
import { inputsOf, requestOf } from '../inputs.js';
import { NO_RUN } from '../store.js';
import { textsOf } from '../texts.js';

const FINAL = { done: 'done', failed: 'failed', cancelled: 'cancelled' };

/** Connects the intentions to the server. */
export function controlRuns(store) {
  let current = 0; // grows with every run asked for; an answer for an older one is stale
  let stopFollowing = () => {};

  function begin(fields) {
    current += 1;
    stopFollowing();
    store.set({ run: { ...NO_RUN, ...fields }, preview: null, hoverToken: null, cursor: null });
    return current;
  }

  /** Awaits `work`; gives its answer, or null once the run is no longer the current one or was refused. */
  async function answerFor(ticket, work) {
    try {
      const answer = await work;
      return ticket === current ? answer : null;
    } catch (error) {
      if (ticket !== current) return null;
      const gone = error.status === 404 && store.state.run.id !== null;
      store.patch('run', { phase: gone ? 'gone' : 'failed', error });
      return null;
    }
  }

  /** Asks for a run while the picture of the one before stays. */
  function send() {
    current += 1;
    store.patch('run', { sending: true, refusal: null, checking: false });
    return current;
  }

  /** The accepted run's summary; null once it is not wanted any more, or was refused: then all is as it was, with a message. */
  async function submit(ticket, request, old) {
    try {
      const summary = await api.startRun(request);
      return ticket === current ? summary : null;
    } catch (error) {
      if (ticket !== current) return null;
      const { run } = store.state;
      const settled = run.sending ? { ...run, sending: false } : old.phase === 'gone' ? old : NO_RUN;
      store.set({ run: { ...settled, refusal: error } });
      return null;
    }
  }

  function take(ticket, summary) {
    const phase = FINAL[summary.status] ?? 'active';
    const error = phase === 'failed' ? asError(summary.error) : null;
    const site = summary.sites.find(({ site: name }) => name === store.state.view.site) ?? summary.sites[0];
    const fits = phase === 'done' && site;
    const view = fits ? clampView(store.state.view, site) : store.state.view;
    const finder = fits ? clampFinder(store.state.finder, site) : store.state.finder;
    const run = { ...store.state.run, phase, id: summary.id, summary, progress: summary.progress, error };
    store.set({ run, view, finder });
    if (phase === 'active') followRun(ticket, summary.id);
  }

  function followRun(ticket, id) {
    const finish = async () => {
      const summary = await answerFor(ticket, api.getRun(id));
      if (summary) take(ticket, summary);
    };
    const onEvent = (name, data) => {
      if (ticket !== current) return;
      if (name === 'progress') store.patch('run', { progress: data.progress });
      else finish();
    };
    stopFollowing = api.followRun(id, onEvent, () => ticket === current && setTimeout(finish, 500));
  }

  store.on('run', async ({ truncate, first = false }) => {
    const { state } = store;
    const { run: old } = state;
    if (old.phase === 'active') api.deleteRun(old.id).catch(() => {}); // nobody waits for it here any more
    const asked = { phase: 'submitting', ...inputsOf(state), first };
    const ticket = old.phase === 'done' ? send() : begin(asked);
    const summary = await submit(ticket, requestOf(state, truncate ?? state.truncate), old);
    if (!summary) return;
    const accepted = begin(asked);
    store.patch('view', { token: null, rows: null, cols: null });
    take(accepted, summary);
  });

  store.on('open', async ({ id, view, carried = null }) => {
    const { run } = store.state;
    const known = run.id === id && run.text !== null ? { text: run.text, pair: run.pair, target: run.target } : textsOf(id);
    const ticket = begin({ phase: 'submitting', id, carried, opened: true, ...known });
    store.set({ view });
    const summary = await answerFor(ticket, api.getRun(id));
    if (summary) take(ticket, summary);
  });

  store.on('close', () => begin({}));

  store.on('cancel', () => {
    const { id, sending } = store.state.run;
    if (sending) {
      current += 1;
      store.patch('run', { sending: false });
      return;
    }
    const { text, pair, target } = store.state.run;
    begin({ phase: 'cancelled', text, pair, target });
    if (id) api.deleteRun(id).catch(() => {}); // already gone is as good as cancelled
  });

  const form = ['text', 'pair', 'target', 'modelId', 'addSpecial', 'implementation'];
  store.subscribe(form, ({ run }) => run.refusal && store.patch('run', { refusal: null }), { now: false });

  store.on('check', async () => {
    const ticket = current;
    store.patch('run', { checking: true });
    try {
      const summary = await api.compareWholePass(store.state.run.id);
      if (ticket === current) store.patch('run', { summary, checking: false });
    } catch (error) {
      if (ticket === current) store.patch('run', { checking: false, checkError: error });
    }
  });
}

/** The error of a summary or an event as what a refused request throws. */
export function asError(body) {
  return body ? new api.ApiError(body.code, body.message, body.details) : new api.ApiError('internal', '');
}
