// Handle pointer and keys on the canvas: move, pan, zoom, select, wire, delete, type.

import { el, idOf, isField } from 'poolgrad/dom';
import { WIDTH } from 'poolgrad/geometry';
import { disconnect, isName, moveNodes, onPage, removeNodes, renameNode, setText } from 'poolgrad/model';
import { pinch } from 'poolgrad/pinch';
import { pinAt } from 'poolgrad/wiring';

const NEAR = 4; // pixels that the pointer may move during a click
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Gestures {
  /** @param {import('poolgrad/store').Store} store @param {import('poolgrad/flow').Flow} flow
   * @param {import('poolgrad/wiring').Wiring} wiring @param {(text: string, bad?: boolean|'refused') => void} say */
  constructor(store, flow, wiring, say) {
    this.store = store;
    this.flow = flow;
    this.wiring = wiring;
    this.say = say;
    /** @type {((event: PointerEvent, done: boolean) => void)|null} */ this.drag = null;
    /** @type {{pin: any, x: number, y: number}|null} */ this.held = null;
    const canvas = flow.element;
    pinch(flow, () => { this.drag = this.held = null; wiring.cancel(); });
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointercancel', () => { this.drag = this.held = null; wiring.cancel(); });
    canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('input', (event) => this.type(event));
    canvas.addEventListener('focusin', (event) => this.focus(event));
    canvas.addEventListener('change', (event) => this.rename(event));
  }

  // ---- pointer

  /** @param {PointerEvent} event */
  press(event) {
    const target = /** @type {Element} */ (event.target);
    const pin = pinAt(target);
    if (pin && event.button === 0) {
      event.preventDefault();
      this.flow.element.setPointerCapture(event.pointerId); // the wire may be dropped outside
      this.held = { pin, x: event.clientX, y: event.clientY };
      return;
    }
    if (isField(target) || target.closest('button')) return;
    const wire = target.closest('[data-wire]');
    if (wire instanceof SVGElement) {
      this.store.select([], wire.dataset.wire);
      return;
    }
    const block = target.closest('.block');
    if (!block) this.flow.element.setPointerCapture(event.pointerId);
    if (event.button === 1 || !block) this.drag = event.shiftKey && !block ? this.lasso(event) : this.pan(event);
    else this.drag = this.carry(event, /** @type {HTMLElement} */ (block).dataset.id);
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (this.held && !this.wiring.dragged && Math.hypot(event.clientX - this.held.x, event.clientY - this.held.y) > NEAR) {
      this.wiring.cancel();
      if (!this.wiring.takeOff(this.held.pin)) this.wiring.begin(this.held.pin);
      this.wiring.dragged = true;
    }
    if (this.wiring.from) this.wiring.follow(event.clientX, event.clientY);
    else if (this.drag) this.drag(event, false);
  }

  /** @param {PointerEvent} event */
  release(event) {
    if (this.drag) this.drag(event, true);
    this.drag = null;
    if (!this.held) return;
    // A click on a pin is half a wire, like Enter; a drag is a whole one.
    const under = document.elementFromPoint(event.clientX, event.clientY);
    if (this.wiring.dragged && under && this.flow.element.contains(under) && !under.closest('.block, [data-wire]')) this.wiring.drop(event.clientX, event.clientY);
    else if (this.wiring.dragged) this.wiring.finish(pinAt(under));
    else this.wiring.press(this.held.pin);
    this.held = null;
  }

  pan(event) {
    const start = { ...this.flow.view };
    let moved = false;
    return (now, done) => {
      const [dx, dy] = [now.clientX - event.clientX, now.clientY - event.clientY];
      moved ||= Math.hypot(dx, dy) > NEAR;
      if (moved) this.flow.look({ x: start.x + dx, y: start.y + dy });
      if (done && !moved) this.clear();
    };
  }

  clear() {
    this.wiring.cancel();
    this.store.select([]);
  }

  carry(event, id) {
    const { store } = this;
    if (event.shiftKey || event.ctrlKey || event.metaKey) {
      const ids = new Set(store.selection);
      if (!ids.delete(id)) ids.add(id);
      store.select(ids);
    } else if (!store.selection.has(id)) store.select([id]);
    if (/** @type {Element} */ (event.target).closest('[data-cell], canvas')) return null; // a cell, not a handle
    this.flow.element.setPointerCapture(event.pointerId);
    const start = new Map(store.page.nodes.filter((n) => store.selection.has(n.id)).map((n) => [n.id, n.at ?? [0, 0]]));
    let moved = false;
    return (now, done) => {
      const { zoom } = this.flow.view;
      const [dx, dy] = [(now.clientX - event.clientX) / zoom, (now.clientY - event.clientY) / zoom];
      moved ||= Math.hypot(dx, dy) > NEAR;
      if (!moved) return;
      const places = new Map([...start].map(([key, [x, y]]) => [key, [Math.round(x + dx), Math.round(y + dy)]]));
      store.edit(onPage(store.doc, store.at, (page) => moveNodes(page, places)), `carry ${event.timeStamp}`);
      if (done) store.settle();
    };
  }

  lasso(event) {
    const frame = el('div.lasso');
    this.flow.element.append(frame);
    const box = this.flow.element.getBoundingClientRect();
    return (now, done) => {
      const [left, right] = [event.clientX, now.clientX].sort((a, b) => a - b);
      const [top, bottom] = [event.clientY, now.clientY].sort((a, b) => a - b);
      Object.assign(frame.style, { left: `${left - box.left}px`, top: `${top - box.top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
      if (!done) return;
      frame.remove();
      const [x1, y1] = this.flow.toWorld(left, top);
      const [x2, y2] = this.flow.toWorld(right, bottom);
      const inside = (b) => b.node.at[0] < x2 && b.node.at[0] + WIDTH > x1 && b.node.at[1] < y2 && b.node.at[1] + this.flow.height(b) > y1;
      this.store.select([...this.flow.blocks.values()].filter((b) => b.node.at && inside(b)).map((b) => b.node.id));
    };
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    const box = this.flow.element.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) {
      this.flow.zoomBy(Math.exp(-event.deltaY / 400), [event.clientX - box.left, event.clientY - box.top]);
    } else this.flow.look({ x: this.flow.view.x - event.deltaX, y: this.flow.view.y - event.deltaY });
  }

  // ---- keys

  /** @param {KeyboardEvent} event */
  key(event) {
    const pin = pinAt(event.target);
    if (pin && (event.key === 'Enter' || event.key === ' ')) this.wiring.press(pin);
    else if (event.key === 'Escape') this.escape(event);
    else if (isField(event.target)) return;
    else if (event.key === 'Enter' && /** @type {Element} */ (event.target).matches('.block')) this.store.tell('inspect');
    else if (event.key === 'Delete' || event.key === 'Backspace') this.remove(pin);
    else if (event.key in ARROWS && this.store.selection.size) this.nudge(ARROWS[event.key], event.shiftKey ? 48 : 12);
    else if (event.key in ARROWS) this.flow.look({ x: this.flow.view.x - ARROWS[event.key][0] * 48, y: this.flow.view.y - ARROWS[event.key][1] * 48 });
    else return;
    event.preventDefault();
  }

  escape(event) {
    this.clear();
    if (isField(event.target)) event.target.closest('.block').focus();
  }

  /** Delete the wire of a focused input, the selected wire, or the selected blocks. */
  remove(pin) {
    const { store } = this;
    const end = pin?.side === 'in' ? pin.end : store.wire;
    if (end) store.edit(onPage(store.doc, store.at, (page) => disconnect(page, end)));
    else if (store.selection.size) {
      const ids = new Set(store.selection);
      store.edit(onPage(store.doc, store.at, (page) => removeNodes(page, ids)));
      this.say(`Deleted ${[...ids].join(', ')}.`);
      this.flow.element.focus();
    }
  }

  nudge([dx, dy], step) {
    const { store } = this;
    const places = new Map(store.page.nodes.filter((n) => store.selection.has(n.id)).map((n) => [n.id, [(n.at?.[0] ?? 0) + dx * step, (n.at?.[1] ?? 0) + dy * step]]));
    store.edit(onPage(store.doc, store.at, (page) => moveNodes(page, places)), 'nudge');
  }

  /** Take over text typed into a field. @param {Event} event */
  type(event) {
    const field = /** @type {HTMLInputElement} */ (event.target);
    const pin = field.dataset?.field;
    const id = /** @type {HTMLElement|null} */ (field.closest('.block'))?.dataset.id;
    if (!pin || !id) return;
    this.store.edit(onPage(this.store.doc, this.store.at, (page) => setText(page, id, pin, field.value)), `type ${id}.${pin}`);
  }

  /** Select the block that has the focus. @param {FocusEvent} event */
  focus(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const wire = target.closest('[data-wire]');
    const block = /** @type {HTMLElement|null} */ (target.closest('.block'));
    if (wire instanceof SVGElement) this.store.select([], wire.dataset.wire);
    else if (block && !this.store.selection.has(idOf(block))) this.store.select([idOf(block)]);
    if (block && target.matches(':focus-visible')) this.flow.reveal(idOf(block));
  }

  /** Rename a block, if the new name is valid. @param {Event} event */
  rename(event) {
    const field = /** @type {HTMLInputElement} */ (event.target);
    const id = field.dataset?.rename;
    const name = field.value.trim();
    if (!id || name === id) return;
    const taken = this.store.page.nodes.some((node) => node.id === name);
    if (taken || !isName(name)) {
      this.say(taken ? `There is already a block ${name}.` : `A name is letters, digits and _, got ${JSON.stringify(name)}.`, 'refused');
      field.value = id;
      return;
    }
    this.store.edit(onPage(this.store.doc, this.store.at, (page) => renameNode(page, id, name)));
    this.store.select([name]);
  }
}
