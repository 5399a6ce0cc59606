/** @file What the figure of the heads says; heads count from 1. */

import { inWords, quoted } from "./common.js";

const ASKS = {
  article: (words, { tells }) => `the gender that ${quoted(words[tells])} has in French`,
  agreement: (words, { tells }) => `the number of ${quoted(words[tells])}`,
  coreference: (words, { tells }) => `the noun it stands for, ${quoted(words[tells])}`,
  sense: (words, { tells }) => `its meaning, which ${quoted(words[tells])} tells`,
};

export const headsWords = {
  sentence: "sentence",
  words: "The word whose question is shown",
  title: (asked, tells) => `Where each head looks from ${quoted(asked)}, and its weight at ${quoted(tells)}`,
  board: "heads, each on or off",
  off: "off",
  head: (name, weight, tells) => `head ${name}, ${weight} at ${quoted(tells)}`,
  hint: "Named layer.head. A stroke for each word: its height is the weight. Press a head to switch it off.",
  allOn: "all on",
  noneOn: "No head is on.",
  wrong: (answer) => `✗ ${answer}`,
  right: (answer) => `✓ ${answer}`,
  asking: (word, given, wrong) => `${word}: ${given}${wrong ? ", wrong" : ""}`,
  swaps: "words that may be swapped",
  swap: (word) => `swap ${quoted(word)}`,
  groups: { singular: "singular", plural: "plural", nature: "nature", work: "work", fits: (noun) => `fits ${quoted(noun)}` },
  answers: (asked) => `Answers to ${quoted(asked)}`,
  /** The question on show, its answer, and how all answers fare. off: names of heads. */
  describe: ({ words, question, answer, off, wrong, asked }) => {
    const given = `the model answers ${answer.word} (${answer.p.toFixed(2)})`;
    const without = off.length > 3 ? `${off.length} heads` : inWords(off);
    return [
      `${quoted(words[question.asked])} asks for ${ASKS[question.relation](words, question)}.`,
      `${off.length ? `With ${without} off` : "With all heads on"} ${given}${answer.word === question.answer ? "." : `; right is ${question.answer}.`}`,
      wrong ? `${wrong} of ${asked} answers ${wrong > 1 ? "are" : "is"} wrong.` : `All ${asked} answers are right.`,
    ].join(" ");
  },
  /** Where a head looks, which is pointed at or else is the one that looks most at the word that tells. */
  describeLook: ({ words, question: { asked, tells }, name, row, off, pointed, faintest }) => {
    if (!pointed) {
      const weight = row[tells].toFixed(2);
      return row[tells] < faintest
        ? `No head that is on gives ${quoted(words[tells])} more than ${weight}.`
        : `Shaded: where head ${name} looks from ${quoted(words[asked])}. It gives ${quoted(words[tells])} the most weight, ${weight}.`;
    }
    const most = Math.max(...row);
    const where =
      most < faintest
        ? `From ${quoted(words[asked])} head ${name} looks at nothing in particular.`
        : `Shaded: where head ${name} looks from ${quoted(words[asked])}, most at ${quoted(words[row.indexOf(most)])} (${most.toFixed(2)}).`;
    return off ? `${where} It is off: it looks, and adds nothing.` : where;
  },
};
