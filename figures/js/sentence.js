/** @file Live figure "rewire the sentence": see where each word looks, change words, lines and vectors, read the answer. */

import { createArcs } from "./arcs.js";
import { COLOURS, choice, html, root, set, watch } from "./dom.js";
import { isCut, resolve, toggleCut } from "./edits.js";
import { loadEncoder } from "./encoder.js";
import { createMatrix } from "./matrix.js";
import { createPanel } from "./panel.js";
import { createAnswers, createWords } from "./words.js";

const TRAITS = ["words", "query", "layer", "head", "edits"];
const strongest = (row) => row.indexOf(Math.max(...row));
const list = (parts) =>
  parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;

/**
 * The two adjectives of a minimal pair: one that fits the first noun, one that fits the second.
 * @param {string[]} words @param {{nouns: number[], adjective: number}} roles
 * @param {Record<string, {nouns: string[], plurals: string[], adjectives: string[]}>} classes
 * @param {string[]} previous the pair so far
 */
export function adjectivePair(words, roles, classes, previous) {
  const now = words[roles.adjective];
  const taken = [];
  roles.nouns.forEach((position, i) => {
    const isOf = ({ nouns, plurals }) => [...nouns, ...plurals].includes(words[position]);
    const fitting = Object.values(classes).find(isOf)?.adjectives ?? previous;
    const wish = [now, previous[i]].find((word) => fitting.includes(word) && !taken.includes(word));
    taken.push(wish ?? fitting.find((word) => !taken.includes(word)));
  });
  return taken;
}

/** What the picture shows, in one sentence. */
export function describe({ words, query, layer, heads, rows }) {
  const from = `“${words[query]}”`;
  if (heads.length === 1) {
    const at = strongest(rows[0]);
    const weight = rows[0][at];
    const head = `Layer ${layer + 1}, head ${heads[0] + 1}: ${from}`;
    if (weight === 0) return `${head} can see nothing.`;
    const manner =
      weight >= 0.5 ? "looks at" : weight >= 0.25 ? "looks mostly at" : "looks everywhere, most at";
    return `${head} ${manner} “${words[at]}” (${weight.toFixed(2)}).`;
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
        : `in head${numbers.length > 1 ? "s" : ""} ${list(numbers)}`;
    return `at ${at < 0 ? "nothing in particular" : `“${words[at]}”`} ${where}`;
  });
  return `Layer ${layer + 1}: ${from} looks ${parts.join(", ")}.`;
}

