// Run the page when it changes: after a moment, never two at a time, and always the newest.

import { nodeOf } from 'poolgrad/model';
import { knownRefs, restoreHits, tensorsOf } from 'poolgrad/results';

const PAUSE = 8; // milliseconds without another change
const PATIENCE = 400; // milliseconds until a run says that it still runs

/** Return what a run depends on: everything but the positions of blocks. @param {import('poolgrad/model').Page} page */
function meaning(page) {
  return JSON.stringify([page.name, page.nodes.map(({ id, op, text }) => [id, op, text]), page.wires, page.fetch]);
}

/** A name that no other run has; `crypto.randomUUID` is missing where a notebook comes over plain HTTP. */
function ticket() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export class Runner {
  /** @param {import('poolgrad/store').Store} store @param {any} api @param {(text: string, bad?: boolean) => void} say */
  constructor(store, api, say) {
    this.store = store;
    this.api = api;
    this.say = say;
    this.auto = true;
    this.timer = 0;
    this.busy = false;
    this.waiting = false;
    this.last = '';
    this.counts = new Map(); // problems by page name
    this.surveyed = new WeakSet(); // pages whose problems were counted
    /** @type {AbortController|null} */ this.abort = null;
    this.ticket = ''; // names the run for the server
    store.on('doc', () => this.changed());
  }

  /** Return true if the last run was of the current page. */
  get current() {
    return meaning(this.store.page) === this.last;
  }

  changed() {
    if (this.current) return;
    this.mark();
    if (!this.auto) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), PAUSE);
  }

  /** Outline stale blocks: changed ones and all that depend on them. */
  mark() {
    const { page, run } = this.store;
    if (run?.page !== page.name) return;
    /** @type {{nodes: any[], wires: any[]}} */ const before = this.asked ?? { nodes: [], wires: [] };
    const old = new Map(before.nodes.map((n) => [n.id, n]));
    const wires = new Set(before.wires.map(String));
    const stale = new Set(page.nodes.filter((n) => JSON.stringify(old.get(n.id)?.text) !== JSON.stringify(n.text)).map((n) => n.id));
    for (const wire of page.wires) if (!wires.has(String(wire))) stale.add(nodeOf(wire[1]));
    for (let grew = true; grew;) {
      grew = false;
      for (const [from, to] of page.wires) {
        if (stale.has(nodeOf(from)) && !stale.has(nodeOf(to))) { stale.add(nodeOf(to)); grew = true; }
      }
    }
    this.store.stale = stale;
    this.store.tell('stale', stale);
  }

  async run() {
    clearTimeout(this.timer);
    if (this.busy) { this.waiting = true; return; }
    this.busy = true;
    const { doc, page } = this.store;
    this.last = meaning(page);
    this.asked = page;
    this.surveyed.add(page);
    this.abort = new AbortController();
    this.ticket = ticket();
    const slow = setTimeout(() => this.store.tell('running', true), PATIENCE);
    try {
      const started = performance.now();
      const graph = { ...doc, pages: doc.pages.filter((p) => p.name === page.name) };
      const before = this.store.run?.page === page.name ? { run: this.store.run, tensors: this.store.tensors } : null;
      const answer = await this.api.run(graph, page.name, before ? knownRefs(before.run, before.tensors) : [], this.ticket, this.abort.signal);
      this.accept(answer, before, performance.now() - started);
    } catch (error) {
      this.say(error.cancelled ? 'Cancelled. The next change runs the page again.' : error.message, true);
    }
    clearTimeout(slow);
    this.store.tell('running', false);
    this.busy = false;
    if (this.waiting || !this.current) {
      this.waiting = false;
      if (this.auto) this.run();
    }
  }

  /** Stop waiting for the run; the server stops it before its next block. */
  cancel() {
    this.waiting = false;
    this.abort?.abort();
    this.api.cancel(this.ticket).catch(() => null);
  }

  /** @param {any} answer @param {{run: any, tensors: Map<string, any>}|null} before the results that the answer leaves out @param {number} took */
  accept(answer, before, took) {
    const { store } = this;
    this.counts.set(answer.page, answer.problems.length);
    if (answer.page !== store.page.name) return;
    if (before) restoreHits(answer, before.run);
    store.run = answer;
    store.tensors = tensorsOf(answer, before?.tensors);
    store.stale = new Set();
    store.tell('run', took);
    const { problems, ran, cached } = answer;
    const speed = `${answer.ms < 10 ? answer.ms.toFixed(1) : Math.round(answer.ms)} ms`;
    this.say(`ran ${ran} block${ran === 1 ? '' : 's'}${cached ? `, ${cached} unchanged` : ''} · ${speed}${problems.length ? ` · ${problems.length} problem${problems.length === 1 ? '' : 's'}` : ''}`);
  }

  /** Count the problems of the pages that are not shown, for their tabs. */
  async survey() {
    for (const page of this.store.doc.pages) {
      if (this.surveyed.has(page)) continue;
      this.surveyed.add(page);
      const graph = { ...this.store.doc, pages: [page] };
      const answer = await this.api.check(graph, page.name).catch(() => null);
      if (answer) this.counts.set(page.name, answer.problems.length);
    }
    this.store.tell('counts');
  }
}
