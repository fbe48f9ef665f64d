// Two colour maps, light and dark: one hue for values, blue to orange through neutral for gradients.
// Lightness rises or falls strictly along every half, so the order is readable without hue.

import { valuesOf } from 'poolgrad/tensor';

/** @typedef {[number, number, number]} Rgb */

/** Stops from lowest to highest; the diverging ones have zero in the middle. @type {Record<string, Record<string, Rgb[]>>} */
export const MAPS = {
  light: {
    value: [[246, 248, 245], [206, 226, 221], [139, 190, 186], [63, 139, 141], [15, 84, 97]],
    gradient: [[23, 78, 140], [98, 152, 205], [193, 217, 238], [243, 242, 238], [248, 214, 189], [230, 142, 91], [196, 84, 20]],
  },
  dark: {
    value: [[34, 40, 44], [33, 68, 76], [38, 107, 114], [70, 157, 158], [154, 217, 206]],
    gradient: [[148, 196, 247], [78, 133, 194], [42, 71, 104], [41, 44, 49], [99, 61, 36], [190, 101, 47], [255, 166, 103]],
  },
};

/** The colour at t in 0…1 along stops. @param {Rgb[]} stops @param {number} t @returns {Rgb} */
export function along(stops, t) {
  const place = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const first = Math.min(Math.floor(place), stops.length - 2);
  const part = place - first;
  const [a, b] = [stops[first], stops[first + 1]];
  return /** @type {Rgb} */ (a.map((v, i) => Math.round(v + (b[i] - v) * part)));
}

/** Perceived lightness, 0 black to 1 white. @param {Rgb} rgb */
export function lightness([r, g, b]) {
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** Black or white, whichever reads better on a colour: one of them always has a contrast of 4.58 or more. @param {Rgb} rgb */
export function ink(rgb) {
  return lightness(rgb) > 0.179 ? '#000000' : '#ffffff';
}

/** 'light' or 'dark', as the page is shown now. */
export function theme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** Return a function from a number to its position on the map, 0 to 1. @param {'value'|'gradient'} role @param {number} min @param {number} max */
function placer(role, min, max) {
  const reach = Math.max(Math.abs(min), Math.abs(max)) || 1;
  const span = max - min || 1;
  if (role === 'gradient') return (v) => 0.5 + v / reach / 2;
  // Draw a single value in the middle of the map: neither extreme would be true.
  return max === min ? () => 0.35 : (v) => (v - min) / span;
}

/**
 * Return a function from a number of one tensor to its colour; null if not finite.
 * @param {'value'|'gradient'} role @param {number} min @param {number} max
 * @returns {(value: number) => Rgb|null}
 */
export function scale(role, min, max) {
  const stops = MAPS[theme()][role];
  const place = placer(role, min, max);
  return (value) => (Number.isFinite(value) ? along(stops, place(value)) : null);
}

/** The colour of NaN and infinity where a text does not fit. @type {Rgb} */
export const ODD = [194, 0, 122];

/**
 * One slice of a tensor as pixels, by a table of colours: no allocation per cell.
 * @param {import('poolgrad/tensor').Tensor} tensor @param {{first: number, rows: number, columns: number, down: number, across: number}} part
 * where the slice begins, its size, and how far apart neighbours are
 */
export function pixels(tensor, { first, rows, columns, down, across }) {
  const place = placer(tensor.role, tensor.stats.min ?? 0, tensor.stats.max ?? 0);
  const stops = MAPS[theme()][tensor.role];
  const pack = ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r; // as canvases store it
  const table = Int32Array.from({ length: 512 }, (_, i) => pack(along(stops, i / 511)));
  const odd = pack(ODD);
  const image = new ImageData(columns, rows);
  const target = new Int32Array(image.data.buffer);
  const values = valuesOf(tensor);
  for (let row = 0, k = 0; row < rows; row++) {
    for (let column = 0, at = first + row * down; column < columns; column++, k++, at += across) {
      const t = place(values[at]) * 511;
      target[k] = Number.isFinite(t) ? table[Math.min(Math.max(Math.round(t), 0), 511)] : odd;
    }
  }
  return image;
}

/** Three channels of light as the picture they are. @param {import('poolgrad/tensor').Tensor} tensor
 * @param {{first: number, rows: number, columns: number, down: number, across: number}} part of channel 0 @param {number} step between channels */
export function lights(tensor, { first, rows, columns, down, across }, step) {
  const [image, values] = [new ImageData(columns, rows), valuesOf(tensor)];
  for (let row = 0, k = 0; row < rows; row++) {
    for (let column = 0, at = first + row * down; column < columns; column++, k += 4, at += across) {
      for (let c = 0; c < 3; c++) image.data[k + c] = 255 * values[at + c * step];
      image.data[k + 3] = 255;
    }
  }
  return image;
}
