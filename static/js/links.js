/**
 * Links that a reader marks: {query: [first, last], key: [first, last]}, token indices, both ends included. As text, from text,
 * and whether a run has them. What else a link knows is told in link-places.js. Pure: it asks nobody and draws nothing.
 */

import { hides } from './masks.js';
import { shownSides, siteOf } from './select.js';

/** As many as the service takes at once. */
export const MOST_LINKS = 32;

const sideText = ([first, last]) => (first === last ? String(first) : `${first}-${last}`);

/** 29:12 or 30-31:5-6. */
export const linkText = ({ query, key }) => `${sideText(query)}:${sideText(key)}`;

/** All of them as the service and the address write them, each once; null for none. */
export const linksText = (list) => (list.length ? [...new Set(list.map(linkText))].join(',') : null);

function readSide(text) {
  const match = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(text ?? '');
  const ends = match && [Number(match[1]), Number(match[2] ?? match[1])];
  return ends && ends[0] <= ends[1] ? ends : null;
}

/** The links of a fragment; what is ill-formed is left out. */
export function readLinks(fragment) {
  const text = new URLSearchParams(fragment.replace(/^#/, '')).get('pairs') ?? '';
  const links = text.split(',').map((one) => {
    const [query, key, ...more] = one.split(':');
    return { query: readSide(query), key: more.length ? null : readSide(key) };
  });
  return links.filter(({ query, key }) => query && key).slice(0, MOST_LINKS);
}

const SIDES = ['source', 'target'];

/** The texts that a fragment's links are of, as sidesKey writes them; null where it does not say. */
export function readSides(fragment) {
  const sides = new URLSearchParams(fragment.replace(/^#/, '')).get('sides')?.split('-') ?? [];
  return sides.length === 2 && sides.every((side) => SIDES.includes(side)) ? sides.join('>') : null;
}

/**
 * Fields of the fragment for the links; which texts they are of is left out where those are the ones shown. Indices that are
 * of another run than the fragment's are no tokens of its own, and are not in it.
 */
export function linkFields(state) {
  const { list, sides } = state.pairs;
  const own = list.filter(({ run = state.run.id, lost }) => run === state.run.id && !lost);
  const apart = own.length > 0 && sides !== null && sides !== sidesKey(state);
  return { pairs: linksText(own), sides: apart ? sides.replace('>', '-') : null };
}

/** The span that also holds this token. */
export const extended = ([first, last], index) => [Math.min(first, index), Math.max(last, index)];

/** Which texts rows and columns are, in one word. A link means nothing where they are others. */
export function sidesKey(state) {
  const { rows, cols } = shownSides(state);
  return `${rows}>${cols}`;
}

const hidden = (site, { query, key }) => site.masks.every((mask) => hides(mask)(...query, ...key));

/** Why a link cannot be asked for in the run that is shown: 'elsewhere', 'lost', 'missing', 'masked'; null where it can. */
export function problemOf(state, link) {
  const site = siteOf(state);
  const { sides, refused } = state.pairs;
  if (sides !== null && sides !== sidesKey(state)) return 'elsewhere';
  if (link.lost) return 'lost';
  if (link.query[1] >= site.query_len || link.key[1] >= site.key_len) return 'missing';
  return refused.includes(linkText(link)) || hidden(site, link) ? 'masked' : null;
}

/** The heads by their weight on the links, largest first; those that see none of them last. */
export function ranked(heads) {
  const weight = ({ mean }) => mean ?? -1;
  return [...heads].sort((one, other) => weight(other) - weight(one) || one.layer - other.layer || one.head - other.head);
}
