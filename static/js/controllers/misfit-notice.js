/** One notice of a link's values that were left out or changed; what is found later joins it. It knows no fields. */

import { t } from '../i18n.js';

const KEY = 'link.misfit';

/** {begin, tell}: for a new link, and for fields of it as name=value. */
export function misfitNotice(store) {
  let told = [];
  return {
    begin() {
      if (told.length && store.state.notice?.key === KEY) store.set({ notice: null });
      told = [];
    },
    tell(fields) {
      const all = [...new Set([...told, ...fields])];
      if (all.length === told.length) return;
      told = all;
      store.set({ notice: { key: KEY, values: { fields: all.join(t('list.comma')) }, long: true } });
    },
  };
}
