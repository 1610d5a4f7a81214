/** Says which values of a link are not shown as they stand, once the runs are there. Answers `link-read`. */

import { misfitNotice } from '../controllers/misfit-notice.js';
import { unfitCompare, unreadCompare } from './address.js';
import { answerOf, runOf, SIDES } from './state.js';

/** Follows the sides and the comparison after each link that was read. */
export function controlMisfits(store) {
  const notice = misfitNotice(store);
  let waits = { fragment: '', parts: [] };

  function look(state) {
    const known = (part) => (part === 'range' ? answerOf(state) : runOf(state, part)) !== null;
    for (const part of waits.parts.filter(known)) {
      waits.parts = waits.parts.filter((one) => one !== part);
      notice.tell(unfitCompare(waits.fragment, state.view, part));
    }
  }

  store.on('link-read', ({ fragment }) => {
    waits = { fragment, parts: [...SIDES, 'range'] };
    notice.begin();
    notice.tell(unreadCompare(fragment));
    look(store.state);
  });
  store.subscribe(['sides', 'found'], look);
}
