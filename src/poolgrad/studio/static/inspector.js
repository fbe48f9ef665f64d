// The right side: every tensor that a block links, one below the other, and the sentence for the cell pointed at.

import { BigMap } from 'poolgrad/bigmap';
import { theme } from 'poolgrad/colour';
import { el, fill, isField, refill, rove } from 'poolgrad/dom';
import { HeatMap, panelStarts } from 'poolgrad/heatmap';
import { Player } from 'poolgrad/player';
import { linked } from 'poolgrad/relation';
import { conservation, statsLine } from 'poolgrad/stats';
import { axisName, cellName, panelAxes, size, unravel, valuesOf } from 'poolgrad/tensor';

const MOST_CELLS = 1024; // more go to a canvas
const MOST_CHIPS = 8; // longer axes have a field instead of a button for each entry
const LARGEST = 2 ** 22; // most cells to fetch for display
const LEGEND = [['window', 'window'], ['tap', 'tap'], ['tie', 'tie'], ['pad', 'padding']];

/** @typedef {import('poolgrad/tensor').Tensor} Tensor */

export class Inspector {
  /** @param {import('poolgrad/store').Store} store @param {import('poolgrad/pointing').Pointing} pointing
   * @param {(tensor: Tensor) => Promise<void>} [load] fetches the numbers of a large tensor
   * @param {(y: string, x: string) => void} [derive] adds the blocks of a derivative */
  constructor(store, pointing, load, derive) {
    this.store = store;
    this.pointing = pointing;
    this.load = load;
    this.derive = derive;
    this.node = null;
    /** @type {Record<string, number|'all'>} */ this.slices = {};
    this.maps = new Map();
    this.drawn = '';
    this.look = '';
    this.kept = new Map();
    this.body = el('div.body');
    this.says = el('div.sentence', { role: 'status', 'aria-live': 'polite', 'aria-label': 'Explanation' });
    store.on('relation', (found) => this.light(found)); // before the player, which then writes into what is drawn
    this.player = new Player(this);
    this.element = el('aside.inspector', { 'aria-label': 'Inspector' }, this.body, this.player.element, this.says);
    pointing.listen(this.body, () => this.node);
    store.on('selection', () => this.choose());
    store.on('run', () => this.choose(true));
    store.on('page', () => { this.node = null; this.slices = {}; });
    store.on('inspect', () => this.enter());
    this.speak(null);
  }

  /** Keep the last selected block in view, or the pinned one while fields are typed in. @param {boolean} [anew] */
  choose(anew = false) {
    const [first] = this.store.selection;
    const exists = (id) => this.store.page.nodes.some((node) => node.id === id);
    const now = this.node && exists(this.node) ? this.node : null;
    const stay = now && this.pointing.pinned && isField(document.activeElement);
    const wish = stay ? now : first ?? now ?? this.suggestion();
    if (wish !== this.node) this.slices = {};
    const changed = wish !== this.node;
    this.node = wish;
    if (changed || anew) this.draw();
  }

  /** Return the block to show first: the fetched one, else the last gradient that ran. */
  suggestion() {
    const { run, page } = this.store;
    if (run?.page !== page.name) return null;
    const fetched = (page.fetch ?? []).map((end) => end.slice(0, end.lastIndexOf('.'))).find((id) => run.nodes[id]?.links);
    const ids = [...(run.order ?? [])].reverse().filter((id) => run.nodes[id]?.links);
    return fetched ?? ids.find((id) => run.nodes[id].conservation) ?? run.problems[0]?.node ?? ids[0] ?? null;
  }

  /** The tensors to show: the linked ones in pin order, then outputs that are not linked. @returns {Array<{tensor: Tensor, title: string, side: string|null}>} */
  shownTensors() {
    const { run, tensors, page } = this.store;
    if (!this.node || run?.page !== page.name || !tensors) return [];
    /** @type {Array<{tensor: Tensor, title: string, side: string|null}>} */
    const found = linked(run, this.node).flatMap((t) => {
      const tensor = tensors.get(t.ref);
      return tensor ? { tensor, title: t.ref.startsWith(`${this.node}.`) ? t.pin : `${t.pin} · ${tensor.node}`, side: t.side } : [];
    });
    if (!found.length) found.push(...this.wired());
    const shown = new Set(found.map((part) => part.tensor.key));
    const rest = [...tensors.values()].filter((t) => t.node === this.node && !shown.has(t.key)).map((tensor) => ({ tensor, title: tensor.pin, side: null }));
    return [...found, ...rest];
  }

