// Reads cases as JSON from stdin, runs them through the modules of the figures of chapter 5, and writes what came out.
import { readFileSync } from "node:fs";
import { evenAt, growthOf, layerCost } from "../../figures/js/layer_cost.js";
import { drawExample, follow, walk } from "../../figures/js/online_softmax.js";

// JSON has no infinity: a hidden score, and the maximum of nothing, are null.
const { bills = [], seeds = [], walks = [], rows = [] } = JSON.parse(readFileSync(0, "utf8"));
const shown = (scores) => scores.map((score) => score ?? -Infinity);
console.log(
  JSON.stringify({
    bills: bills.map(([n, d]) => ({ ...layerCost(n, d), growth: growthOf(n, d), even: evenAt(d) })),
    seeds: seeds.map(drawExample),
    walks: walks.map(({ scores, values, size }) => walk(shown(scores), values, size)),
    rows: rows.map(({ seed, query, causal }) => follow(drawExample(seed), query, causal)),
  }),
);
