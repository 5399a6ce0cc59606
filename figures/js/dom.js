/** @file Building blocks that the live figures share: elements, one look in light and dark, and reading a model. */

import { takePicture } from "./snapshot.js";

const SVG = "http://www.w3.org/2000/svg";

/** @param {Element} node @param {Record<string, any>} attributes false or null removes; on… adds a listener */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") {
      if (node.textContent !== value) node.textContent = value;
    } else if (value === false || value === null || value === undefined) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

/** @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node | string)} children */
export function html(tag, attributes = {}, ...children) {
  const node = set(document.createElement(tag), attributes);
  node.append(...children);
  return node;
}

/** The same for SVG. @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node | string)} children */
export function svg(tag, attributes = {}, ...children) {
  const node = set(document.createElementNS(SVG, tag), attributes);
  node.append(...children);
  return node;
}

/** A name no other figure on the page uses. */
export const uniqueName = () => `live-${Math.random().toString(36).slice(2)}`;

/**
 * A group of radio buttons, all seen at once.
 * @param {string} legend @param {{value: any, label: string, colour?: string}[]} options
 * @param {(value: any) => void} choose
 * @returns {{node: HTMLElement, show: (value: any) => void}}
 */
export function choice(legend, options, choose) {
  const name = uniqueName();
  const inputs = options.map(() => html("input", { type: "radio", name }));
  const node = html(
    "fieldset",
    { class: "choice" },
    html("legend", {}, legend),
    html(
      "span",
      { class: "options" },
      ...options.map(({ value, label, colour }, i) => {
        inputs[i].addEventListener("change", () => choose(value));
        const dot = colour ? [html("i", { class: "dot", style: `background: ${colour}` })] : [];
        return html("label", {}, inputs[i], html("span", {}, ...dot, label));
      }),
    ),
  );
  const show = (value) => options.forEach((option, i) => (inputs[i].checked = option.value === value));
  return { node, show };
}

/**
 * A labelled slider with its value beside it.
 * @param {string} label @param {{min: number, max: number, step: number}} range @param {(value: number) => void} move
 * @param {((value: number) => string) | null} [say] what stands beside it, and is read out, instead of the number
 * @returns {{node: HTMLElement, show: (value: number) => void}}
 */
export function slider(label, range, move, say = null) {
  const input = html("input", { type: "range", ...range });
  const output = html("output");
  input.addEventListener("input", () => move(input.valueAsNumber));
  const show = (value) => {
    input.value = String(value);
    output.textContent = (say ?? signed)(value);
    if (say) set(input, { "aria-valuetext": say(value) });
  };
  return { node: html("label", { class: "slider" }, html("span", {}, label), input, output), show };
}

/** @param {number} x @param {number} [digits] a number with a true minus sign */
export const signed = (x, digits = 2) =>
  x
    .toFixed(digits)
    .replace(/^-(?=0(\.0*)?$)/, "")
    .replace("-", "−");

/**
 * Empty `el` and prepare it as the root of a figure. A notebook is sent what the figure shows at first, for when it is opened again.
 * @param {HTMLElement} el @param {string} name @param {any} model
 * @returns {HTMLElement}
 */
export function root(el, name, model) {
  const node = html("div", { class: `live live-${name}`, "data-figure": name });
  // JupyterLab's shortcuts would take the arrow keys away; it asks the very element that has the focus.
  node.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
  el.replaceChildren(html("style", {}, LOOK), node);
  node.says = () => node.querySelector(".says").textContent;
  node.picture = (schemes = null) => takePicture(node, { words: node.says(), schemes });
  const keep = () => node.clientWidth && model.send({ picture: node.picture(["light", "dark"]), words: node.says() });
  if (model.send) setTimeout(keep, 500);
  return node;
}

/**
 * Call `update` once for any number of changes of the model made together. Returns a function that stops it.
 * @param {any} model @param {string[]} names @param {() => void} update
 */
export function watch(model, names, update) {
  let waiting = false;
  let live = true;
  const changed = () => {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      if (live) update();
    });
  };
  for (const name of names) model.on(`change:${name}`, changed);
  return () => {
    live = false;
    for (const name of names) model.off(`change:${name}`, changed);
  };
}

/** One colour for each head or key: Paul Tol's "vibrant" set, made darker or lighter to stand out on either ground. */
export const COLOURS = ["--blue", "--orange", "--teal", "--magenta", "--gold"].map((name) => `var(${name})`);

