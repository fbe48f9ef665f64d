// The studio in the frame of a notebook: requests go to the kernel, by messages to the page around the frame.

import { carry } from 'poolgrad/api';

const waiting = new Map();
let last = 0;

addEventListener('message', ({ source, data }) => {
  if (source !== parent || data?.poolgrad !== 'answer') return;
  waiting.get(data.id)?.(data);
  waiting.delete(data.id);
});

/** @param {string} kind @param {Record<string, any>} more @param {ArrayBuffer|null} body */
function tell(kind, more, body) {
  parent.postMessage({ poolgrad: kind, ...more, body }, '*', body ? [body] : []);
}

/** @param {BodyInit|null|undefined} body @returns {Promise<ArrayBuffer|null>} */
async function bytes(body) {
  return body ? new Response(body).arrayBuffer() : null;
}

carry({
  async ask(path, init) {
    const body = await bytes(init.body);
    const id = ++last;
    const { status, headers, body: content } = await new Promise((resolve) => {
      waiting.set(id, resolve);
      tell('ask', { id, method: init.method ?? 'GET', path }, body);
    });
    return new Response(content, { status, headers });
  },
  async keep(doc) {
    tell('keep', {}, await bytes(JSON.stringify(doc)));
  },
});
await import('poolgrad/studio');
