// Find the facts about a cell in the links of a run, as poolgrad/_explain/subject.py does; the phrases turn them into a sentence.

import { unpack } from 'poolgrad/results';
import { cellText, number, part, say } from 'poolgrad/sentences';
import { ravel, size, strides, unravel } from 'poolgrad/tensor';

/** @typedef {{flat: number, cell: number[], pairs: number[][], steps: number[], before: number[], after: number[], hits: number[][],
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
  const steps = links.axes.map((axis) => axis?.step ?? 1);
  const list = Array.from(hitsIn(links, flat), (j) => unravel(j, links.source));
  const lengths = start.map((a, d) => Math.ceil((stop[d] - a) / steps[d]));
  const count = size(lengths);
  const span = size(lengths.map((length, d) => length + before[d] + after[d]));
  return { flat, cell, pairs: start.map((a, d) => [a, stop[d]]), steps, before, after, hits: list, count, cut: span - count };
}

/** The cells of a window, as flat source cells, or the first few. @param {any} links @param {Window} found @param {number} [most] */
function cellsIn(links, found, most = Infinity) {
  const step = strides(links.source);
  let cells = [0];
  found.pairs.forEach(([a, b], d) => {
    const next = [];
    for (const flat of cells) for (let i = a; i < b && next.length < most; i += found.steps[d]) next.push(flat + i * step[d]);
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
    const within = (i) => axis.start[i] <= cell[d] && cell[d] < axis.stop[i] && (cell[d] - axis.start[i]) % (axis.step ?? 1) === 0;
    const mine = axis ? [...Array(length).keys()].filter(within) : [cell[d]];
    found = found.flatMap((flat) => mine.map((i) => flat * length + i));
  });
  return found;
}

/** The source cells that take from a window, each with its weight. @param {any} links @param {Record<string, ArrayLike<number>>} values by pin
 * @param {number} flat @returns {Array<[number, number]>} */
export function taking(links, values, flat) {
  const weigh = new Weighing(links, values);
  const found = windowOf(links, flat);
  return weigh.takers(found).map((cell) => [cell, weigh.all ? weigh.weight(cell, found) / weigh.divisor(found) : 1 / weigh.divisor(found)]);
}

/** How the cells of windows count, as in poolgrad/_explain/subject.py. */
class Weighing {
  /** @param {any} links @param {Record<string, ArrayLike<number>>} values by pin */
  constructor(links, values) {
    this.links = links;
    this.how = links.how;
    this.all = links.taken === 'share' || links.taken === 'norm';
    this.skip = this.how.skip && this.all;
    const of = (/** @type {string} */ symbol) => { const t = links.tensors.find((found) => found.symbol === symbol); return t ? values[t.pin] : undefined; };
    this.x = of('x');
    this.y = of('y');
    this.mask = links.tensors.some((t) => t.symbol === 'mask') ? of('mask') : this.x;
  }

  /** Return true if the cell that decides is NaN. @param {number} flat */
  nan(flat) {
    return this.mask !== undefined && Number.isNaN(Number(this.mask[flat]));
  }

  /** Return true if the cell that decides is zero. @param {number} flat */
  zero(flat) {
    return this.mask !== undefined && Number(this.mask[flat]) === 0;
  }

  /** Count the cells of a window that are NaN. @param {Window} found */
  skipped(found) {
    return this.mask ? cellsIn(this.links, found).filter((flat) => this.nan(flat)).length : 0;
  }

  /** The number of cells of a window that may count. @param {Window} found */
  counted(found) {
    return found.count - (this.how.skip ? this.skipped(found) : 0);
  }

  /** The cells of a window that count, flat. @param {Window} found */
  takers(found) {
    if (this.all) return cellsIn(this.links, found).filter((flat) => !this.skip || !this.nan(flat));
    return (this.links.taken === 'first' ? found.hits.slice(0, 1) : found.hits).map((hit) => ravel(hit, this.links.source));
  }

  /** The number by which the share of a cell is divided. @param {Window} found */
  divisor(found) {
    const { divide } = this.how;
    if (this.links.taken === 'share') return typeof divide === 'number' ? divide : this.counted(found) + (divide === 'span' ? found.cut : 0);
    return this.links.taken === 'split' && ['route', 'carry'].includes(this.links.verb) ? found.hits.length : 1;
  }

  /** The weight of a cell in the derivative of a norm. @param {number} flat @param {Window} found */
  weight(flat, found) {
    if (this.links.taken !== 'norm' || !this.x || !this.y) return 1;
    const [x, y] = [Number(this.x[flat]), Number(this.y[found.flat])];
    return x === 0 || y === 0 ? 0 : Math.sign(x) * (Math.abs(x) / y) ** (this.how.p - 1);
  }

  /** The facts about the rule of a pool. */
  rules() {
    const { divide, least, last, ties, p } = this.how;
    return { least: Number(least), last: Number(last), ties, p: number(p), two: Number(p === 2), mean: Number(divide === 'cells'),
      total: Number(divide === 1), spans: Number(divide === 'span') };
  }

  /** The facts about the divisor of a window. @param {Window} found */
  shares(found) {
    const divisor = this.divisor(found);
    return { divisor: number(divisor), whole: Number(divisor === 1), ...this.rules() };
  }

