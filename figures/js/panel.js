/** @file The rewiring controls of the sentence figure: four experiments, the edits in force, and every line and vector by hand. */

import { html, set } from "./dom.js";
import { describeEdit, hasAll, isCut, place, sameEdit, toggleAll, toggleEdit } from "./edits.js";

const VECTORS = ["query", "key", "value"];

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
    { label: () => "exchange the nouns’ values", edits: exchange("value") },
    { label: () => "exchange the nouns’ keys", edits: exchange("key") },
    {
      label: (words) => `give “${words[roles.pronoun]}” its twin’s query`,
      edits: fromTwin("query", [roles.pronoun]),
    },
    { label: () => "give the nouns their twins’ keys", edits: fromTwin("key", roles.nouns) },
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
    "reset all",
  );
  const node = html(
    "section",
    { class: "rewire hand" },
    title,
    html("div", { class: "buttons" }, ...experiments.map(({ button }) => button)),
    list,
    reset,
  );

  const linesTitle = html("p", { class: "heading" });
  const lines = html("div", { class: "buttons" });
  const off = html("button", { type: "button" });
  const form = createForm({ get, change });
  const details = html(
    "details",
    {},
    html("summary", {}, "By hand: every line, every head, every vector"),
    html(
      "div",
      { class: "by-hand" },
      html("section", {}, linesTitle, lines),
      html("section", {}, form.node, html("p", { class: "heading", style: "margin-top:1rem" }, "A whole head"), off),
    ),
  );
  off.addEventListener("click", () => {
    const shown = get("head") === null ? Array.from({ length: heads }, (_, head) => head) : [get("head")];
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
        const text = describeEdit(edit, words);
        const remove = () => change({ edits: get("edits").filter((other) => !sameEdit(other, edit)) });
        return html(
          "li",
          {},
          html("span", {}, text),
          html("button", { type: "button", "aria-label": `remove: ${text}`, onclick: remove }, "×"),
        );
      }),
    );
    if (focused >= 0) (list.children[Math.min(focused, edits.length - 1)]?.lastChild ?? title).focus();
    reset.hidden = edits.length === 0 && words.join() === start.join();
  }

  /** @param {{words: string[], twin: string[], rows: number[][], shown: number[]}} picture */
  function draw({ words, twin, rows, shown }) {
    const [layer, head, query, edits] = ["layer", "head", "query", "edits"].map(get);
    set(title, { text: `Rewire every head of layer ${layer + 1}` });
    for (const experiment of experiments) {
      set(experiment.button, {
        text: experiment.label(words),
        "aria-pressed": String(hasAll(edits, experiment.edits())),
      });
    }
    drawList(edits, words);
    set(linesTitle, { text: `Lines from “${words[query]}”, ${place(layer, head)}: press to cut` });
    words.forEach((word, key) => {
      const button =
        lines.children[key] ??
        lines.appendChild(html("button", { type: "button", class: "cut-line", onclick: () => cut(key) }));
      const gone = shown.every((h) => isCut(edits, layer, h, query, key));
      const weight = shown.length === 1 ? ` ${rows[0][key].toFixed(2)}` : "";
      set(button, {
        text: `${word}${gone ? " cut" : weight}`,
        "aria-pressed": String(gone),
        "aria-label": `cut “${words[query]}” to “${word}”${weight}`,
      });
    });
    const silent = shown.every((h) => edits.some((edit) => sameEdit(edit, { off: { layer, head: h } })));
    set(off, {
      text: `switch ${head === null ? "every head" : `head ${head + 1}`} of layer ${layer + 1} off`,
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
    { "aria-label": "which vector" },
    ...VECTORS.map((name) => html("option", { value: name }, name)),
  );
  const target = html("select", { "aria-label": "of which word" });
  const source = html("select", { "aria-label": "with that of" });
  const exchange = html("button", { type: "button" }, "exchange");
  const take = html("button", { type: "button" }, "take only");
  const title = html("p", { class: "heading" });
  const node = html(
    "div",
    {},
    title,
    html("div", { class: "form" }, "the ", what, " of ", target, " and that of ", source, exchange, take),
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
    set(title, { text: `Vectors, ${place(get("layer"), get("head"))}` });
    if (from === words.join(" ")) return couple();
    const first = from === null;
    const kept = [target.value, source.value];
    from = words.join(" ");
    const option =
      (value, mark = "") =>
      (word, i) =>
        html("option", { value: value(i) }, word + mark);
    target.replaceChildren(...words.map(option(String)));
    source.replaceChildren(
      html("optgroup", { label: "this sentence" }, ...words.map(option((i) => `here ${i}`))),
      html(
        "optgroup",
        { label: `twin: … ${twin.slice(-3).join(" ")}` },
        ...twin.map(option((i) => `twin ${i}`, " (twin)")),
      ),
    );
    [target.value, source.value] = first ? [String(get("query")), `twin ${get("query")}`] : kept;
    couple();
  }
  return { node, draw };
}
