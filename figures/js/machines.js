/** @file Live figure "the two machines step by step": a recurrent network beside self-attention, their steps counted. */

import { html, root, set, slider, svg, watch } from "./dom.js";
import { createPlayer } from "./player.js";

const TRAITS = ["tokens", "step"];
const MOST = 32; // tokens
const PACE = 450; // ms a step

/**
 * Table 1 of Vaswani et al. 2017 for one layer: operations that wait for one another, and links from the first
 * token to the last, as `attention_lib.cost` counts them.
 * @param {number} n tokens
 */
export function cost(n) {
  return { recurrent: { steps: n, path: n - 1 }, attention: { steps: 2, path: 1 } };
}

/** What each machine does in one of its steps. */
export function doing(name, n, step) {
  if (step === 0) return "not begun";
  if (step >= cost(n)[name].steps) return "done";
  return name === "attention" ? "scores" : `state ${step}`;
}

/** What the picture shows, in words. */
export function describe({ tokens, step }) {
  const { recurrent, attention } = cost(tokens);
  const paths = `From token 1 to token ${tokens}: ${recurrent.path} ${recurrent.path === 1 ? "link" : "links"} against 1.`;
  const [slow, fast] = [recurrent, attention].map(({ steps }) => Math.max(0, steps - step));
  const state =
    step === 0
      ? "Nothing has run yet."
      : slow === 0
        ? `Attention was done after ${attention.steps} steps, the recurrent network after ${recurrent.steps}.`
        : `After step ${step}, attention ${fast ? `has ${fast} of ${attention.steps} steps left` : "is done"}, the recurrent network has ${slow} of ${recurrent.steps}${fast ? "" : " steps left"}.`;
  return `${state} ${paths}`;
}

const BOX = { width: 340, height: 130, left: 18, right: 322, top: 14, bottom: 98 };

/** One machine: tokens below, what is computed above, lines between; rebuilt when the number of tokens changes. */
function createMachine(name) {
  const { left, right, top, bottom } = BOX;
  const chain = name === "recurrent";
  const node = svg("svg", { class: "machine", role: "img", viewBox: `0 0 ${BOX.width} ${BOX.height}` });
  let parts = null;

  function build(n) {
    const radius = Math.min(9, 120 / n);
    const each = (make) =>
      Array.from({ length: n }, (_, i) => make(left + (i / (n - 1)) * (right - left), i));
    const line = (x1, y1, x2, y2) => svg("line", { x1, y1, x2, y2 });
    const places = each((x) => x.toFixed(1));
    const inputs = chain ? each((x) => line(x, bottom, x, top)) : [];
    const ways = chain
      ? places.slice(1).map((x, i) => line(places[i], top, x, top))
      : [line(left, bottom, right, top)];
    const pairs = chain
      ? []
      : places.map((from) => places.map((to) => `M${from} ${bottom}L${to} ${top}`).join(""));
    const web = svg("path", { class: "web", d: pairs.join("") });
    const tokens = each((x) => svg("circle", { class: "token", cx: x, cy: bottom, r: radius * 0.8 }));
    const cells = each((x) => svg("circle", { class: "cell", cx: x, cy: top, r: radius }));
    const labels = [0, n - 1].map((i) =>
      svg("text", { x: places[i], y: bottom + 26, "text-anchor": "middle" }, String(i + 1)),
    );
    node.replaceChildren(web, ...inputs, ...ways, ...tokens, ...cells, ...labels);
    node.style.setProperty("--many", String(Math.min(1, 12 / n)));
    parts = { n, inputs, ways, web, cells };
  }

  function draw(n, step, label) {
    if (parts?.n !== n) build(n);
    const isLit = (i) => step >= (chain ? i + 1 : 2);
    const isNew = (i) => step === (chain ? i + 1 : 2);
    const { inputs, ways, web, cells } = parts;
    const state = (kind, lit, more = "") => ({ class: `${kind}${lit ? " lit" : ""}${more}` });
    cells.forEach((cell, i) => set(cell, state("cell", isLit(i), isNew(i) ? " now" : "")));
    inputs.forEach((line, i) => set(line, state("input", isLit(i))));
    ways.forEach((line, i) => set(line, state("way", isLit(i + 1))));
    set(web, state("web", step >= 1, step >= 2 ? " weighed" : ""));
    set(node, { "aria-label": label });
  }
  return { node, draw };
}

