// The page without a server: the flow as it ran, and the inspector. For the HTML export and for notebooks.

import { Arrival } from 'poolgrad/arrival';
import { el, rove } from 'poolgrad/dom';
import { Flow } from 'poolgrad/flow';
import { Inspector } from 'poolgrad/inspector';
import { arrange } from 'poolgrad/layout';
import { blocksOf } from 'poolgrad/ops';
import { Pointing } from 'poolgrad/pointing';
import { tensorsOf } from 'poolgrad/results';
import { Store } from 'poolgrad/store';
import { themeButton } from 'poolgrad/theme';
import { Views } from 'poolgrad/views';

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
  const height = (node) => (store.ops.get(node.op)?.height ?? 120) + 90;
  const pages = data.pages.map(({ graph }) => arrange(graph.pages[0], height));
  const held = data.pages.map(() => null); // the tensors of each page, unpacked when it is first seen
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
  root.append(el('header.top', {}, el('h1', {}, 'pool', el('em', { text: 'grad' })), tabs, tagline, el('span.space'), themeButton(redraw)), flow.element, inspector.element);
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
