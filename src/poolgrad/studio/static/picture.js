// A PNG of the page: blocks, wires and results drawn on a canvas.

import { penOf } from 'poolgrad/dom';
import { ODD, ink, scale } from 'poolgrad/colour';
import { PAD, PIN_ROW, TITLE, WIDTH, preview } from 'poolgrad/geometry';
import { short, typeSize } from 'poolgrad/tensor';

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
  const pen = penOf(canvas);
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
    const view = flow.wires.views.get(`${from} ${to}`);
    if (!view) continue;
    const { d, middle, label } = view;
    Object.assign(pen, { strokeStyle: tone('--wire'), lineWidth: 2 });
    pen.stroke(new Path2D(d));
    Object.assign(pen, { font: `10px ${MONO}`, fillStyle: tone('--soft'), textAlign: 'center' });
    if (middle) pen.fillText(label.textContent, middle[0], middle[1] - 5);
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
  if (block.facts.scope) {
    dot(pen, 0, TITLE + PAD + PIN_ROW / 2, tone('--line-strong'));
    write(pen, 'scope', 12, TITLE + PAD + PIN_ROW / 2 + 4, `11px ${SANS}`, tone('--faint'));
  }
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
  const text = block.fields.get(pin.name)?.file?.textContent || (pin.typed ? block.node.text?.[pin.name] ?? '' : ''); // a file's name, not its hash
  const left = Math.max(64, 20 + pin.name.length * 6);
  const room = Math.floor((WIDTH - left - 8) / 6.4);
  write(pen, text.length > room ? `${text.slice(0, room - 1)}…` : text, left, pin.y + 4, `10.5px ${MONO}`, tone('--ink'));
}

function drawMap(pen, map, top, tone) {
  const { tensor } = map;
  const at = preview(tensor);
  const name = `result_${tensor.pin}  ${tensor.dtype}`;
  write(pen, name, 12, top + 12, `10px ${SANS}`, tone('--soft'));
  const shape = `[${tensor.shape.join(',')}]`;
  const free = WIDTH - 30 - pen.measureText(name).width; // beside the name
  write(pen, shape, WIDTH - 12, top + 12, `${typeSize(shape, free, 10)}px ${MONO}`, tone('--soft'), 'right');
  const colour = scale(tensor.role, tensor.stats.min ?? 0, tensor.stats.max ?? 0);
  for (let tall = 0; tall < (map.drawn?.values?.length ? at.down : 0); tall++) {
    for (let wide = 0; wide < at.across; wide++) {
      const corner = [12 + wide * (at.width + at.gap), top + 20 + tall * (at.height + at.gap)];
      drawCells(pen, map, at, map.start(tall, wide), corner, colour);
    }
  }
  if (at.note) write(pen, at.note, 12, top + 20 + at.total - 3, `9.5px ${SANS}`, tone('--soft'));
  return top + 28 + at.total;
}

/** @param {number[]} corner of the panel */
function drawCells(pen, map, at, start, corner, colour) {
  const [left, top] = corner;
  if (at.picture) {
    const small = new OffscreenCanvas(at.columns, at.rows);
    small.getContext('2d')?.putImageData(map.image(start), 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, left, top, at.width, at.height);
    return;
  }
  for (let row = 0; row < at.rows; row++) {
    for (let column = 0; column < at.columns; column++) {
      const value = map.drawn.values[map.at(start, row, column)];
      const rgb = colour(value) ?? ODD;
      pen.fillStyle = `rgb(${rgb})`;
      pen.fillRect(left + column * at.cell, top + row * at.cell, at.cell - 1, at.cell - 1);
      if (!at.numbers) continue;
      const text = short(value, 4);
      write(pen, text, left + (column + 0.5) * at.cell, top + (row + 0.5) * at.cell + 3.5, `${typeSize(text, at.cell - 2, 10)}px ${MONO}`, ink(rgb), 'center');
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
