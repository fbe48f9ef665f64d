// The lower panel: problems with their repairs, the page as Python and JSON, and what happened.

import { el, fill, refill, rove } from 'poolgrad/dom';
import { onPage } from 'poolgrad/model';
import { applyEdits } from 'poolgrad/repair';

const TABS = ['Problems', 'Python', 'JSON', 'Log'];

export class Panel {
  /** @param {import('poolgrad/store').Store} store @param {any} api @param {(id: string, pin: string|null) => void} goTo */
  constructor(store, api, goTo) {
    this.store = store;
    this.api = api;
    this.goTo = goTo;
    this.tab = 'Problems';
    this.lines = [];
    this.bar = el('div.tabs', { role: 'tablist', 'aria-label': 'Panel' });
    rove(this.bar, '[role="tab"]', (tab) => tab.click());
    this.body = el('div.content', { role: 'tabpanel', 'aria-label': 'Panel content' });
    this.element = el('section.lower', { 'aria-label': 'Lower panel' }, el('div.bar', {}, this.bar), this.body);
    store.on('run', () => this.draw());
    store.on('doc', () => { if (this.tab !== 'Problems') this.draw(); });
    this.draw();
  }

  get problems() {
    const { run, page } = this.store;
    return run?.page === page.name ? run.problems : [];
  }

  get warnings() {
    const { run, page } = this.store;
    return run?.page === page.name ? run.warnings : [];
  }

  /** @param {string} tab */
  show(tab) {
    this.tab = tab;
    this.draw();
  }

  /** @param {string} line @param {boolean} [bad] */
  log(line, bad = false) {
    if (this.lines.at(-1)?.line === line) return;
    this.lines = [...this.lines, { line, bad, at: new Date().toLocaleTimeString('en-GB') }].slice(-200);
    if (this.tab === 'Log') this.draw();
  }

  draw() {
    const count = this.problems.length + this.warnings.length;
    refill(this.bar, ...TABS.map((tab) => el('button.tab', {
      role: 'tab', 'aria-selected': String(tab === this.tab), tabindex: tab === this.tab ? 0 : -1, text: tab, onclick: () => this.show(tab),
    }, tab === 'Problems' && count ? el('span.count', { text: String(count), class: this.problems.length ? 'count bad' : 'count' }) : null)));
    this.body.tabIndex = this.tab === 'Problems' && count ? -1 : 0; // cards have buttons; a text is scrolled by keys
    if (this.tab === 'Problems') this.drawProblems();
    else if (this.tab === 'Log') fill(this.body, el('pre.log', {}, ...this.lines.map(({ line, bad, at }) => el(bad ? 'div.bad' : 'div', { text: `${at}  ${line}` }))));
    else this.drawExport(this.tab === 'JSON' ? 'json' : 'python');
  }

  drawProblems() {
    const all = [...this.problems.map((p) => this.card(p, 'problem')), ...this.warnings.map((p) => this.card(p, 'warning'))];
    refill(this.body, ...(all.length ? all : [el('p.hint', { text: this.store.run ? 'No problems on this page.' : '' })]));
  }

  card(problem, kind) {
    const place = [problem.node, problem.pin].filter(Boolean).join(' · ');
    const card = el(`article.${kind}`, { 'aria-label': `${kind} ${place || 'page'}` },
      el('h2', {}, place ? el('button.place', { text: place, title: 'Go to this pin', onclick: () => this.goTo(problem.node, problem.pin) }) : 'page'),
      el('p', { text: without(problem.sentence, [problem.node, problem.pin]) }));
    if (problem.repair) card.append(el('button.repair', { text: problem.repair.label, onclick: () => this.repair(problem.repair) }));
    return card;
  }

  /** Focus the first repair, or the next one after it. @returns {boolean} whether there is a problem */
  next() {
    if (this.tab !== 'Problems') this.show('Problems');
    const stops = /** @type {HTMLElement[]} */ ([...this.body.querySelectorAll('article')].map((card) => card.querySelector('.repair') ?? card.querySelector('button')).filter(Boolean));
    stops[(stops.findIndex((stop) => stop === document.activeElement) + 1) % (stops.length || 1)]?.focus();
    return stops.length > 0;
  }

  repair(repair) {
    const { store } = this;
    store.edit(onPage(store.doc, store.at, (page) => applyEdits(page, repair.edits)));
    this.log(`Repaired: ${repair.label}.`);
    store.tell('repaired');
    this.body.focus();
  }

  async drawExport(kind) {
    const { doc, page } = this.store;
    const ticket = (this.ticket = (this.ticket ?? 0) + 1);
    try {
      const { blob } = await this.api.export(doc, page.name, kind);
      const text = await blob.text();
      if (ticket !== this.ticket || this.tab !== (kind === 'json' ? 'JSON' : 'Python')) return;
      const copy = el('button.copy', { text: 'Copy', onclick: () => navigator.clipboard.writeText(text) });
      fill(this.body, copy, el('pre.code', { 'aria-label': `${kind} of this page` }, ...(kind === 'python' ? colour(text) : [text])));
    } catch (error) {
      if (ticket === this.ticket) fill(this.body, el('p.hint', { text: error.message }));
    }
  }
}

/** A sentence without the names that stand above it. @param {string} sentence @param {Array<string|null>} names */
export function without(sentence, names) {
  let rest = sentence;
  for (const name of names) if (name && rest.startsWith(name)) rest = rest.slice(name.length).replace(/^[:,] /, '');
  return rest[0].toUpperCase() + rest.slice(1);
}

/** Python with its strings, comments and words told apart. @param {string} text @returns {Array<Node|string>} */
function colour(text) {
  const kinds = /(#.*$)|("""[^]*?"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|\b(import|from|as|for|in|if|print|def|return)\b/gm;
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(kinds)) {
    parts.push(text.slice(from, match.index), el(match[1] ? 'i.note' : match[2] ? 'i.string' : 'i.word', { text: match[0] }));
    from = match.index + match[0].length;
  }
  return [...parts, text.slice(from)];
}
