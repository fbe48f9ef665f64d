// Fill the phrases that Python sends (poolgrad/_explain/sentences.py): no word of a sentence is written here.

/** @typedef {{text: string, kind: 'text'|'cell'|'value'|'window', pin: string, cell: number[]}} SentencePart */
/** @typedef {{pin: string, name: string, dtype: string, shape: number[], values: ArrayLike<number>|undefined}} NamedArray */
/** @typedef {{values: Record<string, any>, places: Record<string, number[]>, lists?: Record<string, Facts[]>}} Facts */

import { ravel } from 'poolgrad/tensor';

/** A number with at most six digits. @param {number} value @param {string} [dtype] */
export function number(value, dtype = 'float32') {
  if (dtype.includes('int')) return Number.isSafeInteger(value) ? String(value) : BigInt(value).toString();
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf';
  const short = Number(value.toPrecision(6));
  if (short === 0) return '0';
  const size = Math.abs(short);
  return size >= 1e-4 && size < 1e15 ? String(short) : short.toExponential().replace('+', '');
}

/** The name of a cell, like `dx[0,1]`. @param {string} name @param {Array<number|string>} cell */
export function cellText(name, cell) {
  return `${name}[${cell.join(',')}]`;
}

/** @param {string} text @param {SentencePart['kind']} [kind] @param {string} [pin] @param {number[]} [cell] @returns {SentencePart} */
export function part(text, kind = 'text', pin = '', cell = []) {
  return { text, kind, pin, cell };
}

/**
 * Return the parts of a sentence, a heading or a formula: every clause whose conditions hold, its slots filled.
 * @param {any} phrases @param {'sentences'|'headings'|'formulas'} form @param {string} kind kernel and side @param {Facts} facts
 * @param {Record<string, NamedArray>} arrays by symbol
 */
export function say(phrases, form, kind, facts, arrays) {
  const held = { ...arrays };
  for (const [alias, symbols] of Object.entries(phrases.aliases)) held[alias] = arrays[symbols.find((symbol) => arrays[symbol])];
  const clauses = holding(phrases[form][kind], facts);
  return merged(clauses.flatMap((clause, i) => [...(i ? [part(' ')] : []), ...filled(phrases, clause, facts, held)]));
}

function holding(clauses, facts) {
  return clauses.filter(([conditions]) => conditions.every((condition) => holds(condition, facts))).map(([, text]) => text);
}

function holds({ fact, test, than, holds: wanted }, { values }) {
  const value = values[fact] ?? 0;
  const found = test === '=' ? String(value) === than : test === '>' ? value > Number(than) : Boolean(value);
  return found === wanted;
}

/** @returns {SentencePart[]} */
function filled(phrases, text, facts, arrays) {
  return text.flatMap((slot) => {
    if (typeof slot === 'string') return part(slot);
    if (slot.array) return mention(phrases, arrays[slot.array], facts.places[slot.place] ?? [], slot.show);
    const [counted, one, many] = phrases.plurals[slot.fact] ?? [];
    if (counted) return filled(phrases, facts.values[counted] === 1 ? one : many, facts, arrays);
    if (phrases.lists[slot.fact]) return listed(phrases, slot.fact, facts, arrays);
    const value = facts.values[slot.fact];
    return value?.text === undefined ? part(String(value)) : value;
  });
}

/** List the first few entries, and say how many more there are. */
function listed(phrases, name, facts, arrays) {
  const [source, joint, clauses] = phrases.lists[name];
  const entries = facts.lists[source];
  const said = entries.map((entry) => holding(clauses, entry).flatMap((clause) => filled(phrases, clause, entry, arrays)));
  const more = facts.values[source] - entries.length;
  if (more > 0) said.push(filled(phrases, phrases.more, { values: { more }, places: {} }, arrays));
  return said.flatMap((entry, i) => (i ? [part(joint), ...entry] : entry));
}

function mention(phrases, array, cell, show) {
  if (show === 'name') return part(array.name);
  if (show === 'cell') return part(cellText(array.name, cell), 'cell', array.pin, cell);
  const { values, dtype, shape } = array;
  return part(values ? number(Number(values[ravel(cell, shape)]), dtype) : phrases.unknown, 'value', array.pin, cell);
}

/** Join neighbouring parts that are plain text. @param {SentencePart[]} parts */
function merged(parts) {
  const made = [];
  for (const next of parts) {
    const last = made.at(-1);
    if (last?.kind === 'text' && next.kind === 'text') made[made.length - 1] = part(last.text + next.text);
    else made.push(next);
  }
  return made;
}
