/**
 * Marks links and asks which heads make them. Answers `mark` (begin or stop), `mark-token`, `mark-cell`, `mark-extend`,
 * `unmark`, `unmark-all`, `pin-cell`, `retry-figures`. Links stay when the run changes, on the same characters where the text is the same.
 * The newest wish wins. Marking opens the best head, and so does a run made here, unless another was chosen since.
 */

import * as api from '../api.js';
import { keptOn } from '../kept-cell.js';
import { settled } from '../link-places.js';
import { extended, linksText, linkText, MOST_LINKS, problemOf, ranked, sidesKey } from '../links.js';
import { frameOf } from '../map-frame.js';
import { finished, placeOf, shownSides, siteOf, tokensAt } from '../select.js';
import { closeTo } from '../zoom.js';

const NO_HEADS = { status: 'none', heads: [], error: null };

/** Follows the run, its site and the links. */
export function controlLinks(store) {
  let asked = null; // "run|site|links" that the heads are of, or are on their way for
  let refusedIn = null; // "run|site" whose service refused what is in `refused`
  let jump = false; // the best head is wanted on the screen
  let missed = false; // it would have been, and the heads could not be asked
  let opening = false; // it is being put there
  let byHand = false; // another one was chosen since
  let made = false; // the newest run was asked for here, not opened by a link or by Back
  let linked = false; // what a link names is not shown yet: a run in its place is to show the link's own head
  let arriving = false; // a link was opened, and what it marks is not shown yet
  let seen = {}; // the run and the head that were last shown
  let fetching = new AbortController();

  const patch = (fields) => store.patch('pairs', fields);
  const marking = (fields) => store.set({ marking: fields });

  /** Links that belong to other texts than those shown make room. */
  function base() {
    const { list, sides } = store.state.pairs;
    return sides === null || sides === sidesKey(store.state) ? list : [];
  }

  function keep(list, last) {
    if (list.length > MOST_LINKS) {
      store.set({ notice: { key: 'links.full', values: { n: MOST_LINKS } } });
      return;
    }
    const first = store.state.pairs.list.length === 0;
    const sides = sidesKey(store.state);
    [jump, byHand] = [true, false];
    patch({ list: list.map((link) => settled(finished(store.state), sides, link)), sides, last });
    if (first) store.emit('find', { score: 'pairs' }); // heads are shown by what was just marked
  }

  function add(link) {
    const list = base();
    if (!list.some((one) => linkText(one) === linkText(link))) keep([...list, link], 'key');
  }

  store.on('mark', () => marking(store.state.marking || !finished(store.state) ? null : { query: null, extending: false }));

  store.on('mark-token', ({ index, side, extend = false }) => {
    const { marking: now, pairs } = store.state;
    const { rows, cols } = shownSides(store.state);
    const wide = extend || now.extending;
    if (now.query === null && wide && pairs.last && base().length && side === cols) {
      const list = base();
      const link = list.at(-1);
      keep([...list.slice(0, -1), { query: link.query, key: extended(link.key, index) }], 'key');
      marking({ ...now, extending: false });
    } else if (now.query === null) {
      if (side === rows) marking({ query: [index, index], extending: false });
    } else if (wide) {
      if (side === rows) marking({ query: extended(now.query, index), extending: false });
    } else if (side === cols) {
      marking({ query: null, extending: false });
      add({ query: now.query, key: [index, index] });
    }
  });
  store.on('mark-extend', () => marking({ ...store.state.marking, extending: !store.state.marking.extending }));
  store.on('mark-cell', ({ row, col }) => add({ query: inclusive('rows', row), key: inclusive('cols', col) }));
  store.on('pin-cell', (cell) => store.set({ pinned: keptOn(store.state, cell) }));
  store.on('unmark', ({ index }) => patch({ list: store.state.pairs.list.filter((_, at) => at !== index), last: null }));
  store.on('unmark-all', () => patch({ list: [], sides: null, last: null }));

  /** The tokens of one row or column of the heat map, both ends included. */
  function inclusive(axis, index) {
    const [first, stop] = tokensAt(store.state, axis, index);
    return [first, stop - 1];
  }

  function open(heads, link) {
    const [best] = ranked(heads);
    opening = true;
    store.emit('head', { layer: best.layer, head: best.head, unasked: true });
    opening = false;
    store.patch('view', { token: link.query[0], dir: 'row' });
    pin(link);
    store.emit('show-head');
  }

  /** Keeps the link's first cell, and comes so close that it is read by itself. */
  function pin(link) {
    const cell = { row: placeOf(store.state, 'rows', link.query[0]), col: placeOf(store.state, 'cols', link.key[0]) };
    store.emit('pin-cell', cell);
    const { rowStep, colStep } = frameOf(store.state);
    if (rowStep > 1 || colStep > 1) store.emit('zoom', closeTo(cell)); // to read it, and not what is the largest near it
  }

  async function load(id, site, links) {
    const moves = jump;
    jump = false;
    fetching.abort();
    fetching = new AbortController();
    const { signal } = fetching;
    patch({ status: 'loading', error: null });
    try {
      const { heads } = await api.getPairs(id, site, linksText(links), signal);
      if (signal.aborted) return;
      const found = heads.map(({ layer, head, pairs }) => ({ layer, head, ...pairs }));
      patch({ status: 'ready', heads: found, error: null });
      const { pinned, view } = store.state;
      if (moves && !byHand) open(found, links.at(-1));
      else if (arriving && !pinned && !view.rows && !view.cols) pin(links.at(-1));
      arriving = false;
    } catch (error) {
      if (signal.aborted) return;
      const { name, given } = error.details ?? {};
      // a mask of a kind that the page cannot tell: the service names the link that it hides
      if (name === 'pairs' && links.some((link) => linkText(link) === given)) {
        jump = moves;
        patch({ refused: [...store.state.pairs.refused, given] });
      } else {
        missed = moves;
        patch({ ...NO_HEADS, status: 'error', error });
      }
    }
  }

  function want(state) {
    const summary = finished(state);
    const site = siteOf(state);
    const where = summary && `${summary.id}|${site.site}`;
    if (where !== refusedIn) {
      refusedIn = where;
      if (state.pairs.refused.length) {
        patch({ refused: [] });
        return;
      }
    }
    const links = summary ? state.pairs.list.filter((link) => problemOf(state, link) === null) : [];
    const key = links.length ? `${where}|${linksText(links)}` : null;
    if (key === asked) {
      jump = false; // nothing is asked for this marking, and no later answer may move the view for it
      return;
    }
    asked = key;
    if (key !== null) load(summary.id, site.site, links);
    else {
      fetching.abort();
      jump = false;
      if (state.pairs.status !== 'none') patch(NO_HEADS);
    }
  }

  store.on('retry-figures', () => {
    if (store.state.pairs.status !== 'error') return;
    [asked, jump] = [null, missed];
    want(store.state);
  });

  store.on('run', () => {
    made = !linked;
  });
  store.on('open', () => {
    [made, linked, arriving] = [false, true, true];
  });

  /** Tells a head that was chosen by hand; a run that was made here takes the reader to its best one where none was. */
  function watch(run, { layer, head }) {
    const now = { run, head: `${layer}.${head}` };
    if (now.run !== seen.run) jump = made && !byHand;
    else if (now.head !== seen.head && !opening) byHand = true;
    [seen, linked] = [now, false];
  }

  let shown = null;
  store.subscribe(['run', 'view', 'pairs'], (state) => {
    const summary = finished(state);
    const { list } = state.pairs;
    if (summary) watch(summary.id, state.view);
    if (list.some((link) => summary && link.run !== summary.id)) {
      const sides = state.pairs.sides ?? sidesKey(state);
      patch({ sides, list: list.map((link) => settled(summary, sides, link)) });
      return; // this is told of the change
    }
    want(state);
    const now = summary && `${summary.id}|${siteOf(state).site}`;
    if (now === shown) return;
    shown = now;
    if (state.marking) store.set({ marking: null });
  });
}
