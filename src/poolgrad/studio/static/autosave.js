// Unsaved work stays in the browser: written after each change, offered again when the page is opened, forgotten when saved.

import { el } from 'poolgrad/dom';

const PAUSE = 250; // milliseconds after the last change
const [BASE, SHELF, KEY] = ['poolgrad', 'documents', 'latest'];

/** @returns {Promise<IDBDatabase>} */
function database() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(BASE, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(SHELF);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

/** Do one thing with the stored documents. @param {IDBTransactionMode} mode @param {(shelf: IDBObjectStore) => IDBRequest} act */
async function shelf(mode, act) {
  const base = await database();
  return new Promise((resolve, reject) => {
    const change = base.transaction(SHELF, mode);
    const asked = act(change.objectStore(SHELF));
    change.oncomplete = () => { base.close(); resolve(asked.result); };
    change.onabort = () => { base.close(); reject(change.error); };
  });
}

export class Autosave {
  /** @param {import('poolgrad/store').Store} store @param {HTMLElement} notices @param {(text: string, bad?: boolean) => void} say */
  constructor(store, notices, say) {
    this.store = store;
    this.notices = notices;
    this.say = say;
    this.timer = 0;
    /** @type {Promise<any>} writes and reads, one after the other */ this.queue = Promise.resolve();
    store.on('doc', () => this.changed());
    store.on('saved', () => this.forget());
    this.queue = this.offer().catch(() => null); // a browser that keeps nothing still has the studio
  }

  changed() {
    if (!this.store.dirty) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.keep(), PAUSE);
  }

  keep() {
    const { doc, at } = this.store;
    this.queue = this.queue.then(() => shelf('readwrite', (all) => all.put({ doc, at, when: Date.now() }, KEY)))
      .catch((error) => { this.say(`This browser keeps no copy of unsaved work (${error?.message ?? 'not allowed'}): save with Ctrl+S.`, true); });
  }

  forget() {
    clearTimeout(this.timer);
    this.queue = this.queue.then(() => shelf('readwrite', (all) => all.delete(KEY))).catch(() => null);
  }

  /** Ask for the work of the last time, if it was not saved. */
  async offer() {
    const kept = await shelf('readonly', (all) => all.get(KEY));
    if (!Array.isArray(kept?.doc?.pages)) return;
    const when = new Date(kept.when).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
    const pages = kept.doc.pages.length;
    const done = (/** @type {() => void} */ act) => () => { box.remove(); act(); };
    const box = el('div.notice', { role: 'region', 'aria-label': 'Unsaved work' },
      el('span', { text: `Work of ${when} was not saved (${pages} page${pages === 1 ? '' : 's'}). Restore?` }),
      el('button', { text: 'Restore', onclick: done(() => this.restore(kept)) }),
      el('button', { text: 'Discard', onclick: done(() => this.forget()) }));
    this.notices.append(box);
  }

  restore({ doc, at }) {
    this.store.open(doc, false);
    if (at < doc.pages.length) this.store.show(at);
    this.say('Restored. Undo shows the page as it was before.');
  }
}
