/** Words and numbers in the page's language. The messages are the same files that the templates read. */

let messages = {};
let numbers = new Intl.NumberFormat('en');

/** Sets the language once, before any view is mounted. */
export function setMessages(entries, lang) {
  messages = entries;
  numbers = new Intl.NumberFormat(lang);
}

/** The message with its {placeholders} filled; the key itself where there is no such message. */
export function t(key, values = {}) {
  const message = messages[key] ?? key;
  return message.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Whether the catalogue has this message. */
export const has = (key) => key in messages;

/** A whole number with the language's separators. */
export const whole = (value) => numbers.format(value);

/** The places of a half-open range, both ends included: 12, 12–15. */
export const rangeText = ([from, to]) => (to - from === 1 ? whole(from) : `${whole(from)}–${whole(to - 1)}`);

/** A weight to four digits: 0.8858, 3.12e-5, 0, 1. */
export function weightText(weight) {
  if (weight === 0 || weight === 1) return String(weight);
  return weight >= 0.001 ? weight.toFixed(4) : weight.toExponential(3);
}

/** A share to two digits that count: 0.53, 0.0041, 0, 1. */
export function shareText(share) {
  return share >= 0.1 || share === 0 ? String(Number(share.toFixed(2))) : share.toPrecision(2);
}

/** A figure with so many digits after the point, so that a column of them lines up: 0.520, −0.013. */
export function fixedText(value, digits) {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** A measured figure in few characters: 2.4e-7, 30, float32. */
export function figure(value) {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'number' || Number.isInteger(value)) return typeof value === 'number' ? whole(value) : String(value);
  return Math.abs(value) < 0.001 ? value.toExponential(1) : value.toPrecision(3);
}

/** Milliseconds as people say them. */
export function duration(ms) {
  return ms < 1000 ? t('time.ms', { n: Math.round(ms) }) : t('time.s', { n: (ms / 1000).toFixed(ms < 10000 ? 2 : 1) });
}
