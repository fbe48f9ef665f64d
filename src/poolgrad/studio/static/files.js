// Open, save, export, and files dropped or chosen for a block.

import { download, el, pick } from 'poolgrad/dom';
import { arrange } from 'poolgrad/layout';
import { addNode, freeId, onNode, onPage, wishId } from 'poolgrad/model';
import { picture } from 'poolgrad/picture';

const KINDS = [
  ['python', 'Python', 'a script that gives the same arrays'],
  ['json', 'JSON', 'this document, to open again'],
  ['html', 'HTML', 'one file that explains itself offline'],
  ['npz', '.npz', 'all results as arrays'],
  ['png', 'PNG', 'a picture of this page'],
];

export class Files {
  /** @param {import('poolgrad/store').Store} store @param {import('poolgrad/flow').Flow} flow @param {any} api
   * @param {(text: string, bad?: boolean) => void} say */
  constructor(store, flow, api, say) {
    Object.assign(this, { store, flow, api, say });
    this.menu = el('div.menu', { role: 'menu', hidden: true, 'aria-label': 'Export as' }, ...KINDS.map(([kind, name, what]) => el('button', {
      role: 'menuitem', 'aria-label': `Export ${name}`, onclick: () => { this.toggle(false); this.export(kind); } }, el('b', { text: name }), el('span', { text: what }))));
    this.button = el('button', { text: 'Export ▾', 'aria-haspopup': 'menu', 'aria-expanded': 'false', onclick: () => this.toggle(this.menu.hidden) });
    this.element = el('span.export', {}, this.button, this.menu);
    this.menu.addEventListener('keydown', (event) => this.key(event));
    document.addEventListener('pointerdown', (event) => { if (!this.element.contains(/** @type {Node} */ (event.target))) this.toggle(false); });
    flow.element.addEventListener('dragover', (event) => event.preventDefault());
    flow.element.addEventListener('click', (event) => this.choose(event));
  }

  /** @param {boolean} open */
  toggle(open) {
    this.menu.hidden = !open;
    this.button.setAttribute('aria-expanded', String(open));
    if (open) this.menu.querySelector('button').focus();
  }

  key(event) {
    const items = [...this.menu.querySelectorAll('button')];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
    else if (event.key === 'Escape') { this.toggle(false); this.button.focus(); } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} kind */
  async export(kind) {
    const { doc, page } = this.store;
    try {
      const { name, blob } = kind === 'png' ? { name: `${page.name}.png`, blob: await picture(this.flow) } : await this.api.export(doc, page.name, kind);
      download(name, blob);
      if (kind === 'json') this.store.saved = doc;
      this.say(`Saved ${name}.`);
    } catch (error) {
      this.say(error.message, true);
    }
  }

  async open() {
    await this.read(await pick('.json,.svg,.dat,.npy,.png'));
  }

  /** Graphs and enuSpace pages are opened; arrays and pictures become blocks. @param {File[]} files */
  async read(files) {
    const arrays = files.filter((file) => /\.(npy|png)$/i.test(file.name));
    const graphs = files.filter((file) => !arrays.includes(file));
    try {
      if (graphs.length) this.take(await this.api.read(graphs), graphs[0].name);
      for (const file of arrays) await this.place(file);
    } catch (error) {
      this.say(error.message, true);
    }
  }

  take({ graph, notes }, name) {
    const height = (node) => (this.store.ops.get(node.op)?.height ?? 120) + 90;
    this.store.open({ ...graph, pages: graph.pages.map((page) => arrange(page, height)) });
    this.say([`Opened ${name}.`, ...(notes ?? [])].join(' '));
  }

  /** A file as a new block, or into the block that asked for it. @param {File} file @param {string|null} [id] @param {[number, number]} [at] */
  async place(file, id = null, at = [40, 40]) {
    const { data, node, shape, dtype } = await this.api.upload(file);
    const { store } = this;
    const doc = { ...store.doc, data: { ...store.doc.data, ...data } };
    const make = (page) => addNode(page, { ...node, id: freeId(page, wishId(this.store.ops.get(node.op))), at });
    const change = id ? (page) => onNode(page, id, (n) => ({ ...n, op: node.op, text: { ...n.text, ...node.text } })) : make;
    store.edit(onPage(doc, store.at, change));
    this.say(`${file.name}: ${dtype} [${shape.join(',')}].`);
  }

  /** The … button of a File or Image block. */
  async choose(event) {
    const button = /** @type {Element} */ (event.target).closest('[data-choose]');
    if (!button) return;
    const id = /** @type {HTMLElement} */ (button.closest('.block')).dataset.id;
    const [file] = await pick('.npy,.png');
    if (!file) return;
    await this.place(file, id).catch((error) => this.say(error.message, true));
  }
}
