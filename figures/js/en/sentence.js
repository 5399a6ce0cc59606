/** @file What the figure of the rewired sentence says; layers and heads count from 1. */

import { inWords, quoted } from "./common.js";

const VECTORS = { query: "query", key: "key", value: "value" };
const placed = (layer, head) => `layer ${layer + 1}, ${head === null ? "every head" : `head ${head + 1}`}`;

export const sentenceWords = {
  vectors: VECTORS,
  placed,
  lastWord: "last word",
  layer: "layer",
  head: "head",
  all: "all",
  looks: "The word that looks (its query)",
  from: "from",
  swaps: "change a word",
  swap: (word) => `swap ${quoted(word)}`,
  groups: { animate: "animate", place: "place", thing: "thing" },
  own: "your own sentence",
  show: "show",
  ownUnknown: (words) => `The model does not know ${inWords(words.map(quoted))}.`,
  ownShape: (pattern) => `It takes sentences like this one: ${pattern}.`,
  ownClasses: (adjective) => `${quoted(adjective)} must fit one of the two nouns, and only one.`,
  hint: "Choose any word to see where it looks. Click a line to cut it, and again to restore it.",
  answers: (pronoun) => `What ${quoted(pronoun)} stands for`,
  matrix: (layer, head) => `All the words, ${head === null ? `every head of layer ${layer + 1}` : placed(layer, head)}`,
  matrixLabel: (layer, head, looks) =>
    `Attention weights of ${head === null ? `every head of layer ${layer + 1}` : placed(layer, head)}; rows are queries, columns are keys. ${looks}`,
  headTitle: (head) => `head ${head + 1}`,
  restore: (word) => `restore the line to ${quoted(word)}`,
  line: ({ head, from, to, weight }) => `head ${head + 1}: ${quoted(from)} looks at ${quoted(to)} ${weight}; click to cut`,
  /** Under a word whose vector is another's. */
  mark: (what, word, twin) => `${VECTORS[what]} of ${twin ? "its twin" : word}`,
  rewire: (layer) => `Rewire every head of layer ${layer + 1}`,
  experiments: {
    values: "exchange the nouns’ values",
    keys: "exchange the nouns’ keys",
    query: (pronoun) => `give ${quoted(pronoun)} its twin’s query`,
    twinKeys: "give the nouns their twins’ keys",
  },
  resetAll: "reset all",
  remove: (text) => `remove: ${text}`,
  byHand: "By hand: every line, every head, every vector",
  wholeHead: "A whole head",
  lines: (word, layer, head) => `Lines from ${quoted(word)}, ${placed(layer, head)}: press to cut`,
  cutLine: (word, gone, weight) => `${word}${gone ? " cut" : weight}`,
  cutLabel: (from, to, weight) => `cut ${quoted(from)} to ${quoted(to)}${weight}`,
  silence: (layer, head) => `switch ${head === null ? "every head" : `head ${head + 1}`} of layer ${layer + 1} off`,
  vectorsOf: (layer, head) => `Vectors, ${placed(layer, head)}`,
  form: { the: "the ", of: " of ", and: " and that of ", which: "which vector", target: "of which word", source: "with that of" },
  exchange: "exchange",
  take: "take only",
  here: "this sentence",
  twin: (words) => `twin: … ${words.slice(-3).join(" ")}`,
  inTwin: (word) => `${word} (twin)`,
  answer: ({ word, p }) => `The model answers: ${word} (${p.toFixed(2)}).`,
  inForce: (count) => (count ? ` ${count} ${count > 1 ? "edits" : "edit"} in force.` : ""),
  /** One edit, one clause. */
  edit: (edit, words) => {
    const [kind] = Object.keys(edit);
    const { layer, head, ...rest } = edit[kind];
    const word = (i) => quoted(words[i]);
    const what = {
      cut: () => `${word(rest.query)} cannot see ${word(rest.key)}`,
      off: () => "switched off",
      exchange: () => `${VECTORS[rest.what]} of ${word(rest.a)} and of ${word(rest.b)} exchanged`,
      take: () => {
        if (rest.words === null) return `${word(rest.to)} has the ${VECTORS[rest.what]} of ${word(rest.source)}`;
        const other = rest.words === "twin" ? words : rest.words;
        const source =
          rest.source === rest.to ? `its ${VECTORS[rest.what]}` : `the ${VECTORS[rest.what]} of ${quoted(other[rest.source])}`;
        return `${word(rest.to)} has ${source} from the ${rest.words === "twin" ? "twin" : "other"} sentence`;
      },
    };
    return `${what[kind]()} · ${placed(layer, head)}`;
  },
  /** What the picture shows, in one sentence. */
  describe: ({ words, query, layer, heads, rows }) => {
    const from = quoted(words[query]);
    const strongest = (row) => row.indexOf(Math.max(...row));
    if (heads.length === 1) {
      const at = strongest(rows[0]);
      const weight = rows[0][at];
      const head = `Layer ${layer + 1}, head ${heads[0] + 1}: ${from}`;
      if (weight === 0) return `${head} can see nothing.`;
      const manner =
        weight >= 0.5 ? "looks at" : weight >= 0.25 ? "looks mostly at" : "looks everywhere, most at";
      return `${head} ${manner} ${quoted(words[at])} (${weight.toFixed(2)}).`;
    }
    const groups = new Map();
    heads.forEach((head, i) => {
      const at = Math.max(...rows[i]) >= 0.25 ? strongest(rows[i]) : -1;
      groups.set(at, [...(groups.get(at) ?? []), head + 1]);
    });
    const parts = [...groups].map(([at, numbers]) => {
      const where =
        numbers.length === heads.length
          ? "in every head"
          : `in head${numbers.length > 1 ? "s" : ""} ${inWords(numbers)}`;
      return `at ${at < 0 ? "nothing in particular" : quoted(words[at])} ${where}`;
    });
    return `Layer ${layer + 1}: ${from} looks ${parts.join(", ")}.`;
  },
};
