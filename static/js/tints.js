/**
 * Colours of things that are not weights, each with a ramp of its own in even steps of lightness: layers in plum, the
 * likeness of heads in grey. Knows nothing of what is painted with them.
 */

import { makeRamp } from './ramp.js';

const STEPS = 64;
const LAYERS = {
  light: makeRamp({ from: [0.8, 0.09], to: [0.3, 0.13], hue: [335, 320] }, 0.15, STEPS),
  dark: makeRamp({ from: [0.42, 0.11], to: [0.92, 0.06], hue: [320, 340] }, 0.14, STEPS),
};
const LIKENESS = {
  light: makeRamp({ from: [0.22, 0.004], to: [0.965, 0.003], hue: [90, 90] }, 0.004, STEPS),
  dark: makeRamp({ from: [0.95, 0.004], to: [0.24, 0.006], hue: [260, 260] }, 0.006, STEPS),
};

const css = (rgb) => `rgb(${rgb.join(',')})`;
const step = (place) => Math.round(Math.min(1, Math.max(0, place)) * (STEPS - 1));

/** CSS colour of a layer by its place among all, 0…1. */
export const layerColour = (scheme, place) => css(LAYERS[scheme][step(place)]);

/** [r, g, b] of a distance between heads, 0 (the same) … 1 (nothing in common). */
export const likeness = (scheme, distance) => LIKENESS[scheme][step(distance)];

/** A ramp as a CSS gradient from left to right. */
export const gradient = (colour, stops = 16) =>
  `linear-gradient(to right, ${Array.from({ length: stops + 1 }, (_, at) => colour(at / stops)).join(', ')})`;

/** CSS colour of a distance between heads. */
export const likenessColour = (scheme, distance) => css(likeness(scheme, distance));
