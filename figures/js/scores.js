/** @file The scores of one query as dots on stalks, and under each its softmax weight as a bar. */

import { set, signed, svg } from "./dom.js";
import { scalingWords } from "./en/scaling.js";

const SIZE = { width: 340, left: 44, middle: 72, reach: 60, floor: 236, room: 66 };
const MOST = 300; // the largest score that has a place of its own

/** Scores from −300 to 300 in one picture: even steps near 0, even factors far from it. */
const lift = (score) => (SIZE.reach * Math.asinh(Math.max(-MOST, Math.min(MOST, score)))) / Math.asinh(MOST);

/** @param {number} count keys */
export function createScores(count) {
  const { width, left, middle, floor, room } = SIZE;
  const step = (width - left) / count;
  const x = (i) => left + (i + 0.5) * step;
  const stalks = Array.from({ length: count }, (_, i) => svg("line", { x1: x(i), x2: x(i), y1: middle }));
  const dots = stalks.map((_, i) => svg("circle", { cx: x(i), r: 4 }));
  const bars = stalks.map((_, i) => svg("rect", { x: x(i) - step * 0.32, width: step * 0.64, rx: 2 }));
  const numbers = svg("g", { class: "numbers" }, svg("text"), svg("text"));
  const line = (y, text) => [
    svg("line", { x1: left, x2: width, y1: y, y2: y }),
    svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, text),
  ];
  const grid = svg(
    "g",
    { class: "grid" },
    ...[-100, -10, 0, 10, 100].flatMap((score) => line(middle - lift(score), signed(score, 0))),
    ...[0, 0.5, 1].flatMap((weight) => line(floor - weight * room, String(weight))),
    svg("text", { x: left, y: 156, class: "title" }, scalingWords.weights),
    svg("text", { x: left, y: 8, class: "title" }),
  );
  const title = grid.lastChild;
  const node = svg(
    "svg",
    { class: "scores", role: "img", viewBox: `0 0 ${width} ${floor + 6}` },
    grid,
    ...stalks,
    ...dots,
    ...bars,
    numbers,
  );
  function draw(scores, weights, scaled, label) {
    const top = weights.indexOf(Math.max(...weights));
    scores.forEach((score, i) => {
      const y = (middle - lift(score)).toFixed(1);
      const height = Math.max(0.75, weights[i] * room);
      set(stalks[i], { y2: y, class: i === top ? "top" : null });
      set(dots[i], { cy: y, class: i === top ? "top" : null });
      set(bars[i], { y: floor - height, height, class: i === top ? "top" : null });
    });
    const [score, weight] = numbers.children;
    const side = top < count / 2 ? { dx: 8, "text-anchor": "start" } : { dx: -8, "text-anchor": "end" };
    set(score, { x: x(top), y: middle - lift(scores[top]) - 4, ...side, text: signed(scores[top], 1) });
    set(weight, { x: x(top), y: floor - weights[top] * room + 4, ...side, text: weights[top].toFixed(2) });
    set(title, { text: scalingWords.scores(scaled) });
    set(node, { "aria-label": label });
  }
  return { node, draw };
}

export const SCORES_STYLE = `
.live .scores { width: 100%; max-width: 26rem; font-size: 11.5px; font-variant-numeric: tabular-nums }
.live .scores .grid line { stroke: var(--line); stroke-width: 1 }
.live .scores line { stroke: var(--slate); stroke-opacity: .6; stroke-width: 1.5 }
.live .scores .grid line { stroke: var(--line); stroke-opacity: 1 }
.live .scores circle, .live .scores rect { fill: var(--slate) }
.live .scores line.top { stroke: var(--orange); stroke-opacity: 1 }
.live .scores .top { fill: var(--orange) }
.live .scores .numbers text { fill: var(--ink); font-weight: 600; paint-order: stroke; stroke: var(--ground, transparent) }
`;
