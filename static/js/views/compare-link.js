/** The ways from here to the comparison: with the shown head as A and the run before this one as B. Listens to run, view. */

import { formatCompare } from '../compare/address.js';
import { ref } from '../dom.js';
import { recentRuns } from '../recent.js';
import { finished, siteOf } from '../select.js';

/** Mounts both links: in the bar, and beside the chosen head. */
export function mountCompareLink(root, store) {
  const links = [ref(root, 'nav-compare'), ref(root, 'compare-head')];
  store.subscribe(['run', 'view'], (state) => {
    const run = finished(state);
    links[1].hidden = !run;
    if (!run) return;
    const other = recentRuns().find(({ id }) => id !== run.id)?.id ?? run.id;
    const { layer, head } = state.view;
    const address = formatCompare({ a: run.id, b: other }, { a: { site: siteOf(state).site, layer, head } });
    for (const link of links) link.href = `/compare${address}`;
  });
}
