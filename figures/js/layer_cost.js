/** @file What a layer spends on projections, feed-forward and scores, counted as `attention_lib.cost` counts it. */

// From the floor up, by the names of the library.
export const PARTS = ["projections", "feed_forward", "scores"];

/**
 * Floating-point operations of one layer's matrix products, forward.
 * @param {number} n tokens @param {number} d width
 */
export function layerCost(n, d) {
  const [projections, feed_forward, scores] = [8 * n * d * d, 16 * n * d * d, 4 * n * n * d];
  return { projections, feed_forward, scores, total: projections + feed_forward + scores };
}

/** Tokens at which scores and sum cost what all the rest costs. */
export const evenAt = (d) => 6 * d;

/** How many times as much the layer costs when the tokens double: between 2 and 4. */
export const growthOf = (n, d) => layerCost(2 * n, d).total / layerCost(n, d).total;
