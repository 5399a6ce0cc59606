/** @file Live figure "the cheating model": a switch removes the causal mask from a language model; its stored training. */

import { CHART_STYLE, createChart } from "./chart.js";
import { choice, html, root, set, slider, svg, watch } from "./dom.js";

const TRAITS = ["masked", "step"];
const SIDE = 26; // px of one square of the mask
const LEFT = 64;
const TOP = 62;

/** The number that a list of [step, number] holds for the last step up to `step`; null without one. */
export const upTo = (pairs, step) => pairs?.filter(([at]) => at <= step).at(-1)?.[1] ?? null;

/** Whether position `t` may look at position `s`. */
export const mayLook = (masked, t, s) => !masked || s <= t;

/** A share as a percentage that is 0 or 100 only if it is. */
export function percent(share) {
  const rounded = Math.round(100 * share);
  if (share > 0 && rounded === 0) return "under 1 %";
  if (share < 1 && rounded === 100) return "over 99 %";
  return `${rounded} %`;
}

const nats = (loss) => (loss >= 0.1 ? loss.toFixed(2) : loss.toPrecision(2));

/** What the picture shows, in words. run: {loss: [step, loss][], accepted?, alone?}. */
export function describe({ masked, step, run }) {
  const loss = upTo(run.loss, step);
  const accepted = upTo(run.accepted, step);
  const alone = upTo(run.alone, step);
  const when = step === 0 ? "before training" : `after ${step} ${step === 1 ? "step" : "steps"}`;
  const training = `${masked ? "With" : "Without"} the mask, ${when}, the training loss is ${nats(loss)} nats a word`;
  const really = alone === null ? "" : `; where the next word is not there to be seen, ${nats(alone)}`;
  const writes =
    accepted === null ? "" : ` Of the sentences that it writes, ${percent(accepted)} fit the grammar.`;
  return `${training}${really}.${writes}`;
}

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
      .map((word, t) => label(LEFT + (T + 1) * SIDE + 6, TOP + middle(t) + 3, `→ ${word}`, { class: "say" })),
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
    "causal mask",
    [
      { value: true, label: "on" },
      { value: false, label: "off" },
    ],
    (value) => change("masked", value),
  );
  const time = slider(
    "after step",
    { min: 0, max: steps.length - 1, step: 1 },
    (i) => change("step", steps[i]),
    (i) => steps[i].toLocaleString("en"),
  );
  const nearest = (x) =>
    steps.reduce((best, step) => (Math.abs(step - x) < Math.abs(best - x) ? step : best), steps[0]);
  const grid = createMask(words);
  const chart = createChart({
    x: {
      low: 0,
      high: last,
      ticks: [0, 0.25, 0.5, 0.75, 1].map((f) => [f * last, (f * last).toLocaleString("en")]),
    },
    y: { low: 0, high: most, ticks: upright },
    height: 210,
    curves: ["of-masked", "of-unmasked", "dashed of-masked", "dashed of-unmasked"],
    pick: (x) => change("step", nearest(x)),
  });
  const text = html("blockquote");
  const written = html("p", { class: "heading" });
  const says = html("p", { class: "says", role: "status", "aria-live": "polite" });
  const caption = html("p", { class: "hint" });
  const dashes = runs.masked.alone
    ? " Dashed: the loss on other sentences, one position at a time, where no later word is there."
    : "";
  figure.append(
    html("style", {}, CHART_STYLE + STYLE),
    html("div", { class: "controls" }, mask.node, time.node),
    html(
      "div",
      { class: "halves" },
      html("section", {}, html("p", { class: "heading" }, "What each position may see"), grid.node, caption),
      html("section", {}, html("p", { class: "heading" }, "Training loss, nats a word, against steps"), chart.node),
    ),
    html("section", { class: "written" }, written, text),
    says,
    html(
      "p",
      { class: "hint" },
      `Recorded while two models were trained from the same start, one with the mask and one without.${dashes}`,
    ),
  );

  function update() {
    const [masked, step] = TRAITS.map((name) => model.get(name));
    const name = masked ? "masked" : "unmasked";
    const run = runs[name];
    const sentence = describe({ masked, step, run });
    grid.draw(
      masked,
      `${words.length - 1} positions. Each sees ${masked ? "itself and what came before it" : "all words, the one that it has to say included"}.`,
    );
    set(caption, {
      text: masked
        ? "Each position sees what came before it, and has to say the word after →."
        : "Each position sees the very word that it has to say (orange). It need only copy it.",
    });
    chart.draw({
      curves: [runs.masked.loss, runs.unmasked.loss, runs.masked.alone ?? null, runs.unmasked.alone ?? null],
      mark: step,
      note: `step ${step.toLocaleString("en")}`,
      dots: [{ x: step, y: upTo(run.loss, step), class: `of-${name}` }],
      names: Object.keys(runs).map((one) => ({
        y: runs[one].loss.at(-1)[1],
        text: one === "masked" ? "mask on" : "mask off",
        class: `of-${one}`,
      })),
      label: `Training loss against steps, with and without the mask. ${sentence}`,
    });
    set(chart.node, { class: `chart picked show-${name}` });
    set(written, {
      text: step === 0 ? "What it writes before training" : `What it writes after ${step} steps`,
    });
    set(text, { text: upTo(run.samples, step) || "(nothing)" });
    set(says, { text: sentence });
    mask.show(masked);
    time.show(steps.indexOf(step));
    Object.assign(figure.dataset, { masked, step, loss: upTo(run.loss, step) });
  }

  const stop = watch(model, TRAITS, update);
  update();
  return () => {
    stop();
    el.replaceChildren();
  };
}

const STYLE = `
.live-cheating .of-masked { --c: var(--teal) }
.live-cheating .of-unmasked { --c: var(--orange) }
.live-cheating .controls { margin-bottom: 1rem }
.live-cheating .controls .slider { flex: 1 1 16rem; grid-template-columns: auto minmax(4rem, 1fr) 3rem }
.live-cheating .halves { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1rem 2rem; align-items: start }
.live-cheating .mask { width: 100%; max-width: 21rem; font-size: 12px }
.live-cheating .mask .say { fill: var(--ink); font-weight: 600 }
.live-cheating .mask rect { transition: fill .2s }
.live-cheating .mask .open { fill: var(--teal) }
.live-cheating .mask .future { fill: var(--teal); fill-opacity: .45 }
.live-cheating .mask .answer { fill: var(--orange) }
.live-cheating .mask .unseen { fill: var(--wash); stroke: var(--line) }
.live-cheating .show-masked .curve.of-unmasked, .live-cheating .show-unmasked .curve.of-masked { opacity: .35 }
.live-cheating .halves .hint { margin-top: .5rem }
.live-cheating .written { margin-top: 1rem }
.live-cheating blockquote { margin: 0; padding: .6rem .9rem; border: 0; border-radius: 8px; background: var(--wash); color: var(--ink); font-size: 1.0625rem; min-height: 4.2em; overflow-wrap: anywhere }
@container (max-width: 620px) { .live-cheating .halves { grid-template-columns: minmax(0, 1fr) } }
`;

export default { render };
