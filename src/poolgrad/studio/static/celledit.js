// Change a number where it stands: in the cell of an array that is typed. The text of its block is written anew.

import { valuesOf } from 'poolgrad/tensor';
import { el } from 'poolgrad/dom';
import { onNode, onPage } from 'poolgrad/model';

const MOST = 4096; // numbers of a text that is written anew

/** A number with just the digits that bring it back. @param {number} value @param {string} dtype */
export function exact(value, dtype) {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf';
  if (Object.is(value, -0)) return '-0.0';
  if (dtype !== 'float32') return String(value);
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(value);
}

export class CellEditor {
  /** @param {import('poolgrad/store').Store} store @param {(text: string, bad?: boolean|'refused') => void} say */
  constructor(store, say) {
    this.store = store;
    this.say = say;
  }

  /** The tensor of a cell, if its numbers are typed into a block. @param {Element|null} cell
   * @returns {import('poolgrad/tensor').Tensor|null} */
  editable(cell) {
    const key = cell?.closest('[data-tensor]')?.getAttribute('data-tensor');
    const tensor = key ? this.store.tensors?.get(key) : null;
    const node = this.store.page.nodes.find((n) => n.id === tensor?.node);
    const pins = this.store.ops.get(node?.op ?? '')?.pins ?? [];
    const typed = pins.some((pin) => pin.name === 'val' && pin.type === 'tensor') && pins.some((pin) => pin.name === 'shape');
    return tensor?.values && typed && tensor.values.length <= MOST ? tensor : null;
  }

  /** Listen to the cells inside an element: a double click, F2 or a digit begins. @param {HTMLElement} root */
  listen(root) {
    const cellOf = (target) => (target instanceof Element ? /** @type {HTMLElement|null} */ (target.closest('[data-flat]')) : null);
    root.addEventListener('dblclick', (event) => this.begin(cellOf(event.target), ''));
    root.addEventListener('keydown', (event) => {
      const cell = cellOf(event.target);
      if (!cell || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
      if (event.key !== 'F2' && !/^[-.\d]$/.test(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      this.begin(cell, event.key === 'F2' ? '' : event.key);
    });
  }

  /** @param {HTMLElement|null} cell @param {string} typed the first character */
  begin(cell, typed) {
    const tensor = this.editable(cell);
    if (!cell || !tensor) {
      if (cell) this.say('Only numbers that are typed into a block can be changed in a cell.', 'refused');
      return;
    }
    const flat = Number(cell.dataset.flat);
    const field = el('input.in-cell', { value: typed || exact(Number(valuesOf(tensor)[flat]), tensor.dtype), 'aria-label': `${cell.getAttribute('aria-label') ?? tensor.key}, new number`, inputmode: 'decimal' });
    let over = false;
    const end = (keep) => {
      if (over) return;
      over = true;
      field.remove();
      if (keep) this.write(tensor, flat, field.value.trim());
      const again = document.querySelector(`.inspector [data-tensor="${tensor.key}"] [data-flat="${flat}"]`);
      if (again instanceof HTMLElement) again.focus({ preventScroll: true });
    };
    field.addEventListener('keydown', (event) => {
      event.stopPropagation();
      if (event.key === 'Enter' || event.key === 'Escape') end(event.key === 'Enter');
    });
    field.addEventListener('pointerdown', (event) => event.stopPropagation());
    field.addEventListener('blur', () => end(true));
    cell.append(field);
    field.focus();
    if (typed) field.setSelectionRange(1, 1);
    else field.select();
  }

  /** Write all numbers of the block, one of them new. @param {import('poolgrad/tensor').Tensor} tensor @param {number} flat @param {string} text */
  write(tensor, flat, text) {
    if (!/^[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|inf|nan)$/i.test(text)) {
      this.say(`A cell holds a number, got ${JSON.stringify(text)}.`, 'refused');
      return;
    }
    const numbers = Array.from(valuesOf(tensor), (value, i) => (i === flat ? text : exact(Number(value), tensor.dtype)));
    const { store } = this;
    const shape = tensor.shape.map((n) => `[${n}]`).join('');
    const change = (node) => ({ ...node, text: { ...node.text, val: numbers.join(','), ...(node.text.shape?.trim() ? {} : { shape }) } });
    store.edit(onPage(store.doc, store.at, (page) => onNode(page, tensor.node, change)));
  }
}