  /** Return the tensors at the pins of a block that could not run. */
  wired() {
    const { page, tensors } = this.store;
    return page.wires.filter(([, to]) => to.startsWith(`${this.node}.`)).flatMap(([from, to]) => {
      const tensor = tensors.get(from);
      return tensor ? { tensor, title: `${to.slice((this.node ?? '').length + 1)} · ${tensor.node}`, side: null } : [];
    });
  }

  /** Return everything besides tensors that the picture depends on. */
  marker() {
    return JSON.stringify([this.node, this.slices, document.documentElement.dataset.theme, this.sentences()]);
  }

  /** Draw everything anew, as in other colours. */
  redraw() {
    this.drawn = '';
    this.draw();
  }

  draw() {
    const shown = this.shownTensors();
    const same = this.marker() === this.drawn && shown.length && shown.length === this.maps.size && shown.every((p) => this.maps.get(p.tensor.key)?.tensor === p.tensor);
    if (!same) {
      const chips = this.chips(shown);
      const look = JSON.stringify([this.slices, theme()]);
      this.kept = look === this.look ? this.maps : new Map(); // pictures of tensors that did not change stay
      this.look = look;
      this.maps = new Map();
      this.drawn = this.marker();
      refill(this.body, this.heading(shown), chips, el('div.cards', {}, ...shown.map((part) => this.card(part))), shown.length ? this.legend() : null);
    }
    this.conserve();
    this.player.draw();
    this.pointing.refresh();
  }

  heading(shown) {
    const node = this.store.page.nodes.find((n) => n.id === this.node);
    if (!node) return el('p.hint', { text: 'Select a block to see where its numbers come from.' });
    const own = shown.find((part) => part.tensor.node === this.node)?.tensor;
    const facts = this.store.ops.get(node.op);
    return el('header', {},
      el('h2', { text: own ? own.key : node.id }),
      el('span.facts', { text: own ? `${own.dtype} [${own.shape.join(',')}] · ${own.axes || 'scalar'}` : node.op }),
      el('p.doc', { text: facts?.doc ?? '' }), this.derivative(own), ...this.sentences().map((text) => el('p.trouble', { text })));
  }

  /** A button for the derivative of this block's result by what it pools, or of a derivative by the array in which it is linear. */
  derivative(own) {
    const given = own ? linked(this.store.run, this.node).filter((t) => t.ref && t.ref !== own.key) : [];
    const of = (symbol) => given.find((t) => t.symbol === symbol);
    const by = (own?.role === 'gradient' ? of('g') ?? of('v') : null) ?? given.find((t) => t.side === 'source');
    const { derive } = this;
    if (!derive || !by) return null;
    const names = [own.key, by.ref].map((key) => key.replace(/\.output$/, ''));
    return el('button.derive', { text: `Add gradient d${names[0]}/d${names[1]}`, title: 'Adds the blocks that compute it, with a gradient of ones', onclick: () => derive(own.key, by.ref) });
  }

  /** The problems of this block. */
  sentences() {
    const { run, page } = this.store;
    const all = run?.page === page.name ? [...run.problems, ...run.warnings] : [];
    return all.filter((p) => p.node === this.node).map((p) => p.sentence);
  }

  /** Show the controls for batch entry, channel and depth. */
  chips(shown) {
    const lengths = new Map();
    for (const { tensor } of shown) {
      for (const axis of panelAxes(tensor.axes).beside) {
        const letter = tensor.axes[axis];
        lengths.set(letter, Math.max(lengths.get(letter) ?? 0, tensor.shape[axis]));
      }
    }
    const letters = [...lengths].filter(([, length]) => length > 1);
    for (const [letter, length] of letters) this.slices[letter] ??= letter === 'D' && length <= 4 ? 'all' : 0;
    // Tensors on a canvas have sliders of their own.
    const chosen = (letter) => shown.some(({ tensor }) => tensor.axes.includes(letter) && tensor.values && !this.isBig(tensor));
    return el('div.chips', {}, ...letters.filter(([letter]) => chosen(letter)).map(([letter, length]) => this.chip(letter, length)));
  }

