/** @file The rewiring controls of the sentence figure: four experiments, the edits in force, and every line and vector by hand. */

import { html, rove, set, spread } from "./dom.js";
import { hasAll, isCut, sameEdit, toggleAll, toggleEdit } from "./edits.js";
import { sentenceWords } from "./en/sentence.js";

/**
 * @param {{get: (name: string) => any, change: (changes: object) => void, cut: (key: number) => void,
 *          roles: {nouns: number[], pronoun: number}, heads: number}} figure
 */
export function createPanel({ get, change, cut, roles, heads }) {
  const [first, second] = roles.nouns;
  const start = get("words");
  const toggle = (edit) => change({ edits: toggleEdit(get("edits"), edit) });
  const exchange = (what) => () => [
    { exchange: { what, layer: get("layer"), a: first, b: second, head: null } },
  ];
  const fromTwin = (what, positions) => () =>
    positions.map((at) => ({
      take: { what, layer: get("layer"), to: at, source: at, head: null, words: "twin" },
    }));
  const experiments = [
    { label: () => sentenceWords.experiments.values, edits: exchange("value") },
    { label: () => sentenceWords.experiments.keys, edits: exchange("key") },
    {
      label: (words) => sentenceWords.experiments.query(words[roles.pronoun]),
      edits: fromTwin("query", [roles.pronoun]),
    },
    { label: () => sentenceWords.experiments.twinKeys, edits: fromTwin("key", roles.nouns) },
  ].map(({ label, edits }) => ({
    label,
    edits,
    button: html("button", {
      type: "button",
      onclick: () => change({ edits: toggleAll(get("edits"), edits()) }),
    }),
  }));
  const title = html("p", { class: "heading", tabindex: "-1" });
  const list = html("ul", { class: "edits" });
  const reset = html(
    "button",
    { type: "button", onclick: () => (change({ edits: [], words: start }), title.focus()) },
    sentenceWords.resetAll,
  );
  const buttons = html("div", { class: "buttons" }, ...experiments.map(({ button }) => button));
  rove(buttons, sentenceWords.rewire(0), () => [...buttons.children]).refresh();
  const node = html(
    "section",
    { class: "rewire hand" },
    title,
    buttons,
    list,
    reset,
  );

  const linesTitle = html("p", { class: "heading" });
  const lines = html("div", { class: "buttons" });
  const stops = rove(lines, "", () => [...lines.children]);
  const off = html("button", { type: "button" });
  const form = createForm({ get, change });
  const details = html(
    "details",
    {},
    html("summary", {}, sentenceWords.byHand),
    html(
      "div",
      { class: "by-hand" },
      html("section", {}, linesTitle, lines),
      html("section", {}, form.node, html("p", { class: "heading", style: "margin-top:1rem" }, sentenceWords.wholeHead), off),
    ),
  );
  off.addEventListener("click", () => {
    const shown = get("head") === null ? spread(heads, (head) => head) : [get("head")];
    const edits = shown.map((head) => ({ off: { layer: get("layer"), head } }));
    const now = get("edits");
    const missing = edits.filter((edit) => !now.some((other) => sameEdit(edit, other)));
    change({
      edits: missing.length
        ? [...now, ...missing]
        : now.filter((other) => !edits.some((edit) => sameEdit(edit, other))),
    });
  });

  function drawList(edits, words) {
    const focused = [...list.children].findIndex((item) => item.contains(document.activeElement));
    list.replaceChildren(
      ...edits.map((edit) => {
        const text = sentenceWords.edit(edit, words);
        const remove = () => change({ edits: get("edits").filter((other) => !sameEdit(other, edit)) });
        return html(
          "li",
          {},
          html("span", {}, text),
          html("button", { type: "button", "aria-label": sentenceWords.remove(text), onclick: remove }, "×"),
        );
      }),
    );
    if (focused >= 0) (list.children[Math.min(focused, edits.length - 1)]?.lastChild ?? title).focus();
    reset.hidden = edits.length === 0 && words.join() === start.join();
  }

  /** @param {{words: string[], twin: string[], rows: number[][], shown: number[]}} picture */
  function draw({ words, twin, rows, shown }) {
    const [layer, head, query, edits] = ["layer", "head", "query", "edits"].map(get);
    set(title, { text: sentenceWords.rewire(layer) });
    for (const experiment of experiments) {
      set(experiment.button, {
        text: experiment.label(words),
        "aria-pressed": String(hasAll(edits, experiment.edits())),
      });
    }
    drawList(edits, words);
    set(linesTitle, { text: sentenceWords.lines(words[query], layer, head) });
    words.forEach((word, key) => {
      const button =
        lines.children[key] ??
        lines.appendChild(html("button", { type: "button", class: "cut-line", onclick: () => cut(key) }));
      const gone = shown.every((h) => isCut(edits, layer, h, query, key));
      const weight = shown.length === 1 ? ` ${rows[0][key].toFixed(2)}` : "";
      set(button, {
        text: sentenceWords.cutLine(word, gone, weight),
        "aria-pressed": String(gone),
        "aria-label": sentenceWords.cutLabel(words[query], word, weight),
      });
    });
    set(lines, { "aria-label": sentenceWords.lines(words[query], layer, head) });
    stops.refresh();
    set(buttons, { "aria-label": sentenceWords.rewire(layer) });
    const silent = shown.every((h) => edits.some((edit) => sameEdit(edit, { off: { layer, head: h } })));
    set(off, {
      text: sentenceWords.silence(layer, head),
      "aria-pressed": String(silent),
    });
    form.draw(words, twin);
  }
  return { node, details, draw };
}

