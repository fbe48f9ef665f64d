// The document: the graph JSON itself. Every edit returns a new document and shares what did not change.

/** @typedef {{id: string, op: string, text: Record<string, string>, at?: number[]}} GraphNode */
/** @typedef {[string, string]} Wire from `node.pin` to `node.pin` */
/** @typedef {{name: string, nodes: GraphNode[], wires: Wire[], fetch?: string[], about?: string, show?: {cell: string, at: number[]}}} Page */
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
  return { pool: 'y', gradient: 'dx', 'second order': 'ddy', quantised: 'q', 'array pool': 'y', 'array gradient': 'dx', 'array tangent': 'dy' }[group] ?? op[0].toLowerCase();
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

/** Return some nodes of a page, and the wires among them, as a page. @param {Page} page @param {Set<string>} ids @returns {Page} */
export function cutOut(page, ids) {
  const nodes = page.nodes.filter((node) => ids.has(node.id));
  const wires = page.wires.filter(([a, b]) => ids.has(nodeOf(a)) && ids.has(nodeOf(b)));
  return { name: 'copy', nodes, wires, fetch: [] };
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;

/** Return true if a block may have this name. @param {any} name */
export const isName = (name) => typeof name === 'string' && NAME.test(name);

const isEnd = (end) => typeof end === 'string' && end.split('.').length === 2 && end.split('.').every(isName);
const isTexts = (text) => text && typeof text === 'object' && !Array.isArray(text) && Object.values(text).every((value) => typeof value === 'string');
const isPlace = (at) => Array.isArray(at) && at.length === 2 && at.every((v) => Number.isFinite(v) && Math.abs(v) < 1e9);

/** Return the reason why a value is no page, or ''. @param {any} page */
export function wrong(page) {
  if (!Array.isArray(page?.nodes)) return 'it has no list of blocks';
  const bad = page.nodes.find((node) => !isName(node?.id) || typeof node.op !== 'string' || !isTexts(node.text ?? {}) || !(node.at === undefined || isPlace(node.at)));
  if (bad !== undefined) return `this is no block: ${JSON.stringify(bad)?.slice(0, 80)}`;
  if (new Set(page.nodes.map(({ id }) => id)).size < page.nodes.length) return 'two blocks have one name';
  if (!Array.isArray(page.wires ?? [])) return `its wires are no list: ${JSON.stringify(page.wires).slice(0, 40)}`;
  const loose = (page.wires ?? []).find((wire) => !Array.isArray(wire) || wire.length !== 2 || !wire.every(isEnd));
  return loose === undefined ? '' : `this is no wire: ${JSON.stringify(loose)?.slice(0, 80)}`;
}

/** Nodes from clipboard text beside those they came from, under free names. @param {Page} page @param {string} text
 * @returns {{page: Page, ids: string[], data: Record<string, any>}} throws an Error with the reason when the text is no graph */
export function paste(page, text) {
  let given;
  try { given = JSON.parse(text); } catch { given = null; }
  if (given?.format !== 'poolgrad-graph') throw new Error('The clipboard holds no blocks.');
  const why = wrong(given.pages?.[0]);
  if (why) throw new Error(`The clipboard holds no blocks: ${why}.`);
  const names = new Map();
  for (const node of given.pages[0].nodes) {
    const id = freeId(page, node.id);
    names.set(node.id, id);
    const [x, y] = node.at ?? [40, 40];
    page = addNode(page, { ...node, id, text: { ...node.text }, at: [x + 36, y + 36] });
  }
  for (const [from, to] of given.pages[0].wires ?? []) {
    if (!names.has(nodeOf(from)) || !names.has(nodeOf(to))) continue;
    page = connect(page, `${names.get(nodeOf(from))}.${pinOf(from)}`, `${names.get(nodeOf(to))}.${pinOf(to)}`);
  }
  const data = given.data && typeof given.data === 'object' && !Array.isArray(given.data) ? given.data : {};
  return { page, ids: [...names.values()], data };
}
