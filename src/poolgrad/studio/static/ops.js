// The blocks as the server describes them, with the place of every row worked out once.

import { PAD, PIN_ROW, TEXT_ROW, TITLE } from 'poolgrad/geometry';

/** @typedef {{name: string, kind: string, type: string, required: boolean, default: string, example: string, doc: string,
 *   words: string[]|null, unset: string|null, wired: boolean, typed: boolean, y: number}} Pin */
/** @typedef {{op: string, group: string, doc: string, pins: Pin[], outputs: Array<{name: string, doc: string, y: number}>,
 *   scope: boolean, height: number, known: boolean}} Block */

/** Lay the rows of a block out. @param {any} raw @param {boolean} known @returns {Block} */
function layOut(raw, known) {
  const scope = raw.group !== 'input';
  let y = TITLE + PAD + (scope ? PIN_ROW : 0);
  const pins = raw.pins.map((pin) => {
    const typed = pin.kind !== 'input';
    const row = { ...pin, typed, wired: pin.kind !== 'text', y: y + (typed ? TEXT_ROW : PIN_ROW) / 2 };
    y += typed ? TEXT_ROW : PIN_ROW;
    return row;
  });
  const outputs = raw.outputs.map((output) => {
    y += PIN_ROW;
    return { ...output, y: y - PIN_ROW / 2 };
  });
  return { ...raw, pins, outputs, scope, height: y + PAD, known };
}

/** @param {{blocks: any[]}} answer of /api/ops @returns {Map<string, Block>} */
export function blocksOf(answer) {
  return new Map(answer.blocks.map((raw) => [raw.op, layOut(raw, true)]));
}

/** Make a block for an unknown op, so that its wires have pins to end at. @param {string} op @param {string[]} inputs
 * @param {string[]} outputs @returns {Block} */
export function strange(op, inputs, outputs) {
  const pins = inputs.map((name) => ({ name, kind: 'input', type: 'tensor', required: false, default: '', example: '', doc: '', words: null, unset: null }));
  const raw = { op, group: 'strange', doc: 'There is no op of this name.', pins, outputs: outputs.map((name) => ({ name, doc: '' })) };
  return layOut(raw, false);
}

/** A new node of an op with its default texts. @param {Block} block @param {string} id @param {number[]} at */
export function fresh(block, id, at) {
  const text = Object.fromEntries(block.pins.filter((pin) => pin.typed && pin.default).map((pin) => [pin.name, pin.default]));
  return { id, op: block.op, text, at };
}

/** What an empty field shows. @param {Pin} pin */
export function emptiness(pin) {
  return pin.unset ?? (pin.default || pin.example);
}

/** Describe a pin in a line. @param {Pin} pin */
export function hint(pin) {
  const example = pin.example && pin.typed ? `  e.g. ${pin.example}` : '';
  return `${pin.doc ?? ''}${example}`;
}
