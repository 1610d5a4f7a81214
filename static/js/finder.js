/** Which heads are shown, in which order and by which score. Pure: it reads the state and gives lists; it draws nothing. */

import { problemOf } from './links.js';
import { axesOf, maskOf, siteOf } from './select.js';

export const TABS = ['pictures', 'table', 'scatter', 'alike', 'layers'];
/** Views that are always of the shown text, whichever texts the figures of heads are of. */
export const OWN_TABS = ['alike', 'layers'];
/** Scores that are shares of a row's weight, with chance and corrected. */
export const SHARES = ['previous', 'self', 'next', 'duplicate', 'induction', 'punctuation', 'local', 'first', 'special'];
/** Figures of other kinds. */
export const MEASURES = ['entropy', 'distance', 'concentration'];
export const ROLES = ['previous', 'self', 'next', 'duplicate', 'induction', 'punctuation', 'local', 'uniform', 'mixed', 'sink'];
export const FILTERS = [...ROLES, 'untested', 'sinks'];
export const COLUMNS = ['place', 'role', 'value', 'chance', 'corrected', 'rows'];
export const VIEWS = ['map', 'points', 'list'];

/** What the finder shows before anybody asks for something else. `best` is the score that a head's role comes from. */
export const FINDER = Object.freeze({
  tab: 'pictures', score: 'best', column: 'place', down: false, role: null, layers: null, threshold: 0.3, version: 'all',
  x: 'previous', y: 'induction', colour: 'layer', view: 'map',
});

/** The scores to choose from; `pairs` only where links are marked. */
export const scoresOf = (state) => ['best', ...(state.pairs.list.length ? ['pairs'] : []), ...SHARES, ...MEASURES];

/** Each head's figures on the marked links by layer · heads + head; null while there are none. */
const pairsOf = (state) => (state.pairs.heads.length ? state.pairs.heads : null);

const NO_ROLE = Object.freeze({ name: null, strong: false, best: null, corrected: null, otherwise: null, of: 'all', sinks: [], taken: {}, untested: [] });

/**
 * A head's role at a threshold: {name, strong, best, corrected, of, sinks, …}. The first candidate that reaches the threshold
 * made it, and best and corrected are its own; where none does, those of the highest. `name` is null where the text cannot show one.
 */
export function roleOf(entry, threshold) {
  const role = entry?.role;
  if (!role) return NO_ROLE;
  const candidates = role.candidates ?? [];
  const made = candidates.find(({ corrected }) => corrected >= threshold);
  const told = made ?? candidates.reduce((most, one) => (most && most.corrected >= one.corrected ? most : one), null);
  return {
    ...NO_ROLE, ...role, name: made?.name ?? role.otherwise, strong: Boolean(made), best: told?.name ?? null, corrected: told?.corrected ?? null,
  };
}

/** The figures of one version of a head: of all weights, or of those that remain without the first token or all special ones. */
export const versionOf = (entry, version) => (version === 'all' ? entry : entry.without?.[version] ?? null);

const MEASURED = {
  entropy: (figures) => ({ value: figures.normalised, chance: null }),
  distance: (figures) => ({ value: figures.mean, chance: figures.uniform }),
  concentration: (figures) => ({ value: figures.share, chance: figures.chance }),
};

/** The version that the shown view counts: marked links are of all weights. */
export const versionFor = ({ score, tab, version }) => (score === 'pairs' && tab !== 'scatter' ? 'all' : version);

/** One figure of a head as {value, chance, corrected, rows}; null where this text cannot show it. */
export function figureOf(entry, name, version = 'all') {
  const figures = versionOf(entry, version);
  if (name in MEASURED) {
    const found = figures?.[name];
    if (!found || !Number.isFinite(MEASURED[name](found).value)) return null;
    return { corrected: null, rows: found.rows ?? null, ...MEASURED[name](found) };
  }
  const found = figures?.scores?.[name];
  return found ? { value: found.score, chance: found.chance, corrected: found.corrected, rows: found.rows } : null;
}

function markedFigure(entry) {
  return entry && entry.mean !== null ? { value: entry.mean, chance: entry.chance, corrected: entry.corrected, rows: null } : null;
}

/** Which sentence says why no head of a site has such a figure of a version, or why this text cannot show it. */
export function missingAt(site, name, version = 'all') {
  if (name === 'first' && version === 'first') return 'finder.no_first';
  const positional = ['previous', 'self', 'next', 'local', 'distance'].includes(name);
  if (positional && site?.site === 'decoder.cross') return 'finder.no_distance';
  if (name === 'next' && maskOf(site, 0)?.kind.startsWith('causal')) return 'finder.no_next';
  return 'finder.untested';
}

