// A tensor in the inspector: a panel per slice, numbers and indices, every cell an element with a name.

import { ink, scale } from 'poolgrad/colour';
import { el } from 'poolgrad/dom';
import { number } from 'poolgrad/sentences';
import { axisName, cellName, panelAxes, ravel, short, unravel, valuesOf } from 'poolgrad/tensor';

/** @typedef {import('poolgrad/tensor').Tensor} Tensor */
/** @typedef {Record<string, number|'all'>} Slices which entry of each axis is shown */
/** @typedef {{cell: number, name?: string, pads?: number[][]|null}} Options `pads`: cells before and after, per axis */

export const NUMBERS = 22;
const MOVES = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [1, -1], ArrowRight: [1, 1] };

/** The first indices of all panels that are shown. @param {Tensor} tensor @param {Slices} slices @returns {number[][]} */
export function panelStarts(tensor, slices) {
  const { beside } = panelAxes(tensor.axes);
  let starts = [tensor.shape.map(() => 0)];
  for (const axis of beside) {
    const wish = slices[tensor.axes[axis]] ?? 'all';
    const length = tensor.shape[axis];
    const chosen = wish === 'all' ? [...Array(length).keys()] : [Math.min(wish, length - 1)];
    starts = starts.flatMap((start) => chosen.map((i) => start.map((v, k) => (k === axis ? i : v))));
  }
  return starts;
}

/** Return the title of a panel: its index along each axis that has several panels. @param {Tensor} tensor @param {number[]} start
 * @param {Slices} slices */
export function panelName(tensor, start, slices) {
  const { beside } = panelAxes(tensor.axes);
  return beside.filter((axis) => tensor.shape[axis] > 1 && (slices[tensor.axes[axis]] ?? 'all') === 'all').map((axis) => `${axisName(tensor.axes[axis])} ${start[axis]}`).join(' · ');
}

export class HeatMap {
  /** @param {Tensor} tensor @param {Slices} slices @param {Options} options */
  constructor(tensor, slices, options) {
    this.tensor = tensor;
    this.slices = slices;
    this.options = options;
    this.colour = scale(tensor.role, tensor.stats.min ?? 0, tensor.stats.max ?? 0);
    this.panelAxes = panelAxes(tensor.axes);
    /** @type {Map<number, HTMLElement>} */ this.cells = new Map();
    this.padCells = [];
    this.parted = false; // true while other numbers are shown
    this.lit = [];
    this.starts = valuesOf(tensor).length ? panelStarts(tensor, slices) : [];
    this.element = el('div.map', { role: 'grid', 'aria-label': `${tensor.key} cells`, 'data-tensor': tensor.key }, ...this.starts.map((start) => this.panel(start)));
    const first = this.cells.values().next().value;
    if (first) first.tabIndex = 0;
    this.element.addEventListener('keydown', (event) => this.key(event));
  }

  /** Padding around a panel: [top, bottom, left, right]. */
  margins() {
    const { down, across } = this.panelAxes;
    const { pads } = this.options;
    const of = (axis) => (pads && axis >= 0 ? pads[axis] : [0, 0]).map((n) => Math.min(n, 3));
    return [...of(down), ...of(across)];
  }

  panel(start) {
    const { down, across } = this.panelAxes;
    const [rows, columns] = [down < 0 ? 1 : this.tensor.shape[down], across < 0 ? 1 : this.tensor.shape[across]];
    const [top, bottom, left, right] = this.margins();
    const grid = el('div.grid', { role: 'rowgroup' });
    grid.style.gridTemplateColumns = `14px repeat(${left + columns + right}, ${this.options.cell}px)`;
    grid.style.gridTemplateRows = '14px';
    grid.style.gridAutoRows = `${this.options.cell}px`;
    grid.append(this.header(columns, left, right));
    for (let row = -top; row < rows + bottom; row++) {
      const line = el('div.line', row >= 0 && row < rows ? { role: 'row' } : { 'aria-hidden': 'true' }, el('span.index', { text: row >= 0 && row < rows ? String(row) : '', 'aria-hidden': 'true' }));
      for (let column = -left; column < columns + right; column++) {
        const inside = row >= 0 && row < rows && column >= 0 && column < columns;
        line.append(inside ? this.cell(this.at(start, row, column)) : this.pad(start, row, column));
      }
      grid.append(line);
    }
    const name = panelName(this.tensor, start, this.slices);
    return el('div.panel', {}, name ? el('div.caption', { text: name }) : null, grid);
  }

  header(columns, left, right) {
    const numbers = [...Array(left + columns + right).keys()].map((i) => i - left);
    const shown = numbers.map((i) => el('span.index', { text: i >= 0 && i < columns ? String(i) : '' }));
    return el('div.line.head', { 'aria-hidden': 'true' }, el('span'), ...shown);
  }

