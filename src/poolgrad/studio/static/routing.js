// Lead wires: a plain curve if it is free, else around the blocks in its way.

import { curve } from 'poolgrad/geometry';

/** @typedef {{x: number, y: number, w: number, h: number}} Box */
/** @typedef {{d: string, middle: number[]|null, lane?: number}} Route its path, the place of its label, if there is room for one, and the lane around blocks */

const SAMPLES = 20;
const OUT = 18; // pixels that a wire goes straight on before it turns
const CLEAR = 12; // pixels between a wire and a block
const APART = 6; // pixels between wires that run side by side
const ROUND = 10; // radius of a corner
const LABEL = { half: 28, above: 16, below: 2 }; // pixels that a label takes around its place
const BELOW = 19; // pixels that a label stands lower if it is below its wire
const MOST_LANES = 24; // ways around that are tried

/** A point of the plain curve. @param {number[]} start @param {number[]} end @param {number} t */
function along(start, end, t) {
  const [[x1, y1], [x2, y2]] = [start, end];
  const bend = Math.max(40, Math.min(Math.abs(x2 - x1) / 2, 130) + (x2 < x1 ? 40 : 0));
  const s = 1 - t;
  return [s * s * s * x1 + 3 * s * s * t * (x1 + bend) + 3 * s * t * t * (x2 - bend) + t * t * t * x2, s * s * s * y1 + 3 * s * s * t * y1 + 3 * s * t * t * y2 + t * t * t * y2];
}

/** @param {number[]} place @param {Box} box */
const inside = ([x, y], box, margin = 0) => x > box.x - margin && x < box.x + box.w + margin && y > box.y - margin && y < box.y + box.h + margin;

/** Return true if a level or upright line touches a box. */
function crosses([x1, y1], [x2, y2], box) {
  return Math.max(x1, x2) > box.x - 3 && Math.min(x1, x2) < box.x + box.w + 3 && Math.max(y1, y2) > box.y - 3 && Math.min(y1, y2) < box.y + box.h + 3;
}

/** The boxes that the plain curve runs behind. */
function inTheWay(start, end, boxes) {
  const points = Array.from({ length: SAMPLES - 1 }, (_, i) => along(start, end, (i + 1) / SAMPLES));
  return boxes.filter((box) => points.some((point) => inside(point, box, -4)));
}

/** Corners of a wire that turns into a lane and back. */
function corners(start, end, lane) {
  const [left, right] = [start[0] + OUT, end[0] - OUT];
  return [start, [left, start[1]], [left, lane], [right, lane], [right, end[1]], end];
}

/** A path through corners, with round ones. @param {number[][]} points */
function rounded(points) {
  let d = `M${points[0]}`;
  for (let i = 1; i < points.length - 1; i++) {
    const [before, here, after] = points.slice(i - 1, i + 2);
    const cut = (from) => { const length = Math.hypot(from[0] - here[0], from[1] - here[1]) || 1; const r = Math.min(ROUND, length / 2); return [here[0] + ((from[0] - here[0]) / length) * r, here[1] + ((from[1] - here[1]) / length) * r]; };
    d += ` L${cut(before)} Q${here} ${cut(after)}`;
  }
  return `${d} L${points.at(-1)}`;
}

/** The first place where no part of a label is behind a block; null if there is none. @param {number[][]} places @param {Box[]} boxes */
function free(places, boxes) {
  const { half, above, below } = LABEL;
  const hides = (/** @type {number[]} */ [x, y], /** @type {Box} */ box) => x + half > box.x && x - half < box.x + box.w && y + below > box.y && y - above < box.y + box.h;
  return places.find((place) => !boxes.some((box) => hides(place, box))) ?? null;
}

/** The way of one wire. @param {number[]} start @param {number[]} end @param {Box[]} boxes of all blocks @param {Map<number, number>} used
 * how many wires run in each lane @returns {Route} */
export function route(start, end, boxes, used) {
  const spots = [0.5, 0.38, 0.62, 0.27, 0.73].map((t) => along(start, end, t));
  const plain = { d: curve(start, end), middle: free(spots, boxes) };
  const hit = inTheWay(start, end, boxes);
  if (!hit.length) return plain;
  const [low, high] = [Math.min(start[0], end[0]) - OUT, Math.max(start[0], end[0]) + OUT];
  const near = boxes.filter((box) => box.x < high && box.x + box.w > low);
  const lanes = near.flatMap((box) => [box.y - CLEAR, box.y + box.h + CLEAR]).sort((a, b) => length(a, start, end) - length(b, start, end)).slice(0, MOST_LANES);
  for (const wish of lanes) {
    const count = used.get(wish) ?? 0;
    const above = hit.some((box) => wish < box.y + box.h / 2);
    const lane = wish + (above ? -1 : 1) * APART * count;
    const points = corners(start, end, lane);
    const blocked = points.slice(1, -2).some((point, i) => near.some((box) => crosses(point, points[i + 2], box)));
    if (blocked) continue;
    used.set(wish, count + 1);
    const spots = (above ? [0, BELOW] : [BELOW, 0]).flatMap((down) => [0.5, 0.35, 0.65, 0.2, 0.8].map((t) => [points[2][0] + (points[3][0] - points[2][0]) * t, lane + down])); // on the side without blocks, if it can be
    return { d: rounded(points), middle: free(spots, boxes), lane: wish };
  }
  return plain;
}

const length = (lane, start, end) => Math.abs(lane - start[1]) + Math.abs(lane - end[1]);
