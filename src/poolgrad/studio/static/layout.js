// Place blocks: a column per distance from the inputs, each block as near as possible to its sources.

import { WIDTH } from 'poolgrad/geometry';
import { moveNodes, nodeOf } from 'poolgrad/model';

/** @typedef {import('poolgrad/model').Page} Page */
/** @typedef {import('poolgrad/model').GraphNode} GraphNode */

const GAP = { x: 60, y: 28 }; // room for wires between the columns
const TALLEST = 1300; // pixels of a column
const EDGE = 24;

/** Return the column of every node: one more than that of its furthest source. @param {Page} page @returns {Map<string, number>} */
function columns(page) {
  const found = new Map();
  /** @type {Map<string, string[]>} */ const above = new Map(page.nodes.map((node) => [node.id, []]));
  for (const [from, to] of page.wires) above.get(nodeOf(to))?.push(nodeOf(from));
  const column = (id) => {
    if (found.has(id)) return found.get(id);
    found.set(id, 0); // ends the walk if there is a cycle
    found.set(id, Math.max(0, ...(above.get(id) ?? []).filter((a) => above.has(a)).map((a) => column(a) + 1)));
    return found.get(id);
  };
  for (const node of page.nodes) column(node.id);
  return found;
}

/** Return the middle of a node's sources, to place the node beside it. */
function wishOf(page, node, places, height) {
  const tops = page.wires.filter(([, to]) => nodeOf(to) === node.id).map(([from]) => nodeOf(from)).filter((id) => places.has(id));
  if (!tops.length) return null;
  const middles = tops.map((id) => places.get(id)[1] + height(page.nodes.find((n) => n.id === id)) / 2);
  return middles.reduce((a, b) => a + b, 0) / middles.length - height(node) / 2;
}

/** All blocks in columns, none over another. @param {Page} page @param {(node: GraphNode) => number} height @returns {Page} */
export function tidy(page, height) {
  const column = columns(page);
  const places = new Map();
  let left = EDGE;
  for (let k = 0; k <= Math.max(0, ...column.values()); k++) {
    const nodes = page.nodes.filter((node) => column.get(node.id) === k).map((node) => ({ node, wish: wishOf(page, node, places, height) }));
    nodes.sort((a, b) => (a.wish ?? 0) - (b.wish ?? 0));
    const total = nodes.reduce((sum, { node }) => sum + height(node) + GAP.y, 0);
    const most = Math.max(TALLEST, total / Math.ceil(Math.sqrt(total / TALLEST))); // a long column becomes several
    let bottom = EDGE;
    for (const { node, wish } of nodes) {
      const wanted = total > TALLEST ? bottom : Math.max(bottom, wish ?? bottom);
      if (bottom > EDGE && bottom + height(node) > EDGE + most) { left += WIDTH + GAP.x; bottom = EDGE; }
      const y = Math.round(total > TALLEST ? bottom : wanted);
      places.set(node.id, [left, y]);
      bottom = y + height(node) + GAP.y;
    }
    left += WIDTH + GAP.x;
  }
  return moveNodes(page, places);
}

/** Return true if two blocks cover each other. @param {Page} page @param {(node: GraphNode) => number} height */
function overlap(page, height) {
  const boxes = page.nodes.map((node) => ({ x: node.at?.[0] ?? 0, y: node.at?.[1] ?? 0, h: height(node) }));
  return boxes.some((a, i) => boxes.slice(i + 1).some((b) => Math.abs(a.x - b.x) < WIDTH && a.y < b.y + b.h && b.y < a.y + a.h));
}

/** Places for blocks that have none, as in a file written by hand, or that cover each other, if they were drawn elsewhere.
 * @param {Page} page @param {(node: GraphNode) => number} height @param {boolean} [foreign] @returns {Page} */
export function arrange(page, height, foreign = false) {
  return page.nodes.every((node) => node.at) && !(foreign && overlap(page, height)) ? page : tidy(page, height);
}
