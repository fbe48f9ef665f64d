// A document as the text of its file: the same bytes that Python writes, made without a server.

/** @typedef {import('poolgrad/model').Doc} Doc */

const HASH = /sha256:[0-9a-f]{64}/g;

/** Return the document with these pages and only the data that their blocks name. @param {Doc} doc
 * @param {import('poolgrad/model').Page[]} [pages] @returns {Doc} */
export function reached(doc, pages = doc.pages) {
  const named = new Set(pages.flatMap((page) => page.nodes.flatMap((node) => Object.values(node.text ?? {}).flatMap((text) => text.match(HASH) ?? []))));
  const data = Object.fromEntries(Object.entries(doc.data ?? {}).filter(([key]) => named.has(key)));
  return { ...doc, pages, data };
}

/** Keys in the order of their code points, as Python sorts. @param {object} value */
function sorted(value) {
  const points = (/** @type {string} */ text) => [...text].map((c) => c.codePointAt(0) ?? 0);
  const less = (/** @type {[string, any]} */ [a], /** @type {[string, any]} */ [b]) => { const [p, q] = [points(a), points(b)]; const i = p.findIndex((v, k) => v !== q[k]); return i < 0 ? p.length - q.length : p[i] - (q[i] ?? -1); };
  return Object.entries(value).filter(([, v]) => v !== undefined).sort(less);
}

/** A text in quotes, in ASCII. @param {string} text */
function quoted(text) {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A value on one line. @param {any} value @returns {string} */
function line(value) {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(line).join(', ')}]`;
  if (value && typeof value === 'object') return `{${sorted(value).map(([key, part]) => `${quoted(key)}: ${line(part)}`).join(', ')}}`;
  return JSON.stringify(value);
}

const listed = (values, indent) => `[${values.map((value, i) => `${i ? ',' : ''}\n${indent}${line(value)}`).join('')}]`;
const object = (parts, joint) => sorted(parts).map(([key, text]) => `${quoted(key)}: ${text}`).join(joint);

/** The file of a document: sorted keys, a block per line. @param {Doc} doc */
export function written(doc) {
  const page = (/** @type {import('poolgrad/model').Page} */ { nodes, wires, fetch, ...rest }) => `  {${object({ ...Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, line(v)])),
    nodes: listed(nodes, '    '), wires: listed(wires ?? [], '    '), fetch: line(fetch ?? []) }, ',\n   ')}}`;
  const { pages, data, ...rest } = doc;
  const entries = sorted(data ?? {}).map(([key, value]) => `  ${quoted(key)}: ${line(value)}`);
  return `{${object({ ...Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, line(v)])),
    pages: `[\n${pages.map(page).join(',\n')}]`, data: entries.length ? `{\n${entries.join(',\n')}}` : '{}' }, ',\n ')}}\n`;
}
