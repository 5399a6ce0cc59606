import assert from "node:assert/strict";
import test from "node:test";
import { softmax } from "../../figures/js/attention.js";
import { hasAll, isCut, resolve, toggleAll, toggleCut, toggleEdit } from "../../figures/js/edits.js";
import { loadEncoder, parseSafetensors } from "../../figures/js/encoder.js";
import { fromAddress, toAddress } from "../../figures/js/address.js";
import { planeWords } from "../../figures/js/en/plane.js";
import { sentenceWords } from "../../figures/js/en/sentence.js";
import { look } from "../../figures/js/plane.js";
import { adjectivePair, fitsSentence } from "../../figures/js/sentence.js";
import { findFault } from "../../figures/js/sentence_words.js";

const words = "the animal did not cross the street because it was too tired".split(" ");
const classes = {
  animate: { nouns: ["animal", "fox"], plurals: ["animals", "foxes"], adjectives: ["tired", "shy"] },
  place: { nouns: ["street"], plurals: ["streets"], adjectives: ["wide", "busy"] },
  thing: { nouns: ["box"], plurals: ["boxes"], adjectives: ["heavy"] },
};
const roles = { nouns: [1, 6], pronoun: 8, adjective: 11 };
const withWord = (position, word) => words.map((old, i) => (i === position ? word : old));

test("softmax of nothing is zeros, and adding a number to all scores changes nothing", () => {
  assert.deepEqual(softmax([-Infinity, -Infinity]), [0, 0]);
  softmax([1000, 1000 + Math.log(3)]).forEach((p, i) => assert.ok(Math.abs(p - [0.25, 0.75][i]) < 1e-12));
});

test("a line that is cut in one head, in all, and restored", () => {
  const one = toggleCut([], 1, 2, 8, 1);
  assert.deepEqual(one, [{ cut: { layer: 1, query: 8, key: 1, head: 2 } }]);
  assert.ok(isCut(one, 1, 2, 8, 1) && !isCut(one, 1, 3, 8, 1) && !isCut(one, 0, 2, 8, 1));
  const all = toggleCut(one, 1, null, 8, 1);
  assert.deepEqual(all, [{ cut: { layer: 1, query: 8, key: 1, head: null } }]);
  assert.ok(isCut(all, 1, 3, 8, 1));
  assert.deepEqual(toggleCut(all, 1, 3, 8, 1), []);
  assert.deepEqual(toggleCut(all, 1, null, 8, 1), []);
});

test("an exchange is two takes, and the twin is looked up when the model runs", () => {
  const exchange = { exchange: { what: "value", layer: 1, a: 1, b: 6, head: null } };
  const takes = resolve([exchange], words);
  assert.deepEqual(
    takes.map(({ take }) => [take.to, take.source]),
    [
      [1, 6],
      [6, 1],
    ],
  );
  const twin = { take: { what: "query", layer: 1, to: 8, source: 8, head: null, words: "twin" } };
  assert.deepEqual(resolve([twin], ["a"])[0].take.words, ["a"]);
  assert.deepEqual(toggleEdit(toggleEdit([], twin), { ...twin }), []);
});

test("edits in words", () => {
  assert.equal(
    sentenceWords.edit({ cut: { layer: 1, query: 8, key: 1, head: null } }, words),
    "“it” cannot see “animal” · layer 2, every head",
  );
  assert.equal(sentenceWords.edit({ off: { layer: 0, head: 2 } }, words), "switched off · layer 1, head 3");
  const take = { what: "key", layer: 1, to: 1, source: 6, head: 0, words: null };
  assert.equal(sentenceWords.edit({ take }, words), "“animal” has the key of “street” · layer 2, head 1");
  assert.equal(
    sentenceWords.edit({ take: { ...take, source: 1, words: "twin" } }, words),
    "“animal” has its key from the twin sentence · layer 2, head 1",
  );
});

test("an experiment of several edits is in force when all are, and goes as a whole", () => {
  const one = { cut: { layer: 0, query: 1, key: 2, head: null } };
  const two = { cut: { layer: 0, query: 3, key: 2, head: null } };
  const other = { off: { layer: 1, head: 0 } };
  assert.equal(hasAll([one, other], [one, two]), false);
  assert.deepEqual(toggleAll([one, other], [one, two]), [other, one, two]);
  assert.deepEqual(toggleAll([two, other, one], [one, two]), [other]);
});

test("the twin's adjective fits the other noun", () => {
  const pair = ["tired", "wide"];
  assert.deepEqual(adjectivePair(words, roles, classes, pair), pair);
  assert.deepEqual(adjectivePair(withWord(11, "busy"), roles, classes, pair), ["tired", "busy"]);
  assert.deepEqual(adjectivePair(withWord(11, "heavy"), roles, classes, pair), pair);
  assert.deepEqual(adjectivePair(withWord(6, "box"), roles, classes, pair), ["tired", "heavy"]);
  assert.deepEqual(adjectivePair(withWord(6, "fox"), roles, classes, pair), ["tired", "shy"]);
  assert.deepEqual(adjectivePair(withWord(6, "boxes"), roles, classes, pair), ["tired", "heavy"]);
});

