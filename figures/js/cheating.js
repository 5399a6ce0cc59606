/** @file Live figure "the cheating model": a switch removes the causal mask from a language model; its stored training. */

import { CHART_STYLE, createChart } from "./chart.js";
import { choice, createSays, html, set, slider, svg, watch } from "./dom.js";
import { cheatingWords } from "./en/cheating.js";
import { counted } from "./en/common.js";
import { addTools, root } from "./figure.js";

const TRAITS = ["masked", "step"];
const SIDE = 26; // px of one square of the mask
const LEFT = 64;
const TOP = 62;

/** The number that a list of [step, number] holds for the last step up to `step`; null without one. */
export const upTo = (pairs, step) => pairs?.filter(([at]) => at <= step).at(-1)?.[1] ?? null;

/** Whether position `t` may look at position `s`. */
export const mayLook = (masked, t, s) => !masked || s <= t;

/** The mask as a grid: a row for each position, with the word that it has to say at its end. */
function createMask(words) {
  const T = words.length - 1; // positions; columns are one more, since the last word is only said
  const middle = (i) => (i + 0.5) * SIDE;
  const square = (t, s) =>
    svg("rect", { x: LEFT + s * SIDE, y: TOP + t * SIDE, width: SIDE - 2, height: SIDE - 2, rx: 3 });
  const places = Array.from({ length: T * (T + 1) }, (_, i) => [Math.floor(i / (T + 1)), i % (T + 1)]);
  const squares = places.map(([t, s]) => square(t, s));
  const label = (x, y, text, attributes) => svg("text", { x, y, ...attributes }, text);
  const node = svg(
    "svg",
    { class: "mask", role: "img", viewBox: `0 0 ${LEFT + T * SIDE + 94} ${TOP + T * SIDE + 2}` },
    ...words
      .slice(0, -1)
      .map((word, t) => label(LEFT - 8, TOP + middle(t) + 3, word, { "text-anchor": "end" })),
    ...words.map((word, s) =>
      svg("text", { transform: `translate(${LEFT + middle(s) + 2} ${TOP - 7}) rotate(-50)` }, word),
    ),
    ...words
      .slice(1)
      .map((word, t) => label(LEFT + (T + 1) * SIDE + 6, TOP + middle(t) + 3, cheatingWords.say(word), { class: "say" })),
    ...squares,
  );
  function draw(masked, text) {
    squares.forEach((rect, i) => {
      const [t, s] = places[i];
      const kind = !mayLook(masked, t, s) ? "unseen" : s === t + 1 ? "answer" : s > t ? "future" : "open";
      set(rect, { class: kind });
    });
    set(node, { "aria-label": text });
  }
  return { node, draw };
}

