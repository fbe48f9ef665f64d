// A PNG of the page: blocks, wires and results drawn on a canvas.

import { ODD, ink, scale } from 'poolgrad/colour';
import { WIDTH, curve, preview } from 'poolgrad/geometry';
import { nodeOf, pinOf } from 'poolgrad/model';
import { short } from 'poolgrad/tensor';
import { inlet, outlet } from 'poolgrad/wires';

const MARGIN = 32;
const SANS = 'system-ui, sans-serif';
const MONO = 'ui-monospace, monospace';

/** @param {import('poolgrad/flow').Flow} flow @returns {Promise<Blob>} */
export function picture(flow) {
  const [left, top, right, bottom] = flow.bounds();
  const ratio = Math.min(2, 8000 / Math.max(right - left, bottom - top));
  const canvas = document.createElement('canvas');
  canvas.width = (right - left + 2 * MARGIN) * ratio;
  canvas.height = (bottom - top + 2 * MARGIN) * ratio;
  const pen = canvas.getContext('2d');
  pen.scale(ratio, ratio);
  pen.translate(MARGIN - left, MARGIN - top);
  const tone = (name) => {
    flow.element.style.color = `var(${name})`; // light-dark() is only resolved where it is used
    return getComputedStyle(flow.element).color;
  };
  pen.fillStyle = tone('--ground');
  pen.fillRect(left - MARGIN, top - MARGIN, right - left + 2 * MARGIN, bottom - top + 2 * MARGIN);
  drawWires(pen, flow, tone);
  for (const block of flow.blocks.values()) drawBlock(pen, flow, block, tone);
  flow.element.style.color = '';
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(/** @type {Blob} */ (blob)), 'image/png'));
}

function drawWires(pen, flow, tone) {
  for (const [from, to] of flow.store.page.wires) {
    const [a, b] = [flow.blocks.get(nodeOf(from)), flow.blocks.get(nodeOf(to))];
    if (!a || !b) continue;
    const [start, end] = [outlet(a, from), inlet(b, to)];
    Object.assign(pen, { strokeStyle: tone('--wire'), lineWidth: 2 });
    pen.stroke(new Path2D(curve(start, end)));
    Object.assign(pen, { font: `10px ${MONO}`, fillStyle: tone('--soft'), textAlign: 'center' });
    const shape = flow.store.run?.nodes[nodeOf(from)]?.outputs?.[pinOf(from)]?.shape;
    if (shape) pen.fillText(shape.join(','), (start[0] + end[0]) / 2, (start[1] + end[1]) / 2 - 5);
  }
}

function drawBlock(pen, flow, block, tone) {
  const [x, y] = block.node.at ?? [0, 0];
  pen.save();
  pen.translate(x, y);
  pen.beginPath();
  pen.roundRect(0, 0, WIDTH, flow.height(block), 8);
  Object.assign(pen, { fillStyle: tone('--card'), strokeStyle: tone('--line'), lineWidth: 1 });
  pen.fill();
  pen.stroke();
  pen.fillStyle = tone(`--${block.facts.group.replace(' ', '-')}`);
  pen.fillRect(0, 0, WIDTH, 3);
  write(pen, block.node.op, 12, 21, `600 12px ${SANS}`, tone('--ink'));
  write(pen, block.node.id, WIDTH - 10, 21, `11px ${SANS}`, tone('--soft'), 'right');
  for (const pin of block.facts.pins) drawPin(pen, block, pin, tone);
  for (const pin of block.facts.outputs) {
    dot(pen, WIDTH, pin.y, tone('--out'));
    write(pen, pin.name, WIDTH - 12, pin.y + 4, `11px ${SANS}`, tone('--ink'), 'right');
  }
  let top = block.facts.height;
  for (const map of block.maps.values()) top = drawMap(pen, map, top, tone);
  pen.restore();
}

function drawPin(pen, block, pin, tone) {
  if (pin.wired) dot(pen, 0, pin.y, tone('--in'));
  write(pen, pin.name, 12, pin.y + 4, `11px ${SANS}`, tone('--ink'));
  const text = pin.typed ? block.node.text?.[pin.name] ?? '' : '';
  write(pen, text.length > 18 ? `${text.slice(0, 17)}…` : text, 84, pin.y + 4, `10.5px ${MONO}`, tone('--ink'));
}

function drawMap(pen, map, top, tone) {
  const { tensor } = map;
  const at = preview(tensor);
  write(pen, `result_${tensor.pin}  ${tensor.dtype}`, 12, top + 12, `10px ${SANS}`, tone('--soft'));
  write(pen, `[${tensor.shape.join(',')}]`, WIDTH - 12, top + 12, `10px ${MONO}`, tone('--soft'), 'right');
  const colour = scale(tensor.role, tensor.stats.min ?? 0, tensor.stats.max ?? 0);
  for (let tall = 0; tall < (tensor.values ? at.down : 0); tall++) {
    for (let wide = 0; wide < at.across; wide++) {
      const corner = [12 + wide * (at.width + at.gap), top + 20 + tall * (at.height + at.gap)];
      drawCells(pen, map, at, map.start(tall, wide), corner, colour);
    }
  }
  return top + 28 + at.total;
}

function drawCells(pen, map, at, start, [left, top], colour) {
  for (let row = 0; row < at.rows; row++) {
    for (let column = 0; column < at.columns; column++) {
      const value = map.tensor.values[map.at(start, row, column)];
      const rgb = at.rgb ? map.light3(start, row, column) : colour(value) ?? ODD;
      pen.fillStyle = `rgb(${rgb})`;
      pen.fillRect(left + column * at.cell, top + row * at.cell, at.cell - (at.picture ? -0.5 : 1), at.cell - (at.picture ? -0.5 : 1));
      if (at.numbers) write(pen, short(value, 4), left + (column + 0.5) * at.cell, top + (row + 0.5) * at.cell + 3.5, `10px ${MONO}`, ink(rgb), 'center');
    }
  }
}

function dot(pen, x, y, colour) {
  pen.beginPath();
  pen.arc(x, y, 5, 0, 7);
  pen.fillStyle = colour;
  pen.fill();
}

function write(pen, text, x, y, font, colour, align = 'left') {
  Object.assign(pen, { font, fillStyle: colour, textAlign: align });
  pen.fillText(text, x, y);
}
