// A tensor of more than 1,024 cells: one slice on a canvas, sliders for the others, the same lights.

import { ODD, ink, lights, pixels, scale } from 'poolgrad/colour';
import { el, penOf } from 'poolgrad/dom';
import { number } from 'poolgrad/sentences';
import { NUMBERS } from 'poolgrad/heatmap';
import { Loupe } from 'poolgrad/loupe';
import { axisName, cellName, isPicture, panelAxes, ravel, short, slice, strides, unravel, valuesOf } from 'poolgrad/tensor';

/** How marks are drawn: a colour of the page and the dashes of its line, so that no mark differs by hue alone. */
const STROKES = { window: ['--window', []], reaches: ['--window', [1, 2]], tap: ['--tap', []], arrived: ['--tap', []], tie: ['--tie', [4, 3]], self: ['--ink', []] };
const SMALLEST = 5; // pixels of a mark on cells that are smaller
const ZOOMS = [1, 2, 4, 8, 16];
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
    this.zoom = 1;
    this.cell = 1; // pixels
    this.asPicture = isPicture(tensor);
    this.colour = scale(tensor.role, tensor.stats.min ?? 0, tensor.stats.max ?? 0);
    this.cursor = [0, 0];
    /** @type {Map<number, string>|null} */ this.marks = null;
    this.canvas = el('canvas', { tabindex: 0, role: 'application' });
    this.over = el('canvas.over', { 'aria-hidden': 'true' });
    this.loupe = new Loupe(this);
    this.view = el('div.view', {}, el('div.stack', {}, this.canvas, this.over));
    this.element = el('div.bigmap', { 'data-tensor': tensor.key }, this.sliders(), this.view, this.enlarge());
    this.listen();
    this.name();
    this.resize();
  }

  /** Give the picture its size on the screen: as wide as there is room, times the zoom. */
  resize() {
    const { width } = this.options;
    const fit = Math.min(width / this.columns, (1.5 * width) / this.rows, 26);
    this.cell = (fit >= 1 ? Math.floor(fit) : fit) * this.zoom; // whole pixels where cells can have them
    const [wide, high] = [this.columns, this.rows].map((cells) => Math.max(1, Math.round(cells * this.cell)));
    for (const canvas of [this.canvas, this.over]) Object.assign(canvas, { width: wide, height: high });
    Object.assign(this.view.style, { width: `${Math.min(wide, width) + (this.zoom > 1 ? 12 : 0)}px`, maxHeight: this.zoom > 1 ? `${Math.round(1.2 * width)}px` : 'none' });
    this.draw();
    this.light(this.marks);
  }

  /** Buttons for the zoom, and for the picture instead of one channel. */
  enlarge() {
    const say = el('span', { text: '×1' });
    const step = (by) => {
      this.zoom = ZOOMS[Math.min(Math.max(ZOOMS.indexOf(this.zoom) + by, 0), ZOOMS.length - 1)];
      while (this.zoom > 1 && Math.max(this.columns, this.rows) * (this.cell / this.zoom) * this.zoom > 8192) this.zoom /= 2;
      say.textContent = `×${this.zoom}`;
      this.resize();
      const [row, column] = this.cursor;
      this.view.scrollTo((column + 0.5) * this.cell - this.view.clientWidth / 2, (row + 0.5) * this.cell - this.view.clientHeight / 2);
    };
    const button = (text, name, by) => el('button', { text, 'aria-label': `${this.tensor.key} ${name}`, onclick: () => step(by) });
    const rgb = isPicture(this.tensor) ? el('button', { text: 'RGB', 'aria-pressed': 'true', 'aria-label': `${this.tensor.key} as a picture`, onclick: () => {
      this.asPicture = !this.asPicture;
      rgb.setAttribute('aria-pressed', String(this.asPicture));
      this.draw();
    } }) : null;
    return el('div.enlarge', {}, button('−', 'smaller', -1), say, button('+', 'larger', 1), rgb);
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
      const at = [Math.floor(((event.clientY - box.top) / box.height) * this.rows), Math.floor(((event.clientX - box.left) / box.width) * this.columns)];
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
    this.canvas.setAttribute('aria-label', `${this.tensor.key} picture, ${cellName(this.tensor, flat)} = ${number(valuesOf(this.tensor)[flat], this.tensor.dtype)}`);
  }

  flat(row, column) {
    const index = [...this.start];
    if (this.panelAxes.down >= 0) index[this.panelAxes.down] = row;
    if (this.panelAxes.across >= 0) index[this.panelAxes.across] = column;
    return ravel(index, this.tensor.shape);
  }

  draw() {
    const context = penOf(this.canvas);
    const small = new OffscreenCanvas(this.columns, this.rows);
    penOf(small).putImageData(this.image(), 0, 0);
    context.imageSmoothingEnabled = this.cell < 1; // a smaller picture is a mean of its pixels
    context.imageSmoothingQuality = 'high';
    context.drawImage(small, 0, 0, this.canvas.width, this.canvas.height);
    if (this.cell >= NUMBERS) this.numbers(context);
  }

  image() {
    const { shape, axes } = this.tensor;
    const channel = axes.indexOf('C');
    if (!this.asPicture) return pixels(this.tensor, slice(this.start, shape, axes));
    return lights(this.tensor, slice(this.start.map((at, axis) => (axis === channel ? 0 : at)), shape, axes), strides(shape)[channel]);
  }

  numbers(context) {
    Object.assign(context, { font: '10px ui-monospace, monospace', textAlign: 'center', textBaseline: 'middle' });
    for (let row = 0; row < this.rows; row++) {
      for (let column = 0; column < this.columns; column++) {
        const value = valuesOf(this.tensor)[this.flat(row, column)];
        context.fillStyle = ink(this.colour(value) ?? ODD);
        context.fillText(short(value, 4), (column + 0.5) * this.cell, (row + 0.5) * this.cell);
      }
    }
  }

  /** @param {Map<number, string>|null} marks */
  light(marks) {
    this.marks = marks;
    const context = penOf(this.over);
    context.clearRect(0, 0, this.over.width, this.over.height);
    const lit = this.inSlice(marks);
    const side = Math.max(this.cell, SMALLEST);
    const line = side >= 8 ? 2 : 1;
    for (const { row, column, mark } of lit) {
      const [name, dashes] = STROKES[mark];
      /** @type {[number, number, number, number]} */
      const box = [column * this.cell + (this.cell - side) / 2 + line / 2, row * this.cell + (this.cell - side) / 2 + line / 2, side - line, side - line];
      context.setLineDash([]);
      if (side >= 8) { Object.assign(context, { lineWidth: line + 2, strokeStyle: this.tone('--halo') }); context.strokeRect(...box); }
      context.setLineDash(dashes);
      Object.assign(context, { lineWidth: line, strokeStyle: this.tone(name) });
      context.strokeRect(...box);
    }
    this.loupe.show(lit);
  }

  /** A colour of the page as it is now; light-dark() is resolved only where it is used. @param {string} name */
  tone(name) {
    this.over.style.color = `var(${name})`;
    return getComputedStyle(this.over).color;
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
