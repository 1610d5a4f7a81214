/** What a refusal says to the reader, in the page's language. Knows codes and details, not where they are shown. */

import { has, t, whole } from './i18n.js';

const shown = (value) => (typeof value === 'number' ? whole(value) : String(value));

/** The sentence for an ApiError: by its code where the catalogue has one whose values are all given, else the server's own. */
export function errorText(error) {
  const details = Object.fromEntries(
    Object.entries(error.details ?? {}).filter(([, value]) => ['string', 'number'].includes(typeof value)).map(([key, value]) => [key, shown(value)]),
  );
  const ofField = `error.${error.code}.${error.details?.field}`;
  const key = has(ofField) ? ofField : `error.${error.code}`;
  if (!has(key)) return error.message || t('error.unknown');
  const text = t(key, details);
  return /\{\w+\}/.test(text) ? error.message || t('error.unknown') : text;
}
