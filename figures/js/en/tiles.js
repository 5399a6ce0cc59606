/** @file What the figure of the tiles says. ℓ is the sum of the powers, which the text calls l. */

import { signed } from "../dom.js";
import { inWords } from "./common.js";

/** A score, or a maximum that is still that of nothing. */
const score = (x) => (x === -Infinity ? "−∞" : signed(x));
const bracketed = (x) => (x < 0 ? `(${score(x)})` : score(x));

/** The tiles that hold later keys only. @param {number[]} skipped counted from 1 */
function later(skipped) {
  if (!skipped.length) return "";
  const one = skipped.length === 1;
  return ` Tile${one ? "" : "s"} ${inWords(skipped)} ${one ? "holds" : "hold"} later keys only: skipped, never computed.`;
}

export const tilesWords = {
  score,
  time: "tiles read",
  of: (step, end) => `${step} of ${end}`,
  query: "query",
  mask: "causal mask",
  on: "on",
  off: "off",
  scores: "Scores, 24 queries by 24 keys",
  tiles: "tiles of 4 keys",
  skipped: "skipped",
  followed: (query) => `query ${query}`,
  bars: (l) => `bars exp(score − m), their sum ℓ = ${score(l)}`,
  peak: (m) => `m = ${score(m)}`,
  kept: (query, tile) => `What is kept of query ${query} ${tile ? `after tile ${tile}` : "before the first tile"}`,
  lines: ["largest", "rescale by", "sum", "output"],
  nothing: ["m = −∞", "nothing", "ℓ = 0", "o = 0"],
  worked: ({ before, largest, m, factor, added, l }) => [
    [`m = max(${score(before.m)}, ${score(largest)})`, `= ${score(m)}`],
    [`exp(${score(before.m)} − ${bracketed(m)})`, `= ${signed(factor)}`],
    [`ℓ = ${signed(factor)} · ${signed(before.l)} + ${signed(added)}`, `= ${signed(l)}`],
    [`o = ${signed(factor)} · o + Σ exp(s − m) · v`, ""],
  ],
  answer: (last) => `The answer${last ? "" : ", were there no more keys"}: o / ℓ`,
  entry: (number) => `entry ${number}`,
  boardLabel: (query, text) => `Scores in tiles; under them exp(score − m) for query ${query}. ${text}`,
  keptLabel: (text) => `The output so far, and what softmax at once gives. ${text}`,
  hint:
    "Only the orange tile is in memory, 16 scores of 576; its four queries are treated alike. The blue bars show what ℓ holds of earlier " +
    "tiles, dashed their height before the rescaling. Ticks: softmax over all keys at once. Numbers are rounded.",
  /** What the picture shows. query from 1; skipped: tiles from 1 that hold later keys only. */
  describe: ({ query, step, states, apart, skipped }) => {
    const { tile, largest, m, factor } = states[step];
    if (step === 0) return `Nothing of query ${query} has been read: m is −∞, ℓ and o are 0.${later(skipped)}`;
    const before = states[step - 1].m;
    const what =
      step === 1
        ? `Tile 1: its largest score, ${score(largest)}, is the first m.`
        : factor < 1
          ? `Tile ${tile + 1} holds a larger score, ${score(m)} after ${score(before)}. What was summed is multiplied by exp(${score(before)} − ${bracketed(m)}) = ${factor.toFixed(2)}, then the tile is added.`
          : `Tile ${tile + 1} holds no score above ${score(m)}: nothing is rescaled, the tile is added.`;
    if (step < states.length - 1) return what;
    return `${what}${later(skipped)} That was the last: o / ℓ differs from softmax at once by ${apart.toFixed(4)}.`;
  },
};
