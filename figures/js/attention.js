/** @file Attention for one head in plain arrays of numbers (float64): the arithmetic under every live figure. */

/** @typedef {number[][]} Matrix  rows of numbers */

/**
 * Softmax of one row of scores. Hidden scores are -Infinity; a row that may see nothing gives zeros.
 * @param {number[]} scores
 * @returns {number[]} non-negative, summing to 1 (or all 0)
 */
export function softmax(scores) {
  const largest = Math.max(...scores);
  if (largest === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - largest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/** @param {number[]} a @param {number[]} b @returns {number} */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/**
 * x (n, m) @ w (m, p) -> (n, p).
 * @param {Matrix} x @param {Matrix} w @returns {Matrix}
 */
export function matmul(x, w) {
  const width = w[0]?.length ?? 0;
  return x.map((row) => {
    const out = new Array(width).fill(0);
    row.forEach((xi, i) => {
      if (xi !== 0) for (let j = 0; j < width; j++) out[j] += xi * w[i][j];
    });
    return out;
  });
}

/**
 * softmax(q kᵀ · scale) v for q (T, d_k), k (S, d_k), v (S, d_v).
 * @param {Matrix} q @param {Matrix} k @param {Matrix} v
 * @param {{mask?: boolean[][] | null, scale?: number | null}} [options]
 *   mask (T, S): true = may look; scale: 1/sqrt(d_k) unless given
 * @returns {{out: Matrix, weights: Matrix}} out (T, d_v), weights (T, S)
 */
export function attention(q, k, v, { mask = null, scale = null } = {}) {
  const factor = scale ?? 1 / Math.sqrt(q[0].length);
  const weights = q.map((query, t) => {
    const scaled = query.map((x) => x * factor);
    return softmax(k.map((key, s) => (mask === null || mask[t][s] ? dot(scaled, key) : -Infinity)));
  });
  return { weights, out: matmul(weights, v) };
}
