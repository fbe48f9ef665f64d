// The keys, on a sheet: `?` shows it.

import { el } from 'poolgrad/dom';

const KEYS = [
  ['/', 'search a block; Enter places it'],
  ['Enter', 'on a pin, then on another: draws a wire · on a block: into its cells · on a cell: pins it'],
  ['Escape', 'lets go: a wire, a pin, the cells'],
  ['↑ ↓ ← →', 'from cell to cell; moves a block, with Shift further'],
  ['Delete', 'the wire of a pin, a wire, or the selected blocks'],
  ['Ctrl Z', 'undo; Ctrl Y redoes'],
  ['Ctrl C', 'copies blocks as JSON; Ctrl X cuts, Ctrl V pastes'],
  ['Ctrl A', 'selects all; Shift and drag a frame'],
  ['Ctrl ↵', 'runs the page'],
  ['Ctrl S', 'saves the whole document as JSON; Ctrl O opens'],
  ['+ − 0 f', 'zoom, 100 %, fit; Ctrl and wheel zoom, wheel and drag pan'],
  ['F8', 'to the next problem and its repair'],
  ['F2', 'on a tab: renames the page; Delete closes it, ← → go to the next'],
];

/** @returns {{element: HTMLDialogElement, button: HTMLElement}} */
export function help() {
  const element = el('dialog.help', { 'aria-label': 'Keys' }, el('h2', { text: 'Keys' }),
    el('dl', {}, ...KEYS.flatMap(([key, what]) => [el('dt', {}, el('kbd', { text: key })), el('dd', { text: what })])),
    el('form', { method: 'dialog' }, el('button', { text: 'Close', onclick: (event) => { event.preventDefault(); element.close(); } })));
  const button = el('button', { text: '?', 'aria-label': 'Keys', title: 'Keys  ?', onclick: () => element.showModal() });
  return { element, button };
}
