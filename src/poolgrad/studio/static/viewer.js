// The page without a server: the flow as it ran, and the inspector. For the HTML export and for notebooks.

import { Arrival } from 'poolgrad/arrival';
import { el, rove } from 'poolgrad/dom';
import { Flow } from 'poolgrad/flow';
import { Inspector } from 'poolgrad/inspector';
import { fromLink, isLink, linkOf } from 'poolgrad/link';
import { blocksOf } from 'poolgrad/ops';
import { Placing } from 'poolgrad/placing';
import { Pointing } from 'poolgrad/pointing';
import { tensorsOf } from 'poolgrad/results';
import { Store } from 'poolgrad/store';
import { themeButton } from 'poolgrad/theme';
import { Views } from 'poolgrad/views';

/**
 * Shows pages, and the page of the address before them, if it holds one.
 * @param {HTMLElement} root @param {{ops: any, pages: Array<{graph: any, run: any}>}} data
 */
export async function open(root, data) {
  const pages = [...data.pages];
  let trouble = '';
  if (isLink(location.hash)) {
    try {
      const found = await fromLink(location.hash);
      if (!found.run) throw new Error('The page of this address came without results: open it in poolgrad studio.');
      pages.unshift({ graph: { data: {}, ...found.graph }, run: found.run });
    } catch (error) { trouble = error instanceof Error ? error.message : String(error); }
  }
  try {
    mount(root, { ...data, pages });
  } catch (error) {
    if (pages.length === data.pages.length) throw error;
    root.replaceChildren(); // the results of the address cannot be drawn
    trouble = 'This address holds no page: its results cannot be drawn.';
    mount(root, data);
  }
  if (trouble) root.prepend(el('p.trouble', { role: 'alert', text: trouble }));
  addEventListener('hashchange', () => { if (isLink(location.hash)) location.reload(); });
}

/**
 * Shows pages and what their runs gave: one, or a tab for each.
 * @param {HTMLElement} root @param {{ops: any, pages: Array<{graph: any, run: any}>}} data
 */
export function mount(root, data) {
  const store = Object.assign(new Store(), { ops: blocksOf(data.ops), phrases: data.ops.phrases });
  const flow = new Flow(store);
  const pointing = new Pointing(store);
  const inspector = new Inspector(store, pointing);
  pointing.listen(flow.element, () => inspector.node);
  new Views(store, flow);
  store.on('relation', (found) => flow.light(found?.marks ?? null));
  const redraw = () => { flow.redraw(); inspector.redraw(); };
  root.classList.add('viewer');
  const pages = new Placing(store, flow).placed(data.pages.map(({ graph }) => graph.pages[0]));
  /** @type {Array<Map<string, any>|null>} */ const held = data.pages.map(() => null); // the tensors of each page, unpacked when it is first seen
  const tagline = el('span.tagline');
  const tabs = pages.length > 1 ? tabList(pages, (at) => { store.show(at); turn(); }) : el('span.name', { text: pages[0].name });
  const turn = () => {
    store.run = data.pages[store.at].run;
    store.tensors = held[store.at] ??= tensorsOf(store.run);
    store.tell('run');
    for (const field of flow.element.querySelectorAll('input, button')) Object.assign(field, { readOnly: true, disabled: field.tagName === 'BUTTON' });
    flow.fit();
  };
  new Arrival(store, pointing, tagline);
  const link = el('button', { text: 'Copy link', title: 'An address that holds this page' });
  link.addEventListener('click', async () => {
    const { graph, run } = data.pages[store.at];
    try {
      await navigator.clipboard.writeText(location.href.split('#')[0] + await linkOf(graph, run));
      link.textContent = 'Copied';
    } catch (error) { link.textContent = error instanceof Error && error.message.startsWith('This page') ? 'Too large for a link' : 'Not allowed here'; }
    setTimeout(() => { link.textContent = 'Copy link'; }, 2500);
  });
  root.append(el('header.top', {}, el('h1', {}, 'pool', el('em', { text: 'grad' })), tabs, tagline, el('span.space'), link, themeButton(redraw)), flow.element, inspector.element);
  store.open({ format: 'poolgrad-graph', version: 1, pages, data: Object.assign({}, ...data.pages.map(({ graph }) => graph.data)) });
  turn();
  addEventListener('resize', () => flow.fit());
}

/** A tab for each page. @param {any[]} pages @param {(at: number) => void} show */
function tabList(pages, show) {
  const list = el('div.tabs', { role: 'tablist', 'aria-label': 'Pages' });
  const choose = (at) => {
    [...list.children].forEach((tab, i) => { tab.setAttribute('aria-selected', String(i === at)); tab.tabIndex = i === at ? 0 : -1; });
    show(at);
  };
  list.append(...pages.map((page, i) => el('button.page', { role: 'tab', text: page.name, 'aria-label': `Page ${page.name}`, 'aria-selected': String(!i), tabindex: i ? -1 : 0, onclick: () => choose(i) })));
  rove(list, '[role="tab"]', (tab) => tab.click());
  return list;
}
