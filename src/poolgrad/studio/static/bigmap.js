// A tensor of more than 1,024 cells: one slice on a canvas, sliders for the others, the same lights.

import { ODD, ink, pixels, scale } from 'poolgrad/colour';
import { el } from 'poolgrad/dom';
import { number } from 'poolgrad/sentences';
import { NUMBERS } from 'poolgrad/heatmap';
import { Loupe } from 'poolgrad/loupe';
import { axisName, cellName, panelAxes, ravel, short, slice, unravel } from 'poolgrad/tensor';

const STROKES = { window: '#2f7fd1', tap: '#e0561b', tie: '#b8860b', arrived: '#e0561b', reaches: '#2f7fd1', self: '' };
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** @typedef {import('poolgrad/tensor').Tensor} Tensor */

export class BigMap {
  /** @param {Tensor} tensor @param {Record<string, number|'all'>} slices
   * @param {{width: number, turn: (letter: string, at: number) => void, visit: (flat: number, pin: boolean) => void}} options */
  constructor(tensor, slices, options) {
    this.tensor = tensor;
    this.options = options;
    this.panelAxes = panelAxes(tensor.axes);
    this.start = tensor.shape.map((length, axis) => Math.min(Number(slices[tensor.axes[axis]]) || 0, Math.max(length - 1, 0)));
    const { down, across } = this.panelAxes;
    this.rows = down < 0 ? 1 : tensor.shape[down];
    this.columns = across < 0 ? 1 : tensor.shape[across];
    this.cell = Math.max(1, Math.min(Math.floor(options.width / this.columns), 26));
    this.colour = scale(tensor.role, tensor.stats.min ?? 0, tensor.stats.max ?? 0);
    this.cursor = [0, 0];
    this.canvas = el('canvas', { width: this.columns * this.cell, height: this.rows * this.cell, tabindex: 0, role: 'application' });
    this.over = el('canvas.over', { width: this.columns * this.cell, height: this.rows * this.cell, 'aria-hidden': 'true' });
    this.loupe = new Loupe(this);
    this.element = el('div.bigmap', { 'data-tensor': tensor.key }, this.sliders(), el('div.stack', {}, this.canvas, this.over));
    this.listen();
    this.name();
    this.draw();
  }

  sliders() {
    const axes = this.panelAxes.beside.filter((axis) => this.tensor.shape[axis] > 1);
    return el('div.sliders', {}, ...axes.map((axis) => {
      const letter = this.tensor.axes[axis];
      const name = axisName(letter);
      const label = `${this.tensor.key} ${name}`;
      const input = el('input', { type: 'range', min: 0, max: this.tensor.shape[axis] - 1, value: this.start[axis], 'aria-label': label });
      input.addEventListener('input', () => this.options.turn(letter, Number(input.value)));
      return el('label', {}, el('span', { text: `${name} ${this.start[axis]}` }), input);
    }));
  }

  listen() {
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const zoom = box.width / this.canvas.width || 1;
      const at = [Math.floor((event.clientY - box.top) / zoom / this.cell), Math.floor((event.clientX - box.left) / zoom / this.cell)];
      return at[0] >= 0 && at[0] < this.rows && at[1] >= 0 && at[1] < this.columns ? at : null;
    };
    const visit = (event, pin) => {
      const at = place(event);
      if (at) this.visit(at, pin);
    };
    this.canvas.addEventListener('pointermove', (event) => visit(event, false));
    this.canvas.addEventListener('click', (event) => visit(event, true));
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    this.canvas.addEventListener('focus', () => this.visit(this.cursor, false));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const move = MOVES[event.key];
    if (event.key === 'Enter') this.visit(this.cursor, true);
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const [row, column] = [this.cursor[0] + move[0], this.cursor[1] + move[1]];
    if (row >= 0 && row < this.rows && column >= 0 && column < this.columns) this.visit([row, column], false);
  }

  visit(at, pin) {
    if (!pin && this.last === String(at)) return;
    this.last = String(at);
    this.cursor = at;
    this.name();
    this.options.visit(this.flat(...at), pin);
  }

  name() {
    const flat = this.flat(...this.cursor);
    this.canvas.setAttribute('aria-label', `${this.tensor.key} picture, ${cellName(this.tensor, flat)} = ${number(this.tensor.values[flat], this.tensor.dtype)}`);
  }

  flat(row, column) {
    const index = [...this.start];
    if (this.panelAxes.down >= 0) index[this.panelAxes.down] = row;
    if (this.panelAxes.across >= 0) index[this.panelAxes.across] = column;
    return ravel(index, this.tensor.shape);
  }

  draw() {
    const context = this.canvas.getContext('2d');
    const small = new OffscreenCanvas(this.columns, this.rows);
    small.getContext('2d').putImageData(pixels(this.tensor, slice(this.start, this.tensor.shape, this.tensor.axes)), 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, this.canvas.width, this.canvas.height);
    if (this.cell >= NUMBERS) this.numbers(context);
  }

  numbers(context) {
    Object.assign(context, { font: '10px ui-monospace, monospace', textAlign: 'center', textBaseline: 'middle' });
    for (let row = 0; row < this.rows; row++) {
      for (let column = 0; column < this.columns; column++) {
        const value = this.tensor.values[this.flat(row, column)];
        context.fillStyle = ink(this.colour(value) ?? ODD);
        context.fillText(short(value, 4), (column + 0.5) * this.cell, (row + 0.5) * this.cell);
      }
    }
  }

  /** @param {Map<number, string>|null} marks */
  light(marks) {
    const context = this.over.getContext('2d');
    context.clearRect(0, 0, this.over.width, this.over.height);
    const self = getComputedStyle(this.canvas).color;
    const lit = this.inSlice(marks);
    for (const { row, column, mark } of lit) {
      const line = this.cell >= 8 ? 2 : 1;
      Object.assign(context, { lineWidth: line, strokeStyle: STROKES[mark] || self });
      context.strokeRect(column * this.cell + line / 2, row * this.cell + line / 2, this.cell - line || 1, this.cell - line || 1);
    }
    this.loupe.show(lit);
  }

  /** Return the marked cells of the visible slice. @param {Map<number, string>|null} marks */
  inSlice(marks) {
    const { down, across, beside } = this.panelAxes;
    const found = [];
    for (const [flat, mark] of marks ?? []) {
      const index = unravel(flat, this.tensor.shape);
      if (beside.some((axis) => index[axis] !== this.start[axis])) continue;
      found.push({ row: down < 0 ? 0 : index[down], column: across < 0 ? 0 : index[across], mark });
    }
    return found;
  }
}
