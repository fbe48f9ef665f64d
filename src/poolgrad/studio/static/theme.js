// Light or dark: as the system has it, until the person chooses; the choice stays.

import { theme } from 'poolgrad/colour';
import { el } from 'poolgrad/dom';
import { recall, remember } from 'poolgrad/memory';

/** @param {() => void} redraw colours of cells are numbers, so they are drawn anew */
export function themeButton(redraw) {
  const button = el('button.theme', { 'aria-label': 'Light or dark' });
  const chosen = recall('theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
  const draw = () => { button.textContent = theme() === 'dark' ? '☀' : '☾'; };
  button.addEventListener('click', () => {
    const next = theme() === 'dark' ? 'light' : 'dark';
    document.documentElement.dataset.theme = next;
    remember('theme', next);
    draw();
    redraw();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { draw(); redraw(); });
  draw();
  return button;
}
