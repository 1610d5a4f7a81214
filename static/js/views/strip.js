/**
 * The texts themselves as tokens: prose that wraps, coloured by the shown token's row or column with the one ramp. The
 * source and, where the model has one, the target; in attention from one to the other a token of either colours the other.
 * Listens to run, line, hoverToken, cursor, view, scheme, pairs, marking; emits token, hover-token, direction, mark-token, mark, press-mark, let-go. One listener serves a strip.
 */

import { byTouch, fill, perFrame, ref, tokenLabel } from '../dom.js';
import { t, whole, weightText } from '../i18n.js';
import { labelParts, labelText } from '../labels.js';
import { axesOf, finished, isCross, shownSides, shownToken, tokensOf } from '../select.js';
import { mountSegments } from './segments.js';
import { buildStrip } from './strip-build.js';
import { stripPaint } from './strip-paint.js';

const STEPS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 };

function tokenAt(event) {
  const node = event.target.closest?.('.tok');
  return node ? Number(node.dataset.i) : null;
}

/** The direction that a token of this side is looked at in: null where the shown site does not hold the side. */
function directionOf(state, side) {
  const { rows, cols } = shownSides(state);
  if (rows === cols) return rows === side ? state.view.dir : null;
  return rows === side ? 'row' : 'col';
}

/** Says which token colours the strips. */
function heading(state) {
  const shown = shownToken(state);
  const { rows, cols } = axesOf(state);
  const token = shown && (shown.dir === 'row' ? rows : cols)[shown.index];
  const touch = byTouch() ? '_touch' : '';
  if (!token) return [t(rows.length === 0 ? 'tokens.empty' : `tokens.hint${isCross(state) ? '_cross' : ''}${touch}`)];
  const [before, after = ''] = t(`tokens.what_${shown.dir}`).split('{token}');
  return [before, tokenLabel(labelParts(token)), after];
}

function hint(state, side, index) {
  const token = tokensOf(state, side)[index];
  const { line } = state;
  const bytes = token.bytes ? ` · ${t('tokens.bytes', { bytes: token.bytes, part: token.part, parts: token.parts })}` : '';
  const own = line.status === 'ready' && shownSides(state)[line.dir === 'row' ? 'cols' : 'rows'] === side ? line.weights[index] : null;
  const weight = typeof own === 'number' ? ` · ${weightText(own)}` : '';
  return `${labelText(token)} · ${t('tokens.position', { n: whole(index) })}${bytes}${weight}`;
}

/** One side's strip. */
function mountSide(strip, store, side) {
  const paint = stripPaint(strip, side);
  let builtFor = null;
  let focus = 0;

  const emit = (intention, index) => {
    const dir = directionOf(store.state, side);
    if (dir) store.emit(intention, { index, dir });
  };
  const choose = (index, extend) => {
    if (store.state.marking) store.emit('mark-token', { index, side, extend });
    else emit('token', index);
  };
  const hover = perFrame((index) => emit('hover-token', index));
  strip.addEventListener('pointerover', (event) => event.pointerType !== 'touch' && hover(tokenAt(event)));
  strip.addEventListener('pointerleave', () => hover(null));
  strip.addEventListener('click', (event) => {
    const index = tokenAt(event);
    if (index === null) return;
    focus = index;
    choose(index, event.shiftKey);
  });
  strip.addEventListener('keydown', (event) => {
    const step = STEPS[event.key];
    const count = tokensOf(store.state, side).length;
    const hovered = store.state.hoverToken;
    if (event.key === 'Escape') store.emit(store.state.marking ? 'mark' : 'let-go');
    else if (event.key === 'Enter' || event.key === ' ') choose(focus, event.shiftKey);
    else if (event.key === 'm') store.emit('press-mark');
    else if (step && count) {
      const from = hovered && hovered.dir === directionOf(store.state, side) ? hovered.index : focus;
      focus = Math.min(count - 1, Math.max(0, from + step));
      emit('hover-token', focus);
      paint.scrollTo(focus);
    } else return;
    event.preventDefault();
  });
  strip.addEventListener('blur', () => store.emit('hover-token', { index: null }));

  store.subscribe(['run'], (state) => {
    const { id, text, pair, target } = state.run;
    const tokens = tokensOf(state, side);
    const key = tokens.length ? `${id}|${text !== null}` : null;
    if (key === builtFor) return;
    builtFor = key;
    focus = 0;
    const written = state.run.summary?.options.target === 'written';
    const texts = text === null ? [null, null] : side === 'source' ? [text, pair] : [written ? null : target];
    paint.begin(buildStrip(strip, tokens, texts));
  });
  store.subscribe(['run', 'line', 'scheme', 'view'], paint.colours);
  store.subscribe(['run', 'view', 'pairs', 'marking'], paint.links);
  store.subscribe(['run', 'view', 'hoverToken', 'cursor', 'line'], (state) => {
    const dir = finished(state) && directionOf(state, side);
    const { hoverToken } = state;
    strip.classList.toggle('is-apart', dir === null);
    paint.marks(state);
    strip.title = hoverToken && dir === hoverToken.dir ? hint(state, side, hoverToken.index) : '';
  });
}

/** Mounts both strips. */
export function mountStrip(root, store) {
  const sides = ref(root, 'strips');
  const section = sides.closest('section');
  mountSide(ref(root, 'strip'), store, 'source');
  mountSide(ref(root, 'target-strip'), store, 'target');
  mountSegments(ref(root, 'direction'), store, (state) => state.view.dir, (dir) => store.emit('direction', { dir }));

  let shown = null;
  store.subscribe(['run'], (state) => {
    const { id } = state.run;
    const count = tokensOf(state, 'source').length;
    const target = tokensOf(state, 'target').length > 0;
    section.classList.toggle('is-empty', count === 0);
    ref(root, 'direction').hidden = count === 0;
    ref(root, 'source-label').hidden = !target;
    ref(root, 'target-side').hidden = !target;
    if (target) ref(root, 'target-origin').textContent = t(`tokens.target_${state.run.summary.options.target}`);
    if (shown !== id) sides.scrollTop = 0;
    shown = id;
  });
  store.subscribe(['marking'], ({ marking }) => sides.classList.toggle('is-marking', marking !== null));
  store.subscribe(['run', 'view', 'hoverToken'], (state) => fill(ref(root, 'strip-foot'), heading(state)));
}
