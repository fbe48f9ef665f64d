// Wires: one SVG path each, with the shape that flows and a wide invisible path to point at.

import { svg } from 'poolgrad/dom';
import { WIDTH, curve, pinPlace } from 'poolgrad/geometry';
import { nodeOf, pinOf } from 'poolgrad/model';
import { route } from 'poolgrad/routing';

const SHORT = 72; // between blocks this near, a label would be hidden by them; the output says the shape too

export class Wires {
  constructor() {
    this.element = svg('svg', { class: 'wires', role: 'group', 'aria-label': 'Wires' });
    this.draft = svg('path', { class: 'wire draft' });
    this.lines = svg('g', {});
    this.labels = svg('g', { 'aria-hidden': 'true' }); // over all wires, so that none strikes a label out
    this.element.append(this.draft, this.lines, this.labels);
    this.views = new Map();
    /** @type {(end: string) => string} the shape that an output has */ this.shapeOf = () => '';
  }

  /**
   * Draws the wires of a page.
   * @param {import('poolgrad/model').Page} page
   * @param {Map<string, import('poolgrad/blocks').BlockView>} blocks
   */
  render(page, blocks) {
    const wanted = new Set();
    const boxes = [...blocks.values()].map((b) => ({ x: b.node.at?.[0] ?? 0, y: b.node.at?.[1] ?? 0, w: WIDTH, h: b.tall }));
    const used = new Map();
    for (const [from, to] of page.wires) {
      const [a, b] = [blocks.get(nodeOf(from)), blocks.get(nodeOf(to))];
      if (!a || !b) continue;
      const key = `${from} ${to}`;
      wanted.add(key);
      if (!this.views.has(key)) this.add(key, from, to);
      this.views.get(key).place(outlet(a, from), inlet(b, to), boxes, used);
    }
    for (const [key, view] of this.views) {
      if (wanted.has(key)) continue;
      view.group.remove();
      view.label.remove();
      this.views.delete(key);
    }
    this.write();
  }

  add(key, from, to) {
    const line = svg('path', { class: 'wire' });
    const hit = svg('path', { class: 'hit' });
    const label = svg('text', { class: 'flow', 'text-anchor': 'middle', dy: -5 });
    const group = svg('g', { tabindex: 0, role: 'button', 'aria-label': `wire ${from} to ${to}`, 'data-wire': to });
    group.append(line, hit);
    this.lines.append(group);
    this.labels.append(label);
    const view = { group, label, place, from, to, way: '', d: '', middle: /** @type {number[]|null} */ (null) };
    function place(start, end, boxes, used) {
      const { d, middle, lane } = route(start, end, boxes, used);
      view.way = `${from} ${lane ?? nodeOf(to)}`;
      view.middle = Math.abs(end[0] - start[0]) < SHORT ? null : middle;
      label.style.display = view.middle ? '' : 'none';
      if (view.middle) for (const [i, axis] of ['x', 'y'].entries()) label.setAttribute(axis, String(view.middle[i]));
      if (view.d === d) return;
      view.d = d;
      line.setAttribute('d', d);
      hit.setAttribute('d', d);
    }
    this.views.set(key, view);
  }

  /** Return the y of the highest and the lowest edge of a label, and of the wire below or above it. */
  extent() {
    const at = [...this.views.values()].flatMap(({ middle, label }) => (middle && label.textContent ? [middle[1]] : []));
    return { top: Math.min(...at) - 16, bottom: Math.max(...at) };
  }

  /** Write the shape that flows on each wire. @param {(end: string) => string} shapeOf */
  label(shapeOf) {
    this.shapeOf = shapeOf;
    this.write();
  }

  /** Write the labels: wires of one output side by side have one, on the outermost, where no other wire runs. */
  write() {
    const said = new Set();
    for (const { group, label, from, way, middle } of [...this.views.values()].reverse()) {
      const shape = this.shapeOf(from);
      const text = !middle || said.has(way) ? '' : shape;
      if (group.getAttribute('aria-description') !== shape) group.setAttribute('aria-description', shape);
      if (middle) said.add(way);
      if (label.textContent !== text) label.textContent = text;
    }
  }

  /** @param {Set<string>} selection @param {string|null} wire @param {Set<string>} bad inputs with a problem */
  mark(selection, wire, bad) {
    for (const { group, from, to } of this.views.values()) {
      group.classList.toggle('near', selection.has(nodeOf(from)) || selection.has(nodeOf(to)));
      group.classList.toggle('selected', to === wire);
      group.classList.toggle('bad', bad.has(to));
    }
  }

  /** A wire that is being drawn. @param {number[]|null} from @param {number[]} [to] */
  sketch(from, to) {
    this.draft.setAttribute('d', from && to ? curve(from, to) : '');
  }
}

/** Return the point where a wire leaves. @param {import('poolgrad/blocks').BlockView} block @param {string} end */
export function outlet(block, end) {
  const [x, y] = pinPlace(block.facts, pinOf(end), true);
  const [left, top] = block.node.at ?? [0, 0];
  return [left + x, top + y];
}

/** Return the point where a wire arrives. @param {import('poolgrad/blocks').BlockView} block @param {string} end */
export function inlet(block, end) {
  const [x, y] = pinPlace(block.facts, pinOf(end), false);
  const [left, top] = block.node.at ?? [0, 0];
  return [left + x, top + y];
}
