// Elements in one call, and the few helpers that every view needs.

const SVG = 'http://www.w3.org/2000/svg';

/** @typedef {Record<string, any>} Props attributes; `on…` are listeners, `text` is the text, null leaves out */

/**
 * Sets attributes, listeners and text of an element.
 * @param {Element} element @param {Props} props
 */
export function set(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined) continue;
    if (name === 'text') element.textContent = value;
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false) element.setAttribute(name, value);
  }
  return element;
}

/**
 * An HTML element with its children.
 * @param {string} tag `name.class.class` @param {Props} [props] @param {...(Node|string|null)} children
 * @returns {any} an HTMLElement of that tag
 */
export function el(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(' ');
  set(element, props);
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** An SVG element. @param {string} tag @param {Props} [props] @returns {any} */
export function svg(tag, props = {}) {
  return set(document.createElementNS(SVG, tag), props);
}

/** Replace all children. @param {Element} parent @param {...(Node|string|null)} children */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== null));
}

/** Return an element's name across redraws: a cell's position, else its label. @param {Element} element */
function identity(element) {
  const cell = /** @type {HTMLElement} */ (element).dataset.cell;
  if (cell !== undefined) return `${element.closest('[data-tensor]')?.getAttribute('data-tensor')} ${cell}`;
  return element.getAttribute('aria-label') ?? element.textContent;
}

/** Replace all children; restore the focus if its element still exists. @param {Element} parent
 * @param {...(Node|string|null)} children */
export function refill(parent, ...children) {
  const held = document.activeElement;
  const name = held && held !== parent && parent.contains(held) ? identity(held) : null;
  fill(parent, ...children);
  if (name === null || parent.contains(document.activeElement)) return;
  const again = [...parent.querySelectorAll('button, input, [tabindex]')].find((element) => identity(element) === name);
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}

const STEPS = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

/** Let arrow keys, Home and End go through the items of a group that is one stop for Tab. @param {HTMLElement} group
 * @param {string} items a selector @param {(item: HTMLElement) => void} [act] on the item that is reached */
export function rove(group, items, act = () => {}) {
  group.addEventListener('keydown', (event) => {
    const all = /** @type {HTMLElement[]} */ ([...group.querySelectorAll(items)]);
    const at = all.findIndex((item) => item === document.activeElement);
    const next = { Home: 0, End: all.length - 1 }[event.key] ?? (at + (STEPS[event.key] ?? 0) + all.length) % all.length;
    if (at < 0 || next === at || !(event.key in STEPS || event.key === 'Home' || event.key === 'End')) return;
    event.preventDefault();
    event.stopPropagation();
    all[next].focus();
    act(all[next]);
  });
}

/** Return true if typed keys belong to a field. @param {EventTarget|null} target */
export function isField(target) {
  return target instanceof HTMLElement && Boolean(target.closest('input, textarea, select, [contenteditable]'));
}

/** Download a file. @param {string} name @param {Blob} blob */
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = el('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Ask for files; return those picked. @param {string} accept @returns {Promise<File[]>} */
export function pick(accept) {
  return new Promise((resolve) => {
    const input = el('input', { type: 'file', accept, multiple: true, 'aria-label': 'File to open', hidden: true });
    input.addEventListener('change', () => { resolve([...input.files]); input.remove(); });
    input.addEventListener('cancel', () => { resolve([]); input.remove(); });
    document.body.append(input);
    input.click();
  });
}

/** What draws on a canvas. @template {HTMLCanvasElement|OffscreenCanvas} T @param {T} canvas
 * @returns {T extends HTMLCanvasElement ? CanvasRenderingContext2D : OffscreenCanvasRenderingContext2D} */
export function penOf(canvas) {
  const pen = canvas.getContext('2d');
  if (!pen) throw new Error('This browser draws on no canvas.');
  return /** @type {any} */ (pen);
}

/** The name of the block that an element of the canvas is. @param {HTMLElement} element */
export function idOf(element) {
  return element.dataset.id ?? '';
}
