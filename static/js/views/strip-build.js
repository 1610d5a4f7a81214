/** Makes the strip's elements: a paragraph per line of the text, one span per token. Text nodes only. */

import { el } from '../dom.js';
import { t } from '../i18n.js';
import { shownText } from '../labels.js';
import { seatOf, signOf } from '../signs.js';
import { groupTokens, segmentsOf } from '../text.js';

const MARKS = { '\n': '↵', '\r': '␍', '\t': '⇥' };

/** The token's own text. One leading space is left as prose has it; other spaces, line ends and what is not seen get a quiet mark. */
function content(text) {
  const nodes = [];
  let plain = seatOf(text);
  const flush = () => {
    if (plain) nodes.push(plain);
    plain = '';
  };
  const blank = text.trim() === '';
  Array.from(text).forEach((character, at, all) => {
    const mark = MARKS[character] ?? signOf(all, at) ?? (character === ' ' && (blank || at > 0) && text.slice(0, at).trim() === '' && (blank ? text.length > 1 : at > 0) ? '·' : null);
    if (!mark) {
      plain += character;
      return;
    }
    flush();
    nodes.push(el('span', { class: 'quiet mark-space' }, mark));
  });
  flush();
  return nodes;
}

const SHORT = 24; // letters: such a token fits into any line
const inOneLine = (text) => text.length <= SHORT && text.trim() !== '' && !/\s\s|\s$|[^\S ]/.test(text);

/** A token, after a place where a line may end if it begins with a space of its own. */
function tokenNode(token) {
  const whole = inOneLine(token.text);
  const look = ['tok', token.special ? 'is-special' : null, whole ? 'is-whole' : null].filter(Boolean).join(' ');
  const node = el('span', { class: look, 'data-i': token.index }, content(token.text));
  return whole && token.text.startsWith(' ') ? [el('wbr'), node] : [node];
}

const pieceNode = (token) => el('span', { class: 'tok piece', 'data-i': token.index }, `${token.part}/${token.parts}`);

/** One character that is several tokens: the character once, its pieces in a bracket under it. */
function groupNode({ tokens }) {
  const [first] = tokens;
  if (first.parts === 1) return tokenNode(first);
  return [el('span', { class: 'pieces', 'aria-label': t('tokens.pieces', { text: shownText(first.text), n: first.parts }), role: 'group' },
    el('span', { class: 'pieces-text' }, content(first.text)), el('span', { class: 'pieces-row' }, tokens.map(pieceNode)))];
}

/** What belongs to no token. Spaces stay bare; what is not seen has its sign, and nothing of it turns the line. */
const gapNode = (gap) => (/^[ \t\r\n\u00a0\u3000]*$/.test(gap) ? gap.replaceAll('\n', ' ') : el('bdi', { class: 'quiet' }, content(gap.replaceAll('\n', ' '))));

const breaksLine = (text) => text.includes('\n');

/** One paragraph per line of a text. */
function linesOf(tokens, text) {
  const lines = [];
  let line = [];
  const close = () => {
    lines.push(el('p', { class: 'strip-line', dir: 'auto' }, line));
    line = [];
  };
  for (const group of groupTokens(tokens, text)) {
    if (group.gap) line.push(gapNode(group.gap));
    if (breaksLine(group.gap)) close();
    if (!group.tokens.length) continue;
    line.push(...groupNode(group));
    if (breaksLine(group.tokens[0].text)) close();
  }
  if (line.length) close();
  return lines;
}

/** Fills `strip` and gives the token elements by index. `texts` are the text and, of a pair, the second one; null if unknown. */
export function buildStrip(strip, tokens, texts) {
  const segments = segmentsOf(tokens);
  const parts = segments.map((segment, at) => linesOf(segment, texts[at] ?? null));
  strip.replaceChildren(...(parts.length === 1 ? parts[0] : parts.map(segmentNode)));
  const nodes = new Array(tokens.length);
  for (const node of strip.querySelectorAll('.tok')) nodes[Number(node.dataset.i)] = node;
  return nodes;
}

/** One text of a pair, with its name before it. */
const segmentNode = (lines, at) => el('div', { class: 'segment' }, el('span', { class: 'segment-name' }, t(`tokens.segment_${at + 1}`)), lines);
