/** @file Building blocks that the live figures share: elements, controls, the sentence under a figure. */

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

/** As many children of `group` as there are things, each a `tag` with its attributes. */
export function fill(group, tag, things, attributes) {
  while (group.childElementCount > things.length) group.lastChild.remove();
  things.forEach((thing, i) => set(group.children[i] ?? group.appendChild(svg(tag)), attributes(thing, i)));
}

/** A name no other figure on the page uses. */
export const uniqueName = () => `live-${Math.random().toString(36).slice(2)}`;

export const spread = (length, make) => Array.from({ length }, (_, i) => make(i));

/** @param {string} text @param {() => void} press @param {Record<string, any>} [attributes] */
export const button = (text, press, attributes = {}) =>
  html("button", { type: "button", onclick: press, ...attributes }, text);

/** A number that changes: unlike an <output> it is not read out at each change. */
export const number = () => html("span", { class: "number" });

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
 * @returns {{node: HTMLElement, input: HTMLInputElement, show: (value: number) => void}}
 */
export function slider(label, range, move, say = null) {
  const input = html("input", { type: "range", ...range });
  const value = number();
  input.addEventListener("input", () => move(input.valueAsNumber));
  const show = (now) => {
    input.value = String(now);
    set(value, { text: (say ?? signed)(now) });
    if (say) set(input, { "aria-valuetext": say(now) });
  };
  return { node: html("label", { class: "slider" }, html("span", {}, label), input, value), input, show };
}

/** @param {number} x @param {number} [digits] a number with a true minus sign */
export const signed = (x, digits = 2) =>
  x
    .toFixed(digits)
    .replace(/^-(?=0(\.0*)?$)/, "")
    .replace("-", "−");

const REST = 700; // ms without a change, after which the sentence is read out

/**
 * The sentence under a figure: seen at once, read out when the hand has rested.
 * @returns {{node: HTMLElement, show: (text: string) => void}}
 */
export function createSays() {
  const seen = html("p", { class: "says" });
  const heard = html("p", { class: "sr", role: "status" });
  let waiting = 0;
  const show = (text) => {
    const first = !seen.textContent;
    if (seen.textContent === text) return;
    set(seen, { text });
    if (first) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => set(heard, { text }), REST);
  };
  return { node: html("div", { class: "sentence" }, seen, heard), show };
}

/**
 * One stop for the Tab key for many controls; the arrow keys, Home and End move among them.
 * @param {HTMLElement} group @param {string} name what the group is for
 * @param {() => HTMLElement[]} controls those that are there now
 */
export function rove(group, name, controls) {
  set(group, { role: "group", "aria-label": name });
  const usable = () => controls().filter((control) => !control.disabled);
  const stop = (chosen) => {
    for (const control of controls()) control.tabIndex = control === chosen ? 0 : -1;
  };
  group.addEventListener("focusin", ({ target }) => controls().includes(target) && stop(target));
  group.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const all = usable();
    const at = all.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || !all[to]) return;
    event.preventDefault();
    all[to].focus();
  });
  /** To be called when the controls were made anew. */
  const refresh = () => stop(usable().find((control) => control.tabIndex === 0) ?? usable()[0]);
  return { refresh };
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
