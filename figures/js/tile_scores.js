/** @file The board of the tiles figure: all scores in tiles, and under them a bar for each key of one query. */

import { dot } from "./attention.js";
import { set, spread, svg } from "./dom.js";
import { tilesWords } from "./en/tiles.js";
import { SIDE, TOKENS, tilesOf } from "./online_softmax.js";
import { placeIn } from "./pointer.js";

const BOX = { width: 306, left: 62, top: 36, cell: 10, gap: 30, bars: 62 };
const END = BOX.top + TOKENS * BOX.cell; // of the matrix
const FLOOR = END + BOX.gap + BOX.bars; // of the bars under it

/** @param {{q: number[][], k: number[][]}} example @param {(query: number, tile: number) => void} choose */
export function createTileScores({ q, k }, choose) {
  const { left, top, cell, bars: room } = BOX;
  const scores = q.map((query) => k.map((key) => dot(query, key)));
  const [low, high] = [Math.min(...scores.flat()), Math.max(...scores.flat())];
  const many = tilesOf(TOKENS);
  const square = (t, s) =>
    svg("rect", {
      x: left + s * cell + 0.5,
      y: top + t * cell + 0.5,
      width: cell - 1,
      height: cell - 1,
      rx: 1.5,
      "fill-opacity": (0.08 + 0.92 * ((scores[t][s] - low) / (high - low)) ** 2).toFixed(1),
    });
  const squares = spread(TOKENS, (t) => spread(TOKENS, (s) => square(t, s)));
  const side = SIDE * cell;
  const tiles = spread(many, (row) =>
    spread(many, (column) =>
      svg(
        "g",
        { "data-apart": true },
        svg("rect", { class: "rim", x: left + column * side, y: top + row * side, width: side, height: side }),
        ...squares
          .slice(row * SIDE, (row + 1) * SIDE)
          .flatMap((line) => line.slice(column * SIDE, (column + 1) * SIDE)),
      ),
    ),
  );
  const numbers = spread(many, (i) =>
    svg("text", { x: left + (i + 0.5) * side, y: top - 6, "text-anchor": "middle" }, String(i + 1)),
  );
  const beam = svg("rect", { class: "beam", width: side });
  const row = svg("rect", { class: "row", x: left - 1, height: cell, rx: 2 });
  const skips = spread(many, (i) =>
    svg("text", { class: "skip", x: left + (i + 0.5) * side, "text-anchor": "middle" }, tilesWords.skipped),
  );
  const name = svg("text", { class: "strong", x: left - 6, "text-anchor": "end" });
  const x = (s) => left + s * cell + 1.5;
  const bars = spread(TOKENS, (s) => svg("rect", { x: x(s), width: cell - 3, rx: 1 }));
  const before = spread(TOKENS, (s) => svg("rect", { class: "before", x: x(s), width: cell - 3, rx: 1 }));
  const peak = svg("text", { class: "strong", y: FLOOR - room - 7, "text-anchor": "middle" });
  const caption = svg("text", { x: left, y: FLOOR + 17 });
  const line = (share) =>
    svg("line", {
      class: "floor",
      x1: left,
      x2: left + TOKENS * cell,
      y1: FLOOR - share * room,
      y2: FLOOR - share * room,
    });
  const node = svg(
    "svg",
    { class: "board drawn", role: "img", viewBox: `0 0 ${BOX.width} ${FLOOR + 24}` },
    beam,
    svg("text", { x: left, y: 12 }, tilesWords.tiles),
    ...numbers,
    ...tiles.flat(),
    ...skips,
    row,
    name,
    line(0),
    line(1),
    svg("text", { x: left - 6, y: FLOOR + 4, "text-anchor": "end" }, "0"),
    svg("text", { x: left - 6, y: FLOOR - room + 4, "text-anchor": "end" }, "1"),
    ...before,
    ...bars,
    peak,
    caption,
  );
  node.addEventListener("click", (event) => {
    const at = placeIn(node, event);
    const [t, s] = [at.y - top, at.x - left].map((place) => Math.floor(place / cell));
    if (t >= 0 && t < TOKENS && s >= 0 && s < TOKENS) choose(t, Math.floor(s / SIDE));
  });

  function draw({ query, step, causal, scores: followed, states }, label) {
    const { tile, m, factor, l } = states[step];
    const block = Math.floor(query / SIDE);
    const kindOf = (r, c) => {
      if (causal && c > r) return "skipped";
      if (r !== block) return "other";
      return c === tile ? "now" : c < tile ? "past" : "ahead";
    };
    tiles.forEach((line, r) => line.forEach((group, c) => set(group, { class: `tile ${kindOf(r, c)}` })));
    squares.forEach((line, t) =>
      line.forEach((rect, s) => set(rect, { class: causal && s > t ? "hidden" : null })),
    );
    numbers.forEach((text, c) => set(text, { class: c === tile ? "now" : null }));
    const under = top + (block + 1) * side;
    set(beam, { x: left + tile * side, y: under, height: FLOOR - under, visibility: tile < 0 ? "hidden" : null });
    const visible = SIDE * (states.length - 1);
    set(row, { y: top + query * cell, width: visible * cell + 2 });
    skips.forEach((text, c) =>
      set(text, { y: top + (block + 0.5) * side + 3, visibility: SIDE * c < visible ? "hidden" : null }),
    );
    set(caption, { text: step ? tilesWords.bars(l) : "" });
    set(name, { y: top + (query + 0.5) * cell + 4, text: tilesWords.followed(query + 1) });
    const rescaled = step > 1 && factor < 1;
    followed.forEach((score, s) => {
      const c = Math.floor(s / SIDE);
      const height = c <= tile ? room * Math.exp(score - m) : 0;
      const old = rescaled && c < tile ? room * Math.exp(score - states[step - 1].m) : 0;
      set(bars[s], { class: `power ${c === tile ? "now" : "past"}`, y: FLOOR - height, height });
      set(before[s], { y: FLOOR - old, height: old, visibility: old > 0 ? null : "hidden" });
    });
    const top1 = followed.slice(0, SIDE * (tile + 1)).indexOf(m);
    set(peak, {
      x: Math.min(left + TOKENS * cell - 22, Math.max(left + 22, x(Math.max(0, top1)) + cell / 2 - 1.5)),
      text: step ? tilesWords.peak(m) : "",
    });
    set(node, { "aria-label": label });
  }
  return { node, draw };
}

