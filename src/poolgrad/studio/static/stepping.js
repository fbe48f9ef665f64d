// Buttons and keys that change a text as a person would type it: sizes up and down, one of several words.

/** The text with its middle numbers changed by a step, or all of them if there are fewer than four: batch and channels stay.
 * @param {string} text like `1,2,2,1` or `{1, 2, 2, 1}` @param {number} by */
export function stepped(text, by) {
  const count = (text.match(/\d+/g) ?? []).length;
  let at = -1;
  return text.replace(/\d+/g, (digits) => {
    at++;
    return count > 3 && (at === 0 || at === count - 1) ? digits : String(Math.max(1, Number(digits) + by));
  });
}

/** The word after this one in a list. @param {string[]} words @param {string} text @param {number} by */
export function turned(words, text, by) {
  const plain = text.trim().replace(/^["']|["']$/g, '').toLowerCase();
  const at = words.findIndex((word) => word.toLowerCase() === plain);
  return words[(at + by + words.length) % words.length];
}

/** Return a function that changes a pin's text by a step, or null if its text has no steps. @param {import('poolgrad/ops').Pin} pin */
export function stepsOf(pin) {
  const words = pin.words;
  if (words?.length) return (/** @type {string} */ text, /** @type {number} */ by) => turned(words, text, by);
  return pin.type === 'ints' && !/shape|sequence/.test(pin.name) ? stepped : null;
}
