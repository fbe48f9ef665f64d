// Put the parts of the studio together.

import { api } from 'poolgrad/api';
import { Arrival } from 'poolgrad/arrival';
import { Autosave } from 'poolgrad/autosave';
import { CellEditor } from 'poolgrad/celledit';
import { el, isField } from 'poolgrad/dom';
import { Files } from 'poolgrad/files';
import { Flow } from 'poolgrad/flow';
import { Gestures } from 'poolgrad/gestures';
import { grip } from 'poolgrad/grip';
import { help } from 'poolgrad/help';
import { Inspector } from 'poolgrad/inspector';
import { shortcuts } from 'poolgrad/keys';
import { tidy } from 'poolgrad/layout';
import { isLink } from 'poolgrad/link';
import { addNode, freeId, onPage, wishId } from 'poolgrad/model';
import { blocksOf, fresh } from 'poolgrad/ops';
import { Pages } from 'poolgrad/pages';
import { Palette } from 'poolgrad/palette';
import { Panel } from 'poolgrad/panel';
import { Pointing } from 'poolgrad/pointing';
import { unpack } from 'poolgrad/results';
import { Runner } from 'poolgrad/runner';
import { Store } from 'poolgrad/store';
import { themeButton } from 'poolgrad/theme';
import { Tour } from 'poolgrad/tour';
import { Wiring } from 'poolgrad/wiring';

class Studio {
  /** @param {HTMLElement} root @param {any} ops @param {any} start the first documents */
  constructor(root, ops, start) {
    this.store = Object.assign(new Store(), { ops: blocksOf(ops), phrases: ops.phrases });
    this.status = el('span.status', { role: 'status', 'aria-label': 'Status' });
    const say = (text, bad = false) => this.say(text, bad);
    this.flow = new Flow(this.store);
    this.runner = new Runner(this.store, api, (text, bad) => this.report(text, bad));
    this.pages = new Pages(this.store, this.runner, say);
    this.pointing = new Pointing(this.store, api.hits);
    this.inspector = new Inspector(this.store, this.pointing, load, (y, x) => this.derive(y, x));
    this.panel = new Panel(this.store, api, (id, pin) => this.goTo(id, pin));
    this.palette = new Palette(ops, (op, at) => this.place(op, at), (open) => root.classList.toggle('with-palette', open));
    this.files = new Files(this.store, this.flow, api, say, (wish, tall) => this.room(wish, tall));
    this.wiring = new Wiring(this.store, this.flow, say);
    new Gestures(this.store, this.flow, this.wiring, say);
    this.pointing.listen(this.flow.element, () => this.wish());
    this.store.on('relation', (found) => this.flow.light(found?.marks ?? null));
    this.store.on('stale', (ids) => this.flow.fade(ids));
    this.store.on('page', () => this.pointing.release());
    this.store.on('running', (slow) => this.running(slow));
    this.store.on('repaired', () => { this.fitted = null; });
    this.store.on('opened', () => { this.fitted = null; });
    for (const event of ['opened', 'stepped']) this.store.on(event, () => this.runner.survey());
    this.inspector.element.addEventListener('keydown', (event) => { if (event.key === 'Escape') this.flow.blocks.get(this.inspector.node)?.element.focus(); });
    this.flow.element.addEventListener('drop', (event) => this.drop(event));
    this.help = help();
    this.notices = el('div.notices');
    this.tour = new Tour(this.notices, !api.keep);
    const cells = new CellEditor(this.store, say);
    for (const place of [this.inspector.body, this.flow.element]) cells.listen(place);
    this.inspector.element.prepend(grip(root, () => this.flow.look({})));
    // Problems come before the canvas, so that few presses of Tab lead to a repair.
    root.append(this.help.element, this.header(), this.panel.element, this.palette.element, this.middle(), this.inspector.element);
    shortcuts(this);
    this.open(start);
    const { keep } = api;
    if (keep) this.store.on('doc', () => keep(this.store.doc));
    else this.autosave = new Autosave(this.store, this.notices, say);
    api.onToken = () => this.runner.run();
  }

  header() {
    this.tagline = el('span.tagline');
    const auto = el('input', { type: 'checkbox', id: 'auto', checked: true, onchange: () => { this.runner.auto = auto.checked; if (auto.checked) this.runner.changed(); } });
    return el('header.top', {},
      el('div.brand', {}, el('h1', {}, 'pool', el('em', { text: 'grad' }), el('span', { text: ' studio' })), this.tagline),
      el('div.tools', {},
        el('button.blocks-button', { 'aria-label': 'Blocks', onclick: () => this.palette.focus() }, '☰', el('span', { text: ' Blocks' })),
        el('label.auto', { for: 'auto', title: 'Run whenever something changes' }, auto, 'auto-run'),
        themeButton(() => this.redraw()), this.help.button, this.tour.button,
        this.files.examples.element,
        el('button', { text: 'Open', title: 'JSON, enuSpace page, array or picture', onclick: () => this.files.open() }),
        this.files.exports.element,
        el('button.primary', { text: 'Run ▸', title: 'Ctrl+Enter', onclick: () => this.runner.run() })),
      this.pages.element);
  }

  middle() {
    const percent = el('button', { text: '100%', 'aria-label': 'Zoom to 100%', onclick: () => this.flow.zoomBy(1 / this.flow.view.zoom) });
    this.store.on('zoom', (zoom) => { percent.textContent = `${Math.round(zoom * 100)}%`; });
    const zoom = el('div.zoom', {},
      el('button', { text: '−', 'aria-label': 'Zoom out', onclick: () => this.flow.zoomBy(1 / 1.2) }), percent,
      el('button', { text: '+', 'aria-label': 'Zoom in', onclick: () => this.flow.zoomBy(1.2) }),
      el('button', { text: 'Fit', 'aria-label': 'Fit page', title: 'f', onclick: () => this.flow.fit() }),
      el('button', { text: 'Tidy', title: 'All blocks in columns', onclick: () => this.tidy() }));
    return el('main.stage', {}, this.flow.element, zoom, this.notices, this.status);
  }

