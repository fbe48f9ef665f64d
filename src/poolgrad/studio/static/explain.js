// Find the facts about a cell in the links of a run, as poolgrad/_explain/subject.py does; the phrases turn them into a sentence.

import { unpack } from 'poolgrad/results';
import { cellText, number, part, say } from 'poolgrad/sentences';
import { ravel, size, strides, unravel } from 'poolgrad/tensor';

/** @typedef {{flat: number, cell: number[], pairs: number[][], before: number[], after: number[], hits: number[][],
 *   count: number, cut: number}} Window `flat` and `cell`: its result cell; the first hit is the tap */

/** If a cell has several marks, the one with the highest rank shows. */
export const RANK = { window: 1, reaches: 2, tie: 3, arrived: 4, tap: 4, self: 5 };
const unpacked = new WeakMap();

/** Keep the hits of windows that the page asked for. @param {any} links @param {number[]} windows @param {{ptr: any, cell: any}} given */
export function learn(links, windows, given) {
  const [ptr, cell] = [unpack(given.ptr), unpack(given.cell)];
  const found = (links.hits.found ??= new Map());
  windows.forEach((flat, k) => found.set(flat, Array.from(cell).slice(ptr[k], ptr[k + 1])));
}

/** Return the windows whose hits an explanation needs and the page does not have. @param {any} links @param {string} pin
 * @param {number} flat @returns {number[]} */
export function unknown(links, pin, flat) {
  if (!links?.hits?.ask) return [];
  const asked = links.tensors.find((t) => t.pin === pin);
  const windows = asked.side === 'dest' ? [flat] : covering(links, unravel(flat, links.source));
  return windows.filter((w) => !links.hits.found?.has(w));
}

/** The hits of a window, as flat source cells. @returns {ArrayLike<number>} */
function hitsIn(links, flat) {
  if (links.hits?.ask) return links.hits.found?.get(flat) ?? [];
  const hits = hitsOf(links);
  return hits ? hits.cell.subarray(hits.ptr[flat], hits.ptr[flat + 1]) : [];
}

/** Hits as typed arrays and, for given positions, the windows that point to each cell; unpacked once. Null for means. */
function hitsOf(links) {
  if (links.hits && !unpacked.has(links.hits)) {
    const [ptr, cell, pointing] = [unpack(links.hits.ptr), unpack(links.hits.cell), new Map()];
    if (pointed(links)) cell.forEach((j, i) => pointing.has(j) ? pointing.get(j).push(i) : pointing.set(j, [i]));
    unpacked.set(links.hits, { ptr, cell, pointing });
  }
  return links.hits ? unpacked.get(links.hits) : null;
}

/** Return true if the caller gave the positions, so that windows do not decide. */
function pointed(links) {
  return links.verb === 'scatter' || links.verb === 'gather';
}

/** @param {any} links @param {number} flat a result cell @returns {Window} */
function windowOf(links, flat) {
  const cell = unravel(flat, links.dest);
  const side = (key, other) => cell.map((at, d) => (links.axes[d] ? links.axes[d][key][at] : other(at)));
  const [start, stop] = [side('start', (at) => at), side('stop', (at) => at + 1)];
  const [before, after] = [side('before', () => 0), side('after', () => 0)];
  const list = Array.from(hitsIn(links, flat), (j) => unravel(j, links.source));
  const count = size(start.map((a, d) => stop[d] - a));
  const span = size(start.map((a, d) => stop[d] - a + before[d] + after[d]));
  return { flat, cell, pairs: start.map((a, d) => [a, stop[d]]), before, after, hits: list, count, cut: span - count };
}

/** The cells of a window, as flat source cells, or the first few. @param {any} links @param {Window} found @param {number} [most] */
function cellsIn(links, found, most = Infinity) {
  const step = strides(links.source);
  let cells = [0];
  found.pairs.forEach(([a, b], d) => {
    const next = [];
    for (const flat of cells) for (let i = a; i < b && next.length < most; i++) next.push(flat + i * step[d]);
    cells = next;
  });
  return cells;
}

