/** @file Live figure "drag a query among keys": one query, five keys and their values in the plane, softmax weights between. */

import { attention, dot } from "./attention.js";
import { button, createSays, html, number, set, signed, slider, watch } from "./dom.js";
import { planeWords } from "./en/plane.js";
import { addTools, root } from "./figure.js";
import { COLOURS } from "./look.js";
import { REACH, clamp, createKeys, createValues } from "./planes.js";

const TRAITS = ["query", "key_vectors", "sharpness"];

/** One query (2,) among keys (S, 2) and values (S, 2), as attention computes it. */
export function look(query, keys, values, sharpness) {
  const scale = sharpness / Math.sqrt(query.length);
  const { out, weights } = attention([query], keys, values, { scale });
  return { scores: keys.map((key) => dot(query, key) * scale), weights: weights[0], output: out[0] };
}

/** One row a key: its score, and its weight as a bar. */
function createWeights(labels) {
  const rows = labels.map((label, i) =>
    html(
      "div",
      { class: "weight-row" },
      html(
        "span",
        {},
        html("i", { class: "dot", style: `background:${COLOURS[i % COLOURS.length]}` }),
        label,
      ),
      number(),
      html("i", { class: "track" }, html("b", { style: `background:${COLOURS[i % COLOURS.length]}` })),
      number(),
    ),
  );
  const head = html(
    "div",
    { class: "weight-row head" },
    html("span", {}, planeWords.columns.key),
    html("span", {}, planeWords.columns.score),
    html("span", {}, planeWords.columns.weight),
    html("span"),
  );
  const node = html("div", { class: "weights" }, head, ...rows);
  const draw = (scores, weights) =>
    rows.forEach((row, i) => {
      const [, score, track, weight] = row.children;
      set(score, { text: signed(scores[i]) });
      set(weight, { text: weights[i].toFixed(2) });
      track.firstChild.style.width = `${(100 * weights[i]).toFixed(2)}%`;
    });
  return { node, draw };
}

function render({ model, el }) {
  const labels = model.get("labels");
  const values = model.get("value_vectors");
  const change = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const moveQuery = (point) => change("query", point);
  const move = (i, point) =>
    i < 0
      ? moveQuery(point)
      : change(
          "key_vectors",
          model.get("key_vectors").map((key, j) => (j === i ? point : key)),
        );
  const stretch = (factor) => {
    const query = model.get("query");
    const most = REACH / Math.max(...query.map(Math.abs), 1e-9);
    moveQuery(query.map((x) => clamp(x * Math.min(factor, most))));
  };

  const figure = root(el, "plane", model);
  const keys = createKeys(labels, move);
  const outputs = createValues(labels);
  const weightRows = createWeights(labels);
  const says = createSays();
  const range = { min: -REACH, max: REACH, step: 0.05 };
  const x = slider(planeWords.x, range, (value) => moveQuery([value, model.get("query")[1]]));
  const y = slider(planeWords.y, range, (value) => moveQuery([model.get("query")[0], value]));
  const sharpness = slider(planeWords.sharpness, { min: 0, max: 4, step: 0.1 }, (value) => change("sharpness", value));
  const plane = (name, { node }) => html("section", { class: name }, html("p", { class: "heading" }, planeWords[name]), node);
  figure.append(
    html("style", {}, STYLE),
    html(
      "div",
      { class: "stage" },
      plane("keys", keys),
      plane("values", outputs),
      plane("weights", weightRows),
      html(
        "div",
        { class: "buttons" },
        button(planeWords.zero, () => moveQuery([0, 0])),
        button(planeWords.half, () => stretch(0.5)),
        button(planeWords.double, () => stretch(2)),
      ),
      says.node,
    ),
    html("div", { class: "by-numbers hand" }, x.node, y.node, sharpness.node),
    html("p", { class: "hint" }, planeWords.hint),
  );

  function update() {
    const [query, keysNow, sharp] = TRAITS.map((name) => model.get(name));
    const seen = look(query, keysNow, values, sharp);
    const text = planeWords.describe({ query, sharpness: sharp, weights: seen.weights, labels });
    keys.draw({
      query,
      keys: keysNow,
      weights: seen.weights,
      sharpness: sharp,
      label: planeWords.keysLabel(labels.length, text),
    });
    outputs.draw({
      values,
      weights: seen.weights,
      output: seen.output,
      label: planeWords.valuesLabel(labels.length, text),
    });
    weightRows.draw(seen.scores, seen.weights);
    x.show(query[0]);
    y.show(query[1]);
    sharpness.show(sharp);
    says.show(text);
    Object.assign(figure.dataset, {
      query: query.map((c) => c.toFixed(2)),
      strongest: labels[seen.weights.indexOf(Math.max(...seen.weights))],
      output: seen.output.map((c) => c.toFixed(4)),
    });
  }

  const inReach = (point) => point.length === 2 && point.every((x) => Number.isFinite(x) && Math.abs(x) <= REACH);
  const legal = ({ query, key_vectors, sharpness }) =>
    [query, ...key_vectors].every(inReach) && key_vectors.length === labels.length && sharpness >= 0 && sharpness <= 4;
  const untool = addTools(figure, model, TRAITS, legal);
  const stop = watch(model, TRAITS, update);
  update();
  return () => {
    stop();
    untool();
    el.replaceChildren();
  };
}

