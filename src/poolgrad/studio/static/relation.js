// Find the node that explains a cell, and the cells to light up.

import { RANK, explain, unknown } from 'poolgrad/explain';
import { unpack } from 'poolgrad/results';
import { ravel, unravel } from 'poolgrad/tensor';

/** @typedef {import('poolgrad/tensor').Tensor} Tensor */
/** @typedef {{text: string, kind: string, tensor?: string, flat?: number}} Said a part of the sentence; a cell has a tensor and a place */
/** @typedef {{sentence: Said[], heading: Said[], formula: Said[], node: string, tensor: string, flat: number, marks: Map<string, Map<number, string>>,
 *   shares: Map<string, Map<number, string>>, windows: any[], source: Set<string>}} Relation */

/** The node whose links explain a tensor: itself, or else one that reads it. @param {any} run @param {string} key
 * @param {string|null} [wish] preferred where it is linked @returns {{node: string, pin: string}|null} */
export function explainer(run, key, wish = null) {
  const own = key.slice(0, key.lastIndexOf('.'));
  const nodes = [wish ?? '', own, ...Object.keys(run.nodes)].filter((id) => run.nodes[id]?.links);
  for (const node of nodes) {
    const found = run.nodes[node].links.tensors.find((t) => t.ref === key);
    if (found) return { node, pin: found.pin };
  }
  return null;
}

/** The tensors of a node's links, in the order of its pins. @param {any} run @param {string} node */
export function linked(run, node) {
  return run.nodes[node]?.links?.tensors ?? [];
}

/** Return the links and windows to ask for before a cell can be explained, or null. @param {any} run @param {string} key
 * @param {number} flat @param {string|null} wish */
export function needed(run, key, flat, wish) {
  const who = explainer(run, key, wish);
  const links = who && run.nodes[who.node].links;
  const windows = links ? unknown(links, who.pin, flat) : [];
  return windows.length ? { links, windows } : null;
}

/** The numbers that the page has of linked tensors, by pin; those that no block shows come with the links.
 * @param {any[]} operands @param {Map<string, Tensor>} tensors */
export function numbersOf(operands, tensors) {
  /** @type {Record<string, ArrayLike<number>>} */ const values = {};
  for (const operand of operands) {
    const held = tensors.get(operand.ref)?.values ?? (operand.values && (operand.numbers ??= unpack(operand.values)));
    if (held) values[operand.pin] = held;
  }
  return values;
}

/**
 * Return the relation of one cell to the cells of all linked tensors.
 * @param {any} run @param {Map<string, Tensor>} tensors @param {any} phrases @param {string} key @param {number} flat
 * @param {string|null} [wish] the node that should explain it @returns {Relation|null}
 */
export function relation(run, tensors, phrases, key, flat, wish = null) {
  const who = explainer(run, key, wish);
  const tensor = tensors.get(key);
  if (!who || !tensor) return null;
  const operands = linked(run, who.node);
  const found = explain(run.nodes[who.node], numbersOf(operands, tensors), phrases, who.pin, unravel(flat, tensor.shape));
  if (!found) return null;
  const marks = new Map();
  const shares = new Map();
  for (const { pin, ref } of operands) {
    if (!ref) continue;
    const cells = marks.get(ref) ?? new Map();
    for (const { cell, kind, share } of found.marks[pin] ?? []) {
      if (RANK[kind] >= (RANK[cells.get(cell)] ?? 0)) cells.set(cell, kind);
      if (share) shares.set(ref, (shares.get(ref) ?? new Map()).set(cell, share));
    }
    marks.set(ref, cells);
  }
  const source = new Set(operands.filter(({ side }) => side === 'source').map(({ ref }) => ref));
  const [sentence, heading, formula] = [found.parts, found.heading, found.formula].map((parts) => parts.map((part) => said(part, operands, tensors)));
  return { sentence, heading, formula, node: who.node, tensor: key, flat, marks, shares, windows: found.windows, source };
}

/** A part of the sentence, with the place of its cell if the page has it. @returns {Said} */
function said({ text, kind, pin, cell }, operands, tensors) {
  const tensor = kind === 'cell' || kind === 'value' ? tensors.get(operands.find((operand) => operand.pin === pin)?.ref) : null;
  return tensor ? { text, kind, tensor: tensor.key, flat: ravel(cell, tensor.shape) } : { text, kind };
}
