// A button that opens a list: arrows choose, Enter acts, Escape and clicks elsewhere close it.

import { el, fill } from 'poolgrad/dom';

/** @typedef {{name: string, what?: string, label: string, act: () => void}} Item */

export class Menu {
  /** @param {string} text of the button @param {string} label of the list @param {Item[]} items */
  constructor(text, label, items) {
    this.list = el('div.menu', { role: 'menu', hidden: true, 'aria-label': label });
    this.button = el('button', { text, 'aria-haspopup': 'menu', 'aria-expanded': 'false', onclick: () => this.toggle(this.list.hidden) });
    this.element = el('span.opener', {}, this.button, this.list);
    this.list.addEventListener('keydown', (event) => this.key(event));
    document.addEventListener('pointerdown', (event) => { if (!this.element.contains(/** @type {Node} */ (event.target))) this.toggle(false); });
    this.set(items);
  }

  /** @param {Item[]} items */
  set(items) {
    fill(this.list, ...items.map(({ name, what, label, act }) => el('button', {
      role: 'menuitem', 'aria-label': label, onclick: () => { this.toggle(false); act(); } }, el('b', { text: name }), what ? el('span', { text: what }) : null)));
  }

  /** @param {boolean} open */
  toggle(open) {
    this.list.hidden = !open;
    this.button.setAttribute('aria-expanded', String(open));
    if (open) this.list.querySelector('button')?.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const items = /** @type {HTMLElement[]} */ ([...this.list.querySelectorAll('button')]);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) items[(items.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + step + items.length) % items.length].focus();
    else if (event.key === 'Escape') { this.toggle(false); this.button.focus(); } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
