// Reads cases from standard input, computes them with the figures' modules, and writes what came out.
import { readFileSync } from "node:fs";
import { attention } from "../../figures/js/attention.js";
import { loadEncoder } from "../../figures/js/encoder.js";

const { attend = [], encode = [] } = JSON.parse(readFileSync(0, "utf8"));
const encoders = new Map();
const load = (path) => encoders.get(path) ?? encoders.set(path, loadEncoder(readFileSync(path))).get(path);
console.log(
  JSON.stringify({
    attend: attend.map(({ q, k, v, ...options }) => attention(q, k, v, options)),
    encode: encode.map(({ weights, words, edits }) => load(weights).run(words, edits)),
  }),
);
