/** @file What a layer spends on projections, feed-forward and scores, counted and in words: under the bill figure. */

// From the floor up; `name` is what the library calls them.
export const PARTS = [
  { name: "projections", text: "projections", formula: "8·n·d²" },
  { name: "feed_forward", text: "feed-forward", formula: "16·n·d²" },
  { name: "scores", text: "scores and sum", formula: "4·n²·d" },
];

/**
 * Floating-point operations of one layer's matrix products, forward, as `attention_lib.cost.layers` counts them.
 * @param {number} n tokens @param {number} d width
 */
export function bill(n, d) {
  const [projections, feed_forward, scores] = [8 * n * d * d, 16 * n * d * d, 4 * n * n * d];
  return { projections, feed_forward, scores, total: projections + feed_forward + scores };
}

/** Tokens at which scores and sum cost what all the rest costs. */
export const evenAt = (d) => 6 * d;

/** How many times as much the layer costs when the tokens double: between 2 and 4. */
export const growth = (n, d) => bill(2 * n, d).total / bill(n, d).total;

const UNITS = [
  [1e15, "P", "quadrillion"],
  [1e12, "T", "trillion"],
  [1e9, "G", "billion"],
  [1e6, "M", "million"],
];

/** A large number in three digits. @param {number} x @param {boolean} [long] the unit as a word */
export function large(x, long = false) {
  const [size, letter, word] = UNITS.find(([unit]) => Number(x.toPrecision(3)) >= unit) ?? UNITS.at(-1);
  return `${(x / size).toPrecision(3)}\u00a0${long ? word : letter}`;
}

/** A share that is 0 or 100 only if it is. */
export function percent(share) {
  if (share < 0.0005) return "under\u00a00.1\u00a0%";
  return share > 0.9995 ? "over\u00a099.9\u00a0%" : `${(100 * share).toFixed(1)}\u00a0%`;
}

/** A factor in two digits; whole only if it is. */
export const brief = (factor) => (Number.isInteger(factor) ? String(factor) : factor.toFixed(2));
export const times = (factor) => `×\u00a0${brief(factor)}`;
