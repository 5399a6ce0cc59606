/** @file Live figure "the tiles in motion": softmax over the keys in tiles, one tile after another. */

import { choice, html, root, set, signed, slider, watch } from "./dom.js";
import { TOKENS, WIDTH, drawExample, follow, spread, tilesOf } from "./online.js";
import { createPlayer } from "./player.js";
import { BOARD_STYLE, createBoard, say } from "./tileboard.js";

const TRAITS = ["query", "step", "causal"];
const REACH = 2; // of the axis of the outputs
const PACE = 1400; // ms a step
const bracketed = (x) => (x < 0 ? `(${say(x)})` : say(x));
const list = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);

/** The tiles that hold later keys only, in words; nothing without any. */
function describeSkipped(query, causal) {
  const first = tilesOf(query + 1);
  const names = causal ? spread(tilesOf(TOKENS) - first, (i) => first + i + 1) : [];
  if (!names.length) return "";
  const one = names.length === 1;
  return ` Tile${one ? "" : "s"} ${list(names)} ${one ? "holds" : "hold"} later keys only: skipped, never computed.`;
}

/** What the picture shows, in words. */
export function describe({ query, step, causal, states, apart }) {
  const { tile, largest, m, factor } = states[step];
  const skipped = describeSkipped(query, causal);
  if (step === 0) return `Nothing of query ${query + 1} has been read: m is −∞, l and o are 0.${skipped}`;
  const before = states[step - 1].m;
  const what =
    step === 1
      ? `Tile 1: its largest score, ${say(largest)}, is the first m.`
      : factor < 1
        ? `Tile ${tile + 1} holds a larger score, ${say(m)} after ${say(before)}. What was summed is multiplied by exp(${say(before)} − ${bracketed(m)}) = ${factor.toFixed(2)}, then the tile is added.`
        : `Tile ${tile + 1} holds no score above ${say(m)}: nothing is rescaled, the tile is added.`;
  if (step < states.length - 1) return what;
  return `${what}${skipped} That was the last: o / l differs from softmax at once by ${apart.toFixed(4)}.`;
}

/** What is kept of the query: how each number came about, and the output against the answer of softmax at once. */
function createKept(says) {
  const title = html("p", { class: "heading" });
  const lines = ["largest", "rescale by", "sum", "output"].map((words) =>
    html("div", {}, html("dt", {}, words), html("dd", {}, html("span"), html("output"))),
  );
  const heading = html("p", { class: "heading second" });
  const percent = (x) => (50 * Math.max(-REACH, Math.min(REACH, x))) / REACH;
  const gauges = spread(WIDTH.value, (c) =>
    html(
      "div",
      { class: "gauge" },
      html("span", {}, `entry ${c + 1}`),
      html("i", { class: "track" }, html("b"), html("u")),
      html("output"),
    ),
  );
  const entries = html("div", { class: "gauges", role: "img" }, ...gauges);
  const node = html("section", { class: "kept" }, title, html("dl", {}, ...lines), heading, entries, says);

  function draw({ query, step, states, out }, label) {
    const { tile, largest, m, factor, added, l, o } = states[step];
    const before = states[Math.max(0, step - 1)];
    const worked = step
      ? [
          [`m = max(${say(before.m)}, ${say(largest)})`, `= ${say(m)}`],
          [`exp(${say(before.m)} − ${bracketed(m)})`, `= ${signed(factor)}`],
          [`l = ${signed(factor)} · ${signed(before.l)} + ${signed(added)}`, `= ${signed(l)}`],
          [`o = ${signed(factor)} · o + Σ exp(s − m) · v`, ""],
        ]
      : ["m = −∞", "nothing", "l = 0", "o = 0"].map((working) => [working, ""]);
    set(title, {
      text: `What is kept of query ${query + 1} ${step ? `after tile ${tile + 1}` : "before the first tile"}`,
    });
    lines.forEach((line, i) => {
      const [working, result] = line.lastChild.children;
      set(working, { text: worked[i][0] });
      set(result, { text: worked[i][1] });
      set(line, { class: i === 1 && step > 1 && factor < 1 ? "rescaled" : null });
    });
    const rest = step < states.length - 1 ? ", were there no more keys" : "";
    set(heading, { text: `The answer${rest}: o / l` });
    gauges.forEach((gauge, c) => {
      const [, track, number] = gauge.children;
      const value = l > 0 ? o[c] / l : 0;
      const long = percent(value);
      track.firstChild.style.cssText = `left:${50 + Math.min(0, long)}%;width:${Math.abs(long)}%`;
      track.lastChild.style.left = `${50 + percent(out[c])}%`;
      set(number, { text: l > 0 ? signed(value) : "–" });
    });
    set(entries, { "aria-label": label });
  }
  return { node, draw };
}

