/** Says which values of a link are not shown as they stand, once run, models and units are known. Answers `link-read`. */

import { unfitFields, unknownFields, unreadFields } from '../address-misfits.js';
import { finished, siteOf } from '../select.js';
import { misfitNotice } from './misfit-notice.js';

/** Follows run, models and units after each link that was read. */
export function controlMisfits(store) {
  const notice = misfitNotice(store);
  let waits = { fragment: '', run: false, models: false, units: false };

  function look(state) {
    const { fragment } = waits;
    if (waits.models && state.models.status === 'ready') {
      waits.models = false;
      notice.tell(unknownFields(fragment, state.models.list));
    }
    if (waits.run && finished(state)) {
      waits.run = false;
      waits.units = state.view.unit !== 'token';
      notice.tell(unfitFields(fragment, state, siteOf(state)));
    }
    if (waits.units && state.units.status === 'ready') { // only now is it known how many there are
      waits.units = false;
      notice.tell(unfitFields(fragment, state, siteOf(state)).filter((field) => /^(rows|cols)=/.test(field)));
    }
  }

  store.on('link-read', ({ fragment, run }) => {
    waits = { fragment, run, models: true, units: false };
    notice.begin();
    notice.tell(unreadFields(fragment));
    look(store.state);
  });
  store.subscribe(['run', 'models', 'units'], look);
}