function render({ model, el }) {
  const encoder = loadEncoder(model.get("weights"));
  const classes = model.get("classes");
  const roles = model.get("roles");
  const get = (name) => model.get(name);
  const change = (changes) => {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  };

  const figure = root(el, "sentence", model);
  figure.append(html("style", {}, STYLE));
  const swap = (i, word) => change({ words: get("words").map((old, j) => (j === i ? word : old)) });
  const cut = (key) =>
    change({ edits: toggleCut(get("edits"), get("layer"), get("head"), get("query"), key) });
  const lastWord = html("span");
  const layers = choice(
    "layer",
    Array.from({ length: encoder.layers }, (_, i) => ({ value: i, label: String(i + 1) })),
    (layer) => change({ layer }),
  );
  const headOptions = Array.from({ length: encoder.heads }, (_, i) => ({
    value: i,
    label: String(i + 1),
    colour: COLOURS[i % COLOURS.length],
  }));
  const heads = choice("head", [...headOptions, { value: null, label: "all" }], (head) => change({ head }));
  const arcs = createArcs(cut);
  const words = createWords({
    words: get("words"),
    roles,
    classes,
    choose: (query) => change({ query }),
    swap,
  });
  const picture = html("div", { class: "picture" }, arcs.node, words.node);
  const says = html("p", { class: "says", role: "status", "aria-live": "polite" });
  const answers = createAnswers();
  const matrix = createMatrix((query) => change({ query }));
  const matrixTitle = html("p", { class: "heading" });
  const panel = createPanel({ get, change, cut, roles, heads: encoder.heads });
  const hint = html(
    "p",
    { class: "hint" },
    "Choose any word to see where it looks. ▾ swaps a word. Click a line to cut it, and again to restore it.",
  );
  figure.append(
    html("div", { class: "controls" }, lastWord, layers.node, heads.node),
    picture,
    hint,
    says,
    html(
      "div",
      { class: "below" },
      html("div", {}, answers.node, panel.node),
      html("section", { class: "attention" }, matrixTitle, matrix.node),
    ),
    panel.details,
  );

  let shownPair = "";
  let toggle = null;
  let last = null;
  let geometry = null;
  let measured = ""; // the words and the query for which `geometry` holds
  function drawToggle(now, pair) {
    if (shownPair !== pair.join(" ")) {
      shownPair = pair.join(" ");
      toggle = choice(
        "last word",
        pair.map((word) => ({ value: word, label: word })),
        (word) => swap(roles.adjective, word),
      );
      lastWord.replaceChildren(toggle.node);
    }
    toggle.show(now[roles.adjective]);
  }

  function update() {
    const now = get("words");
    const [query, layer, head, edits] = ["query", "layer", "head", "edits"].map(get);
    const pair = adjectivePair(now, roles, classes, get("pair"));
    if (pair.join() !== get("pair").join()) change({ pair });
    const other = now[roles.adjective] === pair[0] ? pair[1] : pair[0];
    const twin = now.map((word, i) => (i === roles.adjective ? other : word));
    const run = encoder.run(now, resolve(edits, twin));
    const shown = head === null ? headOptions.map(({ value }) => value) : [head];
    const weights = run.weights[layer];
    const rows = shown.map((h) => weights[h][query]);
    const ranking = encoder.ranking(run, roles.pronoun);
    const looks = describe({ words: now, query, layer, heads: shown, rows });
    const answer = `The model answers: ${ranking[0].word} (${ranking[0].p.toFixed(2)}).`;
    const rewired = edits.length ? ` ${edits.length} ${edits.length > 1 ? "edits" : "edit"} in force.` : "";
    last = { now, query, layer, shown, rows, looks, edits };

    drawToggle(now, pair);
    layers.show(layer);
    heads.show(head);
    words.draw(now, query, head === null ? null : rows[0]);
    set(says, { text: `${looks} ${answer}${rewired}` });
    answers.draw(
      ranking,
      roles.nouns.map((i) => now[i]),
      now[roles.pronoun],
    );
    const whose = head === null ? `every head of layer ${layer + 1}` : `layer ${layer + 1}, head ${head + 1}`;
    set(matrixTitle, { text: `All the words, ${whose}` });
    matrix.draw(
      weights,
      shown,
      query,
      now,
      `Attention weights of ${whose}; rows are queries, columns are keys. ${looks}`,
    );
    panel.draw({ words: now, twin, rows, shown });
    const colour = head === null ? "var(--quiet)" : COLOURS[head % COLOURS.length];
    figure.style.setProperty("--head", colour);
    const brightest = strongest(now.map((_, i) => Math.max(...rows.map((row) => row[i]))));
    Object.assign(figure.dataset, {
      query: now[query],
      strongest: now[brightest],
      answer: ranking[0].word,
      layer: layer + 1,
      head: head === null ? "all" : head + 1,
    });
    const text = `${query} ${now.join(" ")}`;
    if (geometry && text === measured) return drawLines();
    measured = text;
    measure();
  }

  /** Put the words in a row if they fit, else in a column, and find where lines along them start and end. */
  function measure() {
    const width = picture.clientWidth;
    if (!width) return;
    const needed = words.labels.reduce((sum, label) => sum + Math.max(label.offsetWidth, 34) + 4, 0);
    const down = needed > width;
    picture.classList.toggle("down", down);
    const box = picture.getBoundingClientRect();
    const places = words.labels.map((label) => {
      const { left, top, width: w, height: h } = label.getBoundingClientRect();
      return down ? top - box.top + h / 2 : left - box.left + w / 2;
    });
    const reach = places.at(-1) - places[0];
    const across = down ? arcs.node.clientWidth : arcs.node.clientHeight;
    const frame = down
      ? { down, reach, room: Math.min(across - 12, 240), base: 5 }
      : { down, reach, room: across - 10, base: across - 5 };
    geometry = { places, frame };
    drawLines();
  }

  function drawLines() {
    const { now, query, layer, shown, rows, looks, edits } = last;
    const heads = shown.map((head, i) => ({
      head,
      row: rows[i],
      cut: now.map((_, key) => isCut(edits, layer, head, query, key)),
    }));
    arcs.draw({ ...geometry, query, heads, words: now, label: looks });
  }

  const stop = watch(model, TRAITS, update);
  const observer = new ResizeObserver(measure);
  observer.observe(picture);
  update();
  return () => {
    stop();
    observer.disconnect();
    el.replaceChildren();
  };
}

