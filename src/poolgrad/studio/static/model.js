// The document: the graph JSON itself. Every edit returns a new document and shares what did not change.

/** @typedef {{id: string, op: string, text: Record<string, string>, at?: number[]}} GraphNode */
/** @typedef {[string, string]} Wire from `node.pin` to `node.pin` */
/** @typedef {{name: string, nodes: GraphNode[], wires: Wire[], fetch?: string[]}} Page */
/** @typedef {{format: string, version: number, pages: Page[], data?: Record<string, any>}} Doc */

/** @returns {Doc} */
export function blank() {
  return { format: 'poolgrad-graph', version: 1, pages: [{ name: 'page', nodes: [], wires: [], fetch: [] }], data: {} };
}

/** The document with one page changed. @param {Doc} doc @param {number} at @param {(page: Page) => Page} change @returns {Doc} */
export function onPage(doc, at, change) {
  const page = change(doc.pages[at]);
  return page === doc.pages[at] ? doc : { ...doc, pages: doc.pages.map((p, i) => (i === at ? page : p)) };
}

/** The node of a `node.pin`. @param {string} end */
export const nodeOf = (end) => end.slice(0, end.lastIndexOf('.'));
/** The pin of a `node.pin`. @param {string} end */
export const pinOf = (end) => end.slice(end.lastIndexOf('.') + 1);

/** A free name on a page: short, lower case, numbered when needed. @param {Page} page @param {string} wish */
export function freeId(page, wish) {
  const taken = new Set(page.nodes.map((node) => node.id));
  if (!taken.has(wish)) return wish;
  let n = 2;
  while (taken.has(`${wish}${n}`)) n++;
  return `${wish}${n}`;
}

/** The first name to offer for a block: short, because sentences are full of it. @param {{op: string, group: string}} block */
export function wishId({ op, group }) {
  return { pool: 'y', gradient: 'dx', 'second order': 'ddy', quantised: 'q' }[group] ?? op[0].toLowerCase();
}

/** @param {Page} page @param {GraphNode} node @returns {Page} */
export function addNode(page, node) {
  return { ...page, nodes: [...page.nodes, node] };
}

/** @param {Page} page @param {string} id @param {(node: GraphNode) => GraphNode} change @returns {Page} */
export function onNode(page, id, change) {
  return { ...page, nodes: page.nodes.map((node) => (node.id === id ? change(node) : node)) };
}

/** @param {Page} page @param {string} id @param {string} pin @param {string} text @returns {Page} */
export function setText(page, id, pin, text) {
  return onNode(page, id, (node) => ({ ...node, text: { ...node.text, [pin]: text } }));
}

/** @param {Page} page @param {Map<string, number[]>} places @returns {Page} */
export function moveNodes(page, places) {
  return { ...page, nodes: page.nodes.map((n) => (places.has(n.id) ? { ...n, at: places.get(n.id) } : n)) };
}

/** Return the page without these nodes and their wires. @param {Page} page @param {Set<string>} ids @returns {Page} */
export function removeNodes(page, ids) {
  return {
    ...page,
    nodes: page.nodes.filter((node) => !ids.has(node.id)),
    wires: page.wires.filter(([from, to]) => !ids.has(nodeOf(from)) && !ids.has(nodeOf(to))),
    fetch: (page.fetch ?? []).filter((end) => !ids.has(nodeOf(end))),
  };
}

/** A wire; an input holds one, so the new one replaces it. @param {Page} page @param {string} from @param {string} to @returns {Page} */
export function connect(page, from, to) {
  if (page.wires.some(([a, b]) => a === from && b === to)) return page;
  return { ...page, wires: [...page.wires.filter(([, end]) => end !== to), [from, to]] };
}

/** @param {Page} page @param {string} to the input that becomes free @returns {Page} */
export function disconnect(page, to) {
  return { ...page, wires: page.wires.filter(([, end]) => end !== to) };
}

/** Return true if a wire would close a cycle. @param {Page} page @param {string} from @param {string} to */
export function makesCircle(page, from, to) {
  const next = new Map();
  for (const [a, b] of page.wires) next.set(nodeOf(a), [...(next.get(nodeOf(a)) ?? []), nodeOf(b)]);
  const seen = new Set();
  const reaches = (id) => {
    if (id === nodeOf(from)) return true;
    if (seen.has(id)) return false;
    seen.add(id);
    return (next.get(id) ?? []).some(reaches);
  };
  return reaches(nodeOf(to));
}

/** @param {Page} page @param {string} id @param {string} name @returns {Page} */
export function renameNode(page, id, name) {
  const end = (e) => (nodeOf(e) === id ? `${name}.${pinOf(e)}` : e);
  return {
    ...page,
    nodes: page.nodes.map((node) => (node.id === id ? { ...node, id: name } : node)),
    wires: page.wires.map(([from, to]) => [end(from), end(to)]),
    fetch: (page.fetch ?? []).map(end),
  };
}

/** Return the clipboard text: nodes and the wires among them. @param {Page} page @param {Set<string>} ids */
export function cutOut(page, ids) {
  const nodes = page.nodes.filter((node) => ids.has(node.id));
  const wires = page.wires.filter(([a, b]) => ids.has(nodeOf(a)) && ids.has(nodeOf(b)));
  return JSON.stringify({ format: 'poolgrad-graph', version: 1, pages: [{ name: 'copy', nodes, wires }] }, null, 1);
}

/** Nodes from clipboard text beside those they came from, under free names. @param {Page} page @param {string} text
 * @returns {{page: Page, ids: string[]}|null} null when the text is no graph */
export function paste(page, text) {
  let given;
  try { given = JSON.parse(text); } catch { return null; }
  if (given?.format !== 'poolgrad-graph' || !Array.isArray(given.pages?.[0]?.nodes)) return null;
  const names = new Map();
  for (const node of given.pages[0].nodes) {
    if (typeof node?.id !== 'string' || typeof node?.op !== 'string') return null;
    const id = freeId(page, node.id);
    names.set(node.id, id);
    const [x, y] = node.at ?? [40, 40];
    page = addNode(page, { ...node, id, text: { ...node.text }, at: [x + 36, y + 36] });
  }
  for (const [from, to] of given.pages[0].wires ?? []) {
    if (!names.has(nodeOf(from)) || !names.has(nodeOf(to))) continue;
    page = connect(page, `${names.get(nodeOf(from))}.${pinOf(from)}`, `${names.get(nodeOf(to))}.${pinOf(to)}`);
  }
  return { page, ids: [...names.values()] };
}
