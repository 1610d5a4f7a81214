/** Differences on a logarithmic scale. Pure: numbers in, numbers out. */

const LOWEST = { float64: -17, float32: -9 }; // powers of ten just under the rounding of one number
const STEP = { float64: 4, float32: 2 };

const lowest = (dtype) => LOWEST[dtype] ?? LOWEST.float32;

/** Where a difference lies between the left end (0) and 1 (1); what is no number counts as large. */
export function placeOf(relative, dtype) {
  if (relative === null) return 1;
  if (relative <= 0) return 0;
  return Math.min(1, Math.max(0, 1 - Math.log10(relative) / lowest(dtype)));
}

/** The powers of ten that the scale names. */
export function ticksOf(dtype) {
  const step = STEP[dtype] ?? STEP.float32;
  const count = Math.floor(-lowest(dtype) / step) + 1;
  return Array.from({ length: count }, (_, i) => -i * step).reverse();
}

/** The stage with the largest difference; one that is no number is the largest. */
export const largestOf = (stages) =>
  stages.reduce((worst, stage) => ((stage.relative ?? Infinity) > (worst.relative ?? Infinity) ? stage : worst));

/** Stages in rows: one for each layer, one for each stage outside of the layers, in the order of the pass. */
export function rowsOf(stages) {
  const rows = [];
  for (const stage of stages) {
    const last = rows.at(-1);
    if (stage.layer !== null && last?.layer === stage.layer) last.stages.push(stage);
    else rows.push({ layer: stage.layer, stages: [stage] });
  }
  return rows;
}