/** "Exchange the [query] of [it] with that of [animal]": one vector with another word's, or with the twin sentence's. */
function createForm({ get, change }) {
  const what = html(
    "select",
    { "aria-label": sentenceWords.form.which },
    ...Object.entries(sentenceWords.vectors).map(([value, name]) => html("option", { value }, name)),
  );
  const target = html("select", { "aria-label": sentenceWords.form.target });
  const source = html("select", { "aria-label": sentenceWords.form.source });
  const exchange = html("button", { type: "button" }, sentenceWords.exchange);
  const take = html("button", { type: "button" }, sentenceWords.take);
  const title = html("p", { class: "heading" });
  const node = html(
    "div",
    {},
    title,
    html("div", { class: "form" }, sentenceWords.form.the, what, sentenceWords.form.of, target, sentenceWords.form.and, source, exchange, take),
  );
  let from = null; // what the options were made for
  const add = (edit) => change({ edits: toggleEdit(get("edits"), edit) });
  const chosen = () => ({
    what: what.value,
    layer: get("layer"),
    head: get("head"),
    to: Number(target.value),
    inTwin: source.value.startsWith("twin"),
    at: Number(source.value.split(" ")[1]),
  });
  const couple = () => {
    const { to, inTwin, at } = chosen();
    exchange.disabled = inTwin || to === at;
    take.disabled = !inTwin && to === at;
  };
  take.addEventListener("click", () => {
    const { what: vector, layer, head, to, inTwin, at } = chosen();
    add({ take: { what: vector, layer, to, source: at, head, words: inTwin ? "twin" : null } });
  });
  exchange.addEventListener("click", () => {
    const { what: vector, layer, head, to, at } = chosen();
    add({ exchange: { what: vector, layer, a: to, b: at, head } });
  });
  for (const select of [target, source]) select.addEventListener("change", couple);

  function draw(words, twin) {
    set(title, { text: sentenceWords.vectorsOf(get("layer"), get("head")) });
    if (from === words.join(" ")) return couple();
    const first = from === null;
    const kept = [target.value, source.value];
    from = words.join(" ");
    const option =
      (value, say = (word) => word) =>
      (word, i) =>
        html("option", { value: value(i) }, say(word));
    target.replaceChildren(...words.map(option(String)));
    source.replaceChildren(
      html("optgroup", { label: sentenceWords.here }, ...words.map(option((i) => `here ${i}`))),
      html(
        "optgroup",
        { label: sentenceWords.twin(twin) },
        ...twin.map(option((i) => `twin ${i}`, sentenceWords.inTwin)),
      ),
    );
    [target.value, source.value] = first ? [String(get("query")), `twin ${get("query")}`] : kept;
    couple();
  }
  return { node, draw };
}
