import assert from "node:assert/strict";
import test from "node:test";
import { headsWords } from "../../figures/js/en/heads.js";
import { strongestHead } from "../../figures/js/heads.js";
import { readLexicon, swaps, tag } from "../../figures/js/relations.js";

const lexicon = readLexicon({
  nouns: {
    animate: { masculine: { fox: "foxes", cat: "cats" }, feminine: { hen: "hens" } },
    place: { masculine: { lake: "lakes" }, feminine: {} },
  },
  adjectives: { animate: ["shy"], place: ["wide", "deep"] },
  topics: { nature: ["rain"], work: ["payment"] },
  senses: { bank: ["bank (river)", "bank (money)"] },
});
const words = "the foxes did not cross the lake".split(" ");

test("questions move with the words", () => {
  const it = "the fox did not cross the lake because it was too wide".split(" ");
  assert.deepEqual(tag(words, lexicon).map(({ answer }) => answer), ["masculine", "plural", "masculine"]);
  assert.deepEqual(tag(it, lexicon).at(-1), { relation: "coreference", asked: 8, tells: 6, answer: "lake", cue: 11 });
  assert.equal(tag(it.with(11, "shy"), lexicon).at(-1).tells, 1);
});

test("words are swapped for their like", () => {
  const offered = swaps(words, lexicon);
  assert.deepEqual(offered.flatMap((groups, i) => (groups ? [i] : [])), [1, 6]);
  assert.deepEqual(offered[1], [
    { label: "singular", words: ["fox", "cat", "hen"] },
    { label: "plural", words: ["foxes", "cats", "hens"] },
  ]);
  const it = swaps("the fox did not cross the lake because it was too wide".split(" "), lexicon);
  assert.deepEqual(it[1], [{ label: "singular", words: ["fox", "cat", "hen"] }]);
  assert.deepEqual(it[11], [
    { label: "fits “fox”", words: ["shy"] },
    { label: "fits “lake”", words: ["wide", "deep"] },
  ]);
});

test("the strongest of the heads that are on", () => {
  const weights = [[0.1, 0.5], [0.9, 0.5]];
  assert.deepEqual(strongestHead(weights, () => false), [1, 0]);
  assert.deepEqual(strongestHead(weights, (layer, head) => layer === 1 && head === 0), [0, 1]);
  assert.equal(strongestHead(weights, () => true), null);
});

test("the figure in words", () => {
  const question = { relation: "agreement", asked: 2, tells: 1, answer: "plural" };
  const seen = { words, question, off: [], wrong: 0, asked: 3, answer: { word: "plural", p: 0.961 } };
  assert.equal(
    headsWords.describe(seen),
    "“did” asks for the number of “foxes”. With all heads on the model answers plural (0.96). All 3 answers are right.",
  );
  const without = { ...seen, off: ["2.3", "1.1", "1.2"], wrong: 1, answer: { word: "singular", p: 0.5 } };
  assert.equal(
    headsWords.describe(without),
    "“did” asks for the number of “foxes”. With 2.3, 1.1 and 1.2 off the model answers singular (0.50); " +
      "right is plural. 1 of 3 answers is wrong.",
  );
  assert.match(headsWords.describe({ ...without, off: Array(5).fill("1.1"), wrong: 2 }), /With 5 heads off .* 2 of 3 answers are wrong\.$/);
});

test("a look in words", () => {
  const look = { words, question: { asked: 2, tells: 1 }, name: "2.3", faintest: 0.1, row: [0.02, 0.7, 0.28, 0, 0, 0, 0], off: false };
  assert.equal(
    headsWords.describeLook({ ...look, pointed: false }),
    "Shaded: where head 2.3 looks from “did”. It gives “foxes” the most weight, 0.70.",
  );
  assert.equal(
    headsWords.describeLook({ ...look, pointed: true, off: true }),
    "Shaded: where head 2.3 looks from “did”, most at “foxes” (0.70). It is off: it looks, and adds nothing.",
  );
  const even = { ...look, row: Array(7).fill(0.09) };
  assert.equal(headsWords.describeLook({ ...even, pointed: false }), "No head that is on gives “foxes” more than 0.09.");
  assert.equal(headsWords.describeLook({ ...even, pointed: true }), "From “did” head 2.3 looks at nothing in particular.");
});
