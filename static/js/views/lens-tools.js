/**
 * What a cell of the heat map shows, what its rows and columns count, and the colour scale, with the formula of a cell.
 * Listens to view, preview, map; emits lens, unit, scale.
 */

import { ref } from '../dom.js';
import { shownHead } from '../select.js';

/** A mean or maximum over layers or heads has a formula of its own; single ones share theirs. */
const over = (index) => (typeof index === 'string' ? index : 'one');

/** Mounts the three lists and the formula, which is the service's own. */
export function mountLensTools(root, store) {
  for (const name of ['lens', 'unit', 'scale']) {
    const select = ref(root, name);
    select.addEventListener('change', () => store.emit(name, { [name]: select.value }));
    store.subscribe(['view'], ({ view }) => {
      select.value = view[name];
    });
  }
  const formulas = new Map(); // as they came with windows: another head's stand-in has none of its own
  store.subscribe(['view', 'preview', 'map'], (state) => {
    const { view, map } = state;
    const { layer, head } = shownHead(state);
    const key = [view.lens, view.unit === 'token', over(layer), over(head)].join('|');
    if (map.status === 'ready' && map.window.lens === view.lens && map.window.unit === view.unit) formulas.set(key, map.window.formula);
    ref(root, 'formula').textContent = formulas.get(key) ?? '';
    ref(root, 'lens-note').hidden = view.lens === 'raw';
  });
}
