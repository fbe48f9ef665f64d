// Looking around without editing: pan, zoom, select.

import { idOf } from 'poolgrad/dom';
import { pinch } from 'poolgrad/pinch';

export class Views {
  /** @param {import('poolgrad/store').Store} store @param {import('poolgrad/flow').Flow} flow */
  constructor(store, flow) {
    const canvas = flow.element;
    let drag = null;
    canvas.addEventListener('pointerdown', (event) => {
      const block = /** @type {HTMLElement|null} */ (/** @type {Element} */ (event.target).closest('.block'));
      if (block) store.select([idOf(block)]);
      else drag = { x: event.clientX - flow.view.x, y: event.clientY - flow.view.y };
    });
    canvas.addEventListener('focusin', (event) => {
      const block = /** @type {HTMLElement|null} */ (/** @type {Element} */ (event.target).closest('.block'));
      if (block) store.select([idOf(block)]);
    });
    pinch(flow, () => { drag = null; });
    canvas.addEventListener('pointermove', (event) => {
      if (drag && event.buttons) flow.look({ x: event.clientX - drag.x, y: event.clientY - drag.y });
    });
    canvas.addEventListener('pointerup', () => { drag = null; });
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey) return; // plain scrolling belongs to the notebook or document around
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      flow.zoomBy(Math.exp(-event.deltaY / 400), [event.clientX - box.left, event.clientY - box.top]);
    }, { passive: false });
  }
}
