/** Keeps the list of recent runs: a run goes in when it is done and out when it is gone. Listens to run. */

import { forgetRun, noteRun } from '../recent.js';
import { finished } from '../select.js';

/** Follows the run. */
export function controlRecent(store) {
  let noted = null;
  store.subscribe(['run'], (state) => {
    const summary = finished(state);
    if (summary && summary.id !== noted) {
      noted = summary.id;
      noteRun(summary);
    }
    if (state.run.phase === 'gone') forgetRun(state.run.id);
  });
}
