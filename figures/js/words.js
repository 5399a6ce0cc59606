/** @file The words of the sentence figure, and the bars of its answers. */

import { html, set, uniqueName } from "./dom.js";

/** The words, each a radio button; nouns and the adjective can be swapped. */
export function createWords({ words, roles, classes, choose, swap }) {
  const name = uniqueName();
  const cells = words.map((word, i) => {
    const input = html("input", { type: "radio", name, onchange: () => choose(i) });
    const text = html("span", {}, word);
    const weight = html("span", { class: "weight", "aria-hidden": "true" });
    const isOne = (kind) => Object.values(classes).some((members) => members[kind].includes(word));
    const kind = i === roles.adjective ? "adjectives" : ["nouns", "plurals"].find(isOne);
    const select =
      kind &&
      html(
        "select",
        { onchange: (event) => swap(i, event.target.value) },
        ...Object.entries(classes).map(([group, members]) =>
          html(
            "optgroup",
            { label: group },
            ...members[kind].map((option) => html("option", { value: option }, option)),
          ),
        ),
      );
    const cell = html(
      "div",
      { class: "word" },
      html("label", {}, input, text),
      weight,
      ...(select ? [html("span", { class: "swap hand" }, "▾", select)] : []),
    );
    return { cell, input, text, weight, select };
  });
  const node = html(
    "fieldset",
    { class: "words" },
    html("legend", { class: "sr" }, "The word that looks (its query)"),
    ...cells.map(({ cell }) => cell),
  );
  const draw = (now, query, row) =>
    cells.forEach(({ cell, input, text, weight, select }, i) => {
      input.checked = i === query;
      set(text, { text: now[i] });
      set(weight, { text: row && row[i] >= 0.005 ? row[i].toFixed(2) : "" });
      set(cell, {
        class: `word${row && row[i] >= 0.25 ? " strong" : ""}`,
        style: `--w:${row ? row[i].toFixed(3) : 0}`,
      });
      if (select) {
        select.value = now[i];
        // Two nouns of one class would make a question without an answer.
        const other = roles.nouns.includes(i) && roles.nouns.find((j) => j !== i);
        for (const group of select.children) {
          group.disabled = other !== false && [...group.children].some(({ value }) => value === now[other]);
        }
        set(select, { "aria-label": `swap “${now[i]}”` });
      }
    });
  return { node, labels: cells.map(({ text }) => text), draw };
}

/** Bars of the most probable answers, the sentence's two nouns first. */
export function createAnswers() {
  const title = html("p", { class: "heading" });
  const rows = html("div", { class: "bars" });
  const node = html("section", { class: "answers" }, title, rows);
  function draw(ranking, nouns, pronoun) {
    title.textContent = `What “${pronoun}” stands for`;
    const first = nouns.map((noun) => ranking.find(({ word }) => word === noun)).filter(Boolean);
    const others = ranking.filter((answer) => !first.includes(answer)).slice(0, 3);
    [...first, ...others].forEach(({ word, p }, i) => {
      const row =
        rows.children[i] ??
        rows.appendChild(html("div", {}, html("span"), html("i", {}, html("b")), html("output")));
      const [name, track, number] = row.children;
      set(row, {
        class: `bar${i >= first.length ? " other" : ""}${word === ranking[0].word ? " best" : ""}`,
      });
      set(name, { text: word });
      set(number, { text: p.toFixed(2) });
      track.firstChild.style.width = `${(100 * p).toFixed(2)}%`;
    });
    while (rows.children.length > first.length + others.length) rows.lastChild.remove();
  }
  return { node, draw };
}
