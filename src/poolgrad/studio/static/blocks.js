// One block of the canvas: title, pins, text fields, outputs and results.

import { el, fill } from 'poolgrad/dom';
import { WIDTH, resultsHeight } from 'poolgrad/geometry';
import { MiniMap } from 'poolgrad/minimap';
import { emptiness, hint } from 'poolgrad/ops';
import { stepsOf } from 'poolgrad/stepping';

/** @typedef {import('poolgrad/model').GraphNode} GraphNode */
/** @typedef {import('poolgrad/ops').Block} Facts */

const STATES = { ok: 'computed', failed: 'has a problem', blocked: 'waits for a block with a problem', unknown: 'not run yet' };

export class BlockView {
  /** @param {GraphNode} node @param {Facts} facts */
  constructor(node, facts) {
    this.node = node;
    this.facts = facts;
    this.fields = new Map();
    this.pins = new Map();
    this.outs = new Map();
    this.shapes = new Map();
    this.maps = new Map();
    this.tall = facts.height; // with its results
    this.dot = el('span.dot', { role: 'img' });
    this.results = el('div.results');
    this.element = el('div.block', {
      tabindex: 0, role: 'group', 'data-id': node.id, 'data-group': facts.group,
      'aria-label': `${node.id} ${node.op} block`, title: facts.doc,
    }, this.title());
    this.element.style.width = `${WIDTH}px`;
    this.element.style.setProperty('--height', `${facts.height}px`);
    this.state('unknown', '');
    this.place(node);
  }

  /** Build pins, fields and room for results. This is most of a block, so it may follow after the title. */
  fill() {
    this.element.append(this.body(), this.results);
  }

  title() {
    const name = el('input.id', {
      value: this.node.id, 'aria-label': `${this.node.id} name`, spellcheck: 'false', 'data-rename': this.node.id,
      size: Math.max(this.node.id.length, 2), title: 'Name of this block',
    });
    return el('header', {}, this.dot, el('span.op', { text: this.node.op }), name);
  }

  body() {
    const scope = this.facts.scope ? el('div.row.scope', { title: 'Every block of a page is in the scope of that page' }, el('span.pin'), el('span', { text: 'scope' })) : null;
    return el('div.body', {}, scope, ...this.facts.pins.map((pin) => this.pinRow(pin)), ...this.facts.outputs.map((pin) => this.outputRow(pin)));
  }

  pinRow(pin) {
    const parts = [];
    if (pin.wired) {
      const button = el('button.pin.in', {
        'data-end': `${this.node.id}.${pin.name}`, 'data-side': 'in', 'aria-label': `${this.node.id} input ${pin.name}`, title: hint(pin),
      });
      this.pins.set(pin.name, button);
      parts.push(button);
    }
    parts.push(el('span', { text: pin.name, title: hint(pin) }));
    return pin.typed ? this.textRow(pin, parts) : el('div.row', {}, ...parts);
  }

  textRow(pin, parts) {
    const field = el('input', {
      'aria-label': `${this.node.id} ${pin.name}`, 'data-field': pin.name, spellcheck: 'false', autocomplete: 'off',
      value: this.node.text?.[pin.name] ?? '', placeholder: emptiness(pin),
    });
    const mark = el('span.mark', { 'aria-hidden': 'true' });
    const bubble = el('span.bubble', { id: `bubble-${this.node.id}-${pin.name}`, role: 'status' });
    const choose = pin.type === 'path' ? el('button.choose', { text: '…', 'data-choose': pin.name, 'aria-label': `${this.node.id} choose file` }) : null;
    const steps = stepsOf(pin);
    const stepper = steps ? this.stepper(pin, field, steps) : null;
    const file = pin.type === 'path' ? el('span.file', { 'aria-hidden': 'true' }) : null;
    const row = el('div.row.text', {}, ...parts, el('span.field', {}, field, mark, file, choose, stepper), bubble);
    this.fields.set(pin.name, { field, mark, bubble, row, file });
    return row;
  }

