/** @file Live figure "why divide by √d_k": one query and 16 keys that grow, with and without the scale. */

import { dot } from "./attention.js";
import { CHART_STYLE, along, createChart } from "./chart.js";
import { COLUMNS_STYLE, createColumns } from "./columns.js";
import { choice, html, root, set, slider, watch } from "./dom.js";
import { attentionGradient } from "./gradient.js";
import { normals } from "./random.js";

const KEYS = 16;
const VALUE_WIDTH = 16;
const DOUBLINGS = 12; // d_k runs from 1 to 2 ** DOUBLINGS
const TRAITS = ["d_k", "scaled", "draw"];
const spread = (length, make) => Array.from({ length }, (_, i) => make(i));
const WIDTHS = spread(DOUBLINGS + 1, (i) => 2 ** i);
const SMALLEST = 1e-9; // where the axis of the gradients starts
const gradientAxis = { low: SMALLEST, high: 10, log: true };

const raised = (power) => String(power).replace(/./g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);

/** A number for the reader, not negative: two or three digits, and a power of ten where it is small. */
export function brief(x) {
  if (x >= 0.1 || x === 0) return x.toFixed(2);
  if (x >= 0.001) return x.toPrecision(2);
  const [digits, power] = x.toExponential(0).split("e");
  return `${digits}·10${raised(Number(power))}`;
}

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

/** How one number compares with another, in words. */
export function compare(one, other) {
  const ratio = one / other;
  if (ratio > 1.25) return `${ratio < 10 ? ratio.toFixed(1) : ratio.toFixed(0)} times as much as`;
  if (ratio > 0.8) return "about as much as";
  const less = other / one;
  if (less > 1e4) return "more than 10,000 times less than";
  return `${less < 10 ? less.toFixed(1) : less.toFixed(0)} times less than`;
}

/** What the picture shows, in words. `median`: {scaled, unscaled}, each what the median draw gives at this d_k. */
export function describe({ d_k, scaled, on, off, median }) {
  if (d_k === 1) return "At d_k 1 the scale is 1: to divide by it changes nothing.";
  const held = ({ largest }) => {
    if (largest < 0.5) return `the largest of 16 weights is ${largest.toFixed(2)}`;
    return `one key takes ${largest < 0.995 ? largest.toFixed(2) : "over 0.99"} of the weight`;
  };
  if (scaled)
    return (
      `Divided by √${d_k}, ${held(on)}, the entropy is ${on.entropy.toFixed(2)} nats ` +
      `and a gradient of ${brief(on.q)} reaches q. The median of 1,000 draws: ${brief(median.scaled.q)}.`
    );
  const why = off.q > 1.25 * on.q ? ", for the scale divides the gradient too" : "";
  return (
    `Without the scale, at d_k ${d_k} ${held(off)}; ` +
    `what reaches q is ${compare(off.q, on.q)} with it${why}. ` +
    `The median of 1,000 draws: ${compare(median.unscaled.q, median.scaled.q)} with it.`
  );
}

/** A row each for the largest weight, the entropy and the three gradients: a bar, a tick at the median, a number. */
function createGauges() {
  const kinds = [
    ["largest", "largest weight", { low: 0, high: 1 }],
    ["entropy", "entropy, nats", { low: 0, high: Math.log(KEYS) }],
    ["q", "gradient at q", gradientAxis],
    ["k", "gradient at k", gradientAxis],
    ["v", "gradient at v", gradientAxis],
  ];
  const percent = (axis, value) => `${(100 * along(axis, value)).toFixed(2)}%`;
  const rows = kinds.map(([name, text]) =>
    html(
      "div",
      { class: `gauge of-${name}` },
      html("span", {}, text),
      html("i", { class: "track" }, html("b"), html("u")),
      html("output"),
    ),
  );
  const draw = (seen, median) =>
    kinds.forEach(([name, , axis], i) => {
      const [, track, number] = rows[i].children;
      track.firstChild.style.width = percent(axis, seen[name]);
      track.lastChild.style.left = percent(axis, median[name]);
      set(number, { text: brief(seen[name]) });
    });
  return { node: html("div", { class: "gauges" }, ...rows), draw };
}

