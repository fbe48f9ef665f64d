// The page without a server: the flow as it ran, and the inspector. For the HTML export and for notebooks.

import { el } from 'poolgrad/dom';
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
 * Shows a page and what its run gave.
 * @param {HTMLElement} root @param {{graph: any, page: string, ops: any, run: any}} data
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
  root.append(el('header.top', {}, el('h1', {}, 'pool', el('em', { text: 'grad' })), el('span.name', { text: data.page }), el('span.space'), themeButton(redraw)),
    flow.element, inspector.element);
  const height = (node) => (store.ops.get(node.op)?.height ?? 120) + 90;
  const at = Math.max(0, data.graph.pages.findIndex((page) => page.name === data.page));
  store.open({ ...data.graph, pages: data.graph.pages.map((page) => arrange(page, height)) });
  store.show(at);
  store.run = data.run;
  store.tensors = tensorsOf(data.run);
  store.tell('run');
  for (const field of flow.element.querySelectorAll('input, button')) Object.assign(field, { readOnly: true, disabled: field.tagName === 'BUTTON' });
  flow.fit();
  addEventListener('resize', () => flow.fit());
}
