// Compute positions inside a block by arithmetic, without measuring elements, so that 300 blocks lay out at once.

import { axesOf, axisName, inBlock, isPicture, panelAxes, size } from 'poolgrad/tensor';

export const WIDTH = 216;
export const TITLE = 34;
export const PAD = 6;
export const PIN_ROW = 24;
export const TEXT_ROW = 28;
export const INNER = 196; // width of a result inside a block
const CAPTION = 20;
const NUMBERS = 22; // the smallest cell that holds a number
const GAP = 4;
const NOTE = 14; // height of the line that says what is left out

/** @typedef {import('poolgrad/ops').Block} Block */
/** @typedef {import('poolgrad/tensor').Tensor} Tensor */

/** The centre of a pin, relative to the block's corner. @param {Block} block @param {string} pin @param {boolean} output */
export function pinPlace(block, pin, output) {
  const found = (output ? block.outputs : block.pins).find((p) => p.name === pin);
  return [output ? WIDTH : 0, found ? found.y : TITLE];
}

/**
 * Lay out a tensor inside a block: panels side by side, batch entries below each other.
 * @param {Tensor} tensor
 */
export function preview(tensor) {
  const { shape } = inBlock(tensor) ?? tensor;
  const axes = axesOf(shape.length, tensor.axes);
  const rgb = isPicture(tensor);
  const { down, across, beside } = panelAxes(axes);
  const rows = down < 0 ? 1 : shape[down];
  const columns = across < 0 ? 1 : shape[across];
  const wide = beside.filter((axis) => axes[axis] !== 'N' && !(rgb && axes[axis] === 'C'));
  const tall = beside.filter((axis) => axes[axis] === 'N');
  const panels = Math.min(size(wide.map((axis) => shape[axis])), 8);
  const batches = Math.min(size(tall.map((axis) => shape[axis])), 3);
  const note = [leftOut(tensor, axes, wide, panels), leftOut(tensor, axes, tall, batches)].filter(Boolean).join(', ');
  if (size(shape) === 0) return { note: '', axes, rows: 0, columns: 0, wide, tall, across: 0, down: 0, gap: GAP, cell: 0, picture: false, rgb, numbers: false, width: 0, height: 0, total: 0 };
  const room = (INNER - GAP * (panels - 1)) / panels;
  const cell = Math.min(Math.floor(room / columns), Math.floor(132 / rows), 26);
  // Too small for cells of their own: a picture, scaled to fit.
  const picture = cell < 4 || size(shape) > 256;
  const scale = picture ? Math.min(room / columns, 112 / rows, 26) : cell;
  const width = Math.max(Math.round(columns * scale), 1);
  const height = Math.max(Math.round(rows * scale), 1);
  return { note, axes, rows, columns, wide, tall, across: panels, down: batches, gap: GAP, cell: scale, picture, rgb,
    numbers: !picture && cell >= NUMBERS, width, height, total: batches * height + (batches - 1) * GAP + (note ? NOTE : 0) };
}

/** Say how many entries along some axes are drawn, if not all are; '' otherwise. @param {Tensor} tensor @param {string} axes
 * @param {number[]} along @param {number} drawn */
function leftOut(tensor, axes, along, drawn) {
  const all = size(along.map((axis) => tensor.shape[axis]));
  return all > drawn ? `${drawn} of ${all} ${along.length === 1 ? axisName(axes[along[0]]) : 'slice'}s` : '';
}

/** The height of the results of a block. @param {Tensor[]} tensors */
export function resultsHeight(tensors) {
  return tensors.reduce((sum, t) => sum + CAPTION + preview(t).total + 8, 0);
}

/** The height of a result of which only the shape is known. @param {number[]} shape @param {boolean} light true for a picture */
export function expectedHeight(shape, light) {
  const stats = light ? { min: 0, max: 1 } : {};
  /** @type {any} */ const tensor = { shape, axes: axesOf(shape.length), role: 'value', stats, values: [] };
  return resultsHeight([tensor]);
}

/** A wire from one place to another, leaving and arriving level. @param {number[]} from @param {number[]} to */
export function curve([x1, y1], [x2, y2]) {
  const bend = Math.max(40, Math.min(Math.abs(x2 - x1) / 2, 130) + (x2 < x1 ? 40 : 0));
  return `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}
