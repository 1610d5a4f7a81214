/**
 * The signed colour scale of differences, −1…1: plum where A has more, ochre where B has more, the panel's own tone at 0.
 * The two differ in blue against yellow and in nothing else that colour-blind readers miss; lightness grows evenly on both sides.
 */

import { makeRamp } from '../ramp.js';

const STEPS = 128;
const HUES = { a: [325, 318], b: [92, 70] };
const ENDS = { light: { from: [0.972, 0.004], to: [0.36, 0.14] }, dark: { from: [0.235, 0.01], to: [0.9, 0.1] } };
const PEAK = { a: 0.17, b: 0.12 };
const STOPS = 24; // of each half, for Plotly and the legend

const half = (scheme, side) => makeRamp({ ...ENDS[scheme], hue: HUES[side] }, PEAK[side], STEPS);
const RAMPS = Object.fromEntries(['light', 'dark'].map((scheme) => [scheme, { a: half(scheme, 'a'), b: half(scheme, 'b') }]));

/** Where a difference lies on the scale, −1…1. */
export const placeOf = (value, scale) => (scale === 'sqrt' ? Math.sign(value) * Math.sqrt(Math.abs(value)) : value);

const valueAt = (place, scale) => (scale === 'sqrt' ? Math.sign(place) * place * place : place);

/** [r, g, b] of a place. */
export function toneAt(place, scheme) {
  const ramp = RAMPS[scheme][place < 0 ? 'b' : 'a'];
  return ramp[Math.round(Math.min(1, Math.abs(place)) * (STEPS - 1))];
}

const places = Array.from({ length: 2 * STOPS + 1 }, (_, at) => (at - STOPS) / STOPS);

/** Plotly's colour scale over −1…1. */
export const signedScale = (scheme, scale) =>
  places.map((place) => [(valueAt(place, scale) + 1) / 2, `rgb(${toneAt(place, scheme).join(',')})`]);

/** The scale as CSS stops, even in place. */
export const signedStops = (scheme) => places.map((place) => `rgb(${toneAt(place, scheme).join(' ')})`);
