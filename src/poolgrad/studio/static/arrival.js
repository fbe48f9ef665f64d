// The first sight of a page: say what it teaches, and pin the cell that it is about.

import { ravel } from 'poolgrad/tensor';

const TAGLINE = 'Point at any number of a pooling to see where it came from.';

export class Arrival {
  /** @param {import('poolgrad/store').Store} store @param {import('poolgrad/pointing').Pointing} pointing @param {HTMLElement} tagline */
  constructor(store, pointing, tagline) {
    this.store = store;
    this.pointing = pointing;
    this.tagline = tagline;
    this.seen = new Set(); // pages that were shown, by name
    store.on('run', () => this.arrive());
    store.on('page', () => this.arrive());
  }

  arrive() {
    const { page, tensors, run } = this.store;
    const about = typeof page.about === 'string' ? page.about : TAGLINE;
    if (this.tagline.textContent !== about) Object.assign(this.tagline, { textContent: about, title: about });
    const tensor = run?.page === page.name ? tensors?.get(page.show?.cell ?? '') : null;
    if (this.seen.has(page.name) || !tensor?.values || !Array.isArray(page.show?.at)) return;
    this.seen.add(page.name);
    const flat = ravel(page.show.at, tensor.shape);
    if (this.store.selection.size || !(flat >= 0 && flat < tensor.values.length)) return;
    this.store.select([tensor.node]);
    this.pointing.hold(tensor.key, flat, tensor.node);
  }
}
