// Keys that work everywhere in the studio, and the clipboard.

import { isField } from 'poolgrad/dom';
import { isLink } from 'poolgrad/link';
import { cutOut, onPage, paste, removeNodes } from 'poolgrad/model';
import { reached, written } from 'poolgrad/save';

/** @param {any} studio */
export function shortcuts(studio) {
  document.addEventListener('keydown', (event) => key(studio, event));
  document.addEventListener('copy', (event) => copy(studio, event, false));
  document.addEventListener('cut', (event) => copy(studio, event, true));
  document.addEventListener('paste', (event) => insert(studio, event));
}

/** Actions by key name with Ctrl and Shift. */
const ACTIONS = {
  'Ctrl+Enter': (s) => s.runner.run(),
  'Ctrl+z': (s) => s.store.undo() || s.say('Nothing to undo.'),
  'Ctrl+y': (s) => s.store.redo() || s.say('Nothing to redo.'),
  'Ctrl+Shift+z': (s) => s.store.redo() || s.say('Nothing to redo.'),
  'Ctrl+o': (s) => s.files.open(),
  'Ctrl+s': (s) => s.files.export('document'),
  F8: (s) => s.panel.next() || s.say('There is no problem on this page.'),
};

const PLAIN = {
  '/': (s) => s.palette.focus(),
  '?': (s) => s.help.element.showModal(),
  '+': (s) => s.flow.zoomBy(1.2),
  '=': (s) => s.flow.zoomBy(1.2),
  '-': (s) => s.flow.zoomBy(1 / 1.2),
  0: (s) => s.flow.zoomBy(1 / s.flow.view.zoom),
  f: (s) => s.flow.fit(),
  'Ctrl+a': (s) => s.store.select(s.store.page.nodes.map((node) => node.id)),
};

function key(studio, event) {
  const ctrl = event.ctrlKey || event.metaKey;
  const name = `${ctrl ? 'Ctrl+' : ''}${ctrl && event.shiftKey ? 'Shift+' : ''}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
  // Override the browser's undo inside a field: it would disagree with the document's.
  const act = ACTIONS[name] ?? (isField(event.target) || event.altKey ? null : PLAIN[name]);
  if (!act) return;
  event.preventDefault();
  act(studio);
}

function copy(studio, event, cut) {
  const { store } = studio;
  if (isField(event.target) || !store.selection.size || String(getSelection())) return;
  event.clipboardData.setData('text/plain', written(reached(store.doc, [cutOut(store.page, store.selection)])));
  event.preventDefault();
  const ids = new Set(store.selection);
  if (cut) store.edit(onPage(store.doc, store.at, (page) => removeNodes(page, ids)));
  studio.say(`${cut ? 'Cut' : 'Copied'} ${ids.size} block${ids.size === 1 ? '' : 's'} as JSON.`);
}

function insert(studio, event) {
  const { store } = studio;
  if (isField(event.target)) return;
  event.preventDefault();
  try {
    const text = event.clipboardData.getData('text/plain').trim();
    if (/^\S+$/.test(text) && text.includes('#') && isLink(text.slice(text.indexOf('#')))) return void studio.files.follow(text.slice(text.indexOf('#')));
    const found = paste(store.page, text);
    store.edit(onPage({ ...store.doc, data: { ...found.data, ...store.doc.data } }, store.at, () => found.page));
    store.select(found.ids);
    studio.say(`Pasted ${found.ids.join(', ')}.`);
  } catch (error) {
    studio.say(error.message, 'refused');
  }
}
