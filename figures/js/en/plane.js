/** @file What the figure of the plane says. */

import { inWords } from "./common.js";

export const planeWords = {
  keys: "Query and keys",
  weights: "Softmax of the scores",
  values: "Values and output",
  columns: { key: "key", score: "score", weight: "weight" },
  key: (label) => `key ${label}`,
  query: "query",
  output: "output",
  twoDimensional: "2-D slider",
  at: (x, y) => `x ${x}, y ${y}`,
  x: "query, x",
  y: "query, y",
  sharpness: "sharpness",
  zero: "q = 0",
  half: "½ q",
  double: "2 q",
  hint:
    "Drag q, or any key; arrow keys move what has the focus. A score is q·k/√2 times the sharpness. " +
    "The ground at each place has the blend of colours that a query there would read.",
  keysLabel: (count, text) => `The query and ${count} keys. ${text}`,
  valuesLabel: (count, text) => `${count} values and the output inside their hull. ${text}`,
  /** What the picture shows. */
  describe: ({ query, sharpness, weights, labels }) => {
    const length = Math.hypot(...query);
    if (length === 0 || sharpness === 0) {
      const why = length === 0 ? "The query is 0" : "The sharpness is 0";
      return `${why}: every score is 0 and every weight ${weights[0].toFixed(2)}. The output is the plain average of the values, not 0.`;
    }
    const order = weights.map((weight, i) => ({ weight, label: labels[i] })).sort((a, b) => b.weight - a.weight);
    const [best] = order;
    const manner =
      best.weight >= 0.9
        ? "almost only at"
        : best.weight >= 0.5
          ? "mostly at"
          : "in several directions, most at";
    const parts = order
      .filter(({ weight }) => weight >= 0.1)
      .map(({ weight, label }) => `${weight.toFixed(2)} of value ${label}`);
    const rest = parts.length < weights.length ? " and little of the rest" : "";
    const read = rest ? parts.join(", ") : inWords(parts);
    return `The query, ${length.toFixed(2)} long, looks ${manner} key ${best.label}. The output is ${read}${rest}.`;
  },
};
