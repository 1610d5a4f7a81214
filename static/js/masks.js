/** What a mask hides whole, told from its kind: cells of a pooled picture, or any rectangle. Knows no drawing. */

/**
 * A function (top, bottom, left, right) → true when every weight of this rectangle, all ends included, is masked. Only its
 * corners are looked at, so that its size costs nothing. Kinds that the page can't derive (`ranges`, `dense`, mixed
 * layers) hide nothing here.
 */
export function hides(mask) {
  const window = mask?.window ?? Infinity;
  switch (mask?.kind) {
    case 'causal':
      return (top, bottom, left) => left > bottom;
    case 'causal_window':
      return (top, bottom, left, right) => left > bottom || right <= top - window;
    case 'window':
      return (top, bottom, left, right) => left - bottom > window || top - right > window;
    default:
      return () => false;
  }
}

/** A function (row cell, column cell) → true when every weight of the cell is masked, as far as `hides` can tell. */
export function maskedCell(mask, site) {
  const { row_step: rowStep, col_step: colStep } = site;
  const lastRow = (cell) => Math.min((cell + 1) * rowStep, site.query_len) - 1;
  const lastCol = (cell) => Math.min((cell + 1) * colStep, site.key_len) - 1;
  const hidden = hides(mask);
  return (row, col) => hidden(row * rowStep, lastRow(row), col * colStep, lastCol(col));
}

/** Whether a mask of this kind hides anything, so that the legend must explain the hatch. */
export const hidesCells = (mask) => mask !== null && mask.kind !== 'full';
