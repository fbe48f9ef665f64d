// Small choices that outlive the page, where the browser keeps any: a file or a frame may not be allowed to.

/** @param {string} name @returns {string|null} */
export function recall(name) {
  try {
    return localStorage.getItem(`poolgrad ${name}`);
  } catch {
    return null;
  }
}

/** @param {string} name @param {string} value */
export function remember(name, value) {
  try {
    localStorage.setItem(`poolgrad ${name}`, value);
  } catch { /* the choice holds until the page closes */ }
}
