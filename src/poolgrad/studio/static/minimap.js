// A tensor inside a block: small, with numbers where they fit, and able to light up.

import { ink, pixels, scale } from 'poolgrad/colour';
import { el } from 'poolgrad/dom';
import { preview } from 'poolgrad/geometry';
import { ravel, short, slice, strides, unravel } from 'poolgrad/tensor';

/** @typedef {import('poolgrad/tensor').Tensor} Tensor */

export class MiniMap {
  /** @param {Tensor} tensor */
  constructor(tensor) {
    this.tensor = tensor;
    this.preview = preview(tensor);
    this.colour = scale(tensor.role, tensor.stats.min ?? 0, tensor.stats.max ?? 0);
    /** @type {Map<number, HTMLElement>} */ this.cells = new Map();
    this.lit = [];
    const shape = `[${tensor.shape.join(',')}]`;
    const odd = (tensor.stats.nan || 0) + (tensor.stats.inf || 0);
    const flag = odd ? el('b.flag', { text: '!', title: `${tensor.stats.nan || 0} NaN, ${tensor.stats.inf || 0} infinite` }) : null;
    const caption = el('figcaption', {}, el('span', { text: `result_${tensor.pin}` }), el('span', { text: tensor.dtype }), flag, el('span', { text: shape }));
    const label = `${tensor.node} result_${tensor.pin} ${tensor.dtype} ${shape}`;
    this.element = el('figure.mini', { 'aria-label': label, 'data-tensor': tensor.key }, caption, this.panels());
  }

  panels() {
    const { across, down, gap, total } = this.preview;
    const box = el('div.panels', { 'aria-hidden': 'true' });
    box.style.gap = `${gap}px`;
    box.style.height = `${total}px`;
    box.style.gridTemplateColumns = `repeat(${across}, max-content)`;
    if (!this.tensor.values) box.textContent = 'too many cells to draw here';
    if (!this.tensor.values?.length) return box;
    for (let tall = 0; tall < down; tall++) {
      for (let wide = 0; wide < across; wide++) box.append(this.panel(this.start(tall, wide)));
    }
    return box;
  }

  /** The index of a panel's first cell. */
  start(tall, wide) {
    const index = this.tensor.shape.map(() => 0);
    const put = (axes, at) => unravel(at, axes.map((axis) => this.tensor.shape[axis])).forEach((i, k) => { index[axes[k]] = i; });
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
    return ravel(index, this.tensor.shape);
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
    const value = this.tensor.values[flat];
    const rgb = this.colour(value);
    const box = document.createElement('i');
    box.dataset.cell = unravel(flat, this.tensor.shape).join(',');
    box.dataset.flat = String(flat);
    if (this.preview.numbers) box.textContent = short(value, 4);
    if (rgb) { box.style.background = `rgb(${rgb})`; box.style.color = ink(rgb); } else box.className = 'odd';
    if (value === 0 && this.tensor.role === 'gradient') box.classList.add('zero');
    this.cells.set(flat, box);
    return box;
  }

  picture(start) {
    const { rows, columns, width, height } = this.preview;
    const canvas = el('canvas', { width: columns, height: rows });
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.getContext('2d').putImageData(this.preview.rgb ? this.lights(start) : pixels(this.tensor, slice(start, this.tensor.shape, this.preview.axes)), 0, 0);
    return canvas;
  }

  /** Three channels as the picture they are. */
  lights(start) {
    const { rows, columns, axes } = this.preview;
    const step = strides(this.tensor.shape)[axes.indexOf('C')];
    const part = slice(start, this.tensor.shape, axes);
    const image = new ImageData(columns, rows);
    for (let row = 0, k = 0; row < rows; row++) {
      for (let column = 0, at = part.first + row * part.down; column < columns; column++, k += 4, at += part.across) {
        for (let c = 0; c < 3; c++) image.data[k + c] = 255 * this.tensor.values[at + c * step];
        image.data[k + 3] = 255;
      }
    }
    return image;
  }

  /** The three channels of a pixel, as light. */
  light3(start, row, column) {
    const channel = this.preview.axes.indexOf('C');
    return [0, 1, 2].map((c) => 255 * this.tensor.values[this.at(start.map((v, axis) => (axis === channel ? c : v)), row, column)]);
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
