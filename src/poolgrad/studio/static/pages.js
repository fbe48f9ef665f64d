// The tabs: each page is a scope of its own.

import { el, refill, rove } from 'poolgrad/dom';

export class Pages {
  /** @param {import('poolgrad/store').Store} store @param {import('poolgrad/runner').Runner} runner @param {(text: string, bad?: boolean|'refused') => void} say */
  constructor(store, runner, say) {
    this.store = store;
    this.runner = runner;
    this.say = say;
    this.tabs = el('div.tabs', { role: 'tablist', 'aria-label': 'Pages' });
    rove(this.tabs, '[role="tab"]', (tab) => tab.click());
    // made once: if a run replaced a button during a press, the press would be lost
    const more = el('button.page.add', { text: '+', 'aria-label': 'New page', title: 'New page', onclick: () => this.add() });
    this.closer = el('button.page.close', { text: '×', onclick: () => this.close(this.store.at) });
    this.element = el('div.pages', {}, this.tabs, this.closer, more);
    for (const event of ['doc', 'page', 'run', 'counts']) store.on(event, () => this.draw());
  }

  draw() {
    if (this.field) return; // a run that ends must not discard a name being typed
    const { doc, at } = this.store;
    const marker = JSON.stringify([at, doc.pages.map((p) => [p.name, this.runner.counts.get(p.name)])]);
    if (marker === this.drawn) return;
    this.drawn = marker;
    const { name } = this.store.page;
    this.closer.setAttribute('aria-label', `Close ${name}`);
    this.closer.title = `Close ${name}`;
    this.closer.hidden = doc.pages.length < 2;
    refill(this.tabs, ...doc.pages.map((page, i) => this.tab(page, i)));
    const now = /** @type {HTMLElement|null} */ (this.tabs.querySelector('[aria-selected="true"]'));
    // Not scrollIntoView: after it, Tab would begin here instead of at the start of the page.
    if (now) this.tabs.scrollLeft = Math.min(Math.max(this.tabs.scrollLeft, now.offsetLeft + now.offsetWidth - this.tabs.clientWidth + 8), now.offsetLeft - 8);
  }

  tab(page, i) {
    const count = this.runner.counts.get(page.name);
    const now = i === this.store.at;
    const badge = count ? el('span.count.bad', { text: String(count), title: `${count} problem${count === 1 ? '' : 's'}` }) : null;
    return el('button.page', {
      role: 'tab', 'aria-selected': String(now), tabindex: now ? 0 : -1, 'aria-label': `Page ${page.name}`,
      'aria-description': count ? badge.title : null, title: `${page.name} (double-click renames)`,
      onclick: () => this.store.show(i), ondblclick: (event) => this.rename(event, i),
      onkeydown: (event) => { if (event.key === 'F2') this.rename(event, i); if (event.key === 'Delete') this.close(i); },
    }, el('span.label', { text: page.name }), badge);
  }

  free(wish) {
    const taken = new Set(this.store.doc.pages.map((p) => p.name));
    let name = wish;
    for (let n = 2; taken.has(name); n++) name = `${wish} ${n}`;
    return name;
  }

  add() {
    const { doc } = this.store;
    const page = { name: this.free('page'), nodes: [], wires: [], fetch: [] };
    this.store.edit({ ...doc, pages: [...doc.pages, page] }, '', doc.pages.length);
  }

  close(i) {
    const { doc, at } = this.store;
    if (doc.pages.length < 2) return;
    const { name } = doc.pages[i];
    const next = Math.min(at - (i < at ? 1 : 0), doc.pages.length - 2);
    this.store.edit({ ...doc, pages: doc.pages.filter((_, k) => k !== i) }, '', next);
    this.say(`Closed page ${name}; undo brings it back.`);
  }

  rename(event, i) {
    const tab = event.currentTarget;
    const field = el('input.rename', { value: this.store.doc.pages[i].name, 'aria-label': 'Page name' });
    const done = (keep) => {
      if (this.field !== field) return;
      this.field = null;
      const name = field.value.trim();
      const { doc } = this.store;
      const free = name && !doc.pages.some((p, k) => p.name === name && k !== i);
      this.drawn = '';
      if (keep && free && name !== doc.pages[i].name) {
        this.store.edit({ ...doc, pages: doc.pages.map((p, k) => (k === i ? { ...p, name } : p)) });
      } else {
        if (keep && !free) this.say(name ? `There is already a page ${name}.` : 'A page needs a name.', 'refused');
        this.draw();
      }
    };
    field.addEventListener('keydown', (e) => { e.stopPropagation(); if (e.key === 'Enter') field.blur(); if (e.key === 'Escape') { field.value = ''; done(false); } });
    field.addEventListener('blur', () => done(true), { once: true });
    this.field = field;
    tab.replaceWith(field);
    field.select();
    field.focus();
  }
}
