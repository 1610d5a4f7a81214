/**
 * The texts of the runs that this tab asked for: tokens alone do not always hold them whole. They go with the tab, and
 * nowhere else. Knows storage only.
 */

const KEY = 'everyhead.texts';
const KEPT = 20; // runs
const LONGEST = 500_000; // letters of all of them together: storage holds a few MB

function read() {
  try {
    const list = JSON.parse(sessionStorage.getItem(KEY));
    return Array.isArray(list) ? list.filter((one) => typeof one?.id === 'string' && typeof one.text === 'string') : [];
  } catch {
    return [];
  }
}

/** The newest ones that have room. */
function fitting(list) {
  let room = LONGEST;
  return list.slice(0, KEPT).filter(({ text, pair, target }) => {
    room -= text.length + pair.length + target.length;
    return room >= 0;
  });
}

/** Keeps {text, pair, target} of a run. */
export function keepTexts(id, { text, pair, target }) {
  const list = [{ id, text, pair, target }, ...read().filter((one) => one.id !== id)];
  try {
    sessionStorage.setItem(KEY, JSON.stringify(fitting(list)));
  } catch {
    return false; // storage closed or full: the run's tokens have to do
  }
  return true;
}

/** {text, pair, target} of a run that this tab asked for; null for others. */
export function textsOf(id) {
  const { text, pair = '', target = '' } = read().find((one) => one.id === id) ?? { text: null };
  return text === null ? null : { text, pair, target };
}
