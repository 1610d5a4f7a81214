/** Which cells of a pooled picture have no visible weight at all, told from the mask's kind. Knows no drawing. */

/**
 * A function (row cell, column cell) → true when every weight of the cell is masked.
 * Kinds that the page can't derive (`ranges`, `dense`, mixed layers) hide nothing here.
 */
export function maskedCell(mask, site, rowStep = site.row_step, colStep = site.col_step) {
  const lastRow = (cell) => Math.min((cell + 1) * rowStep, site.query_len) - 1;
  const lastCol = (cell) => Math.min((cell + 1) * colStep, site.key_len) - 1;
  const window = mask?.window ?? Infinity;
  switch (mask?.kind) {
    case 'causal':
      return (row, col) => col * colStep > lastRow(row);
    case 'causal_window':
      return (row, col) => col * colStep > lastRow(row) || lastCol(col) <= row * rowStep - window;
    case 'window':
      return (row, col) => col * colStep - lastRow(row) > window || row * rowStep - lastCol(col) > window;
    default:
      return () => false;
  }
}

/** Whether a mask of this kind hides anything, so that the legend must explain the hatch. */
export const hidesCells = (mask) => mask !== null && mask.kind !== 'full';
