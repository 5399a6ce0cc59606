/** @file Softmax over the keys in tiles, with a running maximum, sum and output: the arithmetic of the tiles figure. */

import { attention, dot } from "./attention.js";
import { spread } from "./dom.js";
import { normals } from "./random.js";

export const TOKENS = 24;
export const SIDE = 4; // of a tile
export const WIDTH = { key: 8, value: 4 };

/** How many tiles so many keys fill. @param {number} keys */
export const tilesOf = (keys) => Math.ceil(keys / SIDE);

/** The example: q and k (24, 8), v (24, 4), standard normal. @param {number} seed */
export function drawExample(seed) {
  const widths = [WIDTH.key, WIDTH.key, WIDTH.value];
  const numbers = normals(seed, TOKENS * (2 * WIDTH.key + WIDTH.value));
  let from = 0;
  const [q, k, v] = widths.map((width) =>
    spread(TOKENS, () => Array.from(numbers.subarray(from, (from += width)))),
  );
  return { q, k, v };
}

/**
 * Softmax of a row of scores times values, tile by tile (Milakov and Gimelshein 2018; Dao et al. 2022, algorithm 1).
 * Hidden scores are -Infinity; a tile that holds nothing else is skipped.
 * @param {number[]} scores (S,) @param {number[][]} values (S, d_v) @param {number} size keys in a tile
 * @returns {{tile: number, largest: number, m: number, factor: number, added: number, l: number, o: number[]}[]}
 *   before the first tile and after each; largest score of the tile and the sum that it adds; m, l and o as kept
 */
export function walk(scores, values, size = SIDE) {
  const nothing = values[0].map(() => 0);
  const states = [{ tile: -1, largest: -Infinity, m: -Infinity, factor: 0, added: 0, l: 0, o: nothing }];
  for (let from = 0; from < scores.length; from += size) {
    const tile = scores.slice(from, from + size);
    const largest = Math.max(...tile);
    if (largest === -Infinity) continue;
    const { m: before, l, o } = states.at(-1);
    const m = Math.max(before, largest);
    const factor = Math.exp(before - m);
    const powers = tile.map((score) => Math.exp(score - m));
    const added = powers.reduce((sum, power) => sum + power, 0);
    states.push({
      tile: from / size,
      largest,
      m,
      factor,
      added,
      l: factor * l + added,
      o: o.map((x, c) => factor * x + powers.reduce((sum, power, i) => sum + power * values[from + i][c], 0)),
    });
  }
  return states;
}

/** What one query makes of the example: its scores, all states, and the answer of softmax at once. */
export function follow({ q, k, v }, query, causal) {
  const seen = k.map((_, s) => !causal || s <= query);
  const scores = k.map((key, s) => (seen[s] ? dot(q[query], key) / Math.sqrt(WIDTH.key) : -Infinity));
  const states = walk(scores, v);
  const { out } = attention([q[query]], k, v, { mask: [seen] });
  const { o, l } = states.at(-1);
  return { scores, states, out: out[0], apart: Math.max(...out[0].map((x, c) => Math.abs(x - o[c] / l))) };
}