test("what is seen, in words", () => {
  const row = words.map((_, i) => (i === 1 ? 0.9 : 0.01));
  const seen = { words, query: 8, layer: 1 };
  assert.equal(
    sentenceWords.describe({ ...seen, heads: [2], rows: [row] }),
    "Layer 2, head 3: “it” looks at “animal” (0.90).",
  );
  assert.equal(
    sentenceWords.describe({ ...seen, heads: [2], rows: [row.map(() => 0)] }),
    "Layer 2, head 3: “it” can see nothing.",
  );
  const other = words.map((_, i) => (i === 6 ? 0.9 : 0.01));
  assert.equal(
    sentenceWords.describe({ ...seen, heads: [0, 1, 2], rows: [row, other, row] }),
    "Layer 2: “it” looks at “animal” in heads 1 and 3, at “street” in head 2.",
  );
});

test("a query of 0 gives the average of the values", () => {
  const values = [
    [0, 3],
    [3, 0],
    [0, 0],
  ];
  const { weights, output } = look(
    [0, 0],
    [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
    values,
    1,
  );
  for (const [got, wanted] of [
    [output[0], 1],
    [output[1], 1],
    [weights[0], 1 / 3],
  ])
    assert.ok(Math.abs(got - wanted) < 1e-12);
  assert.match(
    planeWords.describe({ query: [0, 0], sharpness: 1, weights, labels: ["A", "B", "C"] }),
    /^The query is 0: every score is 0 and every weight 0\.33\./,
  );
});

test("the weights may come as a DataView into a larger buffer", () => {
  const header = JSON.stringify({ x: { dtype: "F16", shape: [6], data_offsets: [0, 12] } });
  const buffer = new ArrayBuffer(3 + 8 + header.length + 12);
  const view = new DataView(buffer, 3);
  view.setBigUint64(0, BigInt(header.length), true);
  new TextEncoder().encodeInto(header, new Uint8Array(buffer, 11));
  [0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x8000].forEach((bits, i) =>
    view.setUint16(8 + header.length + 2 * i, bits, true),
  );
  assert.deepEqual(parseSafetensors(view).tensors.x, [1, -2, 2 ** -24, 65504, Infinity, -0]);
  assert.equal(typeof loadEncoder, "function");
});

test("a state goes into an address and comes out of it; what is of another kind does not", () => {
  globalThis.document = { querySelectorAll: () => [figure] };
  const figure = { dataset: { figure: "plane" } };
  const state = { query: [1.3, -1.2], key_vectors: [[1, 2], [3, 4]], sharpness: 2, head: null, words: ["the", "fox"], on: true };
  const address = toAddress(figure, state);
  assert.match(address, /^#fig=plane&query=1.3,-1.2&key_vectors=/);
  const read = (hash, now = state) => {
    globalThis.location = { hash };
    return fromAddress(figure, now);
  };
  assert.deepEqual(read(address), state);
  assert.equal(read("#fig=tiles&query=1,2"), null);
  assert.equal(read("#part-1"), null);
  const broken = "#fig=plane&query=1,x&key_vectors=3&sharpness=%22a%22&words=a&on=3&head=[1]&strange=1&=%";
  assert.deepEqual(read(broken), { words: ["a"] });
});

test("an edit from an address is one that the encoder can take, or none", () => {
  const size = { layers: 2, heads: 4 };
  const cut = { layer: 1, query: 8, key: 1, head: null };
  for (const [edit, fits] of [
    [{ cut }, true],
    [{ off: { layer: 0, head: 3 } }, true],
    [{ exchange: { what: "value", layer: 1, a: 1, b: 6, head: null } }, true],
    [{ take: { what: "key", layer: 1, to: 1, source: 6, head: 0, words: "twin" } }, true],
    [{ cut: { ...cut, key: 12 } }, false],
    [{ off: { layer: 0, head: null } }, false],
    [{ exchange: { what: "<b>", layer: 1, a: 1, b: 6, head: null } }, false],
    [{ other: {} }, false],
    [null, false],
  ])
    assert.equal(fitsSentence(edit, words, size), fits, JSON.stringify(edit));
});

test("a sentence of the reader's own, as far as the grammar goes", () => {
  const known = [...words, "fox", "box", "shy", "enter", "busy", "heavy", "foxes", "animals"];
  const fault = (text) => findFault(text.split(" "), { words, roles, classes, known });
  assert.equal(fault("the fox did not enter the street because it was too busy"), null);
  assert.match(fault("the fox did not blorp the street because it was too busy"), /does not know “blorp”/);
  assert.match(fault("the foxes did not enter the street because it was too busy"), /sentences like this one: the \[animal\] did not \[cross\]/);
  assert.match(fault("the fox did not enter the street"), /sentences like this one/);
  assert.match(fault("the fox did not fox the street because it was too busy"), /sentences like this one/);
  assert.match(fault("the fox did not enter the animal because it was too shy"), /“shy” must fit one of the two nouns/);
  assert.match(fault("the fox did not enter the street because it was too heavy"), /“heavy” must fit/);
});
