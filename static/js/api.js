/** The only module that asks the server anything. It turns answers into data and refusals into ApiError; it knows no view. */

import { spanText } from './address-fields.js';
import { parseNpy } from './npy.js';

/** A refusal of the server: `code` and `details` as in its error body; `offline` when it could not be reached. */
export class ApiError extends Error {
  constructor(code, message, details = {}, status = 0) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.details = details;
    this.status = status;
  }
}

async function ask(path, { method = 'GET', body, headers = {}, signal } = {}) {
  const options = { method, signal, headers: { Accept: 'application/json', ...headers } };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers['Content-Type'] = 'application/json';
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('offline', error.message);
  }
  if (answer.ok) return answer;
  throw await refusal(answer);
}

async function refusal(answer) {
  const text = await answer.text();
  const retry = answer.headers.get('Retry-After');
  try {
    const { error } = JSON.parse(text);
    const details = { ...error.details, ...(retry ? { retry_after: Number(retry) } : {}) };
    return new ApiError(error.code, error.message, details, answer.status);
  } catch {
    return new ApiError('unreadable', answer.statusText, {}, answer.status);
  }
}

const json = async (path, options) => (await ask(path, options)).json();

const query = (values) => {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
  return new URLSearchParams(given).toString();
};

const at = (id, rest = '') => `/api/runs/${encodeURIComponent(id)}${rest}`;

export const getMessages = (url) => json(url);
export const getModels = async (signal) => (await json('/api/models', { signal })).models;
export const tokenize = (request, signal) => json('/api/tokenize', { method: 'POST', body: request, signal });
export const getRun = (id, signal) => json(at(id), { signal });
export const deleteRun = (id) => ask(at(id), { method: 'DELETE' });
export const compareWholePass = (id, signal) => json(at(id, '/check'), { method: 'POST', body: {}, signal });
export const compareStages = (id, signal) => json(at(id, '/stages'), { method: 'POST', body: {}, signal });
export const startDownload = (id) => ask(`/api/models/${encodeURIComponent(id)}/download`, { method: 'POST', body: {} });

/** Asks for a run and answers at once with its summary, finished or not. */
export const startRun = (request, signal) =>
  json('/api/runs', { method: 'POST', body: request, signal, headers: { Prefer: 'respond-async' } });

/** Every head's figures, with the bins of the distances: {heads, bins, …}. */
export const getHeads = (id, site, signal) => json(at(id, `/heads?${query({ site })}`), { signal });
/** What every head of a site puts on the links, written 29:12,30-31:5-6: {heads: [{layer, head, pairs}], pairs}. */
export const getPairs = (id, site, pairs, signal) => json(at(id, `/heads?${query({ site, pairs, figures: false })}`), { signal });
export const getLayers = (id, site, signal) => json(at(id, `/layers?${query({ site })}`), { signal });

/** How alike heads are: the answer with the order, places and pairs, and all distances as {shape, data: Float32Array}. */
export async function getSimilarity(id, site, signal) {
  const path = (format) => at(id, `/similarity?${query({ site, format })}`);
  const answer = await json(path('json'), { signal });
  const matrix = await ask(path('npy'), { signal, headers: { Accept: '*/*' } });
  return { answer, distances: parseNpy(await matrix.arrayBuffer()) };
}

/** The plain text of one of the examples. */
export const getExample = async (url) => (await ask(url, { headers: { Accept: 'text/plain' } })).text();

/** All heads' pooled pictures: {shape: [layers, heads, rows, cols], data: Uint8Array}. */
export async function getOverview(id, site, pool, signal) {
  const answer = await ask(at(id, `/overview?${query({ site, pool, format: 'npy' })}`), { signal, headers: { Accept: '*/*' } });
  return parseNpy(await answer.arrayBuffer());
}

/** One side of a run, 'source' or 'target', cut into units: [{index, text, first, stop, …}]. */
export const getUnits = async (id, unit, side, signal) =>
  (await json(at(id, `/units?${query({ unit, side })}`), { signal })).units;

/** One window of one head (see `window.js` for its form). */
export async function getWindow(id, { site, layer, head, rows, cols, pool, maxCells, lens, unit }, signal) {
  const values = { site, layer, head, rows: spanText(rows), cols: spanText(cols), pool, max_cells: maxCells, lens, unit, format: 'json' };
  return json(at(id, `/weights?${query(values)}`), { signal });
}

const reference = (id, implementation, rest = '') => `/api/models/${encodeURIComponent(id)}/reference${rest}?${query({ implementation })}`;

/** A model's figures over the reference texts: computed once (started and followed like a run), then read. The state is always answered. */
export const getReferenceState = async (id, implementation, signal) => (await json(reference(id, implementation, '/state'), { signal })).status;
export const getReference = (id, implementation, signal) => json(reference(id, implementation), { signal });
export const startReference = (id, implementation) =>
  ask(reference(id, implementation), { method: 'POST', body: {}, headers: { Prefer: 'respond-async' } });
export const cancelReference = (id, implementation) => ask(reference(id, implementation), { method: 'DELETE' });
export const followReference = (id, implementation, onEvent, onLost) =>
  follow(reference(id, implementation, '/events'), ['progress'], ['done', 'failed', 'cancelled'], onEvent, onLost);

/** Two heads compared: {a, site_a, layer_a, head_a, b, …, rows, cols, maxCells}. */
export const getComparison = ({ rows, cols, maxCells, ...heads }, signal) =>
  json(`/api/compare?${query({ ...heads, rows: spanText(rows), cols: spanText(cols), max_cells: maxCells })}`, { signal });

/**
 * Follows server-sent events at `path` until one of `final` arrives. Calls `onEvent(name, data)` for each and
 * `onLost()` when the server closes the stream early. Returns a function that stops listening (it cancels nothing).
 */
export function follow(path, names, final, onEvent, onLost) {
  const source = new EventSource(path);
  for (const name of [...names, ...final]) {
    source.addEventListener(name, (event) => {
      if (final.includes(name)) source.close();
      onEvent(name, JSON.parse(event.data));
    });
  }
  source.addEventListener('error', () => {
    if (source.readyState === EventSource.CLOSED) onLost();
  });
  return () => source.close();
}

export const followRun = (id, onEvent, onLost) =>
  follow(at(id, '/events'), ['progress'], ['done', 'failed', 'cancelled'], onEvent, onLost);

export const followDownload = (id, onEvent, onLost) =>
  follow(`/api/models/${encodeURIComponent(id)}/events`, ['progress'], ['done', 'failed'], onEvent, onLost);
