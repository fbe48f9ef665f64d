// Two fingers on the canvas: spread to zoom, move to pan.

/** @param {import('poolgrad/flow').Flow} flow @param {() => void} begin a second finger ends what the first one did */
export function pinch(flow, begin) {
  /** @type {Map<number, number[]>} */ const fingers = new Map();
  const canvas = flow.element;
  const middle = () => [...fingers.values()].reduce(([x, y], [fx, fy]) => [x + fx / fingers.size, y + fy / fingers.size], [0, 0]);
  const spread = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]) || 1; };
  canvas.addEventListener('pointerdown', (event) => {
    if (event.pointerType !== 'touch') return;
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    if (fingers.size === 2) begin();
  }, { capture: true });
  canvas.addEventListener('pointermove', (event) => {
    if (!fingers.has(event.pointerId)) return;
    if (fingers.size !== 2) { fingers.set(event.pointerId, [event.clientX, event.clientY]); return; }
    const [before, wide] = [middle(), spread()];
    fingers.set(event.pointerId, [event.clientX, event.clientY]);
    const [now, wider] = [middle(), spread()];
    const box = canvas.getBoundingClientRect();
    flow.zoomBy(wider / wide, [now[0] - box.left, now[1] - box.top]);
    flow.look({ x: flow.view.x + now[0] - before[0], y: flow.view.y + now[1] - before[1] });
    event.stopPropagation();
  }, { capture: true });
  const lift = (event) => {
    if (fingers.size > 1) event.stopPropagation(); // the end of a pinch is no click
    fingers.delete(event.pointerId);
  };
  for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, lift, { capture: true });
}
