/**
 * Answers `tab`, `find`, `find-all`, `sort` and `order`: what the finder shows and how. Links are a score only while some
 * are marked. It asks the server nothing.
 */

import { FINDER, isRanked } from '../finder.js';

/** Connects the intentions to the store. */
export function controlFinder(store) {
  const find = (fields) => store.patch('finder', fields);

  store.on('tab', ({ tab }) => {
    if (tab !== store.state.finder.tab) store.set({ finder: { ...store.state.finder, tab }, preview: null });
  });
  store.on('find', find);
  store.on('find-all', () => find({ role: FINDER.role, layers: FINDER.layers, threshold: FINDER.threshold, version: FINDER.version }));
  store.on('sort', ({ column, score }) => {
    const { finder } = store.state;
    const same = finder.column === column && (score === undefined || score === finder.score);
    const down = same ? !finder.down : column !== 'place' && column !== 'role';
    find({ column, down, ...(score ? { score } : {}) });
  });
  store.subscribe(['pairs', 'finder'], ({ pairs, finder }) => {
    if (!pairs.list.length && finder.score === 'pairs') find({ score: FINDER.score });
  }, { now: false });

  store.on('order', ({ by }) => {
    if ((by === 'score') === isRanked(store.state.finder)) return;
    find(by === 'score' ? { column: 'corrected', down: true } : { column: 'place', down: false });
  });
}
