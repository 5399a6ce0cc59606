/** @file A switch for each head of a model, shaded by what the head gives now. */

import { html, set } from "./dom.js";

const PER_ROW = 8;

/** A head in words, counted from 1: "2.3" is head 3 of layer 2. @param {number} layer @param {number} head */
export const headName = (layer, head) => `${layer + 1}.${head + 1}`;

/**
 * @param {{layers: number, heads: number, toggle: (layer: number, head: number) => void,
 *          point: (at: [number, number] | null) => void}} board  point: which head the reader looks at
 */
export function createBoard({ layers, heads, toggle, point }) {
  const columns = Math.min(heads, PER_ROW);
  const places = Array.from({ length: layers * heads }, (_, i) => [Math.floor(i / heads), i % heads]);
  const switches = places.map(([layer, head], i) => {
    const name = html("span", {}, headName(layer, head));
    const weight = html("small");
    const button = html(
      "button",
      { type: "button", class: "head", tabindex: i ? -1 : 0, onclick: () => toggle(layer, head) },
      name,
      weight,
    );
    button.addEventListener("pointerenter", () => point([layer, head]));
    button.addEventListener("focus", () => {
      for (const other of switches) other.button.tabIndex = other.button === button ? 0 : -1;
      point([layer, head]);
    });
    return { button, weight };
  });
  const node = html(
    "div",
    { class: "board", role: "group", "aria-label": "heads, each on or off", style: `--columns: ${columns}` },
    ...Array.from({ length: layers }, (_, layer) =>
      html("div", { class: "layer" }, ...switches.slice(layer * heads, (layer + 1) * heads).map((s) => s.button)),
    ),
  );
  const focused = () => switches.findIndex(({ button }) => button === document.activeElement);
  const pointAtFocus = () => point(places[focused()] ?? null);
  node.addEventListener("pointerleave", pointAtFocus);
  node.addEventListener("focusout", ({ relatedTarget }) => node.contains(relatedTarget) || point(null));
  node.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    const ends = { Home: 0, End: switches.length - 1 };
    const to = event.key in ends ? ends[event.key] : focused() + step;
    if (!switches[to] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    switches[to].button.focus();
  });

  /** @param {number[][]} weights [layer][head] @param {(layer: number, head: number) => boolean} isOff @param {string} tells */
  function draw(weights, isOff, tells) {
    places.forEach(([layer, head], i) => {
      const { button, weight } = switches[i];
      const off = isOff(layer, head);
      const number = weights[layer][head].toFixed(2);
      set(weight, { text: off ? "off" : number });
      set(button, {
        "aria-pressed": String(!off),
        "aria-label": `head ${headName(layer, head)}, ${number} at “${tells}”`,
        style: `--w: ${off ? 0 : weights[layer][head].toFixed(3)}`,
      });
    });
  }
  return { node, draw };
}
