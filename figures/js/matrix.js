/** @file Attention weights as a matrix: one row a query, one column a key; one large matrix, or one small for each head. */

import { set, svg } from "./dom.js";
import { sentenceWords } from "./en/sentence.js";
import { COLOURS } from "./look.js";
import { placeIn } from "./pointer.js";

const LEFT = 84;
const TOP = 66;
const SIDE = 216; // px of the matrix itself

/**
 * The squares of one head's matrix, and the outline of the query's row.
 * @param {number} size words @param {number} side px @param {string} transform
 */
function createGrid(size, side, transform) {
  const step = side / size;
  const squares = Array.from({ length: size * size }, (_, i) =>
    svg("rect", {
      x: (i % size) * step,
      y: Math.floor(i / size) * step,
      width: step - 1,
      height: step - 1,
      rx: 1.5,
    }),
  );
  const outline = svg("rect", { class: "row", x: -1.5, width: side + 2, height: step + 2, rx: 3 });
  const node = svg("g", { transform, "data-apart": true }, ...squares, outline);
  const draw = (weights, head, query) => {
    set(node, { fill: COLOURS[head % COLOURS.length] });
    weights
      .flat()
      .forEach((weight, i) => set(squares[i], { "fill-opacity": (0.05 + 0.95 * weight).toFixed(3) }));
    set(outline, { y: query * step - 1.5 });
  };
  return { node, draw };
}

/**
 * @param {(query: number) => void} choose called with the row that was clicked
 * @returns {{node: SVGElement, draw: (weights: number[][][], heads: number[], query: number, words: string[], label: string) => void}}
 */
export function createMatrix(choose) {
  const node = svg("svg", {
    class: "matrix drawn",
    role: "img",
    viewBox: `0 0 ${LEFT + SIDE + 8} ${TOP + SIDE + 8}`,
  });
  let shape = ""; // of what is drawn now: number of words and of heads
  let size = 1;
  let grids = [];
  let texts = [];
  node.addEventListener("click", (event) => {
    const at = placeIn(node, event);
    const row = Math.floor(((at.y - TOP) / SIDE) * size);
    if (grids.length === 1 && row >= 0 && row < size) choose(row);
  });

  function build(heads) {
    const step = SIDE / size;
    texts = [];
    if (heads === 1) {
      grids = [createGrid(size, SIDE, `translate(${LEFT} ${TOP})`)];
      texts = Array.from({ length: size }, (_, i) => [
        svg("text", { x: LEFT - 7, y: TOP + (i + 0.5) * step + 4, "text-anchor": "end" }),
        svg("text", { transform: `translate(${LEFT + (i + 0.5) * step + 3} ${TOP - 7}) rotate(-55)` }),
      ]);
      node.replaceChildren(...texts.flat(), grids[0].node);
      return;
    }
    const columns = Math.ceil(Math.sqrt(heads));
    const room = (LEFT + SIDE) / columns;
    const place = (i) => [8 + (i % columns) * room, 22 + Math.floor(i / columns) * (room - 6)];
    grids = Array.from({ length: heads }, (_, i) =>
      createGrid(size, room - 28, `translate(${place(i).join(" ")})`),
    );
    const titles = grids.map((_, i) =>
      svg("text", { x: place(i)[0], y: place(i)[1] - 8, text: sentenceWords.headTitle(i) }),
    );
    node.replaceChildren(...titles, ...grids.map((grid) => grid.node));
  }

  function draw(weights, heads, query, words, label) {
    set(node, { "aria-label": label, "data-heads": heads.length });
    if (shape !== `${words.length} ${heads.length}`) {
      shape = `${words.length} ${heads.length}`;
      size = words.length;
      build(heads.length);
    }
    texts.forEach(([row, column], i) => {
      set(row, { text: words[i], class: i === query ? "strong" : "" });
      set(column, { text: words[i] });
    });
    heads.forEach((head, i) => grids[i].draw(weights[head], head, query));
  }
  return { node, draw };
}