const UNASKED = { loading: 'links.loading', error: 'finder.links_failed' };

/** The same of marked links: they are still asked for, or why none of them can be; where others have an answer, this head's mask hides them. */
function missingLinks(state) {
  const { list, heads, status } = state.pairs;
  const problems = new Set(list.map((link) => problemOf(state, link)));
  if (heads.length) return 'links.masked';
  if (problems.has(null)) return UNASKED[status] ?? UNASKED.loading;
  return problems.size === 1 ? `links.${[...problems][0]}` : 'finder.no_links';
}

/** Whether the first token is the only special one, so that what leaves it out has none. */
const isAlone = ([first, ...others]) => Boolean(first?.special) && !others.some(({ special }) => special);

/** The same of the site that is shown, and of a version, usually the one that its view counts. */
export function missingReason(state, name, version = versionFor(state.finder)) {
  if (name === 'pairs') return missingLinks(state);
  const asked = name === 'special' && version === 'first' && isAlone(axesOf(state).cols) ? 'first' : name;
  return missingAt(siteOf(state), asked, version);
}

const place = (entry, heads) => entry.layer * heads + entry.head;

/**
 * The figure that a head is shown and sorted by. Beside a role stands the number that made it: by the clearest role, and where
 * the filter asks for the role of the chosen score, it is of the weights that the role was read from.
 */
function shownFigure(entry, role, { score, version, role: wanted }) {
  if (score === 'best') return role.best ? figureOf(entry, role.best, role.of) : null;
  return figureOf(entry, score, role.strong && score === wanted && role.name === wanted ? role.of : version);
}

/** {figures, roles, order, matches, heads}: everything that the views share, for one state of list and finder. */
function survey(state) {
  const { heads: { list }, finder } = state;
  const across = siteOf(state)?.n_heads ?? 0;
  const marked = pairsOf(state);
  const roles = list.map((entry) => roleOf(entry, finder.threshold));
  const figures = list.map((entry, at) =>
    finder.score === 'pairs' ? markedFigure(marked?.[place(entry, across)]) : shownFigure(entry, roles[at], finder));
  const order = sorted(list, figures, roles, finder).filter((at) => fits(list[at], roles[at], finder));
  const matches = new Uint8Array(list.length);
  for (const at of order) matches[at] = 1;
  return { list, figures, roles, order, matches };
}

function fits(entry, role, { role: wanted, layers }) {
  if (layers && (entry.layer < layers[0] || entry.layer > layers[1])) return false;
  if (wanted === null) return true;
  if (wanted === 'sinks') return role.sinks.length > 0;
  return wanted === 'untested' ? role.name === null : role.name === wanted;
}

/** What a column is sorted by; null comes last, whatever the direction. */
const KEYS = {
  place: (at) => at,
  role: (at, figures, roles) => (roles[at].name === null ? null : ROLES.indexOf(roles[at].name)),
  value: (at, figures) => figures[at]?.value ?? null,
  chance: (at, figures) => figures[at]?.chance ?? null,
  corrected: (at, figures) => figures[at]?.corrected ?? figures[at]?.value ?? null,
  rows: (at, figures) => figures[at]?.rows ?? null,
};

function sorted(list, figures, roles, { column, down }) {
  const keys = list.map((_, at) => KEYS[column](at, figures, roles));
  const sign = down ? -1 : 1;
  return list.map((_, at) => at).sort((one, other) => {
    if (keys[one] === null || keys[other] === null) return (keys[one] === null) - (keys[other] === null) || one - other;
    return sign * (keys[one] - keys[other]) || one - other;
  });
}

const NEVER = {};
let last = { keys: [NEVER], found: null };

/** The survey of the present state; made once for each change of list, links or finder. Why links have no figures changes without these. */
export function surveyOf(state) {
  const { score, column, down, role, layers, threshold, version } = state.finder;
  const keys = [state.heads.list, state.pairs.heads, score === 'pairs' && state.pairs, score, column, down, role, layers?.join(), threshold, version];
  if (!keys.every((key, at) => Object.is(key, last.keys[at])) || keys.length !== last.keys.length) last = { keys, found: survey(state) };
  return last.found;
}

/** The entry of a head; undefined while there is none, as for the mean of all heads. */
export const entryOf = (state, { layer, head }) =>
  state.heads.list.find((entry) => entry.layer === layer && entry.head === head);

/** The column that heads are in order of: what has no chance to correct for is in order of the figure itself. */
export const sortedBy = ({ column, score }, name = score) => (column === 'corrected' && MEASURES.includes(name) ? 'value' : column);

/** Whether heads are in order of a score, not layers down and heads across. */
export const isRanked = (finder) => finder.column !== 'place' || finder.down;
