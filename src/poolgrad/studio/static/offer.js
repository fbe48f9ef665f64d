// A wire that is dropped on the empty canvas: a list of the blocks that can take it.

import { el, fill, rove } from 'poolgrad/dom';
import { rank } from 'poolgrad/palette';

/** The pin of a new block at which a wire can end. @param {import('poolgrad/ops').Block} block @param {'in'|'out'} side of the wire's first pin */
export function endOf(block, side) {
  return side === 'out' ? block.pins.find((pin) => pin.wired)?.name : block.outputs[0]?.name;
}

/**
 * Offer the blocks that fit; call back with the one that is chosen.
 * @param {HTMLElement} stage @param {number[]} at in the stage @param {import('poolgrad/ops').Block[]} blocks @param {'in'|'out'} side
 * @param {(block: import('poolgrad/ops').Block) => void} choose
 */
export function offer(stage, at, blocks, side, choose) {
  const fitting = blocks.filter((block) => endOf(block, side));
  const list = el('div.list', { role: 'listbox', 'aria-label': 'Blocks that fit' });
  const field = el('input.search', { type: 'search', placeholder: 'Blocks that fit', 'aria-label': 'Search blocks that fit', autocomplete: 'off' });
  const box = el('div.menu.offer', { role: 'dialog', 'aria-label': 'New block at this wire' }, field, list);
  const close = () => { removeEventListener('pointerdown', outside, true); box.remove(); };
  const outside = (event) => { if (!box.contains(event.target)) close(); };
  const draw = () => {
    const found = fitting.map((block) => ({ block, r: rank(block.op, field.value) })).filter(({ r }) => r >= 0).sort((a, b) => a.r - b.r);
    fill(list, ...found.map(({ block }) => el('button', { text: block.op, role: 'option', 'aria-label': `Connect to a new ${block.op}`, title: block.doc, onclick: () => { close(); choose(block); } })));
  };
  field.addEventListener('input', draw);
  box.addEventListener('keydown', (event) => {
    event.stopPropagation();
    if (event.key === 'Escape') close();
    else if (event.key === 'Enter' && event.target === field) list.querySelector('button')?.click();
    else if (event.key === 'ArrowDown' && event.target === field) list.querySelector('button')?.focus();
    else return;
    event.preventDefault();
  });
  rove(list, 'button');
  draw();
  stage.append(box);
  const room = stage.getBoundingClientRect();
  Object.assign(box.style, { left: `${Math.min(at[0], room.width - box.offsetWidth - 8)}px`, top: `${Math.max(8, Math.min(at[1], room.height - box.offsetHeight - 8))}px` });
  addEventListener('pointerdown', outside, true);
  field.focus();
}
