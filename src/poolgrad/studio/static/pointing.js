// Pointing at cells: hover and focus show a relation, a click or Enter pins it, Escape lets it go.

import { learn } from 'poolgrad/explain';
import { needed, relation } from 'poolgrad/relation';

export class Pointing {
  /** @param {import('poolgrad/store').Store} store @param {(ref: string, windows: number[]) => Promise<any>} [hits] asks for
   * the hits of windows that the page does not have */
  constructor(store, hits) {
    this.store = store;
    this.hits = hits;
    this.asked = 0; // questions so far
    /** @type {{key: string, flat: number, wish: string|null}|null} */ this.pinned = null;
    /** @type {import('poolgrad/relation').Relation|null} */ this.now = null;
  }

  /** @param {string} key @param {number} flat @param {string|null} [wish] the node that should explain it */
  visit(key, flat, wish = null) {
    if (!this.pinned) this.show(key, flat, wish);
  }

  leave() {
    if (!this.pinned) this.tell(null);
  }

  /** Pins a cell; the same again lets it go. @param {string} key @param {number} flat @param {string|null} [wish] */
  pin(key, flat, wish = null) {
    if (this.pinned?.key === key && this.pinned.flat === flat) {
      this.pinned = null;
      this.show(key, flat, wish);
      return;
    }
    this.pinned = { key, flat, wish };
    this.show(key, flat, wish);
  }

  /** Pin a cell, also if it is pinned. @param {string} key @param {number} flat @param {string|null} [wish] */
  hold(key, flat, wish = null) {
    this.pinned = { key, flat, wish };
    this.show(key, flat, wish);
  }

  /** @returns {boolean} whether there was something to let go */
  release() {
    const had = Boolean(this.pinned);
    this.pinned = null;
    this.tell(null);
    return had;
  }

  /** After a run: the pinned cell again, with its new numbers, if it still exists. */
  refresh() {
    const size = this.store.tensors.get(this.pinned?.key ?? '')?.values?.length ?? 0;
    if (this.pinned && this.pinned.flat < size) this.show(this.pinned.key, this.pinned.flat, this.pinned.wish);
    else this.release();
  }

  show(key, flat, wish) {
    const { run, tensors, phrases } = this.store;
    const ticket = ++this.asked;
    const missing = run && tensors ? needed(run, key, flat, wish) : null;
    if (missing) {
      if (this.hits) this.fetch(missing).then(() => { if (ticket === this.asked) this.show(key, flat, wish); }, () => null);
      return;
    }
    this.tell(run && tensors ? relation(run, tensors, phrases, key, flat, wish) : null);
  }

  /** @param {{links: any, windows: number[]}} missing */
  async fetch({ links, windows }) {
    if (this.hits) learn(links, windows, await this.hits(links.hits.ref, windows));
  }

  tell(found) {
    this.now = found;
    this.store.tell('relation', found);
  }

  /** Listen to the cells inside an element. @param {HTMLElement} root @param {() => string|null} wish */
  listen(root, wish) {
    /** @returns {[string, number]|null} */
    const cellOf = (target) => {
      const cell = target instanceof Element ? target.closest('[data-flat]') : null;
      const map = cell?.closest('[data-tensor]');
      return cell instanceof HTMLElement && map instanceof HTMLElement ? [map.dataset.tensor ?? '', Number(cell.dataset.flat)] : null;
    };
    const on = (event, act) => root.addEventListener(event, (e) => {
      const found = cellOf(e.target);
      if (found) act(found[0], found[1], wish());
    });
    on('pointerover', (key, flat, by) => this.visit(key, flat, by));
    on('focusin', (key, flat, by) => this.visit(key, flat, by));
    on('click', (key, flat, by) => this.pin(key, flat, by));
    root.addEventListener('pointerleave', () => this.leave());
    root.addEventListener('keydown', (e) => {
      const found = cellOf(e.target);
      if (found && (e.key === 'Enter' || e.key === ' ')) { this.pin(found[0], found[1], wish()); e.preventDefault(); }
      if (e.key === 'Escape' && this.release()) e.stopPropagation();
    });
  }
}
