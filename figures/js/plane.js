/** @file Live figure "drag a query among keys": one query, five keys and their values in the plane, softmax weights between. */

import { attention, dot } from "./attention.js";
import { REACH, clamp, createKeys, createValues } from "./boards.js";
import { COLOURS, html, root, set, signed, slider, watch } from "./dom.js";

const TRAITS = ["query", "key_vectors", "sharpness"];

/** One query (2,) among keys (S, 2) and values (S, 2), as attention computes it. */
export function look(query, keys, values, sharpness) {
  const scale = sharpness / Math.sqrt(query.length);
  const { out, weights } = attention([query], keys, values, { scale });
  return { scores: keys.map((key) => dot(query, key) * scale), weights: weights[0], output: out[0] };
}

/** What the picture shows, in words. */
export function describe({ query, sharpness, weights, labels }) {
  const length = Math.hypot(...query);
  if (length === 0 || sharpness === 0) {
    const why = length === 0 ? "The query is 0" : "The sharpness is 0";
    return `${why}: every score is 0 and every weight ${weights[0].toFixed(2)}. The output is the plain average of the values, not 0.`;
  }
  const order = weights
    .map((weight, i) => ({ weight, label: labels[i] }))
    .sort((a, b) => b.weight - a.weight);
  const [best] = order;
  const manner =
    best.weight >= 0.9
      ? "almost only at"
      : best.weight >= 0.5
        ? "mostly at"
        : "in several directions, most at";
  const parts = order
    .filter(({ weight }) => weight >= 0.1)
    .map(({ weight, label }) => `${weight.toFixed(2)} of value ${label}`);
  const rest = parts.length < weights.length ? " and little of the rest" : "";
  return `The query, ${length.toFixed(2)} long, looks ${manner} key ${best.label}. The output is ${parts.join(", ")}${rest}.`;
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
      html("output"),
      html("i", { class: "track" }, html("b", { style: `background:${COLOURS[i % COLOURS.length]}` })),
      html("output"),
    ),
  );
  const head = html(
    "div",
    { class: "weight-row head" },
    html("span", {}, "key"),
    html("span", {}, "score"),
    html("span", {}, "weight"),
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
  const start = Object.fromEntries(
    ["query", "key_vectors", "sharpness"].map((name) => [name, model.get(name)]),
  );
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
  const says = html("p", { class: "says", role: "status", "aria-live": "polite" });
  const range = { min: -REACH, max: REACH, step: 0.05 };
  const x = slider("query, x", range, (value) => moveQuery([value, model.get("query")[1]]));
  const y = slider("query, y", range, (value) => moveQuery([model.get("query")[0], value]));
  const sharpness = slider("sharpness", { min: 0, max: 4, step: 0.1 }, (value) => change("sharpness", value));
  const button = (text, action) => html("button", { type: "button", onclick: action }, text);
  figure.append(
    html("style", {}, STYLE),
    html(
      "div",
      { class: "planes" },
      html("section", { class: "keys" }, html("p", { class: "heading" }, "Query and keys"), keys.node),
      html(
        "section",
        { class: "middle" },
        html("p", { class: "heading" }, "Softmax of the scores"),
        weightRows.node,
        x.node,
        y.node,
        sharpness.node,
        html(
          "div",
          { class: "buttons" },
          button("q = 0", () => moveQuery([0, 0])),
          button("½ q", () => stretch(0.5)),
          button("2 q", () => stretch(2)),
          button("reset", () => {
            for (const [name, value] of Object.entries(start)) change(name, value);
          }),
        ),
      ),
      html("section", { class: "values" }, html("p", { class: "heading" }, "Values and output"), outputs.node),
    ),
    says,
    html(
      "p",
      { class: "hint" },
      "Drag q, or any key; arrow keys move what has the focus. A score is q·k/√2 times the sharpness. The ground at each place has the blend of colours that a query there would read.",
    ),
  );

  function update() {
    const [query, keysNow, sharp] = TRAITS.map((name) => model.get(name));
    const seen = look(query, keysNow, values, sharp);
    const text = describe({ query, sharpness: sharp, weights: seen.weights, labels });
    keys.draw({
      query,
      keys: keysNow,
      weights: seen.weights,
      sharpness: sharp,
      label: `The query and ${labels.length} keys. ${text}`,
    });
    outputs.draw({
      values,
      weights: seen.weights,
      output: seen.output,
      label: `${labels.length} values and the output inside their hull. ${text}`,
    });
    weightRows.draw(seen.scores, seen.weights);
    x.show(query[0]);
    y.show(query[1]);
    sharpness.show(sharp);
    set(says, { text });
    Object.assign(figure.dataset, {
      query: query.map((c) => c.toFixed(2)),
      strongest: labels[seen.weights.indexOf(Math.max(...seen.weights))],
      output: seen.output.map((c) => c.toFixed(4)),
    });
  }

  const stop = watch(model, TRAITS, update);
  update();
  return () => {
    stop();
    el.replaceChildren();
  };
}

const STYLE = `
.live-plane .planes { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 15rem) minmax(0, 1fr); gap: 1rem 1.75rem; align-items: start }
.live-plane .middle { display: grid; gap: .35rem }
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
.live-plane .weight-row span { display: inline-flex; gap: .4rem; align-items: center; font-weight: 600 }
.live-plane .weight-row.head span { font-size: .8125rem; font-weight: 400; color: var(--quiet) }
.live-plane .weight-row.head span:nth-child(2) { justify-content: flex-end }
.live-plane .track { height: .85rem; border-radius: 3px; background: var(--wash); overflow: hidden }
.live-plane .track b { display: block; height: 100% }
.live-plane .weights { display: grid; gap: .2rem; margin-bottom: .5rem }
.live-plane .buttons { display: flex; gap: .35rem }
@container (max-width: 800px) {
  .live-plane .planes { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr) }
  .live-plane .middle { grid-column: 1 / -1; grid-row: 2 }
}
@container (max-width: 480px) {
  .live-plane .planes { grid-template-columns: minmax(0, 1fr) }
  .live-plane .middle { grid-row: auto }
  .live-plane .board { max-width: 20rem }
}
`;

export default { render };
