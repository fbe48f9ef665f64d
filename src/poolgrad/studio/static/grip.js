// The edge of the inspector: drag it, or move it with the arrow keys; its place is kept.

import { el } from 'poolgrad/dom';
import { recall, remember } from 'poolgrad/memory';

const [LEAST, MOST, STEP] = [260, 900, 24];

/** @param {HTMLElement} root the element whose --inspector is the width @param {() => void} moved */
export function grip(root, moved) {
  const element = el('div.grip', { role: 'separator', tabindex: 0, 'aria-label': 'Width of the inspector', 'aria-orientation': 'vertical', 'aria-valuemin': LEAST, 'aria-valuemax': MOST });
  const width = () => element.parentElement?.getBoundingClientRect().width ?? 356;
  const become = (/** @type {number} */ wish) => {
    const now = Math.round(Math.min(Math.max(wish, LEAST), MOST));
    root.style.setProperty('--inspector', `${now}px`);
    element.setAttribute('aria-valuenow', String(now));
    remember('inspector', String(now));
    moved();
  };
  element.addEventListener('pointerdown', (event) => {
    event.preventDefault();
    element.setPointerCapture(event.pointerId);
    const [from, start] = [event.clientX, width()];
    const move = (now) => become(start + from - now.clientX);
    element.addEventListener('pointermove', move);
    element.addEventListener('pointerup', () => element.removeEventListener('pointermove', move), { once: true });
  });
  element.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (!step) return;
    event.preventDefault();
    become(width() + step);
  });
  element.setAttribute('aria-valuenow', recall('inspector') ?? '356');
  const kept = Number(recall('inspector'));
  if (kept >= LEAST && kept <= MOST) root.style.setProperty('--inspector', `${kept}px`);
  return element;
}
