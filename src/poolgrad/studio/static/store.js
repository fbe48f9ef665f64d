// The state of the page: the document with its history, the selection, and the last run.

import { blank } from 'poolgrad/model';

/** @typedef {import('poolgrad/model').Doc} Doc */

const LONGEST_HISTORY = 200;

export class Store {
  constructor() {
    /** @type {Doc} */ this.doc = blank();
    this.at = 0; // the page that is shown
    /** @type {Set<string>} */ this.selection = new Set();
    /** @type {string|null} the input end of the selected wire */ this.wire = null;
    /** @type {any} */ this.run = null;
    /** @type {Map<string, import('poolgrad/tensor').Tensor>} those of the last run */ this.tensors = new Map();
    /** @type {Map<string, import('poolgrad/ops').Block>} */ this.ops = new Map();
    /** @type {any} the words of explanations */ this.phrases = {};
    this.stale = new Set();
    this.past = [];
    this.future = [];
    this.merging = '';
    this.listeners = new Map();
    this.saved = this.doc;
  }

  /** What is known about a kind of block that exists. @param {string} op @returns {import('poolgrad/ops').Block} */
  facts(op) {
    const found = this.ops.get(op);
    if (!found) throw new Error(`There is no block ${op}.`);
    return found;
  }

  get page() {
    return this.doc.pages[this.at];
  }

  get dirty() {
    return this.doc !== this.saved;
  }

  /** Call back on an event: doc, page, selection, run, opened, stepped, relation and others. @param {string} event @param {Function} listener */
  on(event, listener) {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
  }

  /** @param {string} event @param {any} [detail] */
  tell(event, detail) {
    for (const listener of this.listeners.get(event) ?? []) listener(detail);
  }

  /**
   * A new document; `merge` names a gesture whose steps are undone together.
   * @param {Doc} doc @param {string} [merge] @param {number} [at] the page to show
   */
  edit(doc, merge = '', at = this.at) {
    if (doc === this.doc) return;
    if (!merge || merge !== this.merging) this.past.push({ doc: this.doc, at: this.at });
    if (this.past.length > LONGEST_HISTORY) this.past.shift();
    this.merging = merge;
    this.future = [];
    this.become(doc, at);
  }

  /** A better form of the document, which is no step of its own and leaves a saved document saved. @param {Doc} doc */
  amend(doc) {
    if (!this.dirty) this.saved = doc;
    this.become(doc, this.at);
  }

  /** The gesture is over: the next edit is a step of its own. */
  settle() {
    this.merging = '';
  }

  /** @param {Doc} doc @param {number} at */
  become(doc, at) {
    const before = this.page;
    this.doc = doc;
    const moved = at !== this.at || before.name !== doc.pages[at]?.name;
    this.at = Math.min(Math.max(at, 0), doc.pages.length - 1);
    const ids = new Set(this.page.nodes.map((node) => node.id));
    this.selection = new Set([...this.selection].filter((id) => ids.has(id)));
    if (this.wire && !this.page.wires.some(([, to]) => to === this.wire)) this.wire = null;
    if (moved) this.tell('page');
    this.tell('doc');
    this.tell('selection');
  }

  /** One step back. @returns {boolean} whether there was one */
  undo() {
    return this.step(this.past, this.future);
  }

  /** One step forward again. */
  redo() {
    return this.step(this.future, this.past);
  }

  /** @param {any[]} from @param {any[]} to */
  step(from, to) {
    const state = from.pop();
    if (!state) return false;
    to.push({ doc: this.doc, at: this.at });
    this.merging = '';
    this.become(state.doc, state.at);
    this.tell('stepped');
    return true;
  }

  /** Another document, as from a file; one step back is the document before it. @param {Doc} doc @param {boolean} [saved] false: a file has it not */
  open(doc, saved = true) {
    this.past.push({ doc: this.doc, at: this.at });
    this.future = [];
    this.merging = '';
    if (saved) this.saved = doc;
    this.selection = new Set();
    this.wire = null;
    this.doc = doc;
    this.at = 0;
    this.tell('opened');
    this.tell('page');
    this.tell('doc');
    this.tell('selection');
  }

  /** @param {number} at */
  show(at) {
    if (at === this.at) return;
    this.at = at;
    this.selection = new Set();
    this.wire = null;
    this.tell('page');
    this.tell('doc');
    this.tell('selection');
  }

  /** @param {Iterable<string>} ids @param {string|null} [wire] */
  select(ids, wire = null) {
    this.selection = new Set(ids);
    this.wire = wire;
    this.tell('selection');
  }
}
