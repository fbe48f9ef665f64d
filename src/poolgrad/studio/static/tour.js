// Five steps for the first minute: each shows one place, and says what to do there.

import { el, fill } from 'poolgrad/dom';
import { recall, remember } from 'poolgrad/memory';

const STEPS = [
  ['.sentence', 'A cell is pinned, and this says why it has its value: the reason, the calculation, and a sentence. Every number that is underlined leads to its cell.'],
  ['.cards', 'Point at any other number here. Blue is its window, orange with a corner the cell that won, dashed a cell that was as large.'],
  ['.player', 'Step through the windows: each one drops its gradient into a cell, and the sum grows.'],
  ['.block[data-group="input"]', 'Change a number: double-click a cell of x, or type into val. Everything that depends on it follows at once.'],
  ['.pages .tabs', 'Each tab answers another question. The last ones are pages with errors that one press repairs.'],
];

export class Tour {
  /** @param {HTMLElement} notices where it is offered @param {boolean} asks whether it is offered to those who are new */
  constructor(notices, asks) {
    this.at = 0;
    this.text = el('p', { id: 'tour-text' });
    this.next = el('button.primary', { text: 'Next', onclick: () => this.go(this.at + 1) });
    this.back = el('button', { text: 'Back', onclick: () => this.go(this.at - 1) });
    this.count = el('span.count-of');
    this.element = el('div.tour', { role: 'dialog', 'aria-label': 'Tour', 'aria-describedby': 'tour-text', hidden: true }, this.text,
      el('div.answers', {}, this.count, this.back, this.next, el('button', { text: 'End', onclick: () => this.end() })));
    this.ring = el('div.ring', { 'aria-hidden': 'true', hidden: true });
    this.element.addEventListener('keydown', (event) => { event.stopPropagation(); if (event.key === 'Escape') this.end(); });
    addEventListener('resize', () => { if (!this.element.hidden) this.place(); });
    document.body.append(this.ring, this.element);
    this.button = el('button.tour-button', { text: 'Tour', title: 'Five steps', onclick: () => this.start() });
    if (asks && !recall('tour')) this.offer(notices);
  }

  offer(notices) {
    const done = (act) => () => { box.remove(); remember('tour', 'seen'); act(); };
    const box = el('div.notice', { role: 'region', 'aria-label': 'Welcome' }, el('span', { text: 'New here? See in a minute why a gradient is zero.' }),
      el('button.primary', { text: 'Take the tour', onclick: done(() => this.start()) }), el('button', { text: 'No, thanks', onclick: done(() => {}) }));
    this.welcome = box;
    notices.append(box);
  }

  start() {
    this.welcome?.remove();
    remember('tour', 'seen');
    this.before = document.activeElement;
    this.element.hidden = this.ring.hidden = false;
    this.go(0);
  }

  go(at) {
    if (at >= STEPS.length) { this.end(); return; }
    this.at = at;
    fill(this.text, STEPS[at][1]);
    this.count.textContent = `${at + 1} of ${STEPS.length}`;
    this.back.disabled = at === 0;
    this.next.textContent = at === STEPS.length - 1 ? 'Done' : 'Next';
    this.place();
    this.next.focus();
  }

  /** Put the ring around the place and the text beside it. */
  place() {
    const target = document.querySelector(STEPS[this.at][0]);
    const box = target?.getBoundingClientRect() ?? new DOMRect(innerWidth / 2, innerHeight / 2, 0, 0);
    const clip = { left: Math.max(box.left, 4), top: Math.max(box.top, 4), right: Math.min(box.right, innerWidth - 4), bottom: Math.min(box.bottom, innerHeight - 4) };
    Object.assign(this.ring.style, { left: `${clip.left - 4}px`, top: `${clip.top - 4}px`, width: `${clip.right - clip.left + 8}px`, height: `${clip.bottom - clip.top + 8}px` });
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const beside = clip.left > width + 30 ? clip.left - width - 18 : clip.right + width + 30 < innerWidth ? clip.right + 18 : Math.min(Math.max(clip.left, 12), innerWidth - width - 12);
    const level = clip.left > width + 30 || clip.right + width + 30 < innerWidth;
    const below = clip.bottom + 14 + height < innerHeight ? clip.bottom + 14 : Math.max(12, clip.top - height - 14);
    Object.assign(this.element.style, { left: `${beside}px`, top: `${level ? Math.min(Math.max(clip.top, 12), innerHeight - height - 12) : below}px` });
  }

  end() {
    this.element.hidden = this.ring.hidden = true;
    if (this.before instanceof HTMLElement) this.before.focus();
  }
}