function render({ model, el }) {
  const example = drawExample(model.get("seed"));
  const get = (name) => model.get(name);
  const change = (changes) => {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  };
  const last = (query, causal) => tilesOf(causal ? query + 1 : TOKENS);
  const end = () => last(get("query") - 1, get("causal"));
  const go = (step) => change({ step });
  /** Another query or mask, as far along as there are tiles. */
  const turn = (query, causal, step = get("step")) =>
    change({ query: query + 1, causal, step: Math.min(step, last(query, causal)) });
  const player = createPlayer({ get: () => get("step"), end, go, pace: PACE });
  const still = (act) => (value) => {
    player.stop();
    act(value);
  };

  const figure = root(el, "tiles", model);
  const time = slider("tiles read", { min: 0, max: tilesOf(TOKENS), step: 1 }, still(go), (step) => `${step} of ${end()}`);
  const row = slider(
    "query",
    { min: 1, max: TOKENS, step: 1 },
    (query) => turn(query - 1, get("causal")),
    String,
  );
  const mask = choice(
    "causal mask",
    [
      { value: false, label: "off" },
      { value: true, label: "on" },
    ],
    (causal) => turn(get("query") - 1, causal),
  );
  const board = createBoard(
    example,
    (query, tile) => {
      player.stop();
      turn(query, get("causal"), tile + 1);
    },
  );
  const says = html("p", { class: "says", role: "status", "aria-live": "polite" });
  const kept = createKept(says);
  figure.append(
    html("style", {}, BOARD_STYLE + STYLE),
    html(
      "div",
      { class: "controls" },
      time.node,
      html("span", { class: "buttons" }, html("button", { type: "button", onclick: player.next }, "step"), player.button),
      row.node,
      mask.node,
    ),
    html(
      "div",
      { class: "halves" },
      html("section", {}, html("p", { class: "heading" }, "Scores, 24 queries by 24 keys"), board.node),
      kept.node,
    ),
    html(
      "p",
      { class: "hint" },
      "Only the orange tile is in memory, 16 scores of 576; its four queries are treated alike. The blue bars show what l holds of earlier tiles, dashed their height before the rescaling. Ticks: softmax over all keys at once. Numbers are rounded.",
    ),
  );

  function update() {
    const [number, step, causal] = TRAITS.map(get);
    const query = number - 1;
    const seen = { query, step, causal, ...follow(example, query, causal) };
    const text = describe(seen);
    board.draw(seen, `Scores in tiles; under them exp(score − m) for query ${number}. ${text}`);
    kept.draw(seen, `The output so far, and what softmax at once gives. ${text}`);
    set(time.node.querySelector("input"), { max: end() });
    time.show(step);
    row.show(number);
    mask.show(causal);
    set(says, { text });
    const { m, l, factor } = seen.states[step];
    Object.assign(figure.dataset, { query: number, step, causal, apart: seen.apart.toFixed(4) });
    Object.assign(figure.dataset, { m: m.toFixed(4), l: l.toFixed(4), factor: factor.toFixed(4) });
  }

  const unwatch = watch(model, TRAITS, update);
  update();
  return () => {
    player.stop();
    unwatch();
    el.replaceChildren();
  };
}

const STYLE = `
.live-tiles .controls { display: grid; grid-template-columns: minmax(0, 1.2fr) auto minmax(0, 1fr) auto; gap: .5rem 1.25rem; margin-bottom: 1rem }
.live-tiles .controls .slider { grid-template-columns: auto minmax(4rem, 1fr) auto }
.live-tiles .controls output { min-width: 1.4rem; white-space: nowrap }
.live-tiles .buttons { display: flex; gap: .35rem }
.live-tiles .halves { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1.1fr); gap: 1rem 2rem; align-items: start }
.live-tiles dl { display: grid; gap: .1rem; margin: 0 }
.live-tiles dl div { display: grid; grid-template-columns: 5.2rem minmax(0, 1fr); align-items: baseline; padding: .2rem .5rem; margin: 0 -.5rem; border-radius: 6px }
.live-tiles .rescaled { background: color-mix(in srgb, var(--orange) 14%, transparent) }
.live-tiles dt { margin: 0; font-size: .875rem; font-weight: 400; color: var(--quiet) }
.live-tiles dd { display: flex; flex-wrap: wrap; gap: .1rem .5rem; margin: 0; min-height: 1.45em; font-size: .9375rem; font-variant-numeric: tabular-nums }
.live-tiles dd output { font-weight: 600 }
.live-tiles .second { margin-top: 1rem }
.live-tiles .gauges { display: grid; gap: .3rem }
.live-tiles .gauge { display: grid; grid-template-columns: 4.2rem minmax(2rem, 1fr) 3rem; gap: .6rem; align-items: center; font-size: .9375rem }
.live-tiles .gauge span { font-size: .875rem; color: var(--quiet) }
.live-tiles .track { position: relative; height: .85rem; border-radius: 3px; background: linear-gradient(var(--line), var(--line)) center / 1px 100% no-repeat, var(--wash) }
.live-tiles .track b { position: absolute; top: 0; bottom: 0; background: var(--teal); transition: left .5s, width .5s }
.live-tiles .track u { position: absolute; top: -3px; bottom: -3px; width: 2px; margin-left: -1px; background: var(--ink) }
.live-tiles .says { margin: 1.1rem 0 0; min-height: 5.8em }
.live-tiles .hint { margin-top: .75rem }
@container (max-width: 760px) { .live-tiles .controls { grid-template-columns: minmax(0, 1fr) auto } }
@container (max-width: 620px) { .live-tiles .halves { grid-template-columns: minmax(0, 1fr) } }
@container (max-width: 400px) { .live-tiles .controls { grid-template-columns: minmax(0, 1fr) } }
`;

export default { render };
