/** Colours and marks on the tokens of one strip, changed only where they differ from what is there. */

import { colourOf, needsInverse, stepOf } from '../ramp.js';
import { shownSides } from '../select.js';

const NONE = -1;
const MASKED = -2;

/** The painter of a strip: begin(nodes), colours(state), marks(state), scrollTo(index). */
export function stripPaint(strip, side) {
  let nodes = [];
  let painted = [];
  let marked = {};

  function mark(name, index) {
    if (marked[name] === index) return;
    nodes[marked[name]]?.classList.remove(`is-${name}`);
    nodes[index]?.classList.add(`is-${name}`);
    marked[name] = index;
  }

  return {
    begin(made) {
      nodes = made;
      painted = new Array(made.length).fill(NONE);
      marked = {};
    },

    /** The weights of the line, where this strip is what it looks at. */
    colours(state) {
      const { line, scheme, view } = state;
      const here = line.status === 'ready' && shownSides(state)[line.dir === 'row' ? 'cols' : 'rows'] === side;
      for (let index = 0; index < nodes.length; index += 1) {
        const weight = here ? line.weights[index] : undefined;
        const step = weight === undefined ? NONE : weight === null ? MASKED : stepOf(weight, view.scale);
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
      mark('query', onAxis('row') ? cursor?.row ?? null : null);
      mark('key', onAxis('col') ? cursor?.col ?? null : null);
    },

    scrollTo: (index) => nodes[index].scrollIntoView({ block: 'nearest' }),
  };
}