const STYLE = `
.live-plane .stage { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: .6rem 1.75rem; align-items: start }
.live-plane .stage > :is(.weights, .buttons, .sentence) { grid-column: 1 / -1 }
.live-plane .sentence { margin: .2rem 0 }
.live-plane .by-numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); gap: .2rem 1.75rem; margin-bottom: .4rem }
.live-plane .board { position: relative; aspect-ratio: 1; width: 100%; max-width: 24rem; margin: 0 auto; border-radius: 10px; overflow: hidden; background: var(--wash) }
.live-plane canvas { position: absolute; inset: 0; width: 100%; height: 100%; opacity: .4 }
.live-plane .board svg { position: absolute; inset: 0; width: 100%; height: 100% }
.live-plane .paper { fill: none; stroke: var(--quiet); stroke-opacity: .22 }
.live-plane .handle { cursor: grab; outline: none; touch-action: none }
.live-plane .handle:active { cursor: grabbing }
.live-plane .grip { fill: transparent }
.live-plane .ring { fill: none; stroke: none }
.live-plane .handle:hover .ring { stroke: var(--quiet); stroke-opacity: .5 }
.live-plane .handle:focus-visible .ring { stroke: var(--focus); stroke-width: 2.5 }
.live-plane .arrow { stroke: var(--ink); stroke-width: 2.5 }
.live-plane .knob { fill: var(--ink) }
.live-plane svg .q { fill: light-dark(#fff, #1d2330); font-size: 13px; font-weight: 600; font-style: italic; text-anchor: middle }
.live-plane svg .name { fill: var(--ink); font-size: 13px; font-weight: 600; text-anchor: middle }
.live-plane .ray, .live-plane .pull { stroke-linecap: round }
.live-plane .hull { fill: var(--raised); fill-opacity: .7; stroke: var(--quiet); stroke-opacity: .45 }
.live-plane .output { stroke: var(--ink); stroke-width: 2.5 }
.live-plane .weight-row { display: grid; grid-template-columns: 2.6rem 3rem minmax(2rem, 1fr) 2.4rem; gap: .5rem; align-items: center; font-size: .9375rem }
.live-plane .weight-row > :first-child { display: inline-flex; gap: .4rem; align-items: center; font-weight: 600 }
.live-plane .weight-row.head span { font-size: .8125rem; font-weight: 400; color: var(--quiet) }
.live-plane .weight-row.head span:nth-child(2) { justify-content: flex-end }
.live-plane .track { height: .85rem; border-radius: 3px; background: var(--wash); overflow: hidden }
.live-plane .track b { display: block; height: 100% }
@container (min-width: 50em) {
  .live-plane .stage { grid-template-columns: minmax(0, 1fr) minmax(0, 15rem) minmax(0, 1fr) }
  .live-plane .stage > .keys { grid-area: 1 / 1 / 3 } .live-plane .stage > .values { grid-area: 1 / 3 / 3 }
  .live-plane .stage > .weights { grid-area: 1 / 2 } .live-plane .stage > .buttons { grid-area: 2 / 2 }
}
@container (max-width: 15em) {
  .live-plane .weight-row { grid-template-columns: 2.2rem minmax(0, 1fr) auto }
  .live-plane .weight-row > :nth-child(2) { display: none }
}
@container (max-width: 30em) {
  .live-plane .stage { gap: .4rem .6rem }
  .live-plane svg :is(.name, .q) { font-size: 22px }
  .live-plane .grip { r: 42px }
  .live-plane .weight-row { line-height: 1.25 }
}
`;

export default { render };
