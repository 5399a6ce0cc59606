/** @file The words of the sentence figure: each can be chosen as the one that looks, some are swapped, or all are typed; and its answers. */

import { html, number, set, uniqueName } from "./dom.js";
import { sentenceWords } from "./en/sentence.js";

/**
 * The words in a row: a radio button each, the weight below, and a mark where a vector is another's.
 * @param {{count: number, choose: (query: number) => void}} options
 */
export function createWords({ count, choose }) {
  const name = uniqueName();
  const cells = Array.from({ length: count }, (_, i) => {
    const input = html("input", { type: "radio", name, onchange: () => choose(i) });
    const text = html("span");
    const weight = html("span", { class: "weight", "aria-hidden": "true" });
    const mark = html("span", { class: "mark" });
    const cell = html("div", { class: "word" }, html("label", {}, input, text), weight, mark);
    return { cell, input, text, weight, mark };
  });
  const node = html(
    "fieldset",
    { class: "words" },
    html("legend", { class: "sr" }, sentenceWords.looks),
    ...cells.map(({ cell }) => cell),
  );
  /** @param {string[]} marks what vector each word has of another, or "" */
  const draw = (now, query, row, marks) =>
    cells.forEach(({ cell, input, text, weight, mark }, i) => {
      input.checked = i === query;
      set(text, { text: now[i] });
      set(weight, { text: row && row[i] >= 0.005 ? row[i].toFixed(2) : "" });
      set(mark, { text: marks[i] });
      set(cell, {
        class: `word${row && row[i] >= 0.25 ? " strong" : ""}${i === query ? " looks" : ""}`,
        style: `--w:${row ? row[i].toFixed(3) : 0}`,
      });
    });
  return { node, labels: cells.map(({ text }) => text), draw };
}

/** Choose the word that looks where the words are too small for a finger. @param {(query: number) => void} choose */
export function createFrom(choose) {
  const select = html("select", { onchange: () => choose(Number(select.value)) });
  const node = html("label", { class: "from" }, html("span", {}, sentenceWords.from), select);
  let offered = "";
  const draw = (words, query) => {
    if (offered !== words.join(" ")) {
      offered = words.join(" ");
      select.replaceChildren(...words.map((word, i) => html("option", { value: i }, word)));
    }
    select.value = String(query);
  };
  return { node, draw };
}

/**
 * Other words: from lists, or a sentence of the reader's own, as far as the grammar goes.
 * @param {{words: string[], roles: any, classes: Record<string, {nouns: string[], plurals: string[], adjectives: string[]}>,
 *          known: string[], change: (words: string[]) => void}} options
 */
export function createSwaps({ words, roles, classes, known, change }) {
  const places = [...roles.nouns, roles.adjective];
  let now = words;
  const selects = places.map((i) => {
    const isOne = (kind) => Object.values(classes).some((members) => members[kind].includes(words[i]));
    const kind = i === roles.adjective ? "adjectives" : ["nouns", "plurals"].find(isOne);
    const option = (value) => html("option", { value }, value);
    return html(
      "select",
      { onchange: ({ target }) => change(now.with(i, target.value)) },
      ...Object.entries(classes).map(([group, members]) =>
        html("optgroup", { label: sentenceWords.groups[group] }, ...members[kind].map(option)),
      ),
    );
  });
  const typed = html("input", { type: "text", "aria-label": sentenceWords.own, autocapitalize: "off", spellcheck: "false" });
  const said = html("p", { class: "hint", role: "status" });
  const form = html("form", { class: "own" }, typed, html("button", { type: "submit" }, sentenceWords.show));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = typed.value.toLowerCase().match(/[a-z]+/g) ?? [];
    const fault = findFault(wanted, { words, roles, classes, known });
    set(said, { text: fault ?? "" });
    if (!fault) change(wanted);
  });
  const node = html(
    "section",
    { class: "swaps hand" },
    html("p", { class: "heading" }, sentenceWords.swaps),
    html("div", { class: "buttons" }, ...selects),
    html("p", { class: "heading" }, sentenceWords.own),
    form,
    said,
  );
  const draw = (shown) => {
    if (now.join() !== shown.join() || !typed.value) typed.value = shown.join(" ");
    now = shown;
    places.forEach((i, n) => {
      selects[n].value = shown[i];
      // Two nouns of one class would make a question without an answer.
      const other = roles.nouns.includes(i) ? shown[roles.nouns.find((j) => j !== i)] : null;
      for (const group of selects[n].children) {
        group.disabled = other !== null && [...group.children].some(({ value }) => value === other);
      }
      set(selects[n], { "aria-label": sentenceWords.swap(shown[i]) });
    });
  };
  return { node, draw };
}

/**
 * Why a sentence cannot be shown, in words; null if it can. It has the shape of the one on show: nouns, verb and adjective may be others.
 * @param {string[]} wanted @param {{words: string[], roles: any, classes: any, known: string[]}} shown
 */
export function findFault(wanted, { words, roles, classes, known }) {
  const strange = wanted.filter((word) => !known.includes(word));
  if (strange.length) return sentenceWords.ownUnknown([...new Set(strange)]);
  const members = (kind) => Object.values(classes).flatMap((group) => group[kind]);
  const verb = words.indexOf("not") + 1;
  const free = { [roles.adjective]: members("adjectives") };
  for (const i of roles.nouns) free[i] = members(members("nouns").includes(words[i]) ? "nouns" : "plurals");
  const others = new Set([...members("nouns"), ...members("plurals"), ...members("adjectives"), ...words.filter((_, i) => i !== verb)]);
  const fits = (word, i) => (i === verb ? !others.has(word) : free[i] ? free[i].includes(word) : word === words[i]);
  if (wanted.length !== words.length || !wanted.every(fits)) {
    return sentenceWords.ownShape(words.map((word, i) => (i === verb || free[i] ? `[${word}]` : word)).join(" "));
  }
  const adjective = wanted[roles.adjective];
  const classOf = (word) => Object.values(classes).findIndex(({ nouns, plurals, adjectives }) => [nouns, plurals, adjectives].some((list) => list.includes(word)));
  const fitting = roles.nouns.filter((i) => classOf(wanted[i]) === classOf(adjective));
  return fitting.length === 1 ? null : sentenceWords.ownClasses(adjective);
}

/** Bars of the most probable answers, the sentence's two nouns first. */
export function createAnswers() {
  const title = html("p", { class: "heading" });
  const rows = html("div", { class: "bars" });
  const node = html("section", { class: "answers" }, title, rows);
  function draw(ranking, nouns, pronoun) {
    set(title, { text: sentenceWords.answers(pronoun) });
    const first = nouns.map((noun) => ranking.find(({ word }) => word === noun)).filter(Boolean);
    const others = ranking.filter((answer) => !first.includes(answer)).slice(0, 3);
    [...first, ...others].forEach(({ word, p }, i) => {
      const row =
        rows.children[i] ?? rows.appendChild(html("div", {}, html("span"), html("i", {}, html("b")), number()));
      const [name, track, value] = row.children;
      set(row, {
        class: `bar${i >= first.length ? " other" : ""}${word === ranking[0].word ? " best" : ""}`,
      });
      set(name, { text: word });
      set(value, { text: p.toFixed(2) });
      track.firstChild.style.width = `${(100 * p).toFixed(2)}%`;
    });
    while (rows.children.length > first.length + others.length) rows.lastChild.remove();
  }
  return { node, draw };
}
