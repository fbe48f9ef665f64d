// Give the blocks of opened pages places: by a guess of their heights at first, by the true heights when a page has run.

import { arrange } from 'poolgrad/layout';
import { onPage } from 'poolgrad/model';

const RESULTS = 90; // pixels that the results of a block take, by a guess
const UNKNOWN = 120; // pixels of a block of an unknown kind

/** @typedef {import('poolgrad/model').Page} Page */

export class Placing {
  /** @param {import('poolgrad/store').Store} store @param {import('poolgrad/flow').Flow} flow */
  constructor(store, flow) {
    this.store = store;
    this.flow = flow;
    /** @type {WeakSet<Page>} pages whose blocks were placed by a guess */ this.loose = new WeakSet();
    store.on('run', () => this.spread());
  }

  /** Pages with a place for every block. @param {Page[]} pages @param {boolean} [foreign] true if they were drawn for blocks of another size
   * @returns {Page[]} */
  placed(pages, foreign = false) {
    const height = (node) => (this.store.ops.get(node.op)?.height ?? UNKNOWN) + RESULTS;
    return pages.map((page) => {
      const made = arrange(page, height, foreign);
      if (foreign || made !== page) this.loose.add(made);
      return made;
    });
  }

  /** Move blocks apart that cover each other with their results, unless someone has changed the page since it was opened. */
  spread() {
    const { store, flow } = this;
    if (!flow.said || !this.loose.delete(store.page)) return;
    const page = arrange(store.page, (node) => flow.heightOf(node.id), true);
    if (page === store.page) return;
    store.amend(onPage(store.doc, store.at, () => page));
    flow.fit();
  }
}
