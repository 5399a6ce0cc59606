/** @file Live figure "the two machines step by step": a recurrent network beside self-attention, their steps counted. */

import { button, createSays, html, set, slider, spread, svg, watch } from "./dom.js";
import { commonWords } from "./en/common.js";
import { stepsWords } from "./en/steps.js";
import { addTools, root } from "./figure.js";
import { createPlayer } from "./player.js";

const TRAITS = ["tokens", "step"];
const MOST = 32; // tokens
const PACE = 450; // ms a step

/**
 * Table 1 of Vaswani et al. 2017 for one layer: operations that wait for one another, and links from the first
 * token to the last, as `attention_lib.cost` counts them.
 * @param {number} n tokens
 */
export const cost = (n) => ({ recurrent: { steps: n, path: n - 1 }, attention: { steps: 2, path: 1 } });

/** What each machine does in one of its steps. */
export function doing(name, n, step) {
  const { before, after, scores, state } = stepsWords.doing;
  if (step === 0) return before;
  if (step >= cost(n)[name].steps) return after;
  return name === "attention" ? scores : state(step);
}

const BOX = { width: 340, height: 118, left: 18, right: 322, top: 14, bottom: 90 };

/** One machine: tokens below, what is computed above, lines between; rebuilt when the number of tokens changes. */
function createMachine(name) {
  const { left, right, top, bottom } = BOX;
  const chain = name === "recurrent";
  const node = svg("svg", { class: "machine", role: "img", viewBox: `0 0 ${BOX.width} ${BOX.height}` });
  let parts = null;

  function build(n) {
    const radius = Math.min(9, 120 / n);
    const each = (make) => spread(n, (i) => make(left + (i / (n - 1)) * (right - left), i));
    const line = (x1, y1, x2, y2) => svg("line", { x1, y1, x2, y2 });
    const places = each((x) => x.toFixed(1));
    const inputs = chain ? each((x) => line(x, bottom, x, top)) : [];
    const ways = chain
      ? places.slice(1).map((x, i) => line(places[i], top, x, top))
      : [line(left, bottom, right, top)];
    const pairs = chain ? [] : places.map((from) => places.map((to) => `M${from} ${bottom}L${to} ${top}`).join(""));
    const web = svg("path", { class: "web", d: pairs.join("") });
    const tokens = each((x) => svg("circle", { class: "token", cx: x, cy: bottom, r: radius * 0.8 }));
    const cells = each((x) => svg("circle", { class: "cell", cx: x, cy: top, r: radius }));
    const labels = [0, n - 1].map((i) =>
      svg("text", { x: places[i], y: bottom + 24, "text-anchor": "middle" }, String(i + 1)),
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

function render({ model, el }) {
  const get = (name) => model.get(name);
  const change = (changes) => {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  };
  const player = createPlayer({
    get: () => get("step"),
    end: () => get("tokens"),
    go: (step) => change({ step }),
    pace: PACE,
  });
  const figure = root(el, "steps", model);
  const tokens = slider(
    stepsWords.tokens,
    { min: 2, max: MOST, step: 1 },
    (n) => change({ tokens: n, step: Math.min(get("step"), n) }),
    String,
  );
  const names = ["recurrent", "attention"];
  const machines = Object.fromEntries(names.map((name) => [name, createMachine(name)]));
  const counts = Object.fromEntries(names.map((name) => [name, html("p", { class: "counts" })]));
  const says = createSays();
  figure.append(
    html("style", {}, STYLE),
    html(
      "div",
      { class: "stage" },
      html(
        "div",
        { class: "controls" },
        tokens.node,
        html("span", { class: "buttons" }, button(commonWords.step, player.next), player.node),
      ),
      html(
        "div",
        { class: "halves" },
        ...names.map((name) =>
          html(
            "section",
            { class: `of-${name}` },
            html("p", { class: "heading" }, stepsWords.titles[name]),
            machines[name].node,
            counts[name],
          ),
        ),
      ),
      says.node,
    ),
    html("p", { class: "hint" }, stepsWords.hint),
  );

  function update() {
    const [n, step] = TRAITS.map(get);
    const costs = cost(n);
    const text = stepsWords.describe({ tokens: n, step, costs });
    for (const name of names) {
      const { steps, path } = costs[name];
      machines[name].draw(n, step, `${stepsWords.titles[name]}. ${text}`);
      set(counts[name], {
        text: stepsWords.counts({ done: Math.min(step, steps), of: steps, doing: doing(name, n, step), path }),
      });
    }
    tokens.show(n);
    says.show(text);
    Object.assign(figure.dataset, { tokens: n, step });
  }

  const legal = ({ tokens, step }) => [tokens, step].every(Number.isInteger) && tokens >= 2 && tokens <= MOST && step >= 0 && step <= tokens;
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
.live-steps .of-recurrent { --c: var(--orange) }
.live-steps .of-attention { --c: var(--blue) }
.live-steps .controls { margin-bottom: .75rem }
.live-steps .controls .slider { flex: 1 1 14rem }
.live-steps .machine { width: 100%; max-width: 30rem; font-size: 12px }
.live-steps .machine .input, .live-steps .machine .web, .live-steps .machine .way { fill: none; stroke: var(--line); stroke-width: var(--many); transition: stroke .2s }
.live-steps .machine .lit:is(.input, .web) { stroke: var(--c); stroke-opacity: calc(.35 * var(--many)) }
.live-steps .machine .web.weighed { stroke-opacity: calc(.6 * var(--many)) }
.live-steps .machine .way { stroke-width: 4; stroke-linecap: round }
.live-steps .machine .way.lit { stroke: var(--c) }
.live-steps .machine .token { fill: var(--slate) }
.live-steps .machine .cell { fill: var(--wash); stroke: var(--line); stroke-width: 1.5; transition: fill .2s }
.live-steps .machine .cell.lit { fill: var(--c); stroke: var(--c) }
.live-steps .machine .cell.now { stroke: var(--ink); stroke-width: 2.5 }
.live-steps .counts { font-size: .875rem; color: var(--quiet); font-variant-numeric: tabular-nums }
`;

export default { render };
