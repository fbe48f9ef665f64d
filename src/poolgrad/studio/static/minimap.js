// A tensor inside a block: small, with numbers where they fit, and able to light up.

import { ink, lights, pixels, scale } from 'poolgrad/colour';
import { el, penOf } from 'poolgrad/dom';
import { preview } from 'poolgrad/geometry';
import { inBlock, ravel, short, slice, strides, typeSize, unravel, valuesOf } from 'poolgrad/tensor';

/** @typedef {import('poolgrad/tensor').Tensor} Tensor */

const TYPE = 10.5; // pixels of a number where there is room

export class MiniMap {
  /** @param {Tensor} tensor */
  constructor(tensor) {
    this.tensor = tensor;
    this.preview = preview(tensor);
    /** The numbers that are drawn: all, or a part. */ this.drawn = inBlock(tensor) ?? { ...tensor, values: null };
    this.colour = scale(tensor.role, tensor.stats.min ?? 0, tensor.stats.max ?? 0);
    /** @type {Map<number, HTMLElement>} */ this.cells = new Map();
    this.lit = [];
    const shape = `[${tensor.shape.join(',')}]`;
    const odd = (tensor.stats.nan || 0) + (tensor.stats.inf || 0);
    const flag = odd ? el('b.flag', { text: '!', title: `${tensor.stats.nan || 0} NaN, ${tensor.stats.inf || 0} infinite` }) : null;
    const caption = el('figcaption', {}, el('span', { text: `result_${tensor.pin}` }), el('span', { text: tensor.dtype }), flag, el('span', { text: shape }));
    const label = `${tensor.node} result_${tensor.pin} ${tensor.dtype} ${shape}`;
    this.element = el('figure.mini', { 'aria-label': label, 'data-tensor': tensor.key }, caption, this.panels(),
      this.preview.note ? el('p.note', { text: this.preview.note }) : null);
  }

  panels() {
    const { across, down, gap, height } = this.preview;
    const box = el('div.panels', { 'aria-hidden': 'true' });
    box.style.gap = `${gap}px`;
    box.style.height = `${down * height + Math.max(down - 1, 0) * gap}px`;
    box.style.gridTemplateColumns = `repeat(${across}, max-content)`;
    if (!this.drawn.values?.length) return box;
    for (let tall = 0; tall < down; tall++) {
      for (let wide = 0; wide < across; wide++) box.append(this.panel(this.start(tall, wide)));
    }
    return box;
  }

  /** The index of a panel's first cell. */
  start(tall, wide) {
    const { shape } = this.drawn;
    const index = shape.map(() => 0);
    const put = (axes, at) => unravel(at, axes.map((axis) => shape[axis])).forEach((i, k) => { index[axes[k]] = i; });
    put(this.preview.wide, wide);
    put(this.preview.tall, tall);
    return index;
  }

  panel(start) {
    return this.preview.picture ? this.picture(start) : this.numbers(start);
  }

  at(start, row, column) {
    const index = [...start];
    if (this.preview.axes.includes('H')) index[this.preview.axes.indexOf('H')] = row;
    if (this.preview.axes.includes('W')) index[this.preview.axes.indexOf('W')] = column;
    return ravel(index, this.drawn.shape);
  }

  numbers(start) {
    const { rows, columns, cell } = this.preview;
    const grid = el('div.cells');
    grid.style.gridTemplateColumns = `repeat(${columns}, ${cell}px)`;
    grid.style.gridAutoRows = `${cell}px`;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) grid.append(this.cell(this.at(start, row, column)));
    }
    return grid;
  }

  cell(flat) {
    const value = valuesOf(this.drawn)[flat];
    const rgb = this.colour(value);
    const box = document.createElement('i');
    const index = this.indexOf(flat);
    flat = ravel(index, this.tensor.shape);
    box.dataset.cell = index.join(',');
    box.dataset.flat = String(flat);
    if (this.preview.numbers) this.write(box, short(value, 4));
    if (rgb) { box.style.background = `rgb(${rgb})`; box.style.color = ink(rgb); } else box.classList.add('odd');
    if (value === 0 && this.tensor.role === 'gradient') box.classList.add('zero');
    this.cells.set(flat, box);
    return box;
  }

  /** Write a number as large as its cell allows. @param {HTMLElement} box @param {string} text */
  write(box, text) {
    box.textContent = text;
    const size = typeSize(text, this.preview.cell - 2, TYPE);
    if (size < TYPE) box.style.fontSize = `${size}px`;
  }

  /** Return the index in the tensor of a cell that is drawn; a preview leaves rows and columns out. @param {number} flat */
  indexOf(flat) {
    const steps = this.tensor.values ? null : this.tensor.preview?.steps;
    return unravel(flat, this.drawn.shape).map((i, axis) => i * (steps?.[axis] ?? 1));
  }

  picture(start) {
    const { rows, columns, width, height } = this.preview;
    const canvas = el('canvas', { width: columns, height: rows });
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    penOf(canvas).putImageData(this.image(start), 0, 0);
    return canvas;
  }

  /** The panel that begins at an index as pixels, in colours or as the picture that it is. */
  image(start) {
    const { axes, rgb } = this.preview;
    const part = slice(start, this.drawn.shape, axes);
    return rgb ? lights(this.drawn, part, strides(this.drawn.shape)[axes.indexOf('C')]) : pixels(this.drawn, part);
  }

  /** Light cells up. @param {Map<number, string>|null} marks */
  light(marks) {
    for (const box of this.lit) box.removeAttribute('data-mark');
    this.lit = [];
    if (!marks || !this.cells.size) return;
    for (const [flat, mark] of marks) {
      const box = this.cells.get(flat);
      if (!box) continue;
      box.dataset.mark = mark;
      this.lit.push(box);
    }
  }
}
