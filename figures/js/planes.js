/** @file The two planes of the plane figure: a query among keys, and the values with the output in their hull. */

import { softmax } from "./attention.js";
import { html, set, signed, svg } from "./dom.js";
import { planeWords } from "./en/plane.js";
import { COLOURS } from "./look.js";
import { chooseIn, placeIn } from "./pointer.js";

const SIZE = 320; // px of a plane in its own units
export const REACH = 3; // coordinates run from -REACH to REACH
const FIELD = 56; // px of the coloured ground, before it is enlarged
const BLEND = [
  [31, 118, 198],
  [224, 106, 12],
  [16, 150, 120],
  [181, 88, 139],
  [177, 170, 76],
]; // the colours of look.js, in between light and dark

const toX = (x) => SIZE / 2 + (x * SIZE) / (2 * REACH + 0.4);
const toY = (y) => toX(-y);
export const clamp = (x) => Math.min(REACH, Math.max(-REACH, Math.round(x * 100) / 100));

/** The corners of the convex hull of points in the plane, in order. */
function hull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

const blend = (weights) =>
  [0, 1, 2].map((c) => Math.round(weights.reduce((sum, w, i) => sum + w * BLEND[i % BLEND.length][c], 0)));

/** Axes and two circles: what is the same in both planes. */
const paper = () =>
  svg(
    "g",
    { class: "paper" },
    svg("path", { d: `M0 ${SIZE / 2}H${SIZE}M${SIZE / 2} 0V${SIZE}` }),
    ...[1, 2, 3].map((r) => svg("circle", { cx: SIZE / 2, cy: SIZE / 2, r: toX(r) - SIZE / 2 })),
  );

/**
 * The plane of the query and the keys; each is moved by pointer and by arrow keys.
 * @param {string[]} labels @param {(i: number, point: number[]) => void} move i: -1 is the query
 */
export function createKeys(labels, move) {
  const ground = html("canvas", { width: FIELD, height: FIELD, "aria-hidden": "true" });
  const board = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group" }, paper());
  let points = [];
  let dragged = null;

  const handle = (i, name, ...shapes) => {
    const node = svg(
      "g",
      {
        class: i < 0 ? "handle query" : "handle",
        tabindex: "0",
        role: "slider",
        "aria-label": name,
        "aria-roledescription": planeWords.twoDimensional,
        "aria-valuemin": -REACH,
        "aria-valuemax": REACH,
      },
      svg("circle", { class: "grip", r: 20 }),
      svg("circle", { class: "ring", r: 14 }),
      ...shapes,
    );
    node.addEventListener("keydown", (event) => {
      const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
        event.key
      ] ?? [0, 0];
      if (!dx && !dy) return;
      event.preventDefault();
      const step = event.shiftKey ? 0.5 : 0.1;
      const [x, y] = points[i + 1];
      move(i, [clamp(x + step * dx), clamp(y + step * dy)]);
    });
    return node;
  };
  const place = (at) => {
    const unit = toX(1) - toX(0);
    return [clamp((at.x - SIZE / 2) / unit), clamp((SIZE / 2 - at.y) / unit)];
  };
  /** The point nearest to where a finger or the mouse comes down; on a phone the places that take it overlap. */
  const nearest = (at) => {
    const apart = (point) => Math.hypot(toX(point[0]) - at.x, toY(point[1]) - at.y);
    return points.reduce((best, point, i) => (apart(point) < apart(points[best]) ? i : best), 0) - 1;
  };
  const drop = () => (dragged = null);
  board.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary || !event.target.closest(".handle")) return;
    event.stopImmediatePropagation();
    dragged = nearest(placeIn(board, event));
    board.setPointerCapture(event.pointerId);
  });
  board.addEventListener("pointermove", (event) => dragged !== null && move(dragged, place(placeIn(board, event))));
  for (const end of ["pointerup", "pointercancel"]) board.addEventListener(end, drop);
  chooseIn(board, (at) => move(-1, place(at)));

  const rays = labels.map((_, i) =>
    svg("line", { class: "ray", x1: SIZE / 2, y1: SIZE / 2, stroke: COLOURS[i % COLOURS.length] }),
  );
  const arrow = svg("line", { class: "arrow", x1: SIZE / 2, y1: SIZE / 2 });
  const keys = labels.map((label, i) =>
    handle(
      i,
      planeWords.key(label),
      svg("circle", { r: 6, fill: COLOURS[i % COLOURS.length] }),
      svg("text", { class: "name" }, label),
    ),
  );
  const query = handle(
    -1,
    planeWords.query,
    svg("circle", { class: "knob", r: 10 }),
    svg("text", { class: "q", y: 4.5 }, "q"),
  );
  board.append(...rays, arrow, ...keys, query);

  let painted = "";
  function paint(keysNow, sharpness) {
    const state = JSON.stringify([keysNow, sharpness]);
    if (state === painted) return;
    painted = state;
    const image = new ImageData(FIELD, FIELD);
    const edge = REACH + 0.2;
    const scale = sharpness / Math.sqrt(2);
    for (let row = 0; row < FIELD; row++) {
      for (let column = 0; column < FIELD; column++) {
        const at = [((column + 0.5) / FIELD) * 2 * edge - edge, edge - ((row + 0.5) / FIELD) * 2 * edge];
        const weights = softmax(keysNow.map((key) => (at[0] * key[0] + at[1] * key[1]) * scale));
        image.data.set([...blend(weights), 255], 4 * (row * FIELD + column));
      }
    }
    ground.getContext("2d").putImageData(image, 0, 0);
  }

  function draw({ query: q, keys: keysNow, weights, sharpness, label }) {
    points = [q, ...keysNow];
    set(board, { "aria-label": label });
    paint(keysNow, sharpness);
    set(arrow, { x2: toX(q[0]), y2: toY(q[1]) });
    keysNow.forEach(([x, y], i) => {
      set(rays[i], {
        x2: toX(x),
        y2: toY(y),
        style: `stroke-width:${(1 + 5 * weights[i]).toFixed(2)};opacity:${(0.3 + 0.7 * weights[i]).toFixed(2)}`,
      });
      const away = 17 / (Math.hypot(x, y) || 1);
      set(keys[i].lastChild, { x: x * away, y: 4.5 - y * away });
    });
    [query, ...keys].forEach((node, i) => {
      const [x, y] = points[i];
      set(node, {
        transform: `translate(${toX(x).toFixed(1)} ${toY(y).toFixed(1)})`,
        "aria-valuenow": x,
        "aria-valuetext": planeWords.at(signed(x), signed(y)),
      });
    });
  }
  return { node: html("div", { class: "board" }, ground, board), draw };
}

