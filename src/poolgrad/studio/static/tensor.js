// A tensor of a run: its numbers, its axes, and how a cell is named and written.

/** @typedef {{key: string, node: string, pin: string, shape: number[], dtype: string, role: 'value'|'gradient',
 *   kind: string, axes: string, ref: string, values: ArrayLike<number>|null, stats: Record<string, any>,
 *   preview?: {shape: number[], steps: number[], values: ArrayLike<number>}|null}} Tensor `preview`: a part, if the whole did not come */

const ADVANCE = 0.61; // width of a character of a monospaced font, in sizes of type
const NAMES = { N: 'batch', C: 'channel', D: 'depth', H: 'row', W: 'column' };
const DEFAULT_AXES = ['', 'W', 'HW', 'CHW', 'NHWC', 'NDHWC'];

/** Letters of the axes; without a layout, what the rank suggests. @param {number} rank @param {string} [axes] */
export function axesOf(rank, axes) {
  if (axes && axes.length === rank) return axes;
  return DEFAULT_AXES[rank] ?? 'ABEFGIJKLMOPQRSTUV'.slice(0, rank - 2) + 'HW';
}

/** The word for an axis. @param {string} letter */
export function axisName(letter) {
  return NAMES[letter] ?? `axis ${letter}`;
}

/** The numbers of a tensor that came whole. @param {Tensor} tensor @returns {ArrayLike<number>} */
export function valuesOf({ key, values }) {
  if (!values) throw new Error(`${key} has no numbers here`);
  return values;
}

/** The number of cells. @param {number[]} shape */
export function size(shape) {
  return shape.reduce((product, n) => product * n, 1);
}

/** Position of an index in C order. @param {number[]} index @param {number[]} shape */
export function ravel(index, shape) {
  return index.reduce((flat, i, axis) => flat * shape[axis] + i, 0);
}

/** Return the stride of each axis, in C order. @param {number[]} shape */
export function strides(shape) {
  return shape.map((_, axis) => size(shape.slice(axis + 1)));
}

/** The slice that begins at an index: where it is in memory. @param {number[]} start @param {number[]} shape @param {string} axes */
export function slice(start, shape, axes) {
  const { down, across } = panelAxes(axes);
  const step = strides(shape);
  const along = (axis) => (axis < 0 ? [1, 0] : [shape[axis], step[axis]]);
  const [[rows, downStep], [columns, acrossStep]] = [along(down), along(across)];
  return { first: ravel(start, shape), rows, columns, down: downStep, across: acrossStep };
}

/** Index of a position in C order. @param {number} flat @param {number[]} shape */
export function unravel(flat, shape) {
  const index = new Array(shape.length);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

/** The tensor as a block draws it: itself, or its preview if its numbers did not come; null without either. @param {Tensor} tensor
 * @returns {Tensor|null} */
export function inBlock(tensor) {
  if (tensor.values) return tensor;
  return tensor.preview ? { ...tensor, shape: tensor.preview.shape, values: tensor.preview.values } : null;
}

/** Return true if a tensor looks like pictures: three channels of light between 0 and 1. @param {Tensor} tensor */
export function isPicture({ shape, axes, role, stats }) {
  const light = role === 'value' && stats && stats.min >= 0 && stats.max <= 1 && !stats.nan && !stats.inf;
  return Boolean(light) && shape.length === 4 && shape[axes.indexOf('C')] === 3 && size(shape) > 256;
}

/** A number in few characters, for a cell. @param {number} value @param {number} [room] characters */
export function short(value, room = 5) {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (Object.is(value, -0)) return '−0';
  let text = String(value);
  for (let digits = 4; text.length > room && digits > 0; digits--) {
    text = String(Number(value.toPrecision(digits)));
  }
  if (text.length > room) text = value.toExponential(0);
  return text.replace('e+', 'e').replace(/^0\./, '.').replace(/^-0\./, '−.').replaceAll('-', '−'); // a line may break after a hyphen
}

/** Return the largest size of type, at most `most`, at which a text in a monospaced font fits a width. @param {string} text @param {number} width
 * @param {number} most in pixels */
export function typeSize(text, width, most) {
  return Math.min(most, Math.floor((width / Math.max(text.length, 1) / ADVANCE) * 10) / 10);
}

/** A cell by name, like `dx[0,1,1,1,0]`. @param {Tensor} tensor @param {number} flat */
export function cellName(tensor, flat) {
  const short = tensor.pin === 'output' ? tensor.node : `${tensor.node}.${tensor.pin}`;
  return `${short}[${unravel(flat, tensor.shape).join(',')}]`;
}

/** Return the axes shown down, across, and side by side. @param {string} axes */
export function panelAxes(axes) {
  const down = axes.indexOf('H');
  const across = axes.length === 1 ? 0 : axes.indexOf('W');
  const beside = [...axes].map((_, axis) => axis).filter((axis) => axis !== down && axis !== across);
  // Batch outermost, then channel, then depth: neighbours in depth stand next to each other.
  const rank = (axis) => 'NCD'.indexOf(axes[axis]);
  return { down, across, beside: beside.sort((a, b) => rank(a) - rank(b)) };
}
