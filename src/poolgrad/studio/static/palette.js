// The list of blocks: searched by typing, placed by Enter, click or drag.

import { el, fill } from 'poolgrad/dom';

const TITLES = { input: 'Inputs', pool: 'Pool', gradient: 'Gradient', 'second order': 'Second order', quantised: 'Quantised', 'array pool': 'Pools of arrays', help: 'Help' };
const SEARCHED = ['array gradient', 'array tangent']; // many blocks that one adds by a button: the list names them only if they are searched

/** Rank a name that holds all letters of a search in this order; the best match ranks first. @param {string} name @param {string} query */
export function rank(name, query) {
  const [text, wanted] = [name.toLowerCase(), query.trim().toLowerCase().replace(/\s+/g, '')];
  if (!wanted) return 0;
  if (text === wanted) return 1;
  if (text.startsWith(wanted)) return 2;
  if (text.includes(wanted)) return 3;
  let from = 0;
  for (const letter of wanted) {
    from = text.indexOf(letter, from) + 1;
    if (!from) return -1;
  }
  return 4;
}

export class Palette {
  /** @param {{blocks: any[], groups: string[]}} ops @param {(op: string, at?: number[]) => void} place
   * @param {(open: boolean) => void} open shows the list where it is a drawer */
  constructor(ops, place, open) {
    this.open = open;
    this.ops = ops;
    this.place = place;
    this.search = el('input.search', {
      type: 'search', placeholder: 'Search blocks   /', 'aria-label': 'Search blocks', autocomplete: 'off', spellcheck: 'false',
      role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', oninput: () => this.list(), onkeydown: (event) => this.key(event),
    });
    this.items = el('div.items', { id: 'palette-list', role: 'listbox', 'aria-label': 'Blocks' });
    this.element = el('nav.palette', { 'aria-label': 'Palette' }, this.search, this.items);
    this.at = 0;
    /** @type {any[]} the blocks that the search finds */ this.found = [];
    this.list();
  }

  /** The blocks that the search finds, in groups unless searched. */
  list() {
    const query = this.search.value;
    const found = this.ops.blocks.map((block) => [rank(block.op, query), block]).filter(([r]) => r >= 0);
    if (query.trim()) found.sort((a, b) => a[0] - b[0]);
    this.found = found.map(([, block]) => block).filter((block) => query.trim() || !SEARCHED.includes(block.group));
    this.at = 0;
    /** @type {Array<[string, any[]]>} */
    const groups = query.trim() ? [['', this.found]] : this.ops.groups.filter((g) => !SEARCHED.includes(g)).map((g) => [g, this.found.filter((b) => b.group === g)]);
    fill(this.items, ...groups.filter(([, blocks]) => blocks.length).map(([group, blocks]) => el('div', { role: 'group', 'aria-label': TITLES[group] ?? (group || 'Found') },
      group ? el('div.title', { text: TITLES[group] ?? group, 'aria-hidden': 'true' }) : null, ...blocks.map((block) => this.item(block)))));
    if (!query.trim()) this.items.append(el('p.none', { text: 'Derivatives of these: select a block and press “Add gradient”, or search for _grad or _tangent.' }));
    if (!this.found.length) fill(this.items, el('p.none', { text: `No block is called like ${query}.` }));
    this.mark();
  }

  item(block) {
    const button = el('button.item', {
      text: block.op, title: block.doc, role: 'option', 'data-group': block.group, 'data-op': block.op, draggable: 'true',
      'aria-label': `Add ${block.op}`, tabindex: -1, onclick: () => this.place(block.op),
    });
    button.addEventListener('dragstart', (event) => event.dataTransfer.setData('application/x-poolgrad-op', block.op));
    return button;
  }

  mark() {
    const chosen = this.found[this.at]?.op;
    const active = this.search.value.trim() || document.activeElement === this.search;
    for (const item of this.items.querySelectorAll('.item')) {
      const now = Boolean(active) && item.dataset.op === chosen;
      item.setAttribute('aria-selected', String(now));
      if (now) item.scrollIntoView({ block: 'nearest' });
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.at = Math.min(Math.max(this.at + step, 0), this.found.length - 1);
    else if (event.key === 'Enter' && this.found[this.at]) this.place(this.found[this.at].op);
    else if (event.key === 'Escape') this.leave();
    else return;
    event.preventDefault();
    this.mark();
  }

  leave() {
    this.open(false);
    this.search.value = '';
    this.search.blur();
    this.list();
  }

  focus() {
    this.open(true);
    this.search.focus();
    this.search.select();
    this.mark();
  }
}