/** The windows that a source cell is part of, as flat result cells. */
function covering(links, cell) {
  if (pointed(links)) return hitsOf(links).pointing.get(ravel(cell, links.source)) ?? [];
  let found = [0];
  links.dest.forEach((length, d) => {
    const axis = links.axes[d];
    const mine = axis ? [...Array(length).keys()].filter((i) => axis.start[i] <= cell[d] && cell[d] < axis.stop[i]) : [cell[d]];
    found = found.flatMap((flat) => mine.map((i) => flat * length + i));
  });
  return found;
}

/** The source cells that take from a window, each with its weight. @param {any} links @param {number} flat @returns {Array<[number, number]>} */
export function taking(links, flat) {
  const found = windowOf(links, flat);
  if (links.taken === 'share') return cellsIn(links, found).map((cell) => [cell, 1 / found.count]);
  const hits = links.taken === 'every' ? found.hits : found.hits.slice(0, 1);
  return hits.map((hit) => [ravel(hit, links.source), 1]);
}

class About {
  /** @param {any} links @param {Record<string, ArrayLike<number>>} values by pin @param {any} phrases @param {any} asked the tensor
   * in question @param {number[]} cell */
  constructor(links, values, phrases, asked, cell) {
    this.links = links;
    this.values = values;
    this.phrases = phrases;
    this.asked = asked;
    this.cell = cell;
    this.flat = ravel(cell, links[asked.side]);
    const flats = asked.side === 'dest' ? [this.flat] : covering(links, cell);
    this.windows = flats.map((flat) => windowOf(links, flat));
    this.shared = links.taken === 'share';
  }

  /** The parts of the sentence, the heading and the formula. */
  parts() {
    const named = ({ pin, name, dtype, side }) => ({ pin, name: name ?? pin, dtype, shape: this.links[side], values: this.values[pin] });
    const arrays = Object.fromEntries(this.links.tensors.map((t) => [t.symbol, named(t)]));
    arrays.self = named(this.asked);
    const [kind, facts] = [`${this.links.verb}.${this.asked.side}`, this.facts()];
    const said = (form) => say(this.phrases, form, kind, facts, arrays);
    return { parts: said('sentences'), heading: said('headings'), formula: said('formulas') };
  }

  facts() {
    const found = this.asked.side === 'dest' ? this.ofWindow(this.windows[0]) : this.ofCell();
    Object.assign(found.values, { self: this.asked.symbol, eps: number(this.links.eps || 0) });
    found.places.here = this.cell;
    return found;
  }

  ofWindow(found) {
    const values = { window: this.region(found), cells: found.count, cut: found.cut, hits: found.hits.length };
    const places = { window: found.cell };
    const [tap] = found.hits;
    if (tap) {
      places.tap = tap;
      values.nan = this.nan(tap);
      values.outside = !tap.every((c, d) => found.pairs[d][0] <= c && c < found.pairs[d][1]);
      values.skipped = values.nan ? 0 : this.skipped(found);
    }
    const hits = found.hits.slice(0, this.phrases.listed).map((hit) => ({ values: {}, places: { tap: hit, here: this.cell } }));
    const cells = cellsIn(this.links, found, this.phrases.listed_cells).map((flat) => ({ values: {}, places: { cell: unravel(flat, this.links.source) } }));
    return { values, places, lists: { hits, cells } };
  }

  /** Count the cells of a window that are NaN. */
  skipped(found) {
    const x = this.links.tensors.find((t) => t.symbol === 'x');
    const values = x && this.values[x.pin];
    return values ? cellsIn(this.links, found).filter((flat) => Number.isNaN(Number(values[flat]))).length : 0;
  }

  region(found) {
    const spans = found.pairs.map(([a, b]) => (b - a === 1 ? String(a) : `${a}:${b}`));
    const source = this.links.tensors.find((t) => t.side === 'source');
    return part(cellText(source.name ?? source.pin, spans), 'window', source.pin);
  }

