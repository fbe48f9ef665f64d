// Repairs: the edits that a problem offers, applied to a page.

import { addNode, connect, removeNodes, setText } from 'poolgrad/model';

/** @typedef {import('poolgrad/model').Page} Page */

const RULES = {
  add_node: (page, edit) => addNode(page, edit.node),
  remove_node: (page, edit) => removeNodes(page, new Set([edit.id])),
  set_text: (page, edit) => setText(page, edit.id, edit.pin, edit.text),
  add_wire: (page, edit) => connect(page, edit.wire[0], edit.wire[1]),
  remove_wire: (page, edit) => ({ ...page, wires: page.wires.filter((wire) => String(wire) !== String(edit.wire)) }),
};

/** @param {Page} page @param {Array<{do: string}>} edits @returns {Page} */
export function applyEdits(page, edits) {
  return edits.reduce((now, edit) => {
    const rule = RULES[edit.do];
    if (!rule) throw new Error(`there is no edit ${edit.do}`);
    return rule(now, edit);
  }, page);
}
