// The answer of a run as tensors: numbers unpacked, and unchanged tensors kept, so that only what changed is drawn again.

import { axesOf } from 'poolgrad/tensor';

/** @typedef {import('poolgrad/tensor').Tensor} Tensor */
/** @typedef {Float32Array|Float64Array|Int32Array} Numbers and the other types of TYPES, which have the same methods */

const TYPES = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array,
};

/** Numbers as they are sent, without a call per byte: pictures have many. @param {{type: string, b64: string}} packed
 * @returns {Numbers} */
export function unpack({ type, b64 }) {
  if ('fromBase64' in Uint8Array) return new TYPES[type](/** @type {any} */ (Uint8Array).fromBase64(b64).buffer);
  const text = atob(b64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new TYPES[type](bytes.buffer);
}

/** One output as a tensor. @param {string} node @param {string} pin @param {any} raw @param {Map<string, ArrayLike<number>|null>} held
 * @returns {Tensor} */
function tensorOf(node, pin, raw, held) {
  return {
    key: `${node}.${pin}`, node, pin, shape: raw.shape, dtype: raw.dtype, role: raw.role === 'gradient' ? 'gradient' : 'value',
    kind: raw.role, axes: axesOf(raw.shape.length, (raw.axes ?? []).join('')), ref: raw.ref, stats: raw.stats ?? {},
    values: raw.values ? unpack(raw.values) : held.get(raw.ref) ?? null,
    preview: raw.preview ? { ...raw.preview, values: unpack(raw.preview.values) } : null,
  };
}

/**
 * All tensors of a run by `node.pin`; those with the same content as before are the same objects.
 * @param {any} run @param {Map<string, Tensor>} [before]
 * @returns {Map<string, Tensor>}
 */
export function tensorsOf(run, before = new Map()) {
  const held = new Map([...before.values()].map((tensor) => [tensor.ref, tensor.values])); // the server sends these no more
  const found = new Map();
  for (const [node, { outputs }] of Object.entries(run.nodes)) {
    for (const [pin, raw] of Object.entries(outputs ?? {})) {
      if (!raw || !raw.stats) continue;
      const key = `${node}.${pin}`;
      const old = before.get(key);
      const axes = axesOf(raw.shape.length, (raw.axes ?? []).join(''));
      const same = old && old.ref === raw.ref && old.kind === raw.role && old.axes === axes && String(old.shape) === String(raw.shape);
      found.set(key, same ? old : tensorOf(node, pin, raw, held));
    }
  }
  return found;
}

/** Refs of everything that a page need not be sent again: its numbers, and the hits of its links. @param {any} run
 * @param {Map<string, Tensor>} tensors @returns {string[]} */
export function knownRefs(run, tensors) {
  const numbers = [...tensors.values()].filter((tensor) => tensor.values).map((tensor) => tensor.ref);
  const listed = [...hitsByRef(run)].filter(([, hits]) => hits.ptr).map(([ref]) => ref);
  return [...new Set([...numbers, ...listed])];
}

/** Put the hits that the page has into an answer without them. @param {any} run @param {any} before the run with the hits */
export function restoreHits(run, before) {
  const held = hitsByRef(before);
  for (const { links } of Object.values(run.nodes)) if (links?.hits && !links.hits.ptr) links.hits = held.get(links.hits.ref) ?? links.hits;
}

/** @returns {Map<string, any>} */
function hitsByRef(run) {
  return new Map(Object.values(run.nodes).filter(({ links }) => links?.hits).map(({ links }) => [links.hits.ref, links.hits]));
}
