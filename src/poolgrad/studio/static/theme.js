// Light or dark: as the system has it, until the person chooses.

import { theme } from 'poolgrad/colour';
import { el } from 'poolgrad/dom';

/** @param {() => void} redraw colours of cells are numbers, so they are drawn anew */
export function themeButton(redraw) {
  const button = el('button.theme', { 'aria-label': 'Light or dark' });
  const draw = () => { button.textContent = theme() === 'dark' ? '☀' : '☾'; };
  button.addEventListener('click', () => {
    document.documentElement.dataset.theme = theme() === 'dark' ? 'light' : 'dark';
    draw();
    redraw();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { draw(); redraw(); });
  draw();
  return button;
}
