/** @file Live figure "why divide by √d_k": one query and 16 keys that grow, with and without the scale. */

import { dot } from "./attention.js";
import { CHART_STYLE, createChart } from "./chart.js";
import { button, choice, createSays, html, slider, spread, watch } from "./dom.js";
import { counted } from "./en/common.js";
import { scalingWords } from "./en/scaling.js";
import { addTools, root } from "./figure.js";
import { attentionGradient } from "./gradient.js";
import { normals } from "./random.js";
import { SCORES_STYLE, createScores } from "./scores.js";

const KEYS = 16;
const VALUE_WIDTH = 16;
const DOUBLINGS = 12; // d_k runs from 1 to 2 ** DOUBLINGS
const TRAITS = ["d_k", "scaled", "draw"];
const WIDTHS = spread(DOUBLINGS + 1, (i) => 2 ** i);
const SMALLEST = 1e-9; // where the axis of the gradients starts

/**
 * One draw: a query, 16 keys with a value each, and the gradient on the output, of length 1.
 * Entry j of all the vectors is drawn after entry j − 1, so that a larger d_k keeps what was there.
 * @param {number} seed
 * @returns {{q: number[], keys: number[][], values: number[][], d_out: number[]}}
 */
export function drawVectors(seed) {
  const rows = KEYS + 1;
  const first = rows * VALUE_WIDTH;
  const numbers = normals(seed, first + rows * WIDTHS.at(-1));
  const [gradient, ...values] = spread(rows, (i) =>
    Array.from(numbers.subarray(i * VALUE_WIDTH, (i + 1) * VALUE_WIDTH)),
  );
  const [q, ...keys] = spread(rows, (i) => spread(WIDTHS.at(-1), (j) => numbers[first + j * rows + i]));
  return { q, keys, values, d_out: gradient.map((x) => x / Math.hypot(...gradient)) };
}

/** What attention makes of the first `width` entries of a draw. */
export function measure({ q, keys, values, d_out }, width, scaled) {
  const scale = scaled ? 1 / Math.sqrt(width) : 1;
  const query = q.slice(0, width);
  const cut = keys.map((key) => key.slice(0, width));
  const { weights, ...gradients } = attentionGradient([query], cut, values, [d_out], { scale });
  const norm = (x) => Math.sqrt(x.reduce((sum, row) => sum + dot(row, row), 0));
  return {
    scores: cut.map((key) => dot(query, key) * scale),
    weights: weights[0],
    largest: Math.max(...weights[0]),
    entropy: weights[0].reduce((sum, w) => sum - (w > 0 ? w * Math.log(w) : 0), 0),
    q: norm(gradients.d_q),
    k: norm(gradients.d_k),
    v: norm(gradients.d_v),
  };
}

/** The largest weight and the gradients against d_k: the draw on show over the medians of many, as far as the reader has been. */
function createTrends(pick) {
  const x = { low: 1, high: WIDTHS.at(-1), log: true };
  x.ticks = [1, 8, 64, 512, 4096].map((width) => [width, counted(width)]);
  const even = (...values) => values.map((value) => [value, String(value)]);
  const powers = [-9, -6, -3, 0].map((power) => [10 ** power, scalingWords.powerOfTen(power)]);
  const kinds = [
    { names: ["largest"], title: scalingWords.largest, height: 118, y: { low: 0, high: 1, ticks: even(0, 0.5, 1) } },
    { names: ["q", "k", "v"], title: scalingWords.gradients, height: 138, y: { low: SMALLEST, high: 10, log: true, ticks: powers } },
  ];
  const charts = kinds.map(({ names, y, height }) =>
    createChart({
      x,
      y,
      pick,
      height,
      curves: [...names.map((name) => `behind of-${name}`), ...names.map((name) => `of-${name}`)],
    }),
  );
  const node = html(
    "section",
    { class: "trends" },
    ...charts.flatMap(({ node: chart }, i) => [html("p", { class: "heading" }, kinds[i].title), chart]),
  );
  const draw = ({ d_k, far, rows, median, text }) =>
    charts.forEach((chart, c) => {
      const { names, title } = kinds[c];
      const now = rows[WIDTHS.indexOf(d_k)];
      const last = WIDTHS.indexOf(far);
      const curve = (value) => WIDTHS.slice(0, last + 1).map((width, i) => [width, value(i)]);
      chart.draw({
        curves: [
          ...names.map((name) => curve((i) => median[name][i])),
          ...names.map((name) => curve((i) => rows[i][name])),
        ],
        mark: d_k,
        note: c === 0 ? scalingWords.note(d_k) : "",
        dots: names.map((name) => ({ x: d_k, y: now[name], class: `of-${name}` })),
        names:
          names.length > 1
            ? names.map((name, i) => ({ y: median[name][last] * (1 - 0.01 * i), text: name, class: `of-${name}` }))
            : [],
        label: scalingWords.trendLabel(title, text),
      });
    });
  return { node, draw };
}