const STYLE = `
.live-sentence .picture { display: grid; margin-top: .75rem }
.live-sentence .picture > * { min-width: 0 }
.live-sentence .picture > svg { width: 100%; height: 11rem }
.live-sentence .words { display: flex; justify-content: space-between }
.live-sentence .word { display: flex; flex-direction: column; align-items: center; min-width: 2.1rem }
.live-sentence .word label { position: relative; display: block; cursor: pointer }
.live-sentence .word input { position: absolute; inset: 0; margin: 0; opacity: 0; cursor: pointer }
.live-sentence .word label span { display: block; padding: .15rem .4rem; border-radius: 7px; white-space: nowrap; transition: background-color .25s; background: color-mix(in srgb, var(--head) calc(var(--w) * 38%), transparent) }
.live-sentence .word label:hover span { box-shadow: 0 0 0 1px var(--line) }
.live-sentence .word label :checked + span { box-shadow: 0 0 0 2px var(--ink); font-weight: 600 }
.live-sentence .weight { min-height: 1.3rem; font-size: .8125rem; line-height: 1.3rem; color: var(--quiet); font-variant-numeric: tabular-nums }
.live-sentence .strong .weight { color: var(--ink); font-weight: 600 }
.live-sentence .swap { position: relative; width: 1.6rem; height: 1.5rem; border-radius: 6px; text-align: center; line-height: 1.5rem; font-size: .875rem; color: var(--quiet); background: var(--wash) }
.live-sentence .swap:hover { color: var(--ink) }
.live-sentence .swap:focus-within { outline: 2px solid var(--focus); outline-offset: 1px }
.live-sentence .swap select { position: absolute; inset: 0; width: 100%; height: 100%; min-height: 0; opacity: 0; cursor: pointer }
.live-sentence .down { grid-template-columns: auto minmax(0, 1fr) }
.live-sentence .down > svg { order: 1; height: 100%; margin-left: .3rem; width: calc(100% - .3rem) }
.live-sentence .down .words { display: grid; grid-template-columns: auto auto auto; gap: 0 .3rem }
.live-sentence .down .word { display: grid; grid-template-columns: subgrid; grid-column: 1 / -1; align-items: center; min-height: 2rem }
.live-sentence .down .swap { grid-column: 1; grid-row: 1 }
.live-sentence .down .word label { grid-column: 2; grid-row: 1; justify-self: end }
.live-sentence .down .weight { grid-column: 3; grid-row: 1; min-width: 2.1rem; text-align: right }
.live-sentence .arc, .live-sentence .area { fill: none; stroke-linecap: round }
.live-sentence .arc { transition: opacity .25s, stroke-width .25s }
.live-sentence .end { transition: opacity .25s, r .25s }
.live-sentence .arc.cut { stroke: var(--quiet); stroke-dasharray: 2 5 }
.live-sentence .arc.near { filter: brightness(1.2); stroke-dasharray: 6 4 }
.live-sentence .area { stroke: transparent; stroke-width: 14; pointer-events: stroke; cursor: pointer }
.live-sentence .hint { margin-top: .5rem }
.live-sentence .below { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 19.5rem); gap: 1rem 2rem; align-items: start }
.live-sentence .bars { display: grid; gap: .2rem }
.live-sentence .bar { display: grid; grid-template-columns: 6rem minmax(2rem, 1fr) 2.6rem; gap: .6rem; align-items: center; font-size: .9375rem }
.live-sentence .bar i { height: .85rem; border-radius: 3px; background: var(--wash); overflow: hidden }
.live-sentence .bar b { display: block; height: 100%; background: var(--slate); transition: width .25s }
.live-sentence .bar.best { font-weight: 600 }
.live-sentence .bar.best b { background: var(--ink) }
.live-sentence .bar.other { color: var(--quiet); font-size: .8125rem }
.live-sentence .bar.other i { height: .5rem }
.live-sentence .matrix { width: 100%; max-width: 19.5rem; font-size: 12px }
.live-sentence .matrix .strong { fill: var(--ink); font-weight: 600 }
.live-sentence .matrix .row { fill: none; stroke: var(--ink); stroke-width: 1.5 }
.live-sentence .matrix[data-heads="1"] { cursor: pointer }
.live-sentence .rewire { margin-top: 1.4rem }
.live-sentence .buttons { display: flex; flex-wrap: wrap; gap: .35rem }
.live-sentence button[aria-pressed=true] { background: var(--ink); border-color: var(--ink); color: light-dark(#fff, #1d2330) }
.live-sentence .edits { display: grid; gap: .3rem; margin: .7rem 0 0; padding: 0; list-style: none; font-size: .875rem }
.live-sentence .edits li { display: flex; gap: .4rem; align-items: center; justify-content: space-between; margin: 0; padding: .1rem .1rem .1rem .7rem; border-radius: 8px; background: var(--wash) }
.live-sentence .edits button { border-color: transparent; background: none; min-width: 1.9rem; padding: 0 }
.live-sentence .rewire > button { margin-top: .5rem }
.live-sentence details { margin-top: 1rem; padding-top: .6rem; border-top: 1px solid var(--line) }
.live-sentence summary { cursor: pointer; font-size: .9375rem }
.live-sentence .by-hand { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: 1rem 2rem; padding-top: .7rem }
.live-sentence .by-hand .cut-line { font-variant-numeric: tabular-nums; text-align: left }
.live-sentence .form { display: flex; flex-wrap: wrap; gap: .35rem; align-items: center; font-size: .875rem }
@container (max-width: 640px) { .live-sentence .below { grid-template-columns: minmax(0, 1fr) } }
`;

export default { render };
