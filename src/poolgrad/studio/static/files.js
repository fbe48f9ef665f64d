// Open, save, export, and files dropped or chosen for a block.

import { download, pick } from 'poolgrad/dom';
import { arrange } from 'poolgrad/layout';
import { addNode, freeId, onNode, onPage, wishId } from 'poolgrad/model';
import { Menu } from 'poolgrad/menu';
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
    this.store = store;
    this.flow = flow;
    this.api = api;
    this.say = say;
    this.exports = new Menu('Export ▾', 'Export as', KINDS.map(([kind, name, what]) => ({ name, what, label: `Export ${name}`, act: () => this.export(kind) })));
    this.examples = new Menu('Examples ▾', 'Examples', []);
    flow.element.addEventListener('dragover', (event) => event.preventDefault());
    flow.element.addEventListener('click', (event) => this.choose(event));
  }

  /** Fill the list of examples. @param {Array<{name: string, graph: any}>} found */
  offer(found) {
    this.examples.set(found.map(({ name, graph }) => ({ name, label: `Example ${name}`, act: () => this.example(name, graph) })));
  }

  /** An example as one more page, or the page that it already is. @param {string} name @param {any} graph */
  example(name, graph) {
    const { store } = this;
    const there = store.doc.pages.findIndex((page) => page.name === name);
    if (there < 0) {
      const pages = [...store.doc.pages, { ...graph.pages[0], name }];
      store.edit({ ...store.doc, pages, data: { ...store.doc.data, ...graph.data } });
    }
    store.show(there < 0 ? store.doc.pages.length - 1 : there);
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
