// A few cells of a large tensor, enlarged: those that are lit, with their numbers.

import { ink } from 'poolgrad/colour';
import { el, fill } from 'poolgrad/dom';
import { short, valuesOf } from 'poolgrad/tensor';

const CELL = 30;
const MOST = [5, 4]; // rows and columns

/** The part of 0…length that shows lit…, with a margin where there is room. @returns {[number, number]} first and stop */
function shownRange(lit, length, most) {
  const [low, high] = [Math.min(...lit), Math.max(...lit) + 1];
  const wanted = Math.min(Math.max(high - low, Math.min(most, 3)), most, length);
  const first = Math.min(Math.max(low - Math.floor((wanted - (high - low)) / 2), 0), length - wanted);
  return high - low > most ? [low, low + wanted] : [first, first + wanted];
}

export class Loupe {
  /** @param {import('poolgrad/bigmap').BigMap} map */
  constructor(map) {
    this.map = map;
    this.element = el('div.loupe', { 'aria-hidden': 'true' });
  }

  /** @param {Array<{row: number, column: number, mark: string}>} lit cells of the slice that is shown */
  show(lit) {
    if (!lit.length) {
      fill(this.element);
      return;
    }
    const [top, bottom] = shownRange(lit.map((c) => c.row), this.map.rows, MOST[0]);
    const [left, right] = shownRange(lit.map((c) => c.column), this.map.columns, MOST[1]);
    const marks = new Map(lit.map((c) => [`${c.row},${c.column}`, c.mark]));
    const head = [...Array(right - left).keys()].map((i) => el('span.index', { text: String(left + i) }));
    const cells = [el('span'), ...head];
    for (let row = top; row < bottom; row++) {
      cells.push(el('span.index', { text: String(row) }));
      for (let column = left; column < right; column++) cells.push(this.cell(row, column, marks.get(`${row},${column}`)));
    }
    this.element.style.gridTemplateColumns = `22px repeat(${right - left}, ${CELL}px)`;
    fill(this.element, ...cells);
  }

  cell(row, column, mark) {
    const value = valuesOf(this.map.tensor)[this.map.flat(row, column)];
    const rgb = this.map.colour(value);
    const box = el('div.cell', { text: short(value, 4), 'data-mark': mark ?? null });
    if (rgb) Object.assign(box.style, { background: `rgb(${rgb})`, color: ink(rgb) });
    else box.classList.add('odd');
    return box;
  }
}
