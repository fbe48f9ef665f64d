// Explain why a cell has its value, from the links of a run: the facts of poolgrad/_explain/explain.py, in the same phrases.

const LISTED = 4; // windows that a sentence names; the rest are counted
const RANK = {window: 0, reaches: 0, tie: 1, arrived: 2, winner: 2, self: 3}; // the highest rank shows if a cell has several roles
const unpacked = new WeakMap();

/** @param {{type: string, b64: string}} numbers */
export function decode(numbers) {
  const bytes = Uint8Array.from(atob(numbers.b64), c => c.charCodeAt(0));
  const types = {float32: Float32Array, float64: Float64Array, int32: Int32Array, uint32: Uint32Array, int16: Int16Array,
    uint16: Uint16Array, int8: Int8Array, uint8: Uint8Array};
  return new types[numbers.type](bytes.buffer);
}

/** A number with at most six digits, as the sentences have it. */
export function text(value, dtype = 'float32') {
  if (dtype.includes('int')) return Number.isSafeInteger(value) ? String(value) : BigInt(value).toString();
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf';
  const short = Number(value.toPrecision(6));
  if (short === 0) return '0';
  const size = Math.abs(short);
  return size >= 1e-4 && size < 1e15 ? String(short) : short.toExponential().replace('+', '');
}

export function flatten(cell, shape) {
  return cell.reduce((flat, at, d) => flat * shape[d] + at, 0);
}

export function unflatten(flat, shape) {
  const cell = new Array(shape.length);
  for (let d = shape.length - 1; d >= 0; d--) {
    cell[d] = flat % shape[d];
    flat = Math.floor(flat / shape[d]);
  }
  return cell;
}

const plural = (n, word) => (n === 1 ? `${n} ${word}` : `${n} ${word}s`);
const same = (a, b) => a.every((v, d) => v === b[d]);

function some(texts, joint) {
  const more = texts.length - LISTED;
  return texts.slice(0, LISTED).join(joint) + (more > 0 ? `${joint}${more} more` : '');
}

/** Hits as typed arrays, and for given positions the windows that point to a cell; worked out once per links object. */
function hitsOf(links) {
  if (!unpacked.has(links)) {
    const hits = links.hits && {ptr: decode(links.hits.ptr), cell: decode(links.hits.cell)};
    const back = new Map();
    if (links.verb === 'scatter' || links.verb === 'gather') {
      hits.cell.forEach((j, i) => back.has(j) ? back.get(j).push(i) : back.set(j, [i]));
    }
    unpacked.set(links, {hits, back});
  }
  return unpacked.get(links);
}

/** The window of a destination cell: start and stop per dimension, cells cut off, hits in order. */
export function windowOf(links, flat) {
  const cell = unflatten(flat, links.dest);
  const side = (key, other) => cell.map((at, d) => (links.axes[d] ? links.axes[d][key][at] : other(at)));
  const start = side('start', at => at), stop = side('stop', at => at + 1);
  const before = side('before', () => 0), after = side('after', () => 0);
  const {hits} = hitsOf(links);
  const list = hits ? Array.from(hits.cell.subarray(hits.ptr[flat], hits.ptr[flat + 1]), j => unflatten(j, links.source)) : [];
  const product = (total, at) => total * at;
  const count = start.map((a, d) => stop[d] - a).reduce(product, 1);
  const span = start.map((a, d) => stop[d] - a + before[d] + after[d]).reduce(product, 1);
  return {dest: flat, cell, pairs: start.map((a, d) => [a, stop[d]]), before, after, hits: list, count, cut: span - count};
}

/** The windows that a source cell is part of, as flat destination cells. */
function covering(links, cell) {
  const {back} = hitsOf(links);
  if (links.verb === 'scatter' || links.verb === 'gather') return back.get(flatten(cell, links.source)) || [];
  let found = [0];
  links.dest.forEach((length, d) => {
    const axis = links.axes[d], mine = [];
    if (!axis) mine.push(cell[d]);
    else for (let i = 0; i < length; i++) if (axis.start[i] <= cell[d] && cell[d] < axis.stop[i]) mine.push(i);
    found = found.flatMap(flat => mine.map(i => flat * length + i));
  });
  return found;
}

/** Return the sentence of these facts: every clause whose conditions hold, filled in. */
export function say(clauses, facts) {
  const holds = word => Boolean(facts[word.replace('!', '')]) !== word.startsWith('!');
  return clauses.filter(([when]) => when.split(' ').filter(Boolean).every(holds))
    .map(([, clause]) => clause.replace(/\{(\w+)\}/g, (all, name) => (name in facts ? facts[name] : all))).join(' ');
}

class Facts {
  constructor(links, values, part, cell) {
    Object.assign(this, {links, values, part, cell});
    this.flat = flatten(cell, links[part.side]);
    const chosen = part.side === 'dest' ? [this.flat] : covering(links, cell);
    this.windows = chosen.map(flat => windowOf(links, flat));
    this.base = links.tensors.find(t => t.side === 'source');
  }

  of(part) { return this.links.tensors.find(t => t.part === part); }
  called(t) { return t.name ?? t.pin; }
  at(t, cell) { return `${this.called(t)}[${cell.join(',')}]`; }
  value(t, cell) {
    const array = this.values[t.pin];
    return array ? text(Number(array[flatten(cell, this.links[t.side])]), t.dtype) : '?';
  }
  /** Return true if the deciding cell is NaN. */
  nan(cell) {
    const t = this.of('x'), array = t && this.values[t.pin];
    return Boolean(array) && Number.isNaN(Number(array[flatten(cell, this.links[t.side])]));
  }
  with(t, cell) { return `${this.at(t, cell)} = ${this.value(t, cell)}`; }

