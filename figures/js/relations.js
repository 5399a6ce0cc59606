/** @file What a sentence asks: the questions of attention_lib.models.relations.data, found again after each swap of a word. */

import { headsWords } from "./en/heads.js";

/**
 * @typedef {{relation: "article" | "agreement" | "coreference" | "sense", asked: number, tells: number,
 *            answer: string, cue: number | null}} Question  positions count from 0
 */

/**
 * What can be looked up of each word.
 * @param {{nouns: Record<string, Record<string, Record<string, string>>>, adjectives: Record<string, string[]>,
 *          topics: Record<string, string[]>, senses: Record<string, string[]>}} lexicon
 *   nouns: kind, gender, singular, plural; topics: those of nature and those of work
 */
export function readLexicon({ nouns, adjectives, topics, senses }) {
  const noun = new Map();
  for (const [kind, genders] of Object.entries(nouns)) {
    for (const [gender, forms] of Object.entries(genders)) {
      for (const [singular, plural] of Object.entries(forms)) {
        noun.set(singular, { kind, gender, number: "singular" });
        noun.set(plural, { kind, gender, number: "plural" });
      }
    }
  }
  const kindOf = new Map([...noun].map(([word, { kind }]) => [word, kind]));
  for (const [kind, words] of Object.entries(adjectives)) for (const word of words) kindOf.set(word, kind);
  const topic = new Map(Object.values(topics).flatMap((words, i) => words.map((word) => [word, i])));
  return { noun, kindOf, topic, senses, adjectives, topics };
}

const positions = (words, has) => words.flatMap((word, i) => (has(word) ? [i] : []));

/** The subject and the object, as far as there are any. @param {string[]} words */
function principals(words, { noun }) {
  const did = words.includes("did") ? words.indexOf("did") : words.length;
  const nouns = positions(words, (word) => noun.has(word));
  return [nouns.filter((i) => i < did).slice(0, 1), nouns.filter((i) => i > did).slice(0, 1)];
}

/**
 * All the questions that a sentence asks and answers, in the order of the words that ask.
 * @param {string[]} words @param {ReturnType<typeof readLexicon>} lexicon @returns {Question[]}
 */
export function tag(words, lexicon) {
  const { noun, kindOf, topic, senses } = lexicon;
  const [subject, object] = principals(words, lexicon);
  const topics = positions(words, (word) => topic.has(word));
  return words.flatMap((word, asked) => {
    const ask = (relation, tells, answer, cue = null) => [{ relation, asked, tells, answer, cue }];
    if (word === "the" && noun.has(words[asked + 1])) {
      return ask("article", asked + 1, noun.get(words[asked + 1]).gender);
    }
    if (word === "did" && subject.length && !words.includes("it")) {
      return ask("agreement", subject[0], noun.get(words[subject[0]]).number);
    }
    if (word === "it" && words.includes("too")) {
      const cue = words.indexOf("too") + 1;
      const fitting = [...subject, ...object].filter((i) => kindOf.get(words[i]) === kindOf.get(words[cue]));
      return fitting.length === 1 ? ask("coreference", fitting[0], words[fitting[0]], cue) : [];
    }
    if (Object.hasOwn(senses, word) && topics.length === 1) {
      return ask("sense", topics[0], senses[word][topic.get(words[topics[0]])]);
    }
    return [];
  });
}

/**
 * The words that may stand in the place of each, in groups; null for a word that stays.
 * @param {string[]} words @param {ReturnType<typeof readLexicon>} lexicon
 * @returns {({label: string, words: string[]}[] | null)[]}
 */
export function swaps(words, lexicon) {
  const { noun, kindOf, topic, adjectives, topics } = lexicon;
  const fixed = words.includes("it") ? principals(words, lexicon).flat() : []; // "it" stands for one
  return words.map((word, i) => {
    if (noun.has(word)) {
      const { kind } = noun.get(word);
      const forms = (number) => [...noun].filter(([, other]) => other.kind === kind && other.number === number);
      const numbers = fixed.includes(i) ? ["singular"] : ["singular", "plural"];
      return numbers.map((count) => ({ label: headsWords.groups[count], words: forms(count).map(([form]) => form) }));
    }
    if (words[i - 1] === "too" && kindOf.has(word)) {
      return principals(words, lexicon)
        .flat()
        .map((j) => ({ label: headsWords.groups.fits(words[j]), words: adjectives[kindOf.get(words[j])] }));
    }
    return topic.has(word) ? Object.entries(topics).map(([name, group]) => ({ label: headsWords.groups[name], words: group })) : null;
  });
}
