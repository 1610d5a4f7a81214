/**
 * The one colour scale: weight 0…1 to a blue of even steps in lightness (OKLCH), light to dark on paper and dark to light
 * on a dark page, in the same order. Knows nothing of what is painted with it.
 */

const STEPS = 256;
// Lightness and chroma at weight 0 and 1, hue in degrees: chosen so that weight 0 sits just off the panel's own colour.
const ENDS = {
  light: { from: [0.972, 0.006], to: [0.235, 0.105], hue: [272, 274] },
  dark: { from: [0.235, 0.018], to: [0.965, 0.03], hue: [274, 255] },
};
const PEAK_CHROMA = 0.19; // in the middle of the ramp, where sRGB has room for it

function oklchToLinear(lightness, chroma, hue) {
  const angle = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(angle);
  const b = chroma * Math.sin(angle);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

function toSrgb(lightness, chroma, hue) {
  let reduced = chroma;
  let rgb = oklchToLinear(lightness, reduced, hue);
  while (reduced > 0.001 && rgb.some((value) => value < -0.0005 || value > 1.0005)) {
    reduced *= 0.96; // keep lightness and hue, give up chroma until the colour exists
    rgb = oklchToLinear(lightness, reduced, hue);
  }
  return rgb.map((value) => {
    const clipped = Math.min(1, Math.max(0, value));
    return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
  });
}

/** A ramp of [r, g, b] between two ends, each [lightness, chroma], with even steps of lightness; `peak` is the chroma in its middle. */
export function makeRamp({ from, to, hue }, peak, steps) {
  return Array.from({ length: steps }, (_, step) => {
    const t = step / (steps - 1);
    const ends = from[1] + (to[1] - from[1]) * t;
    const chroma = ends + (peak - ends) * Math.sin(Math.PI * t) ** 0.8;
    return toSrgb(from[0] + (to[0] - from[0]) * t, chroma, hue[0] + (hue[1] - hue[0]) * t);
  });
}

const RAMPS = { light: makeRamp(ENDS.light, PEAK_CHROMA, STEPS), dark: makeRamp(ENDS.dark, PEAK_CHROMA, STEPS) };

/** The 256 [r, g, b] of a scheme ('light' or 'dark'), evenly spaced on the scale. */
export const rampOf = (scheme) => RAMPS[scheme];

/** The logarithmic scale spans so many powers of ten; what is smaller has the colour of 0. */
export const DECADES = 4;

const PLACES = {
  sqrt: Math.sqrt,
  log: (weight) => (weight > 0 ? Math.max(0, 1 + Math.log10(weight) / DECADES) : 0),
};
const WEIGHTS = {
  sqrt: (place) => place * place,
  log: (place) => (place > 0 ? 10 ** (DECADES * (place - 1)) : 0),
};

/** Where a weight lies on the scale, 0…1. On 'linear' and 'row' it is its own place; 'row' is of shares of a row's largest. */
export const position = (weight, scale) => PLACES[scale]?.(weight) ?? weight;

/** The weight at a place of the scale: the inverse of `position`. */
export const weightAt = (place, scale) => WEIGHTS[scale]?.(place) ?? place;

/** The ramp step of a weight, 0…255. */
export const stepOf = (weight, scale) => Math.round(position(Math.min(1, Math.max(0, weight)), scale) * (STEPS - 1));

/** CSS colour of a ramp step. */
export const colourOf = (scheme, step) => `rgb(${RAMPS[scheme][step].join(' ')})`;

/** Whether text on this step needs the opposite ink of the page's own. */
export const needsInverse = (step) => step > 118;

/** For each byte of the overview (255·√weight) its [r, g, b]. */
export function byteTable(scheme, scale) {
  return Array.from({ length: 256 }, (_, byte) => RAMPS[scheme][stepOf((byte / 255) ** 2, scale)]);
}

/** Plotly's colour scale: stops at the weights whose places are evenly spaced. */
export function plotlyScale(scheme, scale, stops = 48) {
  return Array.from({ length: stops + 1 }, (_, at) => {
    const place = at / stops;
    return [weightAt(place, scale), `rgb(${RAMPS[scheme][Math.round(place * (STEPS - 1))].join(',')})`];
  });
}