  named(side, cell, end) {
    const found = {};
    for (const t of this.links.tensors.filter(u => u.side === side)) {
      found[`${t.part}_at${end}`] = this.at(t, cell);
      found[`${t.part}_with${end}`] = this.with(t, cell);
      found[`${t.part}_value${end}`] = this.value(t, cell);
    }
    return found;
  }

  all() {
    const facts = {self: this.at(this.part, this.cell), value: this.value(this.part, this.cell),
      eps: text(this.links.eps || 0), ...this.named(this.part.side, this.cell, '')};
    for (const t of this.links.tensors) {
      facts[`is_${t.part}`] = t === this.part;
      facts[`${t.part}_name`] = this.called(t);
    }
    return Object.assign(facts, this.part.side === 'dest' ? this.ofWindow(this.windows[0]) : this.ofCell());
  }

  ofWindow(w) {
    const spans = w.pairs.map(([a, b]) => (b - a === 1 ? String(a) : `${a}:${b}`));
    const facts = {window: `${this.called(this.base)}[${spans.join(',')}]`, n_cells: plural(w.count, 'cell'), count: w.count,
      cut: w.cut, n_cut: plural(w.cut, 'cell'), hit: w.hits.length > 0, single: w.count === 1, tie: w.hits.length > 1,
      tied: w.hits.length};
    if (w.hits.length) {
      Object.assign(facts, this.named('source', w.hits[0], '_there'));
      facts.nan = this.nan(w.hits[0]);
      facts.outside = !w.hits[0].every((c, d) => w.pairs[d][0] <= c && c < w.pairs[d][1]);
    }
    const result = this.of('dx') || this.base;
    facts.takers = some(w.hits.map(hit => this.at(result, hit)), ', ');
    return facts;
  }

  counts(w) {
    if (this.links.taken === 'share') return true;
    const takers = this.links.taken === 'every' ? w.hits : w.hits.slice(0, 1);
    return takers.some(hit => same(hit, this.cell));
  }

  get giver() { return this.of('g') || this.of('out') || this.of('y') || this.part; }

  ofCell() {
    const wins = this.windows.filter(w => this.counts(w)), others = this.windows.filter(w => !this.counts(w));
    const n = this.windows.length, giver = this.giver, shared = this.links.taken === 'share';
    const divided = w => shared && w.count !== 1;
    const term = w => `${this.at(giver, w.cell)} (${this.value(giver, w.cell)})${divided(w) ? ` / ${w.count}` : ''}`;
    const share = w => `${divided(w) ? `1/${w.count} of it to ` : ''}${this.at(giver, w.cell)}`;
    const other = w => `${w.hits.length ? this.with(this.base, w.hits[0]) : 'no cell'} for ${this.at(giver, w.cell)}`;
    return {reached: n, n_windows: plural(n, 'window'), reach: n === 1 ? 'reaches' : 'reach', wins: wins.length,
      missed: others.length, those: wins.length === 1 ? 'that window' : 'those windows',
      n_missed: plural(others.length, 'window'), one: n === 1, all: !others.length && wins.length > 1,
      lost_tie: others.some(w => w.hits.some(hit => same(hit, this.cell))), sum: some(wins.map(term), ' + '),
      made: some(wins.map(share), ', '), others: some(others.map(other), '; '), sole: wins.length === 1, nan: this.nan(this.cell),
      ...(wins.length ? this.named('dest', wins[0].cell, '_win') : {})};
  }

  /** Return the cells to light up in every linked tensor. */
  marks() {
    const marks = Object.fromEntries(this.links.tensors.map(t => [t.pin, new Map()]));
    const put = (t, cell, kind, share = null) => {
      const old = marks[t.pin].get(cell);
      if (!old || RANK[kind] >= RANK[old.kind]) marks[t.pin].set(cell, {cell, kind, share});
    };
    const shared = this.links.taken === 'share', fromCell = this.part.side === 'source';
    for (const w of this.windows) {
      const counts = !fromCell || this.counts(w);
      for (const t of this.links.tensors) {
        if (t.side === 'dest') put(t, w.dest, counts ? 'arrived' : 'reaches', shared ? `1/${w.count}` : null);
        else this.markWindow(w, (cell, kind, part) => put(t, cell, kind, part));
      }
    }
    put(this.part, this.flat, 'self');
    return Object.fromEntries(Object.entries(marks).map(([pin, map]) => [pin, [...map.values()]]));
  }

  markWindow(w, put) {
    const strides = this.links.source.map((_, d) => this.links.source.slice(d + 1).reduce((a, b) => a * b, 1));
    let cells = [0];
    w.pairs.forEach(([a, b], d) => {
      const next = [];
      for (const flat of cells) for (let i = a; i < b; i++) next.push(flat + i * strides[d]);
      cells = next;
    });
    for (const cell of cells) put(cell, 'window', this.links.taken === 'share' ? `1/${w.count}` : null);
    w.hits.forEach((hit, k) => put(flatten(hit, this.links.source), k && this.links.taken === 'first' ? 'tie' : 'winner'));
  }
}

/**
 * Return everything about one cell of one pin of a block that ran.
 * @param {object} node run().nodes[id]  @param {Object<string, ArrayLike<number>>} values by pin
 * @param {object} phrases ops().phrases  @param {string} pin  @param {number[]} cell
 */
export function relate(node, values, phrases, pin, cell) {
  const links = node.links, part = links && links.tensors.find(t => t.pin === pin);
  if (!part) return null;
  const found = new Facts(links, values, part, cell), facts = found.all();
  return {sentence: say(phrases[`${links.verb}.${part.side}`], facts), facts, marks: found.marks(), windows: found.windows};
}
