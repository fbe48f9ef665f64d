// Open, save, export, and files dropped or chosen for a block.

import { ask } from 'poolgrad/ask';
import { download, pick } from 'poolgrad/dom';
import { WIDTH, expectedHeight } from 'poolgrad/geometry';
import { isImage, readable } from 'poolgrad/images';
import { fromLink, linkOf } from 'poolgrad/link';
import { addNode, freeId, onNode, onPage, wishId } from 'poolgrad/model';
import { Menu } from 'poolgrad/menu';
import { picture } from 'poolgrad/picture';
import { Placing } from 'poolgrad/placing';
import { reached, written } from 'poolgrad/save';

const KINDS = [
  ['document', 'Save', 'all pages, to open again'],
  ['python', 'Python', 'a script that gives the same arrays'],
  ['json', 'JSON', 'this page, to open again'],
  ['html', 'HTML', 'one file that explains itself offline'],
  ['npz', '.npz', 'all results as arrays'],
  ['png', 'PNG', 'a picture of this page'],
  ['link', 'Copy link', 'this page in an address, if it is small'],
];

export class Files {
  /** @param {import('poolgrad/store').Store} store @param {import('poolgrad/flow').Flow} flow @param {any} api
   * @param {(text: string, bad?: boolean) => void} say @param {(wish: number[], tall: number) => number[]} room finds a free place */
  constructor(store, flow, api, say, room) {
    this.room = room;
    this.store = store;
    this.flow = flow;
    this.api = api;
    this.say = say;
    this.exports = new Menu('Export ▾', 'Export as', KINDS.map(([kind, name, what]) => ({ name, what, label: `Export ${name}`, act: () => this.export(kind) })));
    this.examples = new Menu('Examples ▾', 'Examples', []);
    this.placing = new Placing(store, flow);
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
    const { doc } = this.store;
    try {
      if (kind === 'link') return await this.copyLink();
      const { name, blob } = await this.made(kind);
      download(name, blob);
      if (kind === 'document' || (kind === 'json' && doc.pages.length === 1)) {
        this.store.saved = doc;
        this.store.tell('saved');
      }
      this.say(`Saved ${name}.`);
    } catch (error) {
      this.say(error.message, true);
    }
  }

  /** Put an address that holds this page into the clipboard; it holds no token. */
  async copyLink() {
    const { doc, page, run } = this.store;
    const hash = await linkOf(reached(doc, [page]), run?.page === page.name && !run.problems.length ? run : null);
    await navigator.clipboard.writeText(location.href.split('#')[0] + hash);
    this.say(`Copied a link of ${hash.length} characters. Paste it here (Ctrl+V), or behind the address of a page that poolgrad studio --write made.`);
  }

  /** Open the page of an address. @param {string} hash */
  async follow(hash) {
    try {
      const { graph } = await fromLink(hash);
      this.take(await this.api.read([new File([JSON.stringify(graph)], 'link.json')]), 'the page of the link');
    } catch (error) {
      this.say(error.message, true);
    }
  }

  /** Return a file; a document, a page and a picture need no server. @param {string} kind @returns {Promise<{name: string, blob: Blob}>} */
  async made(kind) {
    const { doc, page } = this.store;
    const name = page.name.replace(/[^\w .-]+/g, '_').trim() || 'page';
    if (kind === 'png') return { name: `${name}.png`, blob: await picture(this.flow) };
    if (kind === 'document') return { name: doc.pages.length > 1 ? 'studio.json' : `${name}.json`, blob: new Blob([written(reached(doc))], { type: 'application/json' }) };
    const alone = reached(doc, [page]);
    return kind === 'json' ? { name: `${name}.json`, blob: new Blob([written(alone)], { type: 'application/json' }) } : this.api.export(alone, page.name, kind);
  }

  async open() {
    await this.read(await pick('.json,.svg,.dat,.npy,image/*'));
  }

  /** Graphs and enuSpace pages are opened; arrays and pictures become blocks. @param {File[]} files @param {number[]} [at] */
  async read(files, at = this.middle()) {
    const arrays = files.filter((file) => /\.npy$/i.test(file.name) || isImage(file));
    const graphs = files.filter((file) => !arrays.includes(file));
    try {
      if (graphs.length) this.take(await this.api.read(graphs), graphs[0].name);
      for (const file of arrays) await this.place(file, null, at);
    } catch (error) {
      this.say(error.message, true);
    }
  }

  /** Where a new block is wanted if nothing says so: in the middle of the canvas. */
  middle() {
    const box = this.flow.element.getBoundingClientRect();
    return this.flow.toWorld(box.left + box.width / 2 - WIDTH / 2, box.top + 60);
  }

  take({ graph, notes }, name) {
    this.store.open({ ...graph, pages: this.placing.placed(graph.pages, /\.svg$/i.test(name) || notes?.length > 0) });
    this.say([`Opened ${name}. Undo shows the document before it.`, ...(notes ?? [])].join(' '));
  }

  /** A file as a new block near a place, or into the block that asked for it. @param {File} given @param {string|null} [id] @param {number[]} [at] */
  async place(given, id = null, at = this.middle()) {
    const file = isImage(given) ? await readable(given, (text, choices) => ask(text, choices)) : given;
    if (!file) return;
    const { data, node, shape, dtype } = await this.api.upload(file);
    const { store } = this;
    const doc = { ...store.doc, data: { ...store.doc.data, ...data } };
    const facts = store.facts(node.op);
    const [name, tall] = [id ?? freeId(store.page, wishId(facts)), facts.height + expectedHeight(shape, node.op === 'Image')];
    const make = (page) => addNode(page, { ...node, id: name, at: this.room(at, tall).map(Math.round) });
    const change = id ? (page) => onNode(page, id, (n) => ({ ...n, op: node.op, text: { ...n.text, ...node.text } })) : make;
    store.edit(onPage(doc, store.at, change));
    this.flow.expect(name, tall);
    this.say(`${file.name}: ${dtype} [${shape.join(',')}].`);
  }

  /** The … button of a File or Image block. */
  async choose(event) {
    const button = /** @type {Element} */ (event.target).closest('[data-choose]');
    if (!button) return;
    const id = /** @type {HTMLElement} */ (button.closest('.block')).dataset.id;
    const [file] = await pick('.npy,image/*');
    if (!file) return;
    await this.place(file, id).catch((error) => this.say(error.message, true));
  }
}
