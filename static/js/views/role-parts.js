/** What stands beside a role in a table: the sinks, and a sign where it was read from other figures than those there. Makes elements. */

import { el } from '../dom.js';
import { figureOf } from '../finder.js';
import { fixedText, t } from '../i18n.js';
import { scoreName } from './finder-bar.js';

/** The sinks of a head, each with what it takes. */
export const sinkTags = ({ role }) => role.sinks.map((name) =>
  el('span', { class: 'sink-tag', title: t('sink.title', { name: scoreName(name), n: fixedText(role.taken[name], 3) }) }, t(`sink.${name}`)));

/** The sign, and in words which figures the role was read from. */
export function roleSource(entry, { best, of }) {
  const words = t(of === 'all' ? 'table.role_of_all' : `table.role_without_${of}`, { name: scoreName(best), n: fixedText(figureOf(entry, best, of).corrected, 3) });
  return el('span', { class: 'role-source', title: words }, el('span', { 'aria-hidden': 'true' }, '*'), el('span', { class: 'visually-hidden' }, ` (${words})`));
}

/** The number that made the role, where the column of the chosen score does not show it. */
export const madeBy = ({ strong, corrected }, score) => (strong && score !== 'best' ? el('span', { class: 'role-number' }, ` ${fixedText(corrected, 3)}`) : null);
