// One question with a few answers.

import { el } from 'poolgrad/dom';

/** Ask, and return the answer that was chosen; null if none was. @param {string} text @param {string[]} answers the first is proposed
 * @returns {Promise<string|null>} */
export function ask(text, answers) {
  return new Promise((resolve) => {
    let chosen = null;
    const choose = (/** @type {string|null} */ answer) => { chosen = answer; box.close(); };
    const buttons = answers.map((answer, i) => el(i ? 'button' : 'button.primary', { text: answer, autofocus: !i, onclick: () => choose(answer) }));
    const box = el('dialog.help.question', { 'aria-label': 'Question' }, el('p', { text }), el('div.answers', {}, ...buttons, el('button', { text: 'Cancel', onclick: () => choose(null) })));
    box.addEventListener('close', () => { box.remove(); resolve(chosen); });
    document.body.append(box);
    box.showModal();
  });
}
