/** @file The backward pass of attention for one head, as `attention_lib.attention_gradient` computes it. */

import { attention, dot, matmul } from "./attention.js";

const turn = (x) => (x[0] ?? []).map((_, j) => x.map((row) => row[j]));
const times = (factor, x) => x.map((row) => row.map((entry) => factor * entry));

/**
 * What reaches q (T, d_k), k (S, d_k) and v (S, d_v) from d_out (T, d_v), the gradient on the output:
 * dV = Wᵀ dO, dW = dO Vᵀ, dS = W ∘ (dW − rowsum(W ∘ dW)), dQ = scale · dS K, dK = scale · dSᵀ Q.
 * @param {number[][]} q @param {number[][]} k @param {number[][]} v @param {number[][]} d_out
 * @param {{mask?: boolean[][] | null, scale?: number | null}} [options] as attention takes them
 * @returns {{d_q: number[][], d_k: number[][], d_v: number[][], weights: number[][]}}
 */
export function attentionGradient(q, k, v, d_out, { mask = null, scale = null } = {}) {
  const factor = scale ?? 1 / Math.sqrt(q[0].length);
  const { weights } = attention(q, k, v, { mask, scale: factor });
  const d_scores = weights.map((row, t) => {
    const d_row = v.map((value) => dot(d_out[t], value));
    const mean = dot(row, d_row);
    return row.map((weight, s) => weight * (d_row[s] - mean));
  });
  return {
    d_q: times(factor, matmul(d_scores, k)),
    d_k: times(factor, matmul(turn(d_scores), q)),
    d_v: matmul(turn(weights), d_out),
    weights,
  };
}