  at(start, row, column) {
    const { down, across } = this.panelAxes;
    const index = [...start];
    if (down >= 0) index[down] = row;
    if (across >= 0) index[across] = column;
    return ravel(index, this.tensor.shape);
  }

  cell(flat) {
    const value = valuesOf(this.tensor)[flat];
    const box = el('div.cell', {
      role: 'gridcell', tabindex: -1, 'data-cell': unravel(flat, this.tensor.shape).join(','), 'data-flat': flat,
      'aria-label': `${cellName(this.tensor, flat)} = ${number(value, this.tensor.dtype)}`,
    });
    this.paint(box, value);
    this.cells.set(flat, box);
    return box;
  }

  /** Write a number into a cell, in its colour; null empties it. @param {HTMLElement} box @param {number|null} value */
  paint(box, value) {
    const rgb = value === null ? null : this.colour(value);
    const text = value === null || this.options.cell < NUMBERS ? '' : short(value, Math.floor((this.options.cell - 3) / 5.5));
    if (box.firstChild?.nodeType === Node.TEXT_NODE) box.firstChild.nodeValue = text;
    else box.prepend(text);
    box.classList.toggle('tight', text.length * 7.3 > this.options.cell - 4);
    Object.assign(box.style, rgb ? { background: `rgb(${rgb})`, color: ink(rgb) } : { background: '', color: '' });
    box.classList.toggle('odd', value !== null && !rgb);
    box.classList.toggle('blank', value === null);
    box.classList.toggle('zero', value === 0 && this.tensor.role === 'gradient');
  }

  /** Show other numbers for a while, as sums so far; null shows the tensor again. @param {((flat: number) => number|null)|null} values
   * @param {Set<number>} fresh cells that changed with this step */
  partial(values, fresh) {
    if (!values && !this.parted) return;
    this.parted = Boolean(values);
    for (const [flat, box] of this.cells) {
      this.paint(box, values ? values(flat) : valuesOf(this.tensor)[flat]);
      box.classList.toggle('drop', fresh.has(flat));
    }
  }

  pad(start, row, column) {
    const box = el('div.cell.pad', { 'aria-hidden': 'true' });
    this.padCells.push({ box, start, row, column });
    return box;
  }

  /** Light up cells, and the padding in the same windows.
   * @param {Map<number, string>|null} marks @param {Map<number, string>|null} shares @param {any[]} windows */
  light(marks, shares, windows) {
    for (const box of this.lit) {
      delete box.dataset.mark;
      box.querySelector('.share')?.remove();
    }
    this.lit = [];
    for (const [flat, mark] of marks ?? []) {
      const box = this.cells.get(flat);
      if (!box) continue;
      box.dataset.mark = mark;
      if (shares?.get(flat)) box.append(el('span.share', { text: shares.get(flat) }));
      this.lit.push(box);
    }
    for (const pad of marks ? this.padCells : []) {
      if (!windows.some((w) => this.covers(w, pad))) continue;
      pad.box.dataset.mark = 'window';
      this.lit.push(pad.box);
    }
  }

  /** Return true if a window, before the edges cut it, reaches a cell of the padding. */
  covers(window, { start, row, column }) {
    const { down, across } = this.panelAxes;
    return window.pairs.every(([first, stop], axis) => {
      const i = axis === down ? row : axis === across ? column : start[axis];
      return i >= first - window.before[axis] && i < stop + window.after[axis];
    });
  }

  /** Arrow keys go from cell to cell. @param {KeyboardEvent} event */
  key(event) {
    const move = MOVES[event.key];
    const here = /** @type {HTMLElement} */ (event.target).dataset?.flat;
    if (!move || here === undefined) return;
    const index = unravel(Number(here), this.tensor.shape);
    const axis = move[0] ? this.panelAxes.across : this.panelAxes.down;
    event.preventDefault();
    event.stopPropagation();
    if (axis < 0) return;
    index[axis] += move[1];
    if (index[axis] < 0 || index[axis] >= this.tensor.shape[axis]) this.cross(index, axis, move[1]);
    this.focus(this.cells.get(ravel(index, this.tensor.shape)));
  }

  /** Move past the edge, to the same row or column of the next panel. */
  cross(index, axis, step) {
    const at = this.starts.findIndex((start) => this.panelAxes.beside.every((k) => start[k] === index[k]));
    const next = this.starts[at + step];
    if (next) for (const k of this.panelAxes.beside) index[k] = next[k];
    index[axis] = next ? (step > 0 ? 0 : this.tensor.shape[axis] - 1) : index[axis] - step;
  }

  /** @param {HTMLElement|undefined} box */
  focus(box) {
    if (!box) return;
    for (const other of this.element.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    box.tabIndex = 0;
    box.focus();
  }
}
