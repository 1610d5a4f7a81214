/** What pages share of an address's fragment: ranges, layers, heads, and which fields are not shown as they stand. Pure. */

/** A half-open range as 3:8; null for none. */
export const spanText = (range) => (range ? range.join(':') : null);

/** The range in such a text; null where it is none. */
export function readSpan(text) {
  const match = /^(\d+):(\d+)$/.exec(text ?? '');
  return match && Number(match[1]) < Number(match[2]) ? [Number(match[1]), Number(match[2])] : null;
}

/** Whether a text has the form of a run's id. */
export const isRunId = (text) => /^[0-9a-f]{32}$/.test(text ?? '');

/** A layer or head: its number, 'mean' or 'max'; null where the text is neither. */
export function readIndex(text) {
  if (text === 'mean' || text === 'max') return text;
  return /^\d+$/.test(text ?? '') ? Number(text) : null;
}

const LONGEST_VALUE = 24;

const fieldsOf = (fragment) => [...new URLSearchParams(fragment.replace(/^#/, ''))].filter(([, value]) => value !== '');
const alike = (one, other) => one === other || (one.trim() !== '' && Number(one) === Number(other));

function fieldText([name, value]) {
  const letters = Array.from(value);
  return `${name}=${letters.length > LONGEST_VALUE ? `${letters.slice(0, LONGEST_VALUE).join('')}…` : value}`;
}

/**
 * The fields, as name=value, that `written`, what the page would write of what it read, does not give back. null there is
 * the `usual` value.
 */
export function unlike(fragment, written, usual = {}) {
  const back = (name) => String(written[name] ?? usual[name] ?? '');
  return fieldsOf(fragment).filter(([name, value]) => name in written && !alike(value, back(name))).map(fieldText);
}

/** The fields, as name=value, that are written otherwise after than before; those that were not read are not among them. */
export function changed(fragment, before, after) {
  const differs = ([name]) => (before[name] ?? null) !== null && String(before[name]) !== String(after[name] ?? '');
  return fieldsOf(fragment).filter(differs).map(fieldText);
}
