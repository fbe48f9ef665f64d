// The server's routes. Every call carries the token that came in the page's address, behind the #.

const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? '';

/** Send a request; throw the server's refusal as an Error. @param {string} path @param {RequestInit} [init] */
async function ask(path, init = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...init, headers: { 'X-Poolgrad-Token': token, ...init.headers } });
  } catch {
    throw new Error('The studio does not answer any more. Is `poolgrad studio` still running?');
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(said.error ?? `The studio answered ${answer.status}.`), { status: answer.status });
}

const post = (path, body) => ask(path, { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });

/** Data entries that the server already has. @type {Set<string>} */
const known = new Set();

/** Return the graph without the contents that the server already has. @param {any} graph */
function light(graph) {
  if (!graph.data || !Object.keys(graph.data).length) return graph;
  return { ...graph, data: Object.fromEntries(Object.entries(graph.data).map(([key, value]) => [key, known.has(key) ? {} : value])) };
}

/** Post a graph without known contents; send all of them if the server answers 409 for a forgotten entry. @param {string} path @param {any} body */
async function postGraph(path, body) {
  try {
    const answer = await post(path, { ...body, graph: light(body.graph) });
    for (const key of Object.keys(body.graph.data ?? {})) known.add(key);
    return answer;
  } catch (error) {
    if (error.status !== 409) throw error;
    known.clear();
    return post(path, body);
  }
}

export const api = {
  ops: async () => (await ask('/api/ops')).json(),
  start: async () => (await ask('/api/start')).json(),
  examples: async () => (await ask('/api/examples')).json(),
  /** @param {any} graph @param {string} page @param {string[]} known refs of numbers that the page has */
  run: async (graph, page, known) => (await postGraph('/api/run', { graph, page, known })).json(),
  /** @param {any} graph @param {string} page */
  check: async (graph, page) => (await postGraph('/api/check', { graph, page })).json(),
  /** @param {any} graph @param {string} page @param {string} y @param {string} x */
  gradients: async (graph, page, y, x) => (await postGraph('/api/gradients', { graph, page, y, x })).json(),
  /** @param {string} ref */
  tensor: async (ref) => (await ask(`/api/tensor?ref=${encodeURIComponent(ref)}`)).json(),
  /** @param {any} graph @param {string} page @param {string} kind @returns {Promise<{name: string, blob: Blob}>} */
  async export(graph, page, kind) {
    const answer = await postGraph('/api/export', { graph, page, kind });
    const name = /filename="([^"]+)"/.exec(answer.headers.get('Content-Disposition') ?? '')?.[1] ?? `page.${kind}`;
    return { name, blob: await answer.blob() };
  },
  /** @param {File} file an array or a picture */
  upload: async (file) => (await ask(`/api/upload?name=${encodeURIComponent(file.name)}`, {
    method: 'POST', body: file, headers: { 'Content-Type': 'application/octet-stream' } })).json(),
  /** Open a graph, or an enuSpace page with its side file. @param {File[]} files */
  async read(files) {
    const named = await Promise.all(files.map(async (file) => [file.name, await base64(file)]));
    return (await post('/api/import', { files: Object.fromEntries(named) })).json();
  },
};

/** @param {Blob} blob */
async function base64(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = '';
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(text);
}
