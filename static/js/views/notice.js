/**
 * The short notices: what was done, a link to copy by hand where the browser refused, what a link could not show.
 * Listens to notice.
 */

import { el, fill } from '../dom.js';
import { t } from '../i18n.js';

const SHOWN = 3500; // ms
const SHOWN_LONG = 12000; // it takes a while to read
const SHOWN_WITH_LINK = 15000; // it takes a while to copy one

/** Mounts the line under the bar. */
export function mountNotice(node, store) {
  let timer = 0;
  node.addEventListener('click', ({ target }) => {
    if (target.tagName !== 'INPUT') store.set({ notice: null }); // it may lie over a control
  });
  store.subscribe(['notice'], ({ notice }) => {
    node.hidden = !notice;
    if (!notice) return;
    fill(node, t(notice.key, notice.values), notice.link ? el('input', { value: notice.link, readonly: true, 'aria-label': t('link.label') }) : null);
    node.querySelector('input')?.select();
    clearTimeout(timer);
    timer = setTimeout(() => store.set({ notice: null }), notice.link ? SHOWN_WITH_LINK : notice.long ? SHOWN_LONG : SHOWN);
  });
}
