// Reads cases from standard input, computes them with the modules of the scaling figure, and writes what came out.
import { readFileSync } from "node:fs";
import { attentionGradient } from "../../figures/js/gradient.js";
import { normals } from "../../figures/js/random.js";
import { drawVectors, measure } from "../../figures/js/scaling.js";

const { gradient = [], numbers = [], draws = [] } = JSON.parse(readFileSync(0, "utf8"));
console.log(
  JSON.stringify({
    gradient: gradient.map(({ q, k, v, d_out, ...options }) => attentionGradient(q, k, v, d_out, options)),
    numbers: numbers.map(({ seed, count }) => [...normals(seed, count)]),
    draws: draws.map(({ seed, d_k, scaled }) => measure(drawVectors(seed), d_k, scaled)),
  }),
);
