/**
 * The signed colour scale of differences, −1…1: teal where A has more, ochre where B has more, the panel's own tone at 0.
 * Blue is the weights' and plum the layers'. Colour-blind readers tell the two as cold and warm; lightness changes evenly on
 * both sides.
 */

import { makeRamp } from '../ramp.js';

const STEPS = 128;
const HUES = { a: { pale: 200, deep: 208 }, b: { pale: 92, deep: 70 } }; // a deep ochre is a brown, a pale one far from the orange of selection
const ENDS = { light: { from: [0.972, 0.004], to: [0.36, 0.14] }, dark: { from: [0.235, 0.01], to: [0.9, 0.1] } };
const PEAK = 0.12; // of chroma: as much as sRGB has of teal
const STOPS = 24; // of each half, for Plotly and the legend

function half(scheme, side) {
  const { pale, deep } = HUES[side];
  return makeRamp({ ...ENDS[scheme], hue: scheme === 'light' ? [pale, deep] : [deep, pale] }, PEAK, STEPS);
}

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
