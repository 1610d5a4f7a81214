/**
 * The tab's history: which changes of the address are entries. A run is one. A chosen head is one where a reader rests; heads
 * that are passed on the way are none, nor is a way that ends where it began. Knows fragments and places, no state.
 */

import { parseAddress } from './address.js';

const REST = 1000; // ms on one head

/** What of a fragment Back undoes. */
function placeOf(fragment) {
  const { run, view } = parseAddress(fragment);
  return [run, view.site, view.layer, view.head].join('|');
}

/** {replace, push, walk, popped} for the fragments of this tab. */
export function createTrail() {
  let at = history.state?.at ?? 0; // the present entry's number
  let rested = null; // the present entry's fragment from before the walk that goes on
  let timer = 0;
  if (history.state === null) history.replaceState({ at }, '');

  const replace = (fragment) => history.replaceState({ at }, '', fragment);

  function push(fragment) {
    settle();
    at += 1;
    history.pushState({ at }, '', fragment);
  }

  /** The walk is over: its first head keeps the present entry, its last one gets its own. */
  function settle() {
    clearTimeout(timer);
    if (rested === null) return;
    const [before, now] = [rested, location.hash];
    rested = null;
    if (placeOf(before) === placeOf(now)) return;
    replace(before);
    push(now);
  }

  return {
    replace,
    push,

    /** Another head of the same run. */
    walk(fragment) {
      rested ??= location.hash;
      replace(fragment);
      clearTimeout(timer);
      timer = setTimeout(settle, REST);
    },

    /** Another entry is the present one: `state` is its own, null where a link made it. Back during a walk undoes the walk alone. */
    popped(state) {
      const undone = state !== null && state.at < at ? rested : null;
      clearTimeout(timer);
      rested = null;
      at = state?.at ?? at + 1;
      if (undone !== null) push(undone);
      else if (state === null) replace(location.hash || `${location.pathname}${location.search}`);
    },
  };
}
