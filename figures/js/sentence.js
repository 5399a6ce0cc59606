/** @file Live figure "rewire the sentence": see where each word looks, change words, lines and vectors, read the answer. */

import { createArcs } from "./arcs.js";
import { choice, createSays, html, set, watch } from "./dom.js";
import { isCut, resolve, toggleCut } from "./edits.js";
import { sentenceWords } from "./en/sentence.js";
import { loadEncoder } from "./encoder.js";
import { addTools, root } from "./figure.js";
import { COLOURS } from "./look.js";
import { createMatrix } from "./matrix.js";
import { createPanel } from "./rewiring.js";
import { createAnswers, createFrom, createSwaps, createWords } from "./sentence_words.js";

const TRAITS = ["words", "query", "layer", "head", "edits"];
const strongest = (row) => row.indexOf(Math.max(...row));
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
    sentenceWords.layer,
    Array.from({ length: encoder.layers }, (_, i) => ({ value: i, label: String(i + 1) })),
    (layer) => change({ layer }),
  );
  const headOptions = Array.from({ length: encoder.heads }, (_, i) => ({
    value: i,
    label: String(i + 1),
    colour: COLOURS[i % COLOURS.length],
  }));
  const heads = choice(sentenceWords.head, [...headOptions, { value: null, label: sentenceWords.all }], (head) => change({ head }));
  const arcs = createArcs(cut);
  const choose = (query) => change({ query });
  const words = createWords({ count: get("words").length, choose });
  const from = createFrom(choose);
  const swaps = createSwaps({ words: get("words"), roles, classes, known: encoder.words, change: (words) => change({ words }) });
  const picture = html("div", { class: "picture" }, arcs.node, words.node);
  const says = createSays();
  const answers = createAnswers();
  const matrix = createMatrix((query) => change({ query }));
  const matrixTitle = html("p", { class: "heading" });
  const panel = createPanel({ get, change, cut, roles, heads: encoder.heads });
  const hint = html(
    "p",
    { class: "hint" },
    sentenceWords.hint,
  );
  figure.append(
    html(
      "div",
      { class: "stage" },
      html("div", { class: "controls" }, lastWord, from.node, layers.node, heads.node),
      picture,
      says.node,
    ),
    hint,
    html(
      "div",
      { class: "halves" },
      html("div", {}, answers.node, swaps.node, panel.node),
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
        sentenceWords.lastWord,
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
    const looks = sentenceWords.describe({ words: now, query, layer, heads: shown, rows });
    last = { now, query, layer, shown, rows, looks, edits };

    drawToggle(now, pair);
    layers.show(layer);
    heads.show(head);
    const resolved = resolve(edits, twin);
    const marks = now.map((_, i) => {
      const taken = resolved.map(({ take }) => take).filter((take) => take?.layer === layer && take.to === i);
      return taken.map(({ what, source, words: other }) => sentenceWords.mark(what, (other ?? now)[source], other && source === i)).join(", ");
    });
    words.draw(now, query, head === null ? null : rows[0], marks);
    from.draw(now, query);
    swaps.draw(now);
    says.show(`${looks} ${sentenceWords.answer(ranking[0])}${sentenceWords.inForce(edits.length)}`);
    answers.draw(
      ranking,
      roles.nouns.map((i) => now[i]),
      now[roles.pronoun],
    );
    set(matrixTitle, { text: sentenceWords.matrix(layer, head) });
    matrix.draw(weights, shown, query, now, sentenceWords.matrixLabel(layer, head, looks));
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
    const least = 2.1 * parseFloat(getComputedStyle(document.documentElement).fontSize);
    const needed = words.labels.reduce((sum, label) => sum + Math.max(label.offsetWidth, least) + 4, 0);
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

  const known = new Set(encoder.words);
  const whole = (x, most) => Number.isInteger(x) && x >= 0 && x < most;
  const legal = ({ words, query, layer, head, edits }) =>
    words.length === get("words").length &&
    words.every((word) => known.has(word)) &&
    whole(query, words.length) &&
    whole(layer, encoder.layers) &&
    (head === null || whole(head, encoder.heads)) &&
    edits.every((edit) => fitsSentence(edit, words, encoder));
  const untool = addTools(figure, model, TRAITS, legal);
  const stop = watch(model, TRAITS, update);
  const observer = new ResizeObserver(measure);
  observer.observe(picture);
  update();
  return () => {
    stop();
    observer.disconnect();
    untool();
    arcs.stop();
    el.replaceChildren();
  };
}

/** Whether an edit, come from an address, is one that the encoder can take. */
export function fitsSentence(edit, words, { layers, heads }) {
  const [[kind, fields] = []] = Object.entries(edit ?? {});
  const needed = { cut: ["query", "key"], off: [], exchange: ["a", "b"], take: ["to", "source"] }[kind];
  const whole = (x, most) => Number.isInteger(x) && x >= 0 && x < most;
  return (
    needed !== undefined &&
    whole(fields.layer, layers) &&
    (fields.head === null ? kind !== "off" : whole(fields.head, heads)) &&
    needed.every((name) => whole(fields[name], words.length)) &&
    (!["take", "exchange"].includes(kind) || ["query", "key", "value"].includes(fields.what)) &&
    (kind !== "take" || [null, "twin"].includes(fields.words))
  );
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
.live-sentence .mark { font-size: .75rem; color: var(--v); font-weight: 600; white-space: nowrap }
.live-sentence .from { display: none; gap: .55rem; align-items: center; font-size: .875rem; color: var(--quiet) }
.live-sentence .down .word input { display: none }
.live-sentence .down .looks label span { box-shadow: 0 0 0 2px var(--ink); font-weight: 600 }
.live-sentence:has(.down) .from { display: flex }
.live-sentence .swaps { display: grid; grid-template-columns: minmax(0, 1fr); gap: .3rem; margin-top: .9rem }
.live-sentence .own { display: flex; flex-wrap: wrap; gap: .35rem }
.live-sentence .own input { flex: 1 1 10rem; min-width: 0; min-height: var(--target); padding: 0 .5rem; border: 1px solid var(--line); border-radius: 8px; background: var(--raised); color: var(--ink); font: inherit; font-size: .875rem }
.live-sentence .down { grid-template-columns: auto minmax(0, 1fr) }
.live-sentence .down > svg { order: 1; height: 100%; margin-left: .3rem; width: calc(100% - .3rem) }
.live-sentence .down .words { display: grid; grid-template-columns: auto auto auto; align-content: start; gap: 0 .3rem }
.live-sentence .down .word { display: grid; grid-template-columns: subgrid; grid-column: 1 / -1; align-items: center; min-height: 1.6rem }
.live-sentence .down .word label { grid-column: 1; grid-row: 1; justify-self: end }
.live-sentence .down .word label span { padding: 0 .4rem }
.live-sentence .down .weight { grid-column: 2; grid-row: 1; min-width: 2.1rem; text-align: right }
.live-sentence .down .mark { grid-column: 3; grid-row: 1 }
.live-sentence .arc, .live-sentence .area { fill: none; stroke-linecap: round }
.live-sentence .arc.cut { stroke: var(--quiet); stroke-dasharray: 2 5 }
.live-sentence .arc.near { filter: brightness(1.2); stroke-dasharray: 6 4 }
.live-sentence .area { stroke: transparent; stroke-width: 14; pointer-events: stroke; cursor: pointer }
.live-sentence .hint { margin-top: .5rem }
.live-sentence .hint { margin-bottom: .8rem }
.live-sentence .bars { display: grid; gap: .2rem }
.live-sentence .bar { display: grid; grid-template-columns: minmax(0, 6rem) minmax(1rem, 1fr) auto; gap: .6rem; align-items: center; font-size: .9375rem }
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
.live-sentence .picture { overflow: hidden }
.live-sentence .rewire { margin-top: 1.4rem }
.live-sentence .edits { display: grid; gap: .3rem; margin: .7rem 0 0; padding: 0; list-style: none; font-size: .875rem }
.live-sentence .edits li { display: flex; gap: .4rem; align-items: center; justify-content: space-between; margin: 0; padding: .1rem .1rem .1rem .7rem; border-radius: 8px; background: var(--wash) }
.live-sentence .edits button { border-color: transparent; background: none; min-width: 1.9rem; padding: 0 }
.live-sentence .rewire > button { margin-top: .5rem }
.live-sentence details { margin-top: 1rem; padding-top: .6rem; border-top: 1px solid var(--line) }
.live-sentence summary { cursor: pointer; font-size: .9375rem }
.live-sentence .by-hand { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: 1rem 2rem; padding-top: .7rem }
.live-sentence .by-hand .cut-line { font-variant-numeric: tabular-nums; text-align: left }
.live-sentence .form { display: flex; flex-wrap: wrap; gap: .35rem; align-items: center; font-size: .875rem }
`;

export default { render };
