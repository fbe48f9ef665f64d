// The server's routes. Every call carries the token that came in the page's address, behind the #.

const inAddress = () => new URLSearchParams(location.hash.slice(1)).get('token') ?? '';
let token = inAddress();

const GONE = 'The studio does not answer. Start `poolgrad studio` again and open its address in this browser: this tab then goes on. Ctrl+S saves without it.';
const ANEW = 'The studio was started again. Open its new address in this browser: this tab then goes on. Ctrl+S saves without it.';

/** @typedef {{ask: (path: string, init: RequestInit) => Promise<Response>, keep: (doc: any) => void}} Carrier carries requests to a kernel */
/** @type {Carrier|null} */ let carrier = null;

/** Send requests another way than over HTTP. @param {Carrier} given */
export function carry(given) {
  carrier = given;
  api.keep = given.keep;
}

const TRUSTED = 50; // milliseconds that a proof holds: no other program takes a port so fast
let proved = -Infinity;

/** Return true if the server at this address knows the token: another program may have its port by now. @param {string} secret */
async function proves(secret) {
  const nonce = crypto.randomUUID();
  const answer = await fetch(`/api/prove?nonce=${nonce}`, { headers: { 'X-Poolgrad-Token': secret } });
  if (!answer.ok) return false;
  const [key, bytes] = [secret, nonce].map((text) => new TextEncoder().encode(text));
  const sign = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const wanted = [...new Uint8Array(await crypto.subtle.sign('HMAC', sign, bytes))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return (await answer.json().catch(() => ({}))).proof === wanted;
}

/** Take over the token of a studio that was started again, if the studio knows it. @param {string} fresh */
async function take(fresh) {
  if (!fresh || fresh === token || !(await proves(fresh).catch(() => false))) return;
  token = fresh;
  known.clear();
  api.onToken();
}

const ASKED = 'token?';

/** Ask the other tabs of this address for the token: a link to a page has none. @returns {Promise<void>} */
function borrow() {
  const others = new BroadcastChannel('poolgrad token');
  return new Promise((resolve) => {
    const done = () => { others.close(); resolve(); };
    setTimeout(done, 2000);
    others.onmessage = async ({ data }) => {
      if (typeof data !== 'string' || data === ASKED) return;
      await take(data);
      if (token) done();
    };
    others.postMessage(ASKED);
  });
}

/** Tell the other tabs of this address the token, and hear theirs: after a restart one tab is opened with the new one. */
function share() {
  const others = new BroadcastChannel('poolgrad token');
  others.onmessage = ({ data }) => {
    if (data === ASKED && api.used) others.postMessage(token);
    else if (typeof data === 'string' && data !== ASKED) take(data);
  };
  if (token) others.postMessage(token);
  addEventListener('hashchange', () => take(inAddress()));
}

/** Send a request; throw the server's refusal as an Error. @param {string} path @param {RequestInit} [init] */
async function ask(path, init = {}) {
  let answer;
  try {
    // Work goes only to a server that knows the token.
    if (init.body && !carrier && performance.now() - proved > TRUSTED) {
      if (!(await proves(token))) throw Object.assign(new Error(ANEW), { foreign: true });
      proved = performance.now();
    }
    answer = await (carrier ? carrier.ask(path, init) : fetch(path, { ...init, headers: { 'X-Poolgrad-Token': token, ...init.headers } }));
  } catch (error) {
    if (init.signal?.aborted) throw Object.assign(new Error('Cancelled.'), { cancelled: true });
    throw error.foreign ? error : new Error(GONE);
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  if (answer.status === 403 && api.used) throw new Error(ANEW);
  throw Object.assign(new Error(said.error ?? `The studio answered ${answer.status}.`), { status: answer.status });
}

const post = (path, body, signal) => ask(path, { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' }, signal });

/** Data entries that the server already has. @type {Set<string>} */
const known = new Set();

/** Return the graph without the contents that the server already has. @param {any} graph */
function light(graph) {
  if (!graph.data || !Object.keys(graph.data).length) return graph;
  return { ...graph, data: Object.fromEntries(Object.entries(graph.data).map(([key, value]) => [key, known.has(key) ? {} : value])) };
}

/** Post a graph without known contents; send all of them if the server answers 409 for a forgotten entry. @param {string} path @param {any} body
 * @param {AbortSignal} [signal] */
async function postGraph(path, body, signal) {
  try {
    const answer = await post(path, { ...body, graph: light(body.graph) }, signal);
    for (const key of Object.keys(body.graph.data ?? {})) known.add(key);
    return answer;
  } catch (error) {
    if (error.status !== 409) throw error;
    known.clear();
    return post(path, body, signal);
  }
}

export const api = {
  /** Called when a new token was taken over. */ onToken: () => {},
  /** True once the server has accepted the token. */ used: false,
  /** Keeps the document after each change, where the browser may not. @type {((doc: any) => void)|null} */ keep: null,
  /** Return everything that the first screen needs. */
  async first() {
    if (!token && !carrier) await borrow();
    const found = await Promise.all([api.ops(), api.start(), api.examples()]);
    api.used = true;
    if (!carrier) share();
    return found;
  },
  ops: async () => (await ask('/api/ops')).json(),
  start: async () => (await ask('/api/start')).json(),
  examples: async () => (await ask('/api/examples')).json(),
  /** @param {any} graph @param {string} page @param {string[]} known refs of numbers that the page has
   * @param {string} ticket names the run, to cancel it @param {AbortSignal} [signal] */
  run: async (graph, page, known, ticket, signal) => (await postGraph('/api/run', { graph, page, known, ticket }, signal)).json(),
  /** @param {string} ticket of a run that nobody waits for any more */
  cancel: async (ticket) => (await post('/api/cancel', { ticket })).json(),
  /** @param {any} graph @param {string} page */
  check: async (graph, page) => (await postGraph('/api/check', { graph, page })).json(),
  /** @param {any} graph @param {string} page @param {string} y @param {string} x */
  gradients: async (graph, page, y, x) => (await postGraph('/api/gradients', { graph, page, y, x })).json(),
  /** The hits of windows of a block that has too many to list. @param {string} ref @param {number[]} windows */
  hits: async (ref, windows) => (await post('/api/hits', { ref, windows })).json(),
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