  /** The weight of a cell as a fact, if the pool is a norm. @param {number} flat @param {Window} found */
  weighed(flat, found) {
    return this.links.taken === 'norm' ? { weight: number(this.weight(flat, found)), ...this.rules() } : {};
  }
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
    this.weigh = new Weighing(links, values);
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
    /** @type {import('poolgrad/sentences').Facts} */
    const found = this.asked.side === 'dest' ? this.ofWindow(this.windows[0]) : this.ofCell();
    Object.assign(found.values, { self: this.asked.symbol, eps: number(this.links.eps || 0) });
    found.places.here = this.cell;
    return found;
  }

  ofWindow(found) {
    const { links, phrases, weigh } = this;
    /** @type {Record<string, any>} */ const values = { window: this.region(found), cells: weigh.counted(found), cut: found.cut, hits: found.hits.length, ...weigh.shares(found) };
    if (weigh.skip) values.skipped = weigh.skipped(found);
    /** @type {Record<string, number[]>} */ const places = { window: found.cell };
    const [tap] = found.hits;
    if (tap) {
      places.tap = tap;
      values.one = Number(links.taken === 'first' || found.hits.length === 1);
      values.nan = weigh.nan(ravel(tap, links.source));
      values.outside = !tap.every((c, d) => found.pairs[d][0] <= c && c < found.pairs[d][1]);
      values.skipped = values.nan ? 0 : weigh.skipped(found);
    }
    const hits = found.hits.slice(0, phrases.listed).map((hit) => ({ values: {}, places: { tap: hit, here: this.cell } }));
    const inside = weigh.skip ? weigh.takers(found).slice(0, phrases.listed_cells) : cellsIn(links, found, phrases.listed_cells);
    const cells = inside.map((flat) => ({ values: weigh.weighed(flat, found), places: { cell: unravel(flat, links.source), window: found.cell } }));
    return { values, places, lists: { hits, cells } };
  }

  region(found) {
    const spans = found.pairs.map(([a, b], d) => (b - a === 1 ? String(a) : `${a}:${b}${found.steps[d] > 1 ? `:${found.steps[d]}` : ''}`));
    const source = this.links.tensors.find((t) => t.side === 'source');
    return part(cellText(source.name ?? source.pin, spans), 'window', source.pin);
  }

  ofCell() {
    const tapped = this.windows.filter((w) => this.counts(w));
    const missed = this.windows.filter((w) => !this.counts(w));
    const values = { reached: this.windows.length, windows: this.windows.length, taps: tapped.length, missed: missed.length,
      lost_ties: missed.filter((w) => w.hits.some((hit) => this.isSelf(hit))).length, nan: this.weigh.nan(this.flat),
      zero: this.weigh.zero(this.flat), ...this.weigh.rules() };
    const listed = (windows) => windows.slice(0, this.phrases.listed).map((w) => this.entry(w));
    return { values, places: { window: tapped[0]?.cell }, lists: { taps: listed(tapped), missed: listed(missed), windows: listed(this.windows) } };
  }

  /** The facts about one window in a list. */
  entry(found) {
    const values = { hits: found.hits.length, counts: this.counts(found), less: this.less(found), ...this.weigh.shares(found), ...this.weigh.weighed(this.flat, found) };
    return { values, places: { here: this.cell, window: found.cell, tap: found.hits[0] } };
  }

  /** Return true if this cell is smaller than the value that decides in a window. */
  less(found) {
    const [x, y] = ['x', 'y'].map((symbol) => this.links.tensors.find((t) => t.symbol === symbol));
    const [mine, theirs] = [x && this.values[x.pin], y && this.values[y.pin]];
    if (!mine) return false;
    const self = Number(mine[this.flat]);
    if (this.links.taken === 'every' && y) return Boolean(theirs) && self < Number(theirs[found.flat]);
    if (!found.hits.length) return false;
    const best = Number(mine[ravel(found.hits[0], this.links.source)]);
    return this.links.how.least ? self > best : self < best;
  }

  /** Return true if this cell is the tap of a window, or has a share of it. */
  counts(found) {
    if (this.weigh.all) return !(this.weigh.skip && this.weigh.nan(this.flat));
    return (this.links.taken === 'first' ? found.hits.slice(0, 1) : found.hits).some((hit) => this.isSelf(hit));
  }

  isSelf(hit) {
    return hit.every((at, d) => at === this.cell[d]);
  }

  /** Return the cells to light up in every linked tensor. */
  marks() {
    const marks = Object.fromEntries(this.links.tensors.map((t) => [t.pin, new Map()]));
    const put = (t, cell, kind, /** @type {string|null} */ share = null) => {
      const old = marks[t.pin].get(cell);
      if (!old || RANK[kind] >= RANK[old.kind]) marks[t.pin].set(cell, { cell, kind, share });
    };
    for (const w of this.windows) {
      const counts = this.asked.side === 'dest' || this.counts(w);
      for (const t of this.links.tensors) {
        if (t.side === 'dest') put(t, w.flat, counts ? 'arrived' : 'reaches', this.shareIn(w));
        else this.markWindow(w, (cell, kind, share) => put(t, cell, kind, share));
      }
    }
    put(this.asked, this.flat, 'self');
    return Object.fromEntries(Object.entries(marks).map(([pin, map]) => [pin, [...map.values()]]));
  }

  /** The share of a cell in a window, as text. @param {Window} w */
  shareIn(w) {
    const divisor = this.shared ? this.weigh.divisor(w) : 1;
    return divisor === 1 && this.links.how.divide === 1 ? null : this.shared ? `1/${number(divisor)}` : null;
  }

  markWindow(w, put) {
    for (const cell of cellsIn(this.links, w)) put(cell, 'window', this.shareIn(w));
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
