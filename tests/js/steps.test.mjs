import assert from "node:assert/strict";
import test from "node:test";
import { mayLook, upTo } from "../../figures/js/cheating.js";
import { cheatingWords } from "../../figures/js/en/cheating.js";
import { stepsWords } from "../../figures/js/en/steps.js";
import { cost, doing } from "../../figures/js/steps.js";

const describeMachines = ({ tokens, step }) => stepsWords.describe({ tokens, step, costs: cost(tokens) });

test("attention's steps do not grow", () => {
  assert.deepEqual(cost(12), { recurrent: { steps: 12, path: 11 }, attention: { steps: 2, path: 1 } });
  assert.equal(cost(32).attention.steps, 2);
});

test("what a machine does in each step", () => {
  const all = (name, last) => Array.from({ length: last + 1 }, (_, step) => doing(name, 3, step));
  assert.deepEqual(all("attention", 3), ["not begun", "scores", "done", "done"]);
  assert.deepEqual(all("recurrent", 3), ["not begun", "state 1", "state 2", "done"]);
});

test("the two machines in words", () => {
  const seen = { tokens: 12 };
  assert.equal(
    describeMachines({ ...seen, step: 3 }),
    "After step 3, attention is done, the recurrent network has 9 of 12 steps left. " +
      "From token 1 to token 12: 11 links against 1.",
  );
  const starts = (step, words) => assert.ok(describeMachines({ ...seen, step }).startsWith(words));
  starts(0, "Nothing has run yet.");
  starts(1, "After step 1, attention has 1 of 2 steps left, the recurrent network has 11 of 12.");
  starts(12, "Attention was done after 2 steps, the recurrent network after 12.");
  assert.match(describeMachines({ tokens: 2, step: 1 }), /token 2: 1 link against 1\./);
});

test("a mask hides what comes later, and without it the next word is seen", () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((s) => mayLook(true, 1, s)),
    [true, true, false, false],
  );
  assert.ok([0, 1, 2, 3].every((s) => mayLook(false, 1, s)));
});

test("what was recorded up to a step", () => {
  const pairs = [
    [0, "a"],
    [20, "b"],
    [50, "c"],
  ];
  assert.deepEqual(
    [0, 19, 20, 800].map((step) => upTo(pairs, step)),
    ["a", "a", "b", "c"],
  );
  assert.equal(upTo(undefined, 3), null);
});

test("the cheating model in words", () => {
  assert.equal(
    cheatingWords.describe({ masked: false, step: 10, loss: 0.0024, alone: 3.9, accepted: 0.004 }),
    "Without the mask, after 10 steps, the training loss is 0.0024 nats a word; where the next word is not there " +
      "to be seen, 3.90. Of the sentences that it writes, under 1 % fit the grammar.",
  );
  assert.equal(
    cheatingWords.describe({ masked: true, step: 0, loss: 5.6, alone: null, accepted: null }),
    "With the mask, before training, the training loss is 5.60 nats a word.",
  );
  assert.deepEqual([0, 0.001, 0.865, 0.999, 1].map(cheatingWords.wholePercent), [
    "0 %",
    "under 1 %",
    "87 %",
    "over 99 %",
    "100 %",
  ]);
});
