/** @file A switch for each head of a model, and on it where the head looks now: several heads' looks at once. */

import { fill, html, set, svg } from "./dom.js";
import { headsWords } from "./en/heads.js";

const PER_ROW = 8;
const HIGH = 18; // px of a look

/** A head in words, counted from 1: "2.3" is head 3 of layer 2. @param {number} layer @param {number} head */
export const headName = (layer, head) => `${layer + 1}.${head + 1}`;

/**
 * @param {{layers: number, heads: number, toggle: (layer: number, head: number) => void,
 *          point: (at: [number, number] | null) => void}} board  point: which head the reader looks at
 */
export function createSwitches({ layers, heads, toggle, point }) {
  const columns = Math.min(heads, PER_ROW);
  const places = Array.from({ length: layers * heads }, (_, i) => [Math.floor(i / heads), i % heads]);
  const switches = places.map(([layer, head], i) => {
    const weight = html("small");
    const look = svg("svg", { class: "look-of", preserveAspectRatio: "none", "aria-hidden": "true" });
    const button = html(
      "button",
      { type: "button", class: "head", tabindex: i ? -1 : 0, onclick: () => toggle(layer, head) },
      html("span", {}, headName(layer, head)),
      look,
      weight,
    );
    button.addEventListener("pointerenter", () => point([layer, head]));
    button.addEventListener("focus", () => {
      for (const other of switches) other.button.tabIndex = other.button === button ? 0 : -1;
      point([layer, head]);
    });
    return { button, weight, look };
  });
  const node = html(
    "div",
    { class: "board", role: "group", "aria-label": headsWords.board, style: `--columns: ${columns}` },
    ...Array.from({ length: layers }, (_, layer) =>
      html("div", { class: "layer" }, ...switches.slice(layer * heads, (layer + 1) * heads).map((s) => s.button)),
    ),
  );
  const focused = () => switches.findIndex(({ button }) => button === document.activeElement);
  const pointAtFocus = () => point(places[focused()] ?? null);
  node.addEventListener("pointerleave", pointAtFocus);
  node.addEventListener("focusout", ({ relatedTarget }) => node.contains(relatedTarget) || point(null));
  node.addEventListener("keydown", (event) => {
    const first = switches[0].button.offsetTop; // so many stand in a row now
    const wide = switches.slice(0, heads).filter(({ button }) => button.offsetTop === first).length;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide }[event.key];
    const ends = { Home: 0, End: switches.length - 1 };
    const to = event.key in ends ? ends[event.key] : focused() + step;
    if (!switches[to] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    switches[to].button.focus();
  });

  /**
   * @param {number[][][]} rows [layer][head][word], each where a head looks @param {number} told the word that tells
   * @param {(layer: number, head: number) => boolean} isOff @param {string} tells the same word
   */
  function draw(rows, told, isOff, tells) {
    places.forEach(([layer, head], i) => {
      const { button, weight, look } = switches[i];
      const row = rows[layer][head];
      const off = isOff(layer, head);
      const number = row[told].toFixed(2);
      set(look, { viewBox: `0 0 ${row.length} ${HIGH}` });
      fill(look, "rect", row, (w, s) => ({
        x: s + 0.12,
        width: 0.76,
        y: (HIGH * (1 - w) - 0.6).toFixed(1),
        height: (HIGH * w + 0.6).toFixed(1),
        class: s === told ? "told" : null,
      }));
      set(weight, { text: off ? headsWords.off : number });
      set(button, {
        "aria-pressed": String(!off),
        "aria-label": headsWords.head(headName(layer, head), number, tells),
        style: `--w: ${off ? 0 : row[told].toFixed(3)}`,
      });
    });
  }
  return { node, draw };
}
