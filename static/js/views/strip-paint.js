/** Colours and marks on the tokens of one strip, changed only where they differ from what is there. */

import { colourOf, needsInverse, stepOf } from '../ramp.js';
import { problemOf } from '../links.js';
import { finished, shownSides, tokensAt } from '../select.js';

const NONE = -1;
const MASKED = -2;

/** The painter of a strip: begin(nodes), colours(state), marks(state), scrollTo(index). */
export function stripPaint(strip, side) {
  let nodes = [];
  let painted = [];
  let marked = {};
  let linked = { from: new Set(), onto: new Set() };

  /** Marks one token, or a half-open range of them; null marks none. */
  function mark(name, place) {
    const [first, stop] = Array.isArray(place) ? place : place === null ? [0, 0] : [place, place + 1];
    const before = marked[name] ?? [0, 0];
    if (before[0] === first && before[1] === stop) return;
    for (const node of nodes.slice(...before)) node.classList.remove(`is-${name}`);
    for (const node of nodes.slice(first, stop)) node.classList.add(`is-${name}`);
    marked[name] = [first, stop];
  }

  function setAll(name, wanted) {
    for (const index of linked[name]) if (!wanted.has(index)) nodes[index]?.classList.remove(`is-${name}`);
    for (const index of wanted) nodes[index]?.classList.add(`is-${name}`);
    linked[name] = wanted;
  }

  return {
    begin(made) {
      linked = { from: new Set(), onto: new Set() };
      nodes = made;
      painted = new Array(made.length).fill(NONE);
      marked = {};
    },

    /** The weights of the line, where this strip is what it looks at. */
    colours(state) {
      const { line, scheme, view } = state;
      // a column crosses many rows, whose largest are not known here: it keeps its weights
      const end = view.scale === 'row' && line.dir === 'row' ? Math.max(...(line.weights ?? [1])) || 1 : 1;
      const here = line.status === 'ready' && shownSides(state)[line.dir === 'row' ? 'cols' : 'rows'] === side;
      for (let index = 0; index < nodes.length; index += 1) {
        const weight = here ? line.weights[index] : undefined;
        const step = weight === undefined ? NONE : weight === null ? MASKED : stepOf(weight / end, view.scale);
        const code = step < 0 ? step : step + (scheme === 'dark' ? 1000 : 0);
        if (code === painted[index]) continue;
        painted[index] = code;
        const node = nodes[index];
        node.style.backgroundColor = step >= 0 ? colourOf(scheme, step) : '';
        node.classList.toggle('is-lit', step >= 0);
        node.classList.toggle('is-deep', step >= 0 && needsInverse(step));
        node.classList.toggle('is-masked', step === MASKED);
      }
    },

    /** The chosen and the hovered token, and the two of the cell that is read. */
    marks(state) {
      const sides = shownSides(state);
      const onAxis = (dir) => sides[dir === 'row' ? 'rows' : 'cols'] === side;
      const { view, hoverToken, cursor } = state;
      mark('chosen', onAxis(view.dir) ? view.token : null);
      mark('hovered', hoverToken && onAxis(hoverToken.dir) ? hoverToken.index : null);
      mark('query', cursor && onAxis('row') ? tokensAt(state, 'rows', cursor.row) : null);
      mark('key', cursor && onAxis('col') ? tokensAt(state, 'cols', cursor.col) : null);
    },

    /** The tokens of marked links, and of the one being marked. */
    links(state) {
      const sides = shownSides(state);
      const all = finished(state) ? state.pairs.list.filter((link) => !['elsewhere', 'lost'].includes(problemOf(state, link))) : [];
      const tokens = (spans) => new Set(spans.flatMap(([first, last]) => nodes.slice(first, last + 1).map((_, at) => first + at)));
      const query = finished(state) && state.marking?.query ? [state.marking.query] : [];
      setAll('from', tokens(sides.rows === side ? [...all.map((link) => link.query), ...query] : []));
      setAll('onto', tokens(sides.cols === side ? all.map((link) => link.key) : []));
    },

    scrollTo: (index) => nodes[index].scrollIntoView({ block: 'nearest' }),
  };
}