  chip(letter, length) {
    const name = axisName(letter);
    const group = el('span.group', { role: 'radiogroup', 'aria-label': name }, el('span', { text: name }));
    const now = this.slices[letter];
    const many = length > MOST_CHIPS;
    /** @type {Array<number|'all'>} */ const choices = many ? ['all'] : ['all', ...Array(length).keys()];
    for (const value of choices) {
      group.append(el('button.chip', { text: String(value), role: 'radio', 'aria-checked': String(now === value), 'aria-label': `${name} ${value}`,
        tabindex: now === value || (many && value === 'all') ? 0 : -1, onclick: () => this.turn(letter, value) }));
    }
    rove(group, '.chip', (chip) => chip.click());
    if (many) {
      const field = el('input.nth', { type: 'number', min: 0, max: length - 1, value: now === 'all' ? '' : now, placeholder: `0…${length - 1}`, 'aria-label': `${name} number` });
      field.addEventListener('change', () => this.turn(letter, Math.min(Math.max(Math.round(Number(field.value) || 0), 0), length - 1)));
      group.append(field, el('span', { text: `of ${length}` }));
    }
    return group;
  }

  /** @param {string} letter @param {number|'all'} value */
  turn(letter, value) {
    this.slices[letter] = value;
    this.draw();
  }

  card({ tensor, title, side }) {
    const shape = `${tensor.dtype} [${tensor.shape.join(',')}]`;
    const box = el(tensor.values && this.isBig(tensor) ? 'section.card.wide' : 'section.card', { 'aria-label': `Tensor ${title}` }, el('h3', {}, title, el('small', { text: shape })));
    box.append(this.map(tensor, side), statsLine(tensor));
    const loupe = this.maps.get(tensor.key)?.loupe;
    if (loupe) box.append(loupe.element);
    if (tensor.node === this.node && tensor.pin === 'output') box.append(el('div.conservation', { role: 'note', 'aria-label': 'Conservation' }));
    return box;
  }

  map(tensor, side) {
    if (!tensor.values) return this.fetch(tensor);
    const { across } = panelAxes(tensor.axes);
    const old = this.kept.get(tensor.key);
    const view = old instanceof BigMap && old.tensor === tensor && this.isBig(tensor) ? old : this.isBig(tensor)
      ? new BigMap(tensor, this.slices, { width: this.element.clientWidth > 520 ? 320 : 190, turn: (letter, at) => this.turn(letter, at),
        visit: (flat, pin) => this.pointing[pin ? 'pin' : 'visit'](tensor.key, flat, this.node) })
      : this.cells(tensor, side, across < 0 ? 1 : tensor.shape[across], 312);
    this.maps.set(tensor.key, view);
    return view.element;
  }

  /** Return true if even one slice at a time has more cells than MOST_CELLS. @param {Tensor} tensor */
  isBig(tensor) {
    const { down, across } = panelAxes(tensor.axes);
    const slice = [down, across].reduce((cells, axis) => cells * (axis < 0 ? 1 : tensor.shape[axis]), 1);
    return slice * (valuesOf(tensor).length ? panelStarts(tensor, this.slices).length : 0) > MOST_CELLS;
  }

  cells(tensor, side, columns, width) {
    const axes = this.store.run.nodes[this.node]?.links?.axes;
    const widest = (list) => Math.max(0, ...(list ?? []));
    const pads = side === 'source' && axes ? axes.map((axis) => (axis ? [widest(axis.before), widest(axis.after)] : [0, 0])) : null;
    const extra = pads ? Math.min(pads[panelAxes(tensor.axes).across]?.[0] ?? 0, 3) + Math.min(pads[panelAxes(tensor.axes).across]?.[1] ?? 0, 3) : 0;
    const cell = Math.max(6, Math.min(34, Math.floor((width - 16) / (columns + extra))));
    return new HeatMap(tensor, this.slices, { cell, pads });
  }

