/**
 * The last runs of this browser, newest first: ids and what names a run in a list; and the last view, to return to. No text
 * and no tokens. Knows storage only.
 */

const KEY = 'everyhead.recent';
const KEPT = 20;
const VIEW = 'everyhead.view';
const LONGEST_VIEW = 4000;

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

/** Both of the browser's stores that can be used: this tab's own first. */
function stores() {
  return ['sessionStorage', 'localStorage'].flatMap((name) => {
    try {
      return window[name] ?? [];
    } catch {
      return []; // closed to us
    }
  });
}

/** Keeps the address's fragment of the last view: for this tab, and for the browser's next visit. */
export function keepView(fragment) {
  if (fragment.length > LONGEST_VIEW) return;
  for (const store of stores()) {
    try {
      store.setItem(VIEW, fragment);
    } catch {
      // full: the view before is returned to
    }
  }
}

/** That fragment, this tab's own before another's; null for none. */
export const keptView = () => stores().map((store) => store.getItem(VIEW)).find((one) => one?.startsWith('#')) ?? null;

/** The view can't be returned to any more. */
export function forgetView() {
  for (const store of stores()) store.removeItem(VIEW);
}
