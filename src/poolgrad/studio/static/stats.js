// The lines below a heat-map: what the numbers add up to, and what a gradient lost.

import { el } from 'poolgrad/dom';
import { number } from 'poolgrad/sentences';

/** @param {import('poolgrad/tensor').Tensor} tensor */
export function statsLine(tensor) {
  const { min, max, sum, zeros, nan, inf, size } = tensor.stats;
  const say = (value) => (value === null || value === undefined ? '–' : number(value, tensor.dtype));
  const parts = size ? [`min ${say(min)}`, `max ${say(max)}`, `Σ ${say(sum)}`] : ['empty'];
  if (zeros) parts.push(`${zeros} of ${size} ${size === 1 ? 'cell is' : 'cells are'} zero`);
  const odd = [nan ? `${nan} NaN` : '', inf ? `${inf} infinite` : ''].filter(Boolean).join(', ');
  return el('p.stats', {}, ...parts.map((part) => el('span', { text: part })), odd ? el('b.flag', { text: odd }) : null);
}

/** The conservation line: all of it arrived, or how much did not and where. @param {any} cons @returns {Node|null} */
export function conservation(cons) {
  if (!cons) return null;
  const line = el(cons.equal ? 'p.kept' : cons.comparable ? 'p.lost' : 'p.where', { text: `${cons.sentence}${cons.equal ? ' ✓' : ''}` });
  return cons.where ? el('div', {}, line, el('p.where', { text: cons.where })) : line;
}