/** The plane of the values: their hull, and the output inside it. */
export function createValues(labels) {
  const border = svg("polygon", { class: "hull" });
  const pulls = labels.map((_, i) => svg("line", { class: "pull", stroke: COLOURS[i % COLOURS.length] }));
  const dots = labels.map((label, i) =>
    svg("g", {}, svg("circle", { fill: COLOURS[i % COLOURS.length] }), svg("text", { class: "name" }, label)),
  );
  const output = svg("circle", { class: "output", r: 10 });
  const caption = svg("text", { class: "name" }, planeWords.output);
  const board = svg(
    "svg",
    { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img" },
    paper(),
    border,
    ...pulls,
    ...dots,
    output,
    caption,
  );
  function draw({ values, weights, output: [x, y], label }) {
    set(board, { "aria-label": label });
    set(border, {
      points: hull(values)
        .map((point) => `${toX(point[0])},${toY(point[1])}`)
        .join(" "),
    });
    const centre = [0, 1].map((axis) => values.reduce((sum, value) => sum + value[axis], 0) / values.length);
    values.forEach((value, i) => {
      set(pulls[i], {
        x1: toX(x),
        y1: toY(y),
        x2: toX(value[0]),
        y2: toY(value[1]),
        style: `stroke-width:${(6 * weights[i]).toFixed(2)};opacity:${(0.25 + 0.75 * weights[i]).toFixed(2)}`,
      });
      set(dots[i], { transform: `translate(${toX(value[0]).toFixed(1)} ${toY(value[1]).toFixed(1)})` });
      set(dots[i].firstChild, { r: (4 + 7 * weights[i]).toFixed(1) });
      const [dx, dy] = [value[0] - centre[0], value[1] - centre[1]];
      const away = 21 / (Math.hypot(dx, dy) || 1);
      set(dots[i].lastChild, { x: dx * away, y: 4.5 - dy * away });
    });
    set(caption, { x: toX(x), y: toY(y) + 26 });
    set(output, { cx: toX(x), cy: toY(y), fill: `rgb(${blend(weights)})` });
  }
  return { node: html("div", { class: "board" }, board), draw };
}