function render({ model, el }) {
  const medians = model.get("medians");
  const change = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  let drawn = null; // the vectors of the draw on show, and what they give at every d_k, with and without
  const measured = (draw) => {
    if (drawn?.draw !== draw) {
      const vectors = drawVectors(draw);
      const all = (scaled) => WIDTHS.map((width) => measure(vectors, width, scaled));
      drawn = { draw, scaled: all(true), unscaled: all(false) };
    }
    return drawn;
  };
  let far = 1; // the largest d_k that was on show

  const figure = root(el, "scaling", model);
  const width = slider(
    scalingWords.width,
    { min: 0, max: DOUBLINGS, step: 1 },
    (power) => change("d_k", 2 ** power),
    (power) => counted(2 ** power),
  );
  const scale = choice(
    scalingWords.divide,
    [
      { value: true, label: scalingWords.yes },
      { value: false, label: scalingWords.no },
    ],
    (value) => change("scaled", value),
  );
  const another = () => change("draw", (model.get("draw") + 1) % 1000);
  const scores = createScores(KEYS);
  const trends = createTrends((x) => change("d_k", 2 ** Math.round(Math.log2(x))));
  const says = createSays();
  figure.append(
    html("style", {}, CHART_STYLE + SCORES_STYLE + STYLE),
    html(
      "div",
      { class: "stage" },
      html("div", { class: "controls" }, width.node, scale.node, button(scalingWords.another, another)),
      html("section", { class: "vectors" }, html("p", { class: "heading" }, scalingWords.vectors), scores.node),
      says.node,
      trends.node,
    ),
    html("p", { class: "hint" }, scalingWords.hint(medians.draws)),
  );

  function update() {
    const [d_k, scaled, draw] = TRAITS.map((name) => model.get(name));
    far = Math.max(far, d_k);
    const both = measured(draw);
    const i = WIDTHS.indexOf(d_k);
    const name = scaled ? "scaled" : "unscaled";
    const at = (list) => Object.fromEntries(Object.entries(list).map(([key, values]) => [key, values[i]]));
    const median = { scaled: at(medians.scaled), unscaled: at(medians.unscaled) };
    const text = scalingWords.describe({ d_k, scaled, on: both.scaled[i], off: both.unscaled[i], median });
    const now = both[name][i];
    scores.draw(now.scores, now.weights, scaled, scalingWords.scoresLabel(text));
    trends.draw({ d_k, far, rows: both[name], median: medians[name], text });
    width.show(Math.log2(d_k));
    scale.show(scaled);
    says.show(text);
    Object.assign(figure.dataset, {
      width: d_k,
      scaled,
      draw,
      largest: now.largest.toFixed(4),
      entropy: now.entropy.toFixed(4),
      gradient: now.q.toPrecision(4),
    });
  }

  const legal = ({ d_k, draw }) => WIDTHS.includes(d_k) && Number.isInteger(draw) && draw >= 0 && draw < 1000;
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
.live-scaling .of-largest { --c: var(--slate) }
.live-scaling .of-q { --c: var(--q) }
.live-scaling .of-k { --c: var(--k) }
.live-scaling .of-v { --c: var(--v) }
.live-scaling .stage { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: .5rem 2rem; align-items: start }
.live-scaling .stage > :is(.controls, .sentence) { grid-column: 1 / -1 }
.live-scaling .trends { grid-area: 2 / 2 }
.live-scaling .controls .slider { flex: 1 1 14rem; grid-template-columns: auto minmax(4rem, 1fr) 3rem }
.live-scaling .chart .curve.of-k:not(.behind) { stroke-dasharray: 6 4 }
.live-scaling .chart .curve.of-v:not(.behind) { stroke-dasharray: 1.5 4 }
@container (max-width: 38em) {
  .live-scaling .stage { grid-template-columns: minmax(0, 1fr) }
  .live-scaling .trends { grid-area: auto }
}
`;

export default { render };