export const TILE_STYLE = `
.live-tiles .board { width: 100%; max-width: 29rem; font-size: 10px; font-variant-numeric: tabular-nums; cursor: pointer }
.live-tiles svg .strong { fill: var(--ink); font-weight: 600 }
.live-tiles svg text.now { fill: var(--orange); font-weight: 600 }
.live-tiles .tile { fill: var(--slate); opacity: .4; transition: opacity .3s }
.live-tiles .tile.past { fill: var(--blue); opacity: .6 }
.live-tiles .tile.now { fill: var(--orange); opacity: 1 }
.live-tiles .tile.ahead { opacity: .6 }
.live-tiles .tile.skipped rect:not(.rim) { visibility: hidden }
.live-tiles .tile .hidden { visibility: hidden }
.live-tiles .rim { fill: none; stroke: none }
.live-tiles .now .rim { stroke: var(--orange); stroke-width: 1.5 }
.live-tiles .skipped { opacity: 1 }
.live-tiles .skipped .rim { fill: var(--wash); stroke: var(--line); stroke-width: .75; stroke-dasharray: 2 2 }
.live-tiles .beam { fill: var(--orange); opacity: .1 }
.live-tiles svg .skip { font-size: 8.5px }
.live-tiles .row { fill: none; stroke: var(--ink); stroke-width: 1.25 }
.live-tiles .floor { stroke: var(--line) }
.live-tiles .power { transition: y .5s, height .5s }
.live-tiles .power.past { fill: var(--blue); fill-opacity: .55 }
.live-tiles .power.now { fill: var(--orange) }
.live-tiles .before { fill: none; stroke: var(--blue); stroke-width: .75; stroke-dasharray: 1.5 1.5 }
`;