/** Steps and longest path of one machine, as numbers under its picture. */
function createCounter() {
  const steps = html("output");
  const now = html("span");
  const path = html("output");
  const node = html(
    "p",
    { class: "counts" },
    html("span", {}, "steps in sequence ", steps, now),
    html("span", {}, "path from first to last ", path),
  );
  const draw = (done, { steps: all, path: links }, what) => {
    set(steps, { text: `${Math.min(done, all)} of ${all}` });
    set(now, { text: `, ${what}` });
    set(path, { text: String(links) });
  };
  return { node, draw };
}

function render({ model, el }) {
  const get = (name) => model.get(name);
  const change = (changes) => {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  };
  const end = () => cost(get("tokens")).recurrent.steps;
  const player = createPlayer({
    get: () => get("step"),
    end,
    go: (step) => change({ step }),
    pace: PACE,
  });
  const button = (text, action) => html("button", { type: "button", onclick: action }, text);
  const restart = () => {
    player.stop();
    change({ step: 0 });
  };

  const figure = root(el, "machines", model);
  const tokens = slider(
    "tokens n",
    { min: 2, max: MOST, step: 1 },
    (n) => change({ tokens: n, step: Math.min(get("step"), n) }),
    String,
  );
  const machines = { recurrent: createMachine("recurrent"), attention: createMachine("attention") };
  const counters = { recurrent: createCounter(), attention: createCounter() };
  const says = html("p", { class: "says", role: "status", "aria-live": "polite" });
  const titles = {
    recurrent: "Recurrent network: one cell after another",
    attention: "Self-attention: all pairs at once",
  };
  figure.append(
    html("style", {}, STYLE),
    html(
      "div",
      { class: "controls" },
      tokens.node,
      html("span", { class: "buttons" }, button("step", player.next), player.button, button("start again", restart)),
    ),
    html(
      "div",
      { class: "halves" },
      ...Object.keys(machines).map((name) =>
        html(
          "section",
          { class: `of-${name}` },
          html("p", { class: "heading" }, titles[name]),
          machines[name].node,
          counters[name].node,
        ),
      ),
    ),
    says,
    html(
      "p",
      { class: "hint" },
      "Broad lines: the path from the first token to the last.",
    ),
  );

  function update() {
    const [n, step] = TRAITS.map(get);
    const costs = cost(n);
    const text = describe({ tokens: n, step });
    for (const name of Object.keys(machines)) {
      machines[name].draw(n, step, `${titles[name]}. ${text}`);
      counters[name].draw(step, costs[name], doing(name, n, step));
    }
    tokens.show(n);
    set(says, { text });
    Object.assign(figure.dataset, { tokens: n, step });
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
.live-machines .of-recurrent { --c: var(--orange) }
.live-machines .of-attention { --c: var(--blue) }
.live-machines .controls { margin-bottom: 1rem }
.live-machines .controls .slider { flex: 1 1 16rem }
.live-machines .buttons { display: flex; gap: .35rem }
.live-machines .halves { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1rem 2rem; align-items: start }
.live-machines .machine { width: 100%; max-width: 30rem; font-size: 12px }
.live-machines .machine .input, .live-machines .machine .web, .live-machines .machine .way { fill: none; stroke: var(--line); stroke-width: var(--many); transition: stroke .2s }
.live-machines .machine .lit:is(.input, .web) { stroke: var(--c); stroke-opacity: calc(.35 * var(--many)) }
.live-machines .machine .web.weighed { stroke-opacity: calc(.6 * var(--many)) }
.live-machines .machine .way { stroke-width: 4; stroke-linecap: round }
.live-machines .machine .way.lit { stroke: var(--c) }
.live-machines .machine .token { fill: var(--slate) }
.live-machines .machine .cell { fill: var(--wash); stroke: var(--line); stroke-width: 1.5; transition: fill .2s }
.live-machines .machine .cell.lit { fill: var(--c); stroke: var(--c) }
.live-machines .machine .cell.now { stroke: var(--ink); stroke-width: 2.5 }
.live-machines .counts { display: flex; flex-wrap: wrap; gap: .2rem 1.5rem; font-size: .9375rem; color: var(--quiet) }
.live-machines .counts output { font-weight: 600 }
.live-machines .hint { margin-top: .75rem }
@container (max-width: 620px) { .live-machines .halves { grid-template-columns: minmax(0, 1fr) } }
`;

export default { render };