/** Largest weight, entropy and gradients against d_k: the draw on show over the medians of many. */
function createTrends(pick) {
  const even = (...values) => values.map((value) => [value, String(value)]);
  const x = { low: 1, high: WIDTHS.at(-1), log: true };
  x.ticks = [1, 8, 64, 512, 4096].map((width) => [width, width.toLocaleString("en")]);
  const ticks = [-9, -6, -3].map((power) => [10 ** power, `10${raised(power)}`]);
  const kinds = [
    { names: ["largest"], title: "Largest weight", y: { low: 0, high: 1, ticks: even(0, 0.5, 1) } },
    {
      names: ["entropy"],
      title: "Entropy, nats,",
      y: { low: 0, high: Math.log(KEYS), ticks: even(0, 1, 2) },
    },
    { names: ["q", "k", "v"], title: "Gradients", y: { ...gradientAxis, ticks: [...ticks, [1, "1"]] } },
  ];
  const charts = kinds.map(({ names, y }) =>
    createChart({
      x,
      y,
      pick,
      height: names.length > 1 ? 150 : 112,
      curves: [
        ...names.map((name) => `faint of-${name}`),
        ...names.map((name) => `behind of-${name}`),
        ...names.map((name) => `of-${name}`),
      ],
    }),
  );
  const node = html(
    "section",
    { class: "trends" },
    ...charts.flatMap(({ node: chart }, i) => [html("p", { class: "heading" }, `${kinds[i].title} against d_k`), chart]),
  );
  const onWidths = (values) => WIDTHS.map((width, i) => [width, values[i]]);
  const draw = ({ d_k, rows, median, other, otherName, text }) =>
    charts.forEach((chart, c) => {
      const { names, title } = kinds[c];
      const now = rows[WIDTHS.indexOf(d_k)];
      chart.draw({
        curves: [
          ...names.map((name) => onWidths(other[name])),
          ...names.map((name) => onWidths(median[name])),
          ...names.map((name) => onWidths(rows.map((row) => row[name]))),
        ],
        mark: d_k,
        note: c === 0 ? `d_k ${d_k}` : "",
        dots: names.map((name) => ({ x: d_k, y: now[name], class: `of-${name}` })),
        names:
          names.length > 1
            ? [
                { y: median.q.at(-1), text: "q", class: "of-q" },
                { y: median.k.at(-1) * 0.99, text: "k", class: "of-k" },
                { y: median.v.at(-1), text: "v", class: "of-v" },
              ]
            : [{ y: other[names[0]].at(-1), text: otherName }],
        label: `${title} against d_k. ${text}`,
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

  const figure = root(el, "scaling", model);
  const width = slider(
    "d_k",
    { min: 0, max: DOUBLINGS, step: 1 },
    (power) => change("d_k", 2 ** power),
    (power) => (2 ** power).toLocaleString("en"),
  );
  const scale = choice(
    "divide by √d_k",
    [
      { value: true, label: "yes" },
      { value: false, label: "no" },
    ],
    (value) => change("scaled", value),
  );
  const another = () => change("draw", (model.get("draw") + 1) % 1000);
  const columns = createColumns(KEYS);
  const gauges = createGauges();
  const trends = createTrends((x) => change("d_k", 2 ** Math.round(Math.log2(x))));
  const says = html("p", { class: "says", role: "status", "aria-live": "polite" });
  figure.append(
    html("style", {}, CHART_STYLE + COLUMNS_STYLE + STYLE),
    html(
      "div",
      { class: "controls" },
      width.node,
      scale.node,
      html("button", { type: "button", onclick: another }, "another draw"),
    ),
    html(
      "div",
      { class: "halves" },
      html("section", {}, html("p", { class: "heading" }, "One query, 16 keys"), columns.node, gauges.node),
      trends.node,
    ),
    says,
    html(
      "p",
      { class: "hint" },
      `The entries of q and of the keys are drawn with mean 0 and variance 1; a larger d_k adds entries. Thin lines: this draw. Broad lines and ticks: the median of ${medians.draws.toLocaleString("en")} draws. Faint: the same medians with the switch the other way. Gradients are lengths, on a log axis.`,
    ),
  );

  function update() {
    const [d_k, scaled, draw] = TRAITS.map((name) => model.get(name));
    const both = measured(draw);
    const i = WIDTHS.indexOf(d_k);
    const [name, otherName] = scaled ? ["scaled", "unscaled"] : ["unscaled", "scaled"];
    const at = (list) => Object.fromEntries(Object.entries(list).map(([key, values]) => [key, values[i]]));
    const median = { scaled: at(medians.scaled), unscaled: at(medians.unscaled) };
    const text = describe({ d_k, scaled, on: both.scaled[i], off: both.unscaled[i], median });
    const now = both[name][i];
    columns.draw(now.scores, now.weights, scaled, `Scores and weights of 16 keys. ${text}`);
    gauges.draw(now, median[name]);
    trends.draw({
      d_k,
      rows: both[name],
      median: medians[name],
      other: medians[otherName],
      otherName: scaled ? "without" : "with",
      text,
    });
    width.show(Math.log2(d_k));
    scale.show(scaled);
    set(says, { text });
    Object.assign(figure.dataset, {
      width: d_k,
      scaled,
      draw,
      largest: now.largest.toFixed(4),
      entropy: now.entropy.toFixed(4),
      gradient: now.q.toPrecision(4),
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
.live-scaling .of-largest, .live-scaling .of-entropy { --c: var(--slate) }
.live-scaling .of-q { --c: var(--blue) }
.live-scaling .of-k { --c: var(--magenta) }
.live-scaling .of-v { --c: var(--gold) }
.live-scaling .controls { margin-bottom: 1rem }
.live-scaling .controls .slider { flex: 1 1 16rem; grid-template-columns: auto minmax(4rem, 1fr) 3rem }
.live-scaling .halves { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1rem 2rem; align-items: start }
.live-scaling .chart .curve.of-k:not(.behind) { stroke-dasharray: 5 4 }
.live-scaling .gauges { display: grid; gap: .3rem; margin-top: .6rem }
.live-scaling .gauge { display: grid; grid-template-columns: 6.6rem minmax(2rem, 1fr) 3.4rem; gap: .6rem; align-items: center; font-size: .9375rem }
.live-scaling .gauge span { font-size: .875rem; color: var(--quiet) }
.live-scaling .gauge .track { position: relative; height: .85rem; border-radius: 3px; background: var(--wash) }
.live-scaling .gauge b { display: block; height: 100%; border-radius: 3px; background: var(--c) }
.live-scaling .gauge u { position: absolute; top: -3px; bottom: -3px; width: 2px; margin-left: -1px; background: var(--ink) }
@container (max-width: 620px) { .live-scaling .halves { grid-template-columns: minmax(0, 1fr) } }
`;

export default { render };