const LOOK = `
.live {
  color-scheme: light dark;
  --ink: light-dark(#1d2330, #e7e9ee); --quiet: light-dark(#586070, #a9b0bd); --line: light-dark(#d5d9e0, #3d4452);
  --wash: light-dark(#f3f5f8, #232833); --raised: light-dark(#ffffff, #2c323f); --focus: light-dark(#0b5cad, #7cc0ff);
  --blue: light-dark(#0069a8, #62b6ee); --orange: light-dark(#c2540a, #f6a35c); --teal: light-dark(#00796b, #4cc9b5);
  --magenta: light-dark(#c0246b, #f58ab9); --gold: light-dark(#806500, #dcb94a); --slate: light-dark(#56607a, #aeb8d0);
  box-sizing: border-box; container-type: inline-size; max-width: 60rem; margin: .5rem auto; padding: 2px;
  color: var(--ink); font: 400 1rem/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
html[data-theme=dark] .live, body[data-jp-theme-light=false] .live, html[theme=dark] .live, body.vscode-dark .live { color-scheme: dark }
html[data-theme=light] .live, body[data-jp-theme-light=true] .live, body.vscode-light .live { color-scheme: light }
.live *, .live *::before { box-sizing: border-box }
.live .sr { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
.live svg { display: block; max-width: none }
.live svg text { fill: var(--quiet); font: inherit }
.live fieldset { min-width: 0; margin: 0; padding: 0; border: 0 }
.live p { margin: 0 }
.live .controls { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center }
.live .choice { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .55rem }
.live .choice legend { float: left; padding: 0; width: auto; font-size: .875rem; color: var(--quiet) }
.live .options { display: inline-flex; padding: 2px; border-radius: 8px; background: var(--wash) }
.live .options label { position: relative; display: inline-flex }
.live .options input { position: absolute; inset: 0; margin: 0; opacity: 0; cursor: pointer }
.live .options span { display: inline-flex; align-items: center; gap: .35rem; min-height: 1.75rem; padding: 0 .65rem; border-radius: 6px; font-size: .875rem; color: var(--quiet) }
.live .options :checked + span { background: var(--raised); color: var(--ink); font-weight: 600; box-shadow: 0 0 0 1px var(--line), 0 1px 2px #0002 }
.live :focus-visible, .live :focus-visible + span { outline: 2px solid var(--focus); outline-offset: 2px }
.live .dot { width: .6rem; height: .6rem; border-radius: 50% }
.live button { min-height: 1.9rem; margin: 0; padding: .15rem .7rem; border: 1px solid var(--line); border-radius: 8px; background: var(--raised); color: var(--ink); font: inherit; font-size: .875rem; cursor: pointer }
.live button:hover { border-color: var(--quiet) }
.live button:disabled { opacity: .55; cursor: default }
.live select { min-height: 1.9rem; margin: 0; padding: 0 .3rem; border: 1px solid var(--line); border-radius: 8px; background: var(--raised); color: var(--ink); font: inherit; font-size: .875rem; max-width: 100% }
.live .slider { display: grid; grid-template-columns: minmax(5.5rem, auto) minmax(4rem, 1fr) 3rem; gap: .6rem; align-items: center; font-size: .875rem; color: var(--quiet) }
.live .slider input { width: 100%; min-width: 0; margin: 0; height: 1.75rem; accent-color: var(--blue); border-radius: 6px }
.live output { color: var(--ink); font-variant-numeric: tabular-nums; text-align: right }
.live .says { margin: .9rem 0; min-height: 2.9em; max-width: 46em; font-size: 1.0625rem }
.live .hint { font-size: .8125rem; color: var(--quiet) }
.live .heading { margin: 0 0 .4rem; font-size: .875rem; font-weight: 600; color: var(--ink); letter-spacing: 0 }
.live.still { max-width: none; margin: 0; padding: .6rem .75rem }
.live.still :is(.controls, .buttons, .hint, .says, .hand, .slider, select, details) { display: none }
.live.still, .live.still * { transition: none !important }
@media (forced-colors: active) { .live :checked + span { outline: 2px solid; outline-offset: -2px } }
@media (prefers-reduced-motion: reduce) { .live * { transition: none !important } }
`;