  /** Buttons that write the text for those who do not type it; Alt and an arrow key do the same. */
  stepper(pin, field, steps) {
    const go = (by) => {
      field.value = steps(field.value || pin.default || pin.example, by);
      field.dispatchEvent(new Event('input', { bubbles: true }));
    };
    field.addEventListener('keydown', (event) => {
      const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!by || !event.altKey) return;
      event.preventDefault();
      go(by);
    });
    const button = (text, what, by) => el('button.stepper', { text, tabindex: -1, 'aria-label': `${this.node.id} ${pin.name} ${what}`, title: `${pin.name} ${what}  (Alt ${by > 0 ? '↑' : '↓'})`, onclick: () => go(by) });
    return pin.words ? button('▾', 'next', 1) : el('span.steppers', {}, button('−', 'smaller', -1), button('+', 'larger', 1));
  }

  outputRow(pin) {
    const button = el('button.pin.out', {
      'data-end': `${this.node.id}.${pin.name}`, 'data-side': 'out', 'aria-label': `${this.node.id} output ${pin.name}`, title: pin.doc ?? '',
    });
    const shape = el('span.shape');
    this.outs.set(pin.name, button);
    this.shapes.set(pin.name, shape);
    return el('div.row.output', {}, shape, el('span', { text: pin.name }), button);
  }

  /** @param {GraphNode} node */
  place(node) {
    const [x, y] = node.at ?? [0, 0];
    this.element.style.transform = `translate(${x}px, ${y}px)`;
  }

  /** Take over a changed node; keep the caret of a field in use. @param {GraphNode} node */
  update(node) {
    for (const [name, { field }] of this.fields) {
      const text = node.text?.[name] ?? '';
      if (field.value !== text) field.value = text;
    }
    this.place(node);
    this.node = node;
  }

  /** Show the names of files instead of their hashes. @param {Record<string, any>} data of the document */
  showFiles(data) {
    for (const { field, file } of this.fields.values()) {
      if (!file) continue;
      const name = data[field.value.trim()]?.name;
      file.textContent = typeof name === 'string' ? name : '';
      field.title = file.textContent;
    }
  }

  /** @param {string} status @param {string} note */
  state(status, note) {
    this.element.dataset.status = status;
    this.dot.setAttribute('aria-label', `${this.node.id} ${STATES[status] ?? status}`);
    this.dot.title = note || STATES[status];
  }

  /** Show the source in each field whose pin is wired. @param {Map<string, string>} sources by pin */
  showWired(sources) {
    for (const pin of this.facts.pins.filter((p) => p.typed && p.wired)) {
      const { field } = this.fields.get(pin.name) ?? {};
      if (!field) continue;
      const from = sources.get(pin.name);
      field.classList.toggle('wired', Boolean(from));
      field.placeholder = from ? `← ${from}` : emptiness(pin);
    }
  }

  /** Show the known shapes beside the outputs. @param {Record<string, {shape: number[], dtype: string}>} known */
  showShapes(known) {
    for (const [pin, label] of this.shapes) {
      const text = known[pin]?.shape ? `[${known[pin].shape.map((n) => n ?? '?').join(',')}]` : '';
      if (label.textContent !== text) label.textContent = text;
    }
  }

  /** Show errors at their fields and pins. @param {any[]} problems those of this block */
  showProblems(problems) {
    for (const [name, parts] of this.fields) this.showField(parts, problems.find((p) => p.pin === name));
    for (const [name, button] of this.pins) {
      const bad = problems.find((p) => p.pin === name);
      button.classList.toggle('bad', Boolean(bad));
      if (bad) button.setAttribute('aria-description', bad.sentence);
      else button.removeAttribute('aria-description');
    }
  }

  showField({ field, mark, bubble, row }, problem) {
    row.classList.toggle('bad', Boolean(problem));
    field.setAttribute('aria-invalid', String(Boolean(problem)));
    bubble.textContent = problem ? problem.sentence : '';
    if (problem) field.setAttribute('aria-describedby', bubble.id);
    else field.removeAttribute('aria-describedby');
    const at = problem?.at ?? null;
    if (at === null) {
      fill(mark);
      return;
    }
    // Repeat the characters in the same font, so that the wave stands exactly below the wrong ones.
    const text = field.value.padEnd(at + 1);
    const end = at + Math.max(problem.length ?? 1, 1);
    fill(mark, text.slice(0, at), el('i', { text: text.slice(at, end) }), text.slice(end));
  }

  /** Results inside the block. @param {import('poolgrad/tensor').Tensor[]} tensors */
  showResults(tensors) {
    const same = tensors.length === this.maps.size && tensors.every((t) => this.maps.get(t.pin)?.tensor === t);
    if (same) return;
    this.maps = new Map(tensors.map((t) => [t.pin, new MiniMap(t)]));
    fill(this.results, ...[...this.maps.values()].map((map) => map.element));
    this.tall = this.facts.height + resultsHeight(tensors);
    this.element.style.setProperty('--height', `${this.tall}px`);
  }
}
