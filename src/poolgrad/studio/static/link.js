// A small page in an address: behind the #, deflated, in letters that an address may have. Whatever comes from an address is checked.

import { wrong } from 'poolgrad/model';

export const LONGEST = 16000; // characters behind the #
const MOST = 2 ** 20; // bytes of the text that they stand for
const MOST_CELLS = 2 ** 16; // of a tensor
const KEY = 'page';

/** Bytes through a stream that deflates or inflates; stops at a limit. @param {Uint8Array} bytes @param {any} stream @param {number} most
 * @returns {Promise<Uint8Array>} */
async function through(bytes, stream, most) {
  const reader = new Blob([/** @type {any} */ (bytes)]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel().catch(() => null);
      throw new Error(`it stands for more than ${most} bytes`);
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** The part of an address behind the # that holds a page and, if it ran, its results. @param {any} graph of one page @param {any} run */
export async function linkOf(graph, run) {
  const text = JSON.stringify(run ? { graph, run } : { graph });
  const packed = await through(new TextEncoder().encode(text), new CompressionStream('deflate-raw'), 64 * MOST);
  let letters = '';
  for (const byte of packed) letters += String.fromCharCode(byte);
  const code = btoa(letters).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  if (code.length <= LONGEST) return `#${KEY}=${code}`;
  if (run) return linkOf(graph, null);
  throw new Error(`This page takes ${code.length} characters in an address, which holds at most ${LONGEST}: save it as JSON or HTML instead.`);
}

/** Return true if an address holds a page. @param {string} hash */
export const isLink = (hash) => new URLSearchParams(hash.replace(/^#/, '')).has(KEY);

/** The page in an address. @param {string} hash @returns {Promise<{graph: any, run: any}>} throws an Error with the reason if it holds none */
export async function fromLink(hash) {
  try {
    const code = new URLSearchParams(hash.replace(/^#/, '')).get(KEY) ?? '';
    if (!/^[A-Za-z0-9_-]+$/.test(code)) throw new Error('it has other characters than letters, digits, - and _');
    if (code.length > LONGEST) throw new Error(`it has ${code.length} characters, at most ${LONGEST} are read`);
    const packed = Uint8Array.from(atob(code.replace(/-/g, '+').replace(/_/g, '/')), (letter) => letter.charCodeAt(0));
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await through(packed, new DecompressionStream('deflate-raw'), MOST).catch((error) => { throw error.message.startsWith('it ') ? error : new Error('it is cut off or changed'); }));
    const { graph, run = null } = JSON.parse(text);
    if (graph?.format !== 'poolgrad-graph' || !Array.isArray(graph.pages) || graph.pages.length !== 1) throw new Error('it holds no page');
    const why = wrong(graph.pages[0]) || (typeof graph.pages[0].name === 'string' ? '' : 'its page has no name') || (run === null ? '' : unsound(run, graph.pages[0].name));
    if (why) throw new Error(why);
    return { graph, run };
  } catch (error) {
    throw new Error(`This address holds no page: ${error instanceof Error ? error.message : error}.`);
  }
}

// ---- results from an address: every part that the page reads has the form that a run gives it

/** @typedef {(value: any) => boolean} Test */
/** @type {Test} */ const text = (value) => typeof value === 'string' && value.length <= 2000;
/** @type {Test} */ const count = (value) => Number.isSafeInteger(value) && value >= 0;
/** @type {Test} */ const real = (value) => typeof value === 'number';
/** @param {Test} test @returns {Test} */ const maybe = (test) => (value) => value === null || value === undefined || test(value);
/** @param {Test} test @returns {Test} */ const list = (test) => (value) => Array.isArray(value) && value.length <= MOST_CELLS && value.every(test);
/** @param {...any} words @returns {Test} */ const one = (...words) => (value) => words.includes(value);
/** @param {Record<string, Test>} parts @returns {Test} */
const form = (parts) => (value) => value !== null && typeof value === 'object' && !Array.isArray(value) && Object.entries(parts).every(([key, test]) => test(value[key]));
/** @param {Test} test @returns {Test} */ const each = (test) => (value) => value !== null && typeof value === 'object' && !Array.isArray(value) && Object.values(value).every(test);
/** @type {Test} */ const shape = (value) => list(count)(value) && value.length <= 32 && value.reduce((all, n) => all * n, 1) <= MOST_CELLS;

const SIZES = { float32: 4, float64: 8, int8: 1, uint8: 1, int16: 2, uint16: 2, int32: 4, uint32: 4 };

/** Packed numbers, as many as wanted. @param {any} packed @param {number|null} wanted */
function numbers(packed, wanted) {
  if (!form({ type: one(...Object.keys(SIZES)), b64: (v) => typeof v === 'string' })(packed) || !/^[A-Za-z0-9+/]*={0,2}$/.test(packed.b64) || packed.b64.length % 4) return false;
  const bytes = packed.b64.length / 4 * 3 - (/=*$/.exec(packed.b64)?.[0].length ?? 0);
  return wanted === null ? bytes % SIZES[packed.type] === 0 : bytes === wanted * SIZES[packed.type];
}

const size = (/** @type {number[]} */ sizes) => sizes.reduce((all, n) => all * n, 1);
const OUTPUT = form({ shape: maybe(shape), dtype: maybe(text), role: text, axes: maybe(list(text)), ref: maybe(text), stats: maybe(each(maybe(real))), preview: one(undefined, null) });
const PROBLEM = form({ node: maybe(text), pin: maybe(text), sentence: text, at: maybe(count), length: maybe(count), repair: one(null) });
const HOW = form({ divide: (v) => real(v) || one('cells', 'span')(v), skip: one(true, false), least: one(true, false), last: one(true, false), ties: one('first', 'every', 'split'), p: real });
const LINKS = form({ verb: text, taken: one('first', 'every', 'split', 'share', 'norm'), how: HOW, source: shape, dest: shape, eps: maybe(real),
  tensors: list(form({ symbol: text, dtype: text, pin: text, side: one('source', 'dest'), name: maybe(text), ref: maybe(text) })) });

/** @param {any} links */
function linked(links) {
  if (links === null) return true;
  if (!LINKS(links) || !Array.isArray(links.axes) || links.axes.length !== links.dest.length || links.source.length !== links.dest.length) return false;
  const along = (axis, d) => axis === null || (form({ start: list(count), stop: list(count), before: list(count), after: list(count), step: (v) => count(v) && v > 0 })(axis)
    && ['start', 'stop', 'before', 'after'].every((side) => axis[side].length === links.dest[d]) && axis.stop.every((stop) => stop <= links.source[d]));
  if (!links.axes.every(along)) return false;
  if (links.tensors.some((t) => t.values !== undefined && !numbers(t.values, size(links[t.side])))) return false;
  return links.hits === null || (form({ ref: text, ask: one(undefined) })(links.hits) && numbers(links.hits.ptr, size(links.dest) + 1) && numbers(links.hits.cell, null));
}

/** Return the reason why a value is no run of the page, or ''. @param {any} run @param {string} page */
function unsound(run, page) {
  const output = (/** @type {any} */ out) => OUTPUT(out) && (!out.stats || (Array.isArray(out.shape) && numbers(out.values, size(out.shape))));
  const node = (/** @type {any} */ found) => form({ status: text, outputs: each(output), conservation: maybe(form({ sentence: text, where: text })) })(found) && linked(found.links ?? null);
  const sound = form({ page: one(page), order: list(text), nodes: each(node), problems: list(PROBLEM), warnings: list(PROBLEM) });
  return sound(run) ? '' : 'its results do not fit together';
}
