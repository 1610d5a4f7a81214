/**
 * Which attention of the model is shown, where it has more than one: encoder, decoder, or from the decoder to the encoder.
 * Listens to run, view; emits site.
 */

import { el, fill, ref } from '../dom.js';
import { has, t } from '../i18n.js';
import { finished, siteOf } from '../select.js';

/** A site in the page's words. */
export const siteName = (site) => (has(`site.${site}`) ? t(`site.${site}`) : site);

/** What the rows and columns of a site are, in one sentence. */
export const siteText = (site) => (has(`site.${site}.what`) ? t(`site.${site}.what`) : '');

/** Mounts the switch over the overview. */
export function mountSites(root, store) {
  const group = ref(root, 'sites');
  const line = ref(root, 'sites-line');
  const what = ref(root, 'sites-what');
  let built = null;
  group.addEventListener('click', ({ target }) => target.dataset.value && store.emit('site', { site: target.dataset.value }));
  store.subscribe(['run', 'view'], (state) => {
    const sites = finished(state)?.sites ?? [];
    line.hidden = sites.length < 2;
    for (const node of root.querySelectorAll('[data-many-sites]')) node.hidden = sites.length < 2;
    if (sites.length < 2) return;
    const key = sites.map(({ site }) => site).join('|');
    if (key !== built) {
      built = key;
      fill(group, sites.map(({ site }) => el('button', { type: 'button', 'data-value': site }, siteName(site))));
    }
    const { site: shown } = siteOf(state);
    for (const button of group.children) button.setAttribute('aria-pressed', String(button.dataset.value === shown));
    what.textContent = siteText(shown);
  });
}
