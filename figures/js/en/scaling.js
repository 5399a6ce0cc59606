/** @file What the figure "why divide by √d_k" says. */

import { counted } from "./common.js";

const raised = (power) => String(power).replace(/./g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);

/** A number for the reader, not negative: two or three digits, and a power of ten where it is small. */
function brief(x) {
  if (x >= 0.1 || x === 0) return x.toFixed(2);
  if (x >= 0.001) return x.toPrecision(2);
  const [digits, power] = x.toExponential(0).split("e");
  return `${digits}·10${raised(Number(power))}`;
}

/** How one number compares with another. */
function compare(one, other) {
  const ratio = one / other;
  if (ratio > 1.25) return `${ratio < 10 ? ratio.toFixed(1) : ratio.toFixed(0)} times as much as`;
  if (ratio > 0.8) return "about as much as";
  const less = other / one;
  if (less > 1e4) return "more than 10,000 times less than";
  return `${less < 10 ? less.toFixed(1) : less.toFixed(0)} times less than`;
}

export const scalingWords = {
  brief,
  compare,
  powerOfTen: (power) => (power === 0 ? "1" : `10${raised(power)}`),
  width: "d_k",
  divide: "divide by √d_k",
  yes: "yes",
  no: "no",
  another: "another draw",
  vectors: "One query, 16 keys",
  scores: (scaled) => (scaled ? "scores q·k / √d_k" : "scores q·k"),
  weights: "weights, their softmax",
  scoresLabel: (text) => `Scores and weights of 16 keys. ${text}`,
  largest: "Largest weight against d_k",
  gradients: "Gradients at q, k and v against d_k",
  trendLabel: (title, text) => `${title}. ${text}`,
  note: (d_k) => `d_k ${counted(d_k)}`,
  hint: (draws) =>
    "The entries of q and of the keys are drawn with mean 0 and variance 1; a larger d_k adds entries. The curves go as far " +
    `as you have been. Thin lines: this draw. Broad lines: the median of ${counted(draws)} draws. Gradients are lengths, on a log axis.`,
  /** What the picture shows. median: {scaled, unscaled}, each what the median draw gives at this d_k. */
  describe: ({ d_k, scaled, on, off, median }) => {
    if (d_k === 1) return "At d_k 1 the scale is 1: to divide by it changes nothing.";
    const held = ({ largest }) => {
      if (largest < 0.5) return `the largest of 16 weights is ${largest.toFixed(2)}`;
      return `one key takes ${largest < 0.995 ? largest.toFixed(2) : "over 0.99"} of the weight`;
    };
    if (scaled)
      return (
        `Divided by √${counted(d_k)}, ${held(on)}, and a gradient of ${brief(on.q)} reaches q. ` +
        `The median of 1,000 draws: ${brief(median.scaled.q)}.`
      );
    const why = off.q > 1.25 * on.q ? ", for the scale divides the gradient too" : "";
    return (
      `Without the scale, at d_k ${counted(d_k)} ${held(off)}; ` +
      `what reaches q is ${compare(off.q, on.q)} with it${why}. ` +
      `The median of 1,000 draws: ${compare(median.unscaled.q, median.scaled.q)} with it.`
    );
  },
};
