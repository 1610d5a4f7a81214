/**
 * The text itself as tokens: prose that wraps, coloured by the shown token's row or column with the one ramp.
 * Listens to run, line, hoverToken, cursor, view, scheme; emits token, hover-token, direction. One listener serves all tokens.
 */

import { byTouch, fill, perFrame, ref, tokenLabel } from '../dom.js';
import { t, whole, weightText } from '../i18n.js';
import { labelParts, labelText } from '../labels.js';
import { colourOf, needsInverse, stepOf } from '../ramp.js';
import { runTokens, shownToken } from '../select.js';
import { mountSegments } from './segments.js';
import { buildStrip } from './strip-build.js';

const NONE = -1;
const MASKED = -2;

function tokenAt(event) {
  const node = event.target.closest?.('.tok');
  return node ? Number(node.dataset.i) : null;
}

/** Says which token colours the strip. */
function heading(state) {
  const index = shownToken(state);
  const token = index === null ? null : runTokens(state)[index];
  if (!token) return [t(runTokens(state).length === 0 ? 'tokens.empty' : byTouch() ? 'tokens.hint_touch' : 'tokens.hint')];
  const [before, after = ''] = t(`tokens.what_${state.view.dir}`).split('{token}');
  return [before, tokenLabel(labelParts(token)), after];
}

/** Mounts the strip. */
export function mountStrip(root, store) {
  const strip = ref(root, 'strip');
  const section = strip.closest('section');
  let nodes = [];
  let painted = [];
  let builtFor = null;
  const marked = { chosen: null, hovered: null, query: null, key: null };
  let focus = 0;

  function build(state) {
    const { id } = state.run;
    const tokens = runTokens(state);
    const key = tokens.length ? `${id}|${state.run.text !== null}` : null;
    if (key === builtFor) return;
    builtFor = key;
    nodes = buildStrip(strip, tokens, state.run.text);
    painted = new Array(nodes.length).fill(NONE);
    for (const name of Object.keys(marked)) marked[name] = null;
    focus = 0;
    strip.scrollTop = 0;
  }

  function paint({ line, scheme, view }) {
    for (let index = 0; index < nodes.length; index += 1) {
      const weight = line.status === 'ready' ? line.weights[index] : undefined;
      const step = weight === undefined ? NONE : weight === null ? MASKED : stepOf(weight, view.scale);
      const code = step < 0 ? step : step + (scheme === 'dark' ? 1000 : 0);
      if (code === painted[index]) continue;
      painted[index] = code;
      const node = nodes[index];
      node.style.backgroundColor = step >= 0 ? colourOf(scheme, step) : '';
      node.classList.toggle('is-deep', step >= 0 && needsInverse(step));
      node.classList.toggle('is-masked', step === MASKED);
    }
  }

  function mark(name, index) {
    if (marked[name] === index) return;
    nodes[marked[name]]?.classList.remove(`is-${name}`);
    nodes[index]?.classList.add(`is-${name}`);
    marked[name] = index;
  }

  const hover = perFrame((index) => store.emit('hover-token', { index }));
  strip.addEventListener('pointerover', (event) => event.pointerType !== 'touch' && hover(tokenAt(event)));
  strip.addEventListener('pointerleave', () => hover(null));
  strip.addEventListener('click', (event) => {
    const index = tokenAt(event);
    if (index === null) return;
    focus = index;
    store.emit('token', { index });
  });
  strip.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 }[event.key];
    if (event.key === 'Escape') store.emit('let-go');
    else if (event.key === 'Enter' || event.key === ' ') store.emit('token', { index: focus });
    else if (step && nodes.length) {
      focus = Math.min(nodes.length - 1, Math.max(0, (store.state.hoverToken ?? focus) + step));
      store.emit('hover-token', { index: focus });
      nodes[focus].scrollIntoView({ block: 'nearest' });
    } else return;
    event.preventDefault();
  });
  strip.addEventListener('blur', () => store.emit('hover-token', { index: null }));
  mountSegments(ref(root, 'direction'), store, (state) => state.view.dir, (dir) => store.emit('direction', { dir }));

  store.subscribe(['run'], (state) => {
    build(state);
    section.classList.toggle('is-empty', nodes.length === 0);
    ref(root, 'direction').hidden = nodes.length === 0;
  });
  store.subscribe(['run', 'line', 'scheme', 'view'], paint);
  store.subscribe(['run', 'view', 'hoverToken', 'cursor', 'line'], (state) => {
    mark('chosen', state.view.token);
    mark('hovered', state.hoverToken);
    mark('query', state.cursor?.row ?? null);
    mark('key', state.cursor?.col ?? null);
    fill(ref(root, 'strip-foot'), heading(state));
    const { line, hoverToken } = state;
    strip.title = hoverToken === null ? '' : hint(state, line, hoverToken);
  });
}

function hint(state, line, index) {
  const token = runTokens(state)[index];
  const bytes = token.bytes ? ` · ${t('tokens.bytes', { bytes: token.bytes, part: token.part, parts: token.parts })}` : '';
  const weight = line.status === 'ready' && typeof line.weights[index] === 'number' ? ` · ${weightText(line.weights[index])}` : '';
  return `${labelText(token)} · ${t('tokens.position', { n: whole(index) })}${bytes}${weight}`;
}
