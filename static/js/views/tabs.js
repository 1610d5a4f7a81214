/** The views of all heads as tabs. Listens to finder, run, heads; emits tab. */

import { ref } from '../dom.js';
import { OWN_TABS, TABS } from '../finder.js';
import { finished } from '../select.js';

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

/** Mounts the row of tabs and shows the chosen one's panel. */
export function mountTabs(root, store) {
  const list = ref(root, 'tabs');
  const tabs = [...list.children];
  const panels = [...root.querySelectorAll('[data-panel]')];

  list.addEventListener('click', ({ target }) => target.dataset.tab && store.emit('tab', { tab: target.dataset.tab }));
  list.addEventListener('keydown', (event) => {
    const at = TABS.indexOf(store.state.finder.tab);
    const to = event.key === 'Home' ? 0 : event.key === 'End' ? TABS.length - 1
      : event.key in STEPS ? (at + STEPS[event.key] + TABS.length) % TABS.length : null;
    if (to === null) return;
    event.preventDefault();
    store.emit('tab', { tab: TABS[to] });
    tabs[to].focus();
  });

  store.subscribe(['finder', 'run', 'heads'], (state) => {
    const { tab } = state.finder;
    const done = finished(state) !== null;
    const apart = state.heads.of && !OWN_TABS.includes(tab); // averaged over other texts
    list.hidden = !done;
    ref(root, 'finder-note').hidden = !done || Boolean(apart);
    for (const button of tabs) {
      const chosen = button.dataset.tab === tab;
      button.setAttribute('aria-selected', String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
    for (const panel of panels) panel.hidden = panel.dataset.panel !== (done ? tab : TABS[0]);
    ref(root, 'page').classList.toggle('is-roomy', done && tab !== TABS[0]);
  });
}
