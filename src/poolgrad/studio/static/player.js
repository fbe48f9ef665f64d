// Step through the windows of a block: each step lights a window, names its tap and adds its part to the result.

import { taking } from 'poolgrad/explain';
import { el } from 'poolgrad/dom';
import { numbersOf } from 'poolgrad/relation';
import { number } from 'poolgrad/sentences';
import { panelAxes, ravel, size, unravel, valuesOf } from 'poolgrad/tensor';

const BEAT = 900; // milliseconds per step while it plays
const MOST = 2 ** 16; // windows

/** @typedef {import('poolgrad/tensor').Tensor} Tensor */
/** @typedef {{key: string, count: number, flat: (k: number) => number, links: any, giver: Tensor, taker: Tensor|null}} Plan */

export class Player {
  /** @param {import('poolgrad/inspector').Inspector} inspector */
  constructor(inspector) {
    this.inspector = inspector;
    this.at = -1; // the step that is shown; -1: none
    this.timer = 0;
    /** @type {Plan|null} */ this.plan = null;
    const button = (text, label, act) => el('button', { text, 'aria-label': label, title: label, onclick: act });
    this.play = button('▶', 'Play windows', () => (this.timer ? this.pause() : this.start()));
    this.slider = el('input', { type: 'range', min: 0, value: 0, 'aria-label': 'Window', oninput: () => { this.pause(); this.go(Number(this.slider.value)); } });
    this.says = el('span.step', { text: '' });
    this.element = el('div.player', { role: 'group', 'aria-label': 'Step through windows', hidden: true },
      button('◀', 'Previous window', () => this.step(-1)), this.play, button('▶❘', 'Next window', () => this.step(1)), this.slider, this.says);
    this.element.addEventListener('keydown', (event) => { if (event.key === 'Escape' && inspector.pointing.release()) event.stopPropagation(); });
    inspector.store.on('relation', (found) => this.follow(found));
  }

  /** Look at the block that the inspector shows now. */
  draw() {
    const { store, node } = this.inspector;
    const links = store.run?.page === store.page.name ? store.run?.nodes[node]?.links : null;
    const tensor = (test) => { const found = links?.tensors.find((t) => test(t) && store.tensors.get(t.ref)?.values); return store.tensors.get(found?.ref) ?? null; };
    const giver = tensor((t) => t.symbol === 'g') ?? tensor((t) => t.symbol === 'out');
    const count = links ? size(links.dest) : 0;
    const same = this.plan && this.plan.links === links && this.plan.giver === giver;
    if (!same) {
      this.pause();
      this.at = -1;
      this.plan = giver && count > 1 && count <= MOST && !links.hits?.ask ? { key: giver.key, count, links, giver, flat: order(giver), taker: tensor((t) => t.symbol === 'dx') } : null;
    }
    this.element.hidden = !this.plan;
    if (!this.plan) return;
    this.slider.max = String(count - 1);
    this.say();
  }

  start() {
    if (!this.plan) return;
    if (this.at >= this.plan.count - 1) this.at = -1;
    this.step(1);
    this.timer = window.setInterval(() => { this.step(1); if (this.at >= (this.plan?.count ?? 0) - 1) this.pause(); }, BEAT);
    this.play.textContent = '⏸';
    this.play.setAttribute('aria-label', 'Pause');
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = '▶';
    this.play.setAttribute('aria-label', 'Play windows');
  }

  step(by) {
    if (this.plan) this.go(Math.min(Math.max(this.at + by, 0), this.plan.count - 1));
  }

  /** Show a window. @param {number} at */
  go(at) {
    if (!this.plan) return;
    this.at = at;
    this.slider.value = String(at);
    this.moving = true;
    this.inspector.pointing.hold(this.plan.key, this.plan.flat(at), this.inspector.node);
    this.moving = false;
    this.say();
  }

  /** Another cell was pointed at: the results are whole again. @param {any} found */
  follow(found) {
    const { plan } = this;
    if (!plan) return;
    const own = this.at >= 0 && found?.tensor === plan.key && found.flat === plan.flat(this.at) && this.inspector.pointing.pinned;
    if (!own && !this.moving && this.at >= 0) { this.pause(); this.at = -1; this.say(); }
    const target = plan.taker ?? plan.giver;
    const map = this.inspector.maps.get(target.key);
    if (!map?.partial) return;
    if (this.at < 0) map.partial(null, new Set());
    else if (plan.taker) this.gradient(map, plan, plan.taker);
    else this.forward(map, plan);
  }

  /** The sums of the gradients of all windows so far. @param {any} map @param {Plan} plan @param {Tensor} taker */
  gradient(map, plan, taker) {
    const sums = new Float64Array(size(taker.shape));
    const given = valuesOf(plan.giver);
    const values = numbersOf(plan.links.tensors, this.inspector.store.tensors);
    /** @type {Array<[number, number]>} */ let last = [];
    for (let k = 0; k <= this.at; k++) {
      const flat = plan.flat(k);
      last = taking(plan.links, values, flat);
      for (const [cell, weight] of last) sums[cell] += weight * Number(given[flat]);
    }
    this.sum = sums.reduce((a, b) => a + b, 0);
    map.partial((cell) => sums[cell], new Set(last.map(([cell]) => cell)));
  }

  /** The results of all windows so far; the others are empty. @param {any} map @param {Plan} plan */
  forward(map, plan) {
    const given = valuesOf(plan.giver);
    const done = new Set(Array.from({ length: this.at + 1 }, (_, k) => plan.flat(k)));
    map.partial((cell) => (done.has(cell) ? Number(given[cell]) : null), new Set([plan.flat(this.at)]));
  }

  say() {
    const { plan, at } = this;
    if (!plan) return;
    const sum = plan.taker && at >= 0 ? ` · Σ ${number(this.sum ?? 0)}` : '';
    this.says.textContent = at < 0 ? `${plan.count} windows` : `${at + 1} of ${plan.count}${sum}`;
    this.slider.setAttribute('aria-valuetext', at < 0 ? 'none' : `window ${at + 1} of ${plan.count}`);
  }
}

/** Return a function from a step to its window: slice by slice, each row by row. @param {Tensor} tensor */
function order(tensor) {
  const { down, across, beside } = panelAxes(tensor.axes);
  const axes = [...beside, down, across].filter((axis) => axis >= 0);
  const lengths = axes.map((axis) => tensor.shape[axis]);
  return (/** @type {number} */ k) => {
    const index = new Array(tensor.shape.length).fill(0);
    unravel(k, lengths).forEach((i, n) => { index[axes[n]] = i; });
    return ravel(index, tensor.shape);
  };
}
