import assert from "node:assert/strict";
import test from "node:test";
import { tokensAt } from "../../figures/js/cost.js";
import { costWords } from "../../figures/js/en/cost.js";
import { tilesWords } from "../../figures/js/en/tiles.js";
import { evenAt, growthOf, layerCost } from "../../figures/js/layer_cost.js";
import { drawExample, follow, walk } from "../../figures/js/online_softmax.js";

const { large, share: percent } = costWords;
const describeBill = ({ n, d }) =>
  costWords.describe({ n, d, cost: layerCost(n, d), even: evenAt(d), growth: growthOf(n, d) });

const plain = (text) => text.replaceAll("\u00a0", " ");

test("the FLOPs of a layer are 24 n d² + 4 n² d, and even at n = 6 d", () => {
  assert.deepEqual(layerCost(3, 5), { projections: 600, feed_forward: 1200, scores: 180, total: 1980 });
  for (const d of [128, 1536, 16384]) {
    const { scores, total } = layerCost(evenAt(d), d);
    assert.equal(scores, total / 2);
    assert.equal(growthOf(evenAt(d), d), 3);
  }
  assert.equal(growthOf(2000, 512).toFixed(2), "2.79");
  assert.equal(growthOf(2000, 12288).toFixed(2), "2.05");
});

test("the slider stops at numbers of two digits, and at 6 d", () => {
  const stops = Array.from({ length: 81 }, (_, place) => tokensAt(place, 512));
  for (const n of [100, 2000, 3072, 4000, 1e6]) assert.ok(stops.includes(n));
  assert.deepEqual([...stops].sort((a, b) => a - b), stops);
  assert.equal(new Set(stops).size, 81);
  assert.ok(stops.filter((n) => n !== 3072).every((n) => Number(n.toPrecision(2)) === n));
});

test("large numbers and shares for the reader", () => {
  const numbers = [5_120_000, 999_499_999, 999_500_000, 20_774_912_000, 6.6e12, 2.75e17];
  assert.deepEqual(
    numbers.map((x) => plain(large(x))),
    ["5.12 M", "999 M", "1.00 G", "20.8 G", "6.60 T", "275 P"],
  );
  assert.equal(plain(large(20_774_912_000, true)), "20.8 billion");
  assert.deepEqual([0.0004, 0.001, 0.394, 0.9994, 0.9996].map(percent).map(plain), [
    "under 0.1 %",
    "0.1 %",
    "39.4 %",
    "99.9 %",
    "over 99.9 %",
  ]);
});

test("the cost in words", () => {
  assert.equal(
    plain(describeBill({ n: 2000, d: 512 })),
    "At 2,000 tokens a layer 512 wide costs 20.8 billion FLOPs: projections 20.2 %, feed-forward 40.4 %, scores " +
      "and sum 39.4 %. They overtake all the rest at n = 6·d = 3,072. Twice the tokens: 2.79 times the cost.",
  );
  assert.match(plain(describeBill({ n: 3072, d: 512 })), /This is n = 6·d: .* the rest\. Twice the tokens: 3 times/);
  assert.match(plain(describeBill({ n: 4000, d: 512 })), /They overtook all the rest at n = 6·d = 3,072/);
});

test("two tiles by hand: the sum is rescaled by e^(1 − 2), hidden scores add nothing, a hidden tile is skipped", () => {
  const states = walk([1, 0, 2, ...Array(3).fill(-Infinity)], [[1], [2], [3], [4], [5], [6]], 2);
  assert.deepEqual(
    states.map(({ tile, m, factor }) => [tile, m, factor]),
    [
      [-1, -Infinity, 0],
      [0, 1, 0],
      [1, 2, Math.exp(-1)],
    ],
  );
  const l = Math.exp(-1) * (1 + Math.exp(-1)) + 1;
  assert.ok(Math.abs(states[2].l - l) < 1e-15);
  const o = Math.exp(-1) * (1 + 2 * Math.exp(-1)) + 3;
  assert.ok(Math.abs(states[2].o[0] - o) < 1e-15);
});

test("the tiles in words", () => {
  const seen = (query, step, causal) => {
    const skipped = causal ? [1, 2, 3, 4, 5, 6].filter((tile) => 4 * (tile - 1) > query) : [];
    return tilesWords.describe({ query: query + 1, step, skipped, ...follow(drawExample(607), query, causal) });
  };
  assert.equal(seen(13, 0, false), "Nothing of query 14 has been read: m is −∞, ℓ and o are 0.");
  assert.equal(seen(13, 1, false), "Tile 1: its largest score, 0.63, is the first m.");
  assert.equal(seen(13, 2, false), "Tile 2 holds no score above 0.63: nothing is rescaled, the tile is added.");
  assert.equal(
    seen(13, 3, true),
    "Tile 3 holds a larger score, 1.40 after 0.63. What was summed is multiplied by exp(0.63 − 1.40) = 0.46, then the tile is added.",
  );
  assert.match(seen(13, 6, false), /added\. That was the last: o \/ ℓ differs from softmax at once by 0\.0000\.$/);
  assert.match(seen(13, 4, true), / Tiles 5 and 6 hold later keys only: skipped, never computed\. That was the last/);
  assert.match(seen(19, 5, true), / Tile 6 holds later keys only: /);
  assert.doesNotMatch(seen(20, 6, true), /skipped/);
});
