// Two colour maps, light and dark: one hue for values, blue to orange through neutral for gradients.
// Lightness rises or falls strictly along every half, so the order is readable without hue.

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

/** Black or white, whichever reads better on a colour. @param {Rgb} rgb */
export function ink(rgb) {
  return lightness(rgb) > 0.19 ? '#14202a' : '#ffffff';
}

/** 'light' or 'dark', as the page is shown now. */
export function theme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/**
 * From a number to its colour, for one tensor; what is not finite has no colour.
 * @param {'value'|'gradient'} role @param {number} min @param {number} max
 * @returns {(value: number) => Rgb|null}
 */
export function scale(role, min, max) {
  const stops = MAPS[theme()][role];
  const reach = Math.max(Math.abs(min), Math.abs(max)) || 1;
  const span = max - min || 1;
  // A value map of one single value is drawn in its middle: neither extreme would be true.
  const place = role === 'gradient' ? (v) => 0.5 + v / reach / 2 : (v) => (max === min ? 0.35 : (v - min) / span);
  return (value) => (Number.isFinite(value) ? along(stops, place(value)) : null);
}
