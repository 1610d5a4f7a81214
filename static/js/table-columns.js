/** The columns of the table of all heads: what each is called, sorted by and shows. Pure; it makes no elements. */

import { figureOf, MEASURES, SHARES } from './finder.js';
import { fixedText, whole } from './i18n.js';

const DIGITS = { distance: 1 };

/** How a figure of a score is written, with so many digits at most. */
export const figureText = (name, value, most = 3) => fixedText(value, Math.min(most, DIGITS[name] ?? 3));

/** The columns of the score that is chosen; first the one that roles and order come from, so that it needs no scrolling. */
const CHOSEN = ['corrected', 'value', 'chance', 'rows'].map((field) => ({
  id: field, label: `table.${field}`, sort: { column: field }, number: true,
  text: ({ figure, name }) => {
    const value = figure?.[field] ?? null;
    if (value === null) return null;
    return field === 'rows' ? whole(value) : figureText(field === 'corrected' ? '' : name, value);
  },
}));

/** A column for each score: corrected where it has that, else the figure itself. */
const OTHERS = [...SHARES, ...MEASURES].map((name) => ({
  id: name, label: `score.${name}`, score: name, sort: { column: 'corrected', score: name }, number: true,
  text: ({ entry, version }) => {
    const figure = figureOf(entry, name, version);
    return figure ? figureText(name, figure.corrected ?? figure.value) : null;
  },
}));

export const COLUMNS = [
  { id: 'place', label: 'table.place', sort: { column: 'place' } },
  { id: 'role', label: 'table.role', sort: { column: 'role' } },
  ...CHOSEN,
  ...OTHERS,
];
