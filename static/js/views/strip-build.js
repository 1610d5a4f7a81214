/** Makes the strip's elements: a paragraph per line of the text, one span per token. Text nodes only. */

import { el } from '../dom.js';
import { t } from '../i18n.js';
import { groupTokens } from '../text.js';

const MARKS = { '\n': '↵', '\r': '␍', '\t': '⇥' };

/** The token's own text. One leading space is left as prose has it; other spaces and line ends get a quiet mark. */
function content(text) {
  const nodes = [];
  let plain = '';
  const flush = () => {
    if (plain) nodes.push(plain);
    plain = '';
  };
  const blank = text.trim() === '';
  Array.from(text).forEach((character, at) => {
    const mark = MARKS[character] ?? (character === ' ' && (blank || at > 0) && text.slice(0, at).trim() === '' && (blank ? text.length > 1 : at > 0) ? '·' : null);
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

function tokenNode(token) {
  const special = token.special ? ' is-special' : '';
  const text = token.parts > 1 ? [token.part === 1 ? token.text : null, el('sub', {}, `${token.part}/${token.parts}`)] : content(token.text);
  return el('span', { class: `tok${special}`, 'data-i': token.index }, text);
}

function groupNode(group) {
  if (group.tokens.length === 1) return tokenNode(group.tokens[0]);
  const [first] = group.tokens;
  return el('span', { class: 'pieces', 'aria-label': t('tokens.pieces', { text: first.text, n: first.parts }), role: 'group' }, group.tokens.map(tokenNode));
}

const breaksLine = (text) => text.includes('\n');

/** Fills `strip` and gives the token elements by index. */
export function buildStrip(strip, tokens, text) {
  const lines = [];
  let line = [];
  const close = () => {
    lines.push(el('p', { class: 'strip-line', dir: 'auto' }, line));
    line = [];
  };
  for (const group of groupTokens(tokens, text)) {
    if (group.gap) line.push(group.gap.replaceAll('\n', ' '));
    if (breaksLine(group.gap)) close();
    if (!group.tokens.length) continue;
    line.push(groupNode(group));
    if (breaksLine(group.tokens[0].text)) close();
  }
  if (line.length) close();
  strip.replaceChildren(...lines);
  const nodes = new Array(tokens.length);
  for (const node of strip.querySelectorAll('.tok')) nodes[Number(node.dataset.i)] = node;
  return nodes;
}