  ofCell() {
    const tapped = this.windows.filter((w) => this.counts(w));
    const missed = this.windows.filter((w) => !this.counts(w));
    const values = { reached: this.windows.length, windows: this.windows.length, taps: tapped.length, missed: missed.length,
      lost_ties: missed.filter((w) => w.hits.some((hit) => this.isSelf(hit))).length, nan: this.nan(this.cell) };
    const listed = (windows) => windows.slice(0, this.phrases.listed).map((w) => this.entry(w));
    return { values, places: { window: tapped[0]?.cell }, lists: { taps: listed(tapped), missed: listed(missed), windows: listed(this.windows) } };
  }

  /** The facts about one window in a list. */
  entry(found) {
    const values = { cells: found.count, hits: found.hits.length, shared: this.shared, counts: this.counts(found), less: this.less(found) };
    return { values, places: { here: this.cell, window: found.cell, tap: found.hits[0] } };
  }

  /** Return true if this cell is smaller than the value that decides in a window. */
  less(found) {
    const [x, y] = ['x', 'y'].map((symbol) => this.links.tensors.find((t) => t.symbol === symbol));
    const [mine, theirs] = [x && this.values[x.pin], y && this.values[y.pin]];
    if (!mine) return false;
    const self = Number(mine[this.flat]);
    if (this.links.taken === 'every' && y) return Boolean(theirs) && self < Number(theirs[found.flat]);
    return found.hits.length > 0 && self < Number(mine[ravel(found.hits[0], this.links.source)]);
  }

  /** Return true if this cell is the tap of a window, or has a share of it. */
  counts(found) {
    const takers = this.links.taken === 'every' ? found.hits : found.hits.slice(0, 1);
    return this.shared || takers.some((hit) => this.isSelf(hit));
  }

  isSelf(hit) {
    return hit.every((at, d) => at === this.cell[d]);
  }

  /** Return true if the cell that decides is NaN. */
  nan(cell) {
    const x = this.links.tensors.find((t) => t.symbol === 'x');
    const values = x && this.values[x.pin];
    return Boolean(values) && Number.isNaN(Number(values[ravel(cell, this.links[x.side])]));
  }

  /** Return the cells to light up in every linked tensor. */
  marks() {
    const marks = Object.fromEntries(this.links.tensors.map((t) => [t.pin, new Map()]));
    const put = (t, cell, kind, share = null) => {
      const old = marks[t.pin].get(cell);
      if (!old || RANK[kind] >= RANK[old.kind]) marks[t.pin].set(cell, { cell, kind, share });
    };
    for (const w of this.windows) {
      const counts = this.asked.side === 'dest' || this.counts(w);
      for (const t of this.links.tensors) {
        if (t.side === 'dest') put(t, w.flat, counts ? 'arrived' : 'reaches', this.shared ? `1/${w.count}` : null);
        else this.markWindow(w, (cell, kind, share) => put(t, cell, kind, share));
      }
    }
    put(this.asked, this.flat, 'self');
    return Object.fromEntries(Object.entries(marks).map(([pin, map]) => [pin, [...map.values()]]));
  }

  markWindow(w, put) {
    for (const cell of cellsIn(this.links, w)) put(cell, 'window', this.shared ? `1/${w.count}` : null);
    w.hits.forEach((hit, k) => put(ravel(hit, this.links.source), k && this.links.taken === 'first' ? 'tie' : 'tap'));
  }
}

/**
 * Return everything about one cell of one pin of a block that ran: the parts of its sentence, heading and formula, the cells to
 * light up, its windows.
 * @param {object} node run().nodes[id]  @param {Object<string, ArrayLike<number>>} values by pin
 * @param {object} phrases ops().phrases  @param {string} pin  @param {number[]} cell
 */
export function explain(node, values, phrases, pin, cell) {
  const asked = node.links?.tensors.find((t) => t.pin === pin);
  if (!asked) return null;
  const about = new About(node.links, values, phrases, asked, cell);
  return { ...about.parts(), marks: about.marks(), windows: about.windows };
}
