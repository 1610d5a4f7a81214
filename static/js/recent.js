/** The last runs of this browser, newest first: ids and what names a run in a list. No text and no tokens. Knows storage only. */

const KEY = 'everyhead.recent';
const KEPT = 20;

const isEntry = (one) => typeof one?.id === 'string' && typeof one.model === 'string' && Number.isInteger(one.tokens) && typeof one.time === 'string';

/** [{id, model, tokens, time}]; empty where storage is closed or holds something else. */
export function recentRuns() {
  try {
    const list = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(list) ? list.filter(isEntry).slice(0, KEPT) : [];
  } catch {
    return [];
  }
}

function write(list) {
  try {
    localStorage.setItem(KEY, JSON.stringify(list.slice(0, KEPT)));
  } catch {
    return false; // storage closed or full: the list is a convenience
  }
  return true;
}

/** How a run is named in a list. */
export const entryOf = (summary) => ({
  id: summary.id, model: summary.model.name, tokens: summary.tokens.source.length + summary.tokens.target.length, time: summary.created,
});

/** Puts a finished run first. */
export function noteRun(summary) {
  const entry = entryOf(summary);
  write([entry, ...recentRuns().filter(({ id }) => id !== entry.id)]);
}

/** Takes a run that is gone out of the list. */
export function forgetRun(id) {
  const list = recentRuns();
  if (list.some((one) => one.id === id)) write(list.filter((one) => one.id !== id));
}