  /** The documents of the first screen, each example a tab. @param {{graph: any, notes: string[], name: string}} start */
  open(start) {
    this.store.open({ ...start.graph, pages: this.files.placing.placed(start.graph.pages) });
    this.store.past = []; // nothing was before the first document
    if (start.name) this.say([`Opened ${start.name}.`, ...(start.notes ?? [])].join(' '));
    this.store.on('run', () => this.firstFit());
    new Arrival(this.store, this.pointing, this.tagline);
  }

  /** Results make blocks taller: the first picture of a page shows all of them. */
  firstFit() {
    if (this.fitted === this.store.at) return;
    this.fitted = this.store.at;
    this.flow.fit();
  }

  /** Add the blocks of a derivative. @param {string} y @param {string} x */
  async derive(y, x) {
    const { store } = this;
    try {
      const { graph } = await api.gradients(store.doc, store.page.name, y, x);
      store.edit(graph);
      this.fitted = null;
      this.say(`Added the gradient of ${y} by ${x}.`);
    } catch (error) {
      this.say(error.message, true);
    }
  }

  tidy() {
    const { store, flow } = this;
    store.edit(onPage(store.doc, store.at, (page) => tidy(page, (node) => flow.heightOf(node.id))));
    flow.fit();
  }

  /** The block that should explain a cell of the canvas: the selected one, if it is linked. */
  wish() {
    return this.inspector.node;
  }

  /** A new block, where there is room. @param {string} op @param {number[]} [at] */
  place(op, at) {
    const { store } = this;
    const id = freeId(store.page, wishId(store.facts(op)));
    const box = this.flow.element.getBoundingClientRect();
    const [x, y] = at ?? this.room(this.flow.toWorld(box.left + box.width / 2 - 108, box.top + 60));
    store.edit(onPage(store.doc, store.at, (page) => addNode(page, fresh(store.facts(op), id, [Math.round(x), Math.round(y)]))));
    store.select([id]);
    this.palette.leave();
    this.flow.blocks.get(id)?.element.focus();
    this.say(`Added ${id}.`);
  }

  /** The first place beside or below a wish that no block covers. @param {number[]} wish @param {number} [tall] height that is needed */
  room([x, y], tall = 200) {
    const taken = [...this.flow.blocks.values()].map((b) => [...(b.node.at ?? [0, 0]), this.flow.height(b)]);
    const free = (px, py) => taken.every(([bx, by, h]) => px + 228 < bx || px > bx + 228 || py + tall + 12 < by || py > by + h + 12);
    for (let ring = 0; ring < 40; ring++) {
      for (const [dx, dy] of [[ring, 0], [-ring, 0], [0, ring], [ring, ring], [-ring, ring]]) {
        if (free(x + dx * 240, y + dy * 230)) return [x + dx * 240, y + dy * 230];
      }
    }
    return [x, y];
  }

  /** Focus a block, and a pin or field of it. @param {string} id @param {string|null} pin */
  goTo(id, pin) {
    const block = this.flow.blocks.get(id);
    if (!block) return;
    this.store.select([id]);
    this.flow.reveal(id);
    const field = pin ? block.fields.get(pin)?.field ?? block.pins.get(pin) : null;
    (field ?? block.element).focus();
  }

  async drop(event) {
    event.preventDefault();
    const at = this.flow.toWorld(event.clientX, event.clientY);
    const op = event.dataTransfer.getData('application/x-poolgrad-op');
    if (op) this.place(op, at);
    else await this.files.read([...event.dataTransfer.files], at);
  }

  redraw() {
    this.flow.redraw();
    this.inspector.redraw();
  }

  /** @param {string} text @param {boolean|'refused'} [bad] */
  say(text, bad = false) {
    this.refused = bad === 'refused' ? performance.now() : -Infinity;
    this.status.textContent = text;
    this.status.classList.toggle('bad', Boolean(bad));
    this.panel?.log(text, Boolean(bad));
  }

  /** Say that a run takes long, and offer to cancel it. @param {boolean} slow */
  running(slow) {
    if (!slow) return;
    this.say('running …');
    this.status.append(el('button', { text: 'Cancel', onclick: () => this.runner.cancel() }));
  }

  /** Show a run's message, unless it would hide a refusal from a moment ago. @param {string} text @param {boolean} [bad] */
  report(text, bad = false) {
    if (performance.now() - (this.refused ?? -Infinity) > 4000) this.say(text, bad);
    else this.panel?.log(text, bad);
  }
}

/** Fetch the numbers of a tensor that is too large to come with a run. @param {import('poolgrad/tensor').Tensor} tensor */
async function load(tensor) {
  tensor.values = unpack((await api.tensor(tensor.ref)).values);
}

async function main() {
  const root = /** @type {HTMLElement} */ (document.getElementById('app'));
  try {
    const hash = location.hash;
    const [ops, start, examples] = await api.first();
    const studio = new Studio(root, ops, start);
    if (isLink(hash)) studio.files.follow(hash);
    addEventListener('hashchange', () => { if (isLink(location.hash)) studio.files.follow(location.hash); });
    studio.files.offer(examples);
    addEventListener('beforeunload', (event) => { if (studio.store.dirty && !api.keep) event.preventDefault(); });
    Object.assign(window, { studio, isField }); // for the console and for measurements
  } catch (error) {
    root.replaceChildren(el('p.fatal', { role: 'alert', text: error.message }));
  }
}

main();
