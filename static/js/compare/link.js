/**
 * From a place in one run to the same place in the other. Axes are the API's segments [{text, a: [first, stop], b: […]}];
 * ranges of segments and of tokens are half-open. Pure.
 */

const known = new WeakMap(); // axis → {a: Map(token → segment), b: …}

function indexOf(axis, side) {
  if (!known.has(axis)) known.set(axis, {});
  const index = known.get(axis);
  index[side] ??= new Map(axis.flatMap((segment, at) =>
    Array.from({ length: segment[side][1] - segment[side][0] }, (_, token) => [segment[side][0] + token, at])));
  return index[side];
}

const one = (index) => [index, index + 1];

/** The cell (row, col) of a map, 'a', 'b' or 'd', in all three: {a, b, d}, each {rows, cols} or null where it has no counterpart. */
export function linked(answer, map, row, col) {
  const { axis_rows: down, axis_cols: across } = answer;
  const at = map === 'd' ? [row, col] : [indexOf(down, map).get(row), indexOf(across, map).get(col)];
  if (!answer.aligned || !down[at[0]] || !across[at[1]]) return { a: null, b: null, d: null, [map]: { rows: one(row), cols: one(col) } };
  const of = (side) => ({ rows: down[at[0]][side], cols: across[at[1]][side] });
  return { a: of('a'), b: of('b'), d: { rows: one(at[0]), cols: one(at[1]) } };
}

/** The tokens of a side that a range of segments covers, those between that have no counterpart too; all for null. */
export function tokensOf(axis, side, range, length) {
  if (!range || !axis.length) return [0, length];
  return [axis[range[0]][side][0], axis[range[1] - 1][side][1]];
}

/** The segments that a range of a map's own places touches; the nearest one where it touches none. */
export function segmentsOf(axis, map, [from, to]) {
  if (map === 'd') return [Math.max(0, from), Math.min(axis.length, to)];
  const first = axis.findIndex((segment) => segment[map][1] > from);
  const after = axis.findIndex((segment) => segment[map][0] >= to);
  const start = first < 0 ? axis.length - 1 : first;
  return [start, Math.max(start + 1, after < 0 ? axis.length : after)];
}

/** A window's weight on {rows, cols}: keys summed, queries averaged. null where all is masked, undefined where it cannot be told. */
export function weightOf(window, place) {
  if (!window?.exact || window.rowStep !== 1 || window.colStep !== 1) return undefined;
  const { rows, cols, z } = window;
  if (place.rows[0] < rows[0] || place.rows[1] > rows[1] || place.cols[0] < cols[0] || place.cols[1] > cols[1]) return undefined;
  const cells = z.slice(place.rows[0] - rows[0], place.rows[1] - rows[0])
    .flatMap((row) => row.slice(place.cols[0] - cols[0], place.cols[1] - cols[0]));
  if (cells.every((value) => value === null)) return null;
  return cells.reduce((sum, value) => sum + (value ?? 0), 0) / (place.rows[1] - place.rows[0]);
}

/**
 * Tokens for the axes of the difference: a side's own where one token stands alone, else the segment's characters.
 * `position` is where it stands in both texts, null where that differs.
 */
export function sharedTokens(axis, tokens) {
  return axis.map(({ text, a: [first, stop], b }) => {
    const token = stop - first === 1 && tokens[first].text === text ? tokens[first] : { text, parts: 1 };
    return { ...token, position: first === b[0] ? first : null };
  });
}