function render({ model, el }) {
  const record = model.get("record");
  const words = model.get("words");
  const change = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const runs = Object.fromEntries(
    ["masked", "unmasked"].map((name) => [
      name,
      { ...record[name], loss: record[name].loss.map((loss, i) => [record.steps[i], loss]) },
    ]),
  );
  const steps = record.masked.samples.map(([step]) => step);
  const last = Math.max(...record.steps, ...steps);
  const all = Object.values(runs).flatMap(({ loss, alone }) => [...loss, ...(alone ?? [])]);
  const most = Math.ceil(Math.max(...all.map(([, loss]) => loss)));
  const pace = most > 8 ? 4 : most > 4 ? 2 : 1;
  const upright = Array.from({ length: Math.floor(most / pace) + 1 }, (_, i) => [i * pace, String(i * pace)]);

  const figure = root(el, "cheating", model);
  const mask = choice(
    cheatingWords.mask,
    [
      { value: true, label: cheatingWords.on },
      { value: false, label: cheatingWords.off },
    ],
    (value) => change("masked", value),
  );
  const time = slider(
    cheatingWords.time,
    { min: 0, max: steps.length - 1, step: 1 },
    (i) => change("step", steps[i]),
    (i) => counted(steps[i]),
  );
  const nearest = (x) =>
    steps.reduce((best, step) => (Math.abs(step - x) < Math.abs(best - x) ? step : best), steps[0]);
  const grid = createMask(words);
  const chart = createChart({
    x: {
      low: 0,
      high: last,
      ticks: [0, 0.25, 0.5, 0.75, 1].map((f) => [f * last, counted(f * last)]),
    },
    y: { low: 0, high: most, ticks: upright },
    height: 190,
    curves: ["of-masked", "of-unmasked", "dashed of-masked", "dashed of-unmasked"],
    pick: (x) => change("step", nearest(x)),
  });
  const text = html("blockquote");
  const written = html("p", { class: "heading" });
  const says = createSays();
  const caption = html("p", { class: "hint" });
  figure.append(
    html("style", {}, CHART_STYLE + STYLE),
    html(
      "div",
      { class: "stage" },
      html("div", { class: "controls" }, mask.node, time.node),
      html("section", { class: "losses" }, html("p", { class: "heading" }, cheatingWords.chart), chart.node),
      html("section", { class: "written" }, written, text),
      says.node,
      html("section", { class: "sight" }, html("p", { class: "heading" }, cheatingWords.sight), grid.node, caption),
    ),
    html("p", { class: "hint" }, cheatingWords.hint(Boolean(runs.masked.alone))),
  );

  function update() {
    const [masked, step] = TRAITS.map((name) => model.get(name));
    const name = masked ? "masked" : "unmasked";
    const run = runs[name];
    const [loss, accepted, alone] = [run.loss, run.accepted, run.alone].map((pairs) => upTo(pairs, step));
    const sentence = cheatingWords.describe({ masked, step, loss, accepted, alone });
    grid.draw(masked, cheatingWords.sightLabel(masked, words.length - 1));
    set(caption, { text: cheatingWords.caption(masked) });
    chart.draw({
      curves: [runs.masked.loss, runs.unmasked.loss, runs.masked.alone ?? null, runs.unmasked.alone ?? null],
      mark: step,
      note: cheatingWords.note(step),
      dots: [{ x: step, y: upTo(run.loss, step), class: `of-${name}` }],
      names: Object.keys(runs).map((one) => ({
        y: runs[one].loss.at(-1)[1],
        text: cheatingWords.curves[one],
        class: `of-${one}`,
      })),
      label: cheatingWords.chartLabel(sentence),
    });
    set(chart.node, { class: `chart drawn picked show-${name}` });
    set(written, { text: cheatingWords.written(step) });
    set(text, { text: upTo(run.samples, step) || cheatingWords.nothing });
    says.show(sentence);
    mask.show(masked);
    time.show(steps.indexOf(step));
    Object.assign(figure.dataset, { masked, step, loss });
  }

  const untool = addTools(figure, model, TRAITS, ({ step }) => steps.includes(step));
  const stop = watch(model, TRAITS, update);
  update();
  return () => {
    stop();
    untool();
    el.replaceChildren();
  };
}

const STYLE = `
.live-cheating .of-masked { --c: var(--teal) }
.live-cheating .of-unmasked { --c: var(--orange) }
.live-cheating .stage { display: grid; grid-template-columns: minmax(0, 1.25fr) minmax(0, 1fr); gap: .5rem 2rem; align-items: start }
.live-cheating .stage > * { min-width: 0 }
.live-cheating .stage > .controls { grid-column: 1 / -1 }
.live-cheating .controls .slider { flex: 1 1 14rem; grid-template-columns: auto minmax(4rem, 1fr) 3rem }
.live-cheating .sight { grid-area: 2 / 2 / span 3 }
.live-cheating .mask { width: 100%; max-width: 21rem; font-size: 12px }
.live-cheating .mask .say { fill: var(--ink); font-weight: 600 }
.live-cheating .mask rect { transition: fill .2s }
.live-cheating .mask .open { fill: var(--teal) }
.live-cheating .mask .future { fill: var(--teal); fill-opacity: .45 }
.live-cheating .mask .answer { fill: var(--orange) }
.live-cheating .mask .unseen { fill: var(--wash); stroke: var(--line) }
.live-cheating .show-masked .curve.of-unmasked, .live-cheating .show-unmasked .curve.of-masked { opacity: .35 }
.live-cheating .sight .hint { margin-top: .5rem }
.live-cheating blockquote { margin: 0; padding: .45rem .8rem; border: 0; border-radius: 8px; background: var(--wash); color: var(--ink); font-size: .9375rem; line-height: 1.4; min-height: 3.7em; overflow-wrap: anywhere }
@container (max-width: 38em) { .live-cheating .stage { grid-template-columns: minmax(0, 1fr) } .live-cheating .sight { grid-area: auto } }
`;

export default { render };
