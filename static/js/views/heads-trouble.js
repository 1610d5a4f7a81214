/**
 * Says over the pictures, and over marks that show roles, that the figures of heads could not be loaded: nothing else there
 * would. Views that are made of them say so themselves. Listens to run, heads, finder, overview; emits retry-figures.
 */

import { el, fill, ref } from '../dom.js';
import { finished } from '../select.js';
import { figuresFailed } from './retry.js';

/** Whether the pictures beside it fail for the same reason and say so: asking for those again asks for these too. */
const isTold = ({ finder, overview, heads }) => finder.tab === 'pictures' && overview.status === 'error' && overview.error?.code === heads.error?.code;

const misses = ({ tab, view, colour }) => tab === 'pictures' || (tab === 'alike' && view === 'points' && colour === 'role');

/** Mounts the line. */
export function mountHeadsTrouble(root, store) {
  const line = el('p', { class: 'fine', 'data-ref': 'heads-trouble', hidden: true });
  ref(root, 'banner').after(line);
  const tab = () => ref(root, 'tabs').querySelector('[aria-selected="true"]');
  let told = null;
  store.subscribe(['run', 'heads', 'finder', 'overview'], (state) => {
    const { status, error } = state.heads;
    const wrong = finished(state) && status === 'error' && misses(state.finder) && !isTold(state) ? error : null;
    if (wrong === told) return;
    told = wrong;
    line.hidden = wrong === null;
    fill(line, wrong && figuresFailed(store, { home: tab }));
  });
}
