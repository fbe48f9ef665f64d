// The canvas: blocks and wires of the page that is shown, and the view onto them.

import { BlockView } from 'poolgrad/blocks';
import { el } from 'poolgrad/dom';
import { WIDTH } from 'poolgrad/geometry';
import { nodeOf, pinOf } from 'poolgrad/model';
import { strange } from 'poolgrad/ops';
import { Wires } from 'poolgrad/wires';

const ZOOMS = [0.2, 2.5];
const [MID, FAR] = [0.5, 0.3]; // below these zooms blocks show only names and results, then only names
const DOTS = 24; // pixels between the dots of the ground
const MARGIN = 16; // pixels around a fitted page
const BELOW = 44; // pixels of the buttons at the lower edge
const NARROW = 560; // a canvas so narrow has the status above the buttons
const AT_ONCE = 30; // blocks filled in before the first picture; others follow frame by frame

export class Flow {
  /** @param {import('poolgrad/store').Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Map<string, BlockView>} */ this.blocks = new Map();
    this.wires = new Wires();
    this.layer = el('div.layer', {}, this.wires.element);
    this.empty = el('p.empty', { text: 'Press / and type the name of a block, or open a file.' });
    this.grid = el('div.dots', { 'aria-hidden': 'true' });
    this.element = el('section.canvas', { 'aria-label': 'Canvas', tabindex: 0 }, this.grid, this.layer, this.empty);
    this.view = { x: 0, y: 0, zoom: 1 };
    this.shown = null;
    store.on('page', () => this.turn());
    store.on('doc', () => this.render());
    store.on('selection', () => this.mark());
    store.on('run', () => this.results());
  }

  /** Show another page: new blocks, its own view. */
  turn() {
    for (const block of this.blocks.values()) block.element.remove();
    this.blocks.clear();
    this.shown = null;
  }

  /** Bring the blocks in line with the document. */
  render() {
    const { page } = this.store;
    const ops = new Map(page.nodes.map((node) => [node.id, node.op]));
    for (const [id, block] of this.blocks) {
      if (ops.get(id) === block.node.op) continue;
      block.element.remove();
      this.blocks.delete(id);
    }
    const added = [];
    for (const node of page.nodes) {
      const block = this.blocks.get(node.id);
      if (block && block.node !== node) block.update(node);
      if (!block) added.push(this.add(node));
    }
    this.layer.append(...added.map((block) => block.element));
    this.fillIn(added);
    for (const block of this.blocks.values()) block.showFiles(this.store.doc.data ?? {});
    this.wires.render(page, this.blocks);
    this.empty.hidden = page.nodes.length > 0;
    if (added.length || page.wires !== this.drawnWires) this.results(); // moving and typing change none of it
    this.drawnWires = page.wires;
    if (this.shown !== this.store.at) this.fit();
    this.shown = this.store.at;
  }

  add(node) {
    const ends = (side) => [...new Set(this.store.page.wires.map((wire) => wire[side]).filter((end) => nodeOf(end) === node.id).map(pinOf))];
    const facts = this.store.ops.get(node.op) ?? strange(node.op, ends(1), ends(0));
    const block = new BlockView(node, facts);
    this.blocks.set(node.id, block);
    return block;
  }

  /** Fill blocks in: a few at once, many in portions, so that the first picture does not wait for all. */
  fillIn(blocks) {
    blocks = blocks.filter((block) => this.blocks.get(block.node.id) === block); // some may be gone by now
    for (const block of blocks.splice(0, AT_ONCE)) {
      block.fill();
      block.showFiles(this.store.doc.data ?? {});
      if (this.store.run) this.resultsOf(block);
    }
    if (blocks.length) requestAnimationFrame(() => setTimeout(() => this.fillIn(blocks))); // after the picture, not before
  }

  /** Show the results of the last run or check. */
  results() {
    const said = this.said;
    for (const block of this.blocks.values()) this.resultsOf(block);
    this.wires.render(this.store.page, this.blocks); // results make blocks taller
    this.wires.label((end) => shapeText(said?.nodes[nodeOf(end)]?.outputs?.[pinOf(end)]?.shape));
    this.mark();
  }

  /** Draw all results anew, as in other colours. */
  redraw() {
    for (const block of this.blocks.values()) block.maps = new Map();
    this.results();
  }

  /** Return the last run, if it was of this page. */
  get said() {
    const { run, page } = this.store;
    return run?.page === page.name ? run : null;
  }

  /** @param {BlockView} block */
  resultsOf(block) {
    const { said } = this;
    const { id } = block.node;
    const own = (list) => (list ?? []).filter((p) => p.node === id);
    const [problems, warnings] = [own(said?.problems), own(said?.warnings)];
    const node = said?.nodes[id];
    block.state(node?.status ?? 'unknown', [...problems, ...warnings].map((p) => p.sentence).join('\n'));
    block.element.classList.toggle('warned', warnings.length > 0 && !problems.length);
    block.element.classList.toggle('stale', this.store.stale.has(id));
    block.showWired(new Map(this.store.page.wires.filter(([, to]) => nodeOf(to) === id).map(([from, to]) => [pinOf(to), from])));
    block.showProblems([...problems, ...warnings]);
    block.showShapes(node?.outputs ?? {});
    const tensors = said ? this.store.tensors : null;
    block.showResults(block.facts.outputs.flatMap((o) => tensors?.get(`${id}.${o.name}`) ?? []));
  }

  /** Selection and wires near it. */
  mark() {
    for (const [id, block] of this.blocks) {
      const selected = this.store.selection.has(id);
      block.element.classList.toggle('selected', selected);
      block.element.setAttribute('aria-description', selected ? 'selected' : '');
    }
    const bad = new Set((this.store.run?.problems ?? []).map((p) => `${p.node}.${p.pin}`));
    this.wires.mark(this.store.selection, this.store.wire, bad);
  }

  /** Outline stale blocks at once, before the answer comes. @param {Set<string>} ids */
  fade(ids) {
    for (const [id, block] of this.blocks) block.element.classList.toggle('stale', ids.has(id));
  }

  /** Light up one relation in the small maps. @param {Map<string, Map<number, string>>|null} marks by tensor */
  light(marks) {
    for (const block of this.blocks.values()) {
      for (const map of block.maps.values()) map.light(marks?.get(map.tensor.key) ?? null);
    }
  }

  // ---- the view

  /** @param {{x?: number, y?: number, zoom?: number}} change */
  look(change) {
    Object.assign(this.view, change);
    const { x, y, zoom } = this.view;
    // Move two layers: panning needs no new layout or paint.
    this.layer.style.transform = `translate(${x}px, ${y}px) scale(${zoom})`;
    const step = DOTS * (zoom < 0.5 ? 2 : 1) * zoom;
    this.grid.style.transform = `translate(${(x % step) - step}px, ${(y % step) - step}px)`;
    if (zoom === this.drawnZoom) return;
    this.drawnZoom = zoom;
    this.grid.style.backgroundSize = `${step}px ${step}px`;
    this.element.classList.toggle('mid', zoom < MID && zoom >= FAR);
    this.element.classList.toggle('far', zoom < FAR);
    this.store.tell('zoom', zoom);
  }

  /** Zoom about a point of the canvas. @param {number} factor @param {[number, number]} [about] */
  zoomBy(factor, about) {
    const { width, height } = this.element.getBoundingClientRect();
    const [px, py] = about ?? [width / 2, height / 2];
    const zoom = Math.min(Math.max(this.view.zoom * factor, ZOOMS[0]), ZOOMS[1]);
    const ratio = zoom / this.view.zoom;
    this.look({ zoom, x: px - (px - this.view.x) * ratio, y: py - (py - this.view.y) * ratio });
  }

  /** The height of a block, as far as its results are known. @param {BlockView} block */
  height(block) {
    return block.tall;
  }

  /** Count with the height that a block will have when it has run. @param {string} id @param {number} tall */
  expect(id, tall) {
    const block = this.blocks.get(id);
    if (block && !block.maps.size) block.tall = tall;
  }

  /** The height of a block by its name. @param {string} id */
  heightOf(id) {
    const block = this.blocks.get(id);
    return block ? this.height(block) : 0;
  }

  /** The corner points of all blocks, with the labels of wires that run around them. */
  bounds() {
    const boxes = [...this.blocks.values()].map((b) => [...(b.node.at ?? [0, 0]), this.height(b)]);
    if (!boxes.length) return [0, 0, 400, 300];
    const { top, bottom } = this.wires.extent();
    return [Math.min(...boxes.map((b) => b[0])), Math.min(top, ...boxes.map((b) => b[1])),
      Math.max(...boxes.map((b) => b[0] + WIDTH)), Math.max(bottom, ...boxes.map((b) => b[1] + b[2]))];
  }

  /** Show the whole page, never larger than life. */
  fit() {
    const [left, top, right, bottom] = this.bounds();
    const { width, height } = this.element.getBoundingClientRect();
    const [w, h] = [right - left, bottom - top];
    const free = height - (width < NARROW ? 2 : 1) * BELOW - MARGIN; // the buttons and the status are below the blocks, not over them
    const zoom = Math.min(Math.max(Math.min((width - 2 * MARGIN) / w, (free - MARGIN) / h, 1), ZOOMS[0]), 1);
    this.look({ zoom, x: (width - w * zoom) / 2 - left * zoom, y: Math.max((free - h * zoom) / 2, MARGIN) - top * zoom });
  }

  /** A point of the screen in the coordinates of blocks. @param {number} clientX @param {number} clientY */
  toWorld(clientX, clientY) {
    const box = this.element.getBoundingClientRect();
    return [(clientX - box.left - this.view.x) / this.view.zoom, (clientY - box.top - this.view.y) / this.view.zoom];
  }

  /** Bring a block into view. @param {string} id */
  reveal(id) {
    const block = this.blocks.get(id);
    if (!block) return;
    const box = this.element.getBoundingClientRect();
    const { zoom } = this.view;
    const [x, y] = block.node.at ?? [0, 0];
    const [left, top] = [x * zoom + this.view.x, y * zoom + this.view.y];
    const inside = left > 0 && top > 0 && left + WIDTH * zoom < box.width && top + Math.min(this.height(block) * zoom, 200) < box.height;
    if (!inside) this.look({ x: box.width / 2 - (x + WIDTH / 2) * zoom, y: box.height / 3 - y * zoom });
  }
}

/** A shape as wires show it. @param {number[]|null|undefined} shape */
export function shapeText(shape) {
  return shape ? shape.map((n) => n ?? '?').join(',') : '';
}
