// Drawing wires: by dragging from pin to pin, or with Enter on one pin and Enter on another.

import { WIDTH } from 'poolgrad/geometry';
import { addNode, connect, disconnect, freeId, makesCircle, nodeOf, onPage, wishId } from 'poolgrad/model';
import { endOf, offer } from 'poolgrad/offer';
import { fresh as newNode } from 'poolgrad/ops';
import { inlet, outlet } from 'poolgrad/wires';

/** @typedef {{end: string, side: 'in'|'out'}} Pin */

/** The pin that an element belongs to. @param {EventTarget|null} target @returns {Pin|null} */
export function pinAt(target) {
  const button = target instanceof Element ? target.closest('[data-end]') : null;
  if (!(button instanceof HTMLElement)) return null;
  return { end: button.dataset.end ?? '', side: /** @type {'in'|'out'} */ (button.dataset.side) };
}

export class Wiring {
  /** @param {import('poolgrad/store').Store} store @param {import('poolgrad/flow').Flow} flow @param {(text: string, bad?: boolean|'refused') => void} say */
  constructor(store, flow, say) {
    this.store = store;
    this.flow = flow;
    this.say = say;
    /** @type {Pin|null} */ this.from = null;
    this.dragged = false;
    this.taken = false; // true if the wire was taken off an input
  }

  /** Offer blocks for a wire that was dropped on the empty canvas. @param {number} x @param {number} y of the screen */
  drop(x, y) {
    const from = this.from;
    const fresh = from && !this.taken;
    this.cancel();
    const stage = this.flow.element.parentElement;
    if (!fresh || !stage) return;
    const { left, top } = stage.getBoundingClientRect();
    const { store } = this;
    offer(stage, [x - left, y - top], [...store.ops.values()], from.side, (block) => {
      const [wx, wy] = this.flow.toWorld(x, y).map(Math.round);
      const id = freeId(store.page, wishId(block));
      const node = newNode(block, id, [from.side === 'out' ? wx : wx - WIDTH, wy - 40]);
      const end = `${id}.${endOf(block, from.side)}`;
      const [out, into] = from.side === 'out' ? [from.end, end] : [end, from.end];
      store.edit(onPage(store.doc, store.at, (page) => connect(addNode(page, node), out, into)));
      store.select([id]);
      this.flow.blocks.get(id)?.element.focus();
      this.say(`Added ${id} and connected ${out} to ${into}.`);
    });
  }

  /** @param {Pin} pin */
  begin(pin) {
    this.from = pin;
    this.flow.element.dataset.wiring = pin.side === 'out' ? 'in' : 'out'; // where the wire may end
    this.button(pin)?.classList.add('armed');
    this.say(`Wire from ${pin.end}: choose ${pin.side === 'out' ? 'an input' : 'an output'}, Escape to leave.`);
  }

  /** Draw the wire to the pointer. @param {number} x @param {number} y */
  follow(x, y) {
    if (!this.from) return;
    const block = this.flow.blocks.get(nodeOf(this.from.end));
    if (!block) return;
    const there = this.flow.toWorld(x, y);
    if (this.from.side === 'out') this.flow.wires.sketch(outlet(block, this.from.end), there);
    else this.flow.wires.sketch(there, inlet(block, this.from.end));
  }

  /** End the wire at a pin, or drop it. @param {Pin|null} pin */
  finish(pin) {
    const from = this.from;
    this.cancel();
    if (!from || !pin || pin.end === from.end) return;
    if (pin.side === from.side) {
      this.say(`A wire goes from an output to an input; ${from.end} and ${pin.end} are both ${pin.side === 'in' ? 'inputs' : 'outputs'}.`, 'refused');
      return;
    }
    const [out, into] = from.side === 'out' ? [from.end, pin.end] : [pin.end, from.end];
    if (makesCircle(this.store.page, out, into)) {
      this.say(`${out} to ${into} would close a circle: ${nodeOf(out)} already depends on ${nodeOf(into)}.`, 'refused');
      return;
    }
    this.store.edit(onPage(this.store.doc, this.store.at, (page) => connect(page, out, into)));
    this.say(`Connected ${out} to ${into}.`);
  }

  cancel() {
    if (this.from) this.button(this.from)?.classList.remove('armed');
    this.from = null;
    this.dragged = this.taken = false;
    delete this.flow.element.dataset.wiring;
    this.flow.wires.sketch(null);
  }

  /** Enter on a pin: the first begins, the second ends. @param {Pin} pin */
  press(pin) {
    if (this.from) this.finish(pin);
    else this.begin(pin);
  }

  /** A wire is taken off its input and follows the pointer. @param {Pin} pin @returns {boolean} */
  takeOff(pin) {
    const wire = this.store.page.wires.find(([, to]) => to === pin.end);
    if (pin.side !== 'in' || !wire) return false;
    this.store.edit(onPage(this.store.doc, this.store.at, (page) => disconnect(page, pin.end)));
    this.begin({ end: wire[0], side: 'out' });
    this.taken = true;
    return true;
  }

  /** @param {Pin} pin */
  button(pin) {
    const block = this.flow.blocks.get(nodeOf(pin.end));
    const name = pin.end.slice(nodeOf(pin.end).length + 1);
    return pin.side === 'out' ? block?.outs.get(name) : block?.pins.get(name);
  }
}
