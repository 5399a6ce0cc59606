/** @file What the figure "where does the cost go" says. */

import { counted } from "./common.js";

const UNITS = [
  [1e15, "P", "quadrillion"],
  [1e12, "T", "trillion"],
  [1e9, "G", "billion"],
  [1e6, "M", "million"],
];
const KNOWN = {
  512: "the base Transformer",
  768: "the smallest GPT-2",
  1024: "the big Transformer",
  12288: "GPT-3",
};

/** A large number in three digits. @param {number} x @param {boolean} [long] the unit as a word */
function large(x, long = false) {
  const [size, letter, word] = UNITS.find(([unit]) => Number(x.toPrecision(3)) >= unit) ?? UNITS.at(-1);
  return `${(x / size).toPrecision(3)}\u00a0${long ? word : letter}`;
}

/** A share that is 0 or 100 only if it is. */
function shareInWords(share) {
  if (share < 0.0005) return "under\u00a00.1\u00a0%";
  return share > 0.9995 ? "over\u00a099.9\u00a0%" : `${(100 * share).toFixed(1)}\u00a0%`;
}

/** A factor in two digits; whole only if it is. */
const factorInWords = (factor) => (Number.isInteger(factor) ? String(factor) : factor.toFixed(2));

export const costWords = {
  large,
  share: shareInWords,
  parts: { projections: "projections", feed_forward: "feed-forward", scores: "scores and sum" },
  formulas: { projections: "8·n·d²", feed_forward: "16·n·d²", scores: "4·n²·d" },
  tokens: "tokens n",
  width: "width d",
  chart: "Share of the cost against n",
  even: (n) => `half and half at n = 6·d = ${counted(n)}`,
  percent: (share) => `${100 * share} %`,
  million: "10⁶",
  chartLabel: (text) => `Shares of the cost of one layer against the number of tokens. ${text}`,
  doubled: (factor) => `Twice the tokens: ×\u00a0${factorInWords(factor)}`,
  once: "n",
  twice: "2·n",
  barsLabel: (n, once, twice) =>
    `Two bars on one scale: ${large(once, true)} FLOPs for ${counted(n)} tokens, ${large(twice, true)} for ${counted(2 * n)}.`,
  columns: { at: "FLOPs at n =", times: "times" },
  together: "together",
  times: (factor) => `×\u00a0${factorInWords(factor)}`,
  hint: (d) =>
    `Matrix products, forward, a multiply and an add counted as two; no mask. M, G, T, P: 10⁶, 10⁹, 10¹², 10¹⁵.${KNOWN[d] ? ` Width ${counted(d)}: ${KNOWN[d]}.` : ""}`,
  /** What the picture shows. cost: of one layer, by part and in total; even: where half of it is scores. */
  describe: ({ n, d, cost: { projections, feed_forward, scores, total }, even, growth }) => {
    const when =
      n === even
        ? "This is n\u00a0=\u00a06·d: scores and sum cost as much as all the rest."
        : `They ${n < even ? "overtake" : "overtook"} all the rest at n\u00a0=\u00a06·d\u00a0=\u00a0${counted(even)}.`;
    return (
      `At ${counted(n)} tokens a layer ${counted(d)} wide costs ${large(total, true)} FLOPs: ` +
      `projections ${shareInWords(projections / total)}, feed-forward ${shareInWords(feed_forward / total)}, ` +
      `scores and sum ${shareInWords(scores / total)}. ${when} ` +
      `Twice the tokens: ${factorInWords(growth)} times the cost.`
    );
  },
};