  /** Show a tensor whose numbers did not come with the run. */
  fetch(tensor) {
    const cells = size(tensor.shape);
    const note = el('p.hint', { text: cells > LARGEST ? `${cells.toLocaleString('en')} cells are too many to draw; export .npz to look at them.` : 'Fetching its numbers …' });
    if (cells <= LARGEST && this.load) this.load(tensor).then(() => this.redraw(), (error) => { note.textContent = error.message; });
    return note;
  }

  legend() {
    return el('div.legend', { 'aria-hidden': 'true' }, ...LEGEND.map(([mark, name]) => el('span', {}, el(mark === 'pad' ? 'i.pad' : 'i', { 'data-mark': mark }), name)));
  }

  conserve() {
    const box = this.body.querySelector('.conservation');
    if (box) fill(box, conservation(this.store.run.nodes[this.node]?.conservation));
  }

  /** The focus goes to the first cell of the block's own result. */
  enter() {
    const own = [...this.maps.values()].find((map) => map.tensor.node === this.node) ?? this.maps.values().next().value;
    own?.element.querySelector('[tabindex="0"]')?.focus();
  }

  /** @param {import('poolgrad/relation').Relation|null} found */
  light(found) {
    if (found && this.follow(found)) return;
    for (const [key, map] of this.maps) map.light(found?.marks.get(key) ?? null, found?.shares.get(key) ?? null, found?.source.has(key) ? found.windows : []);
    this.speak(found);
  }

  /** Turn to the slices that hold the pinned cell. @returns {boolean} whether that drew anew */
  follow(found) {
    if (!this.pointing.pinned || found.node !== this.node) return false;
    const tensor = this.store.tensors.get(found.tensor);
    if (!tensor) return false;
    const index = unravel(found.flat, tensor.shape);
    const wrong = panelAxes(tensor.axes).beside.filter((axis) => typeof this.slices[tensor.axes[axis]] === 'number' && this.slices[tensor.axes[axis]] !== index[axis]);
    for (const axis of wrong) this.slices[tensor.axes[axis]] = index[axis];
    if (wrong.length) this.draw();
    return wrong.length > 0;
  }

  speak(found) {
    this.says.classList.toggle('on', Boolean(found));
    this.says.classList.toggle('pinned', Boolean(this.pointing.pinned && found));
    if (!found) {
      fill(this.says, el('span.quiet', { text: 'Point at any cell, or move with the arrow keys. Click or Enter pins it.' }));
      return;
    }
    const head = found.sentence.findIndex((part) => part.kind === 'value') + 1; // the cell and its value
    const [parts, heading, formula] = [found.sentence, found.heading, found.formula].map((all) => all.map((part) => this.spoken(part, found)));
    fill(this.says, el('p.reason', {}, ...heading), formula.length ? el('p.formula', {}, ...formula) : null,
      el('p.said', {}, el('strong', {}, ...parts.slice(0, head)), ...parts.slice(head)));
  }

  /** A part of the sentence; a click on the name of another cell pins that cell. @param {import('poolgrad/relation').Said} part
   * @param {import('poolgrad/relation').Relation} found */
  spoken({ text, tensor, flat }, found) {
    const named = tensor === undefined ? undefined : this.store.tensors.get(tensor);
    if (tensor === undefined || flat === undefined || !named || (tensor === found.tensor && flat === found.flat)) return text;
    const light = (/** @type {boolean} */ on) => { for (const cell of this.maps.get(tensor)?.cells?.values() ?? []) cell.classList.toggle('named', on && Number(cell.dataset.flat) === flat); };
    const pin = () => this.pointing.pin(tensor, flat, found.node);
    // A span: a button would break the line before a full stop.
    return el('span.link', { text, role: 'button', tabindex: 0, title: cellName(named, flat), onclick: pin,
      onkeydown: (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); pin(); } },
      onpointerenter: () => light(true), onpointerleave: () => light(false), onfocus: () => light(true), onblur: () => light(false) });
  }
}
