/** @file Live figure "the tiles in motion": softmax over the keys in tiles, one tile after another. */

import { button, choice, createSays, html, number, set, signed, slider, spread, watch } from "./dom.js";
import { commonWords } from "./en/common.js";
import { tilesWords } from "./en/tiles.js";
import { addTools, root } from "./figure.js";
import { TOKENS, WIDTH, drawExample, follow, tilesOf } from "./online_softmax.js";
import { createPlayer } from "./player.js";
import { TILE_STYLE, createTileScores } from "./tile_scores.js";

const TRAITS = ["query", "step", "causal"];
const FARTHEST = 2; // of the axis of the outputs
const PACE = 1400; // ms a step
/** What is kept of the query: how each number came about, and the output against the answer of softmax at once. */
function createKept() {
  const title = html("p", { class: "heading" });
  const lines = tilesWords.lines.map((words) =>
    html("div", {}, html("dt", {}, words), html("dd", {}, html("span"), number())),
  );
  const heading = html("p", { class: "heading second" });
  const percent = (x) => (50 * Math.max(-FARTHEST, Math.min(FARTHEST, x))) / FARTHEST;
  const gauges = spread(WIDTH.value, (c) =>
    html(
      "div",
      { class: "gauge" },
      html("span", {}, tilesWords.entry(c + 1)),
      html("i", { class: "track" }, html("b"), html("u")),
      number(),
    ),
  );
  const entries = html("div", { class: "gauges", role: "img" }, ...gauges);
  const node = html("section", { class: "kept" }, title, html("dl", {}, ...lines), heading, entries);

  function draw({ query, step, states, out }, label) {
    const { tile, largest, m, factor, added, l, o } = states[step];
    const before = states[Math.max(0, step - 1)];
    const worked = step
      ? tilesWords.worked({ before, largest, m, factor, added, l })
      : tilesWords.nothing.map((working) => [working, ""]);
    set(title, { text: tilesWords.kept(query + 1, tile + 1) });
    lines.forEach((line, i) => {
      const [working, result] = line.lastChild.children;
      set(working, { text: worked[i][0] });
      set(result, { text: worked[i][1] });
      set(line, { class: i === 1 && step > 1 && factor < 1 ? "rescaled" : null });
    });
    set(heading, { text: tilesWords.answer(step === states.length - 1) });
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
  const time = slider(tilesWords.time, { min: 0, max: tilesOf(TOKENS), step: 1 }, still(go), (step) => tilesWords.of(step, end()));
  const row = slider(
    tilesWords.query,
    { min: 1, max: TOKENS, step: 1 },
    (query) => turn(query - 1, get("causal")),
    String,
  );
  const mask = choice(
    tilesWords.mask,
    [
      { value: false, label: tilesWords.off },
      { value: true, label: tilesWords.on },
    ],
    (causal) => turn(get("query") - 1, causal),
  );
  const board = createTileScores(
    example,
    (query, tile) => {
      player.stop();
      turn(query, get("causal"), tile + 1);
    },
  );
  const says = createSays();
  const kept = createKept();
  figure.append(
    html("style", {}, TILE_STYLE + STYLE),
    html(
      "div",
      { class: "stage" },
      html(
        "div",
        { class: "controls" },
        time.node,
        html("span", { class: "buttons" }, button(commonWords.step, player.next), player.node),
      ),
      html("section", { class: "matrix" }, html("p", { class: "heading" }, tilesWords.scores), board.node),
      says.node,
      html("div", { class: "controls more" }, row.node, mask.node),
      kept.node,
    ),
    html("p", { class: "hint" }, tilesWords.hint),
  );

  function update() {
    const [at, step, causal] = TRAITS.map(get);
    const query = at - 1;
    const seen = { query, step, causal, ...follow(example, query, causal) };
    const first = tilesOf(query + 1);
    const skipped = causal ? spread(tilesOf(TOKENS) - first, (i) => first + i + 1) : [];
    const text = tilesWords.describe({ ...seen, query: at, skipped });
    board.draw(seen, tilesWords.boardLabel(at, text));
    kept.draw(seen, tilesWords.keptLabel(text));
    set(time.input, { max: end() });
    time.show(step);
    row.show(at);
    mask.show(causal);
    says.show(text);
    const { m, l, factor } = seen.states[step];
    Object.assign(figure.dataset, { query: at, step, causal, apart: seen.apart.toFixed(4) });
    Object.assign(figure.dataset, { m: m.toFixed(4), l: l.toFixed(4), factor: factor.toFixed(4) });
  }

  const whole = (x, least, most) => Number.isInteger(x) && x >= least && x <= most;
  const legal = ({ query, step, causal }) => whole(query, 1, TOKENS) && whole(step, 0, last(query - 1, causal));
  const untool = addTools(figure, model, TRAITS, legal);
  const unwatch = watch(model, TRAITS, update);
  update();
  return () => {
    player.stop();
    unwatch();
    untool();
    el.replaceChildren();
  };
}

const STYLE = `
.live-tiles .stage { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1.1fr); gap: .5rem 2rem; align-items: start }
.live-tiles .stage > .matrix { grid-area: 1 / 1 / span 4 }
.live-tiles .stage > * { min-width: 0 }
.live-tiles .controls .slider { flex: 1 1 12rem; grid-template-columns: auto minmax(3rem, 1fr) auto }
.live-tiles .controls .number { min-width: 1.4rem }
.live-tiles dl { display: grid; gap: .1rem; margin: 0 }
.live-tiles dl div { display: grid; grid-template-columns: 5.2rem minmax(0, 1fr); align-items: baseline; padding: .2rem .4rem; border-radius: 6px }
.live-tiles .rescaled { background: color-mix(in srgb, var(--orange) 14%, transparent) }
.live-tiles dt { margin: 0; font-size: .875rem; font-weight: 400; color: var(--quiet) }
.live-tiles dd { display: flex; flex-wrap: wrap; gap: .1rem .5rem; margin: 0; min-height: 1.45em; font-size: .9375rem; font-variant-numeric: tabular-nums }
.live-tiles dd .number { font-weight: 600 }
.live-tiles .second { margin-top: 1rem }
.live-tiles .gauges { display: grid; gap: .3rem }
.live-tiles .gauge { display: grid; grid-template-columns: minmax(0, 4.2rem) minmax(1rem, 1fr) auto; gap: .6rem; align-items: center; font-size: .9375rem }
.live-tiles .gauge span { font-size: .875rem; color: var(--quiet) }
.live-tiles .track { position: relative; height: .85rem; border-radius: 3px; background: linear-gradient(var(--line), var(--line)) center / 1px 100% no-repeat, var(--wash) }
.live-tiles .track b { position: absolute; top: 0; bottom: 0; background: var(--teal); transition: left .5s, width .5s }
.live-tiles .track u { position: absolute; top: -3px; bottom: -3px; width: 2px; margin-left: -1px; background: var(--ink) }
.live-tiles .says { min-height: 4.4em }
@container (max-width: 38em) { .live-tiles .stage { grid-template-columns: minmax(0, 1fr) } .live-tiles .stage > .matrix { grid-area: auto } }
@container (max-width: 24em) { .live-tiles dl div { grid-template-columns: minmax(0, 1fr) } }
`;

export default { render };
