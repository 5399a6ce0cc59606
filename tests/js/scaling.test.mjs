import assert from "node:assert/strict";
import test from "node:test";
import { along, valueAt } from "../../figures/js/chart.js";
import { scalingWords } from "../../figures/js/en/scaling.js";
import { drawVectors, measure } from "../../figures/js/scaling.js";

const { brief, compare, describe } = scalingWords;

test("places along an axis, even and by factors, there and back", () => {
  const even = { low: -2, high: 6 };
  const factors = { low: 1e-9, high: 10, log: true };
  assert.equal(along(even, 0), 0.25);
  assert.ok(Math.abs(along(factors, 1) - 0.9) < 1e-12);
  assert.equal(along(factors, 0), 0);
  assert.equal(along(even, 7), 1);
  for (const axis of [even, factors])
    for (const share of [0, 0.3, 1]) assert.ok(Math.abs(along(axis, valueAt(axis, share)) - share) < 1e-12);
});

test("numbers for the reader", () => {
  assert.deepEqual([0, 2.7725, 0.104, 0.0321, 0.00412, 0.00012, 3.1e-12, 1e-9].map(brief), [
    "0.00",
    "2.77",
    "0.10",
    "0.032",
    "0.0041",
    "1·10⁻⁴",
    "3·10⁻¹²",
    "1·10⁻⁹",
  ]);
  assert.equal(compare(9.12, 1), "9.1 times as much as");
  assert.equal(compare(45, 1), "45 times as much as");
  assert.equal(compare(1.1, 1), "about as much as");
  assert.equal(compare(1, 2.5), "2.5 times less than");
  assert.equal(compare(1, 33.4), "33 times less than");
  assert.equal(compare(1e-9, 1), "more than 10,000 times less than");
});

test("a larger d_k keeps the entries that were there, so the scores grow from one another", () => {
  const vectors = drawVectors(3);
  assert.equal(vectors.q.length, 4096);
  assert.equal(vectors.keys.length, 16);
  const [one, two] = [64, 65].map((d_k) => measure(vectors, d_k, false));
  one.scores.forEach((score, i) =>
    assert.ok(Math.abs(score + vectors.q[64] * vectors.keys[i][64] - two.scores[i]) < 1e-12),
  );
  assert.notDeepEqual(drawVectors(4).q.slice(0, 3), vectors.q.slice(0, 3));
});

test("what is seen, in words", () => {
  const median = { scaled: { q: 0.27 }, unscaled: { q: 0.008 } };
  const seen = {
    d_k: 512,
    median,
    on: { largest: 0.21, entropy: 2.4, q: 0.3 },
    off: { largest: 0.98, q: 0.0075 },
  };
  assert.equal(
    describe({ ...seen, scaled: false }),
    "Without the scale, at d_k 512 one key takes 0.98 of the weight; what reaches q is 40 times less than with it. " +
      "The median of 1,000 draws: 34 times less than with it.",
  );
  assert.equal(
    describe({ ...seen, scaled: true }),
    "Divided by √512, the largest of 16 weights is 0.21, and a gradient of 0.30 reaches q. " +
      "The median of 1,000 draws: 0.27.",
  );
  const more = describe({ ...seen, scaled: false, off: { largest: 0.9999, q: 3 } });
  assert.match(
    more,
    /takes over 0\.99 of .* 10 times as much as with it, for the scale divides the gradient too\./,
  );
  assert.match(describe({ ...seen, d_k: 1, scaled: true }), /changes nothing/);
});
