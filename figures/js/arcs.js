/** @file Attention from one word drawn as lines along a row (or, on a narrow screen, a column) of words. */

import { COLOURS, set, svg } from "./dom.js";

export const FAINTEST = 0.015; // weights below this are not drawn

/**
 * A line from one place on the row to another, bulging away from it.
 * @param {number} from @param {number} to along the row, px
 * @param {{reach: number, room: number, base: number, down: boolean}} frame
 *   reach: length of the row; room: how far lines may bulge; base: where they start; down: the row is a column
 * @param {number} lane which of the parallel lines of several heads
 */
export function arcPath(from, to, { reach, room, base, down }, lane) {
  const self = from === to;
  const spread = self ? 11 : 0;
  const bulge = (self ? 30 : 26 + (room * 1.28 - 26) * Math.sqrt(Math.abs(to - from) / reach)) - lane * 7;
  const point = (along, across) =>
    down
      ? `${(base + across).toFixed(1)} ${along.toFixed(1)}`
      : `${along.toFixed(1)} ${(base - across).toFixed(1)}`;
  return `M${point(from - spread / 2, 0)} C${point(from - spread, bulge)} ${point(to + spread, bulge)} ${point(to + spread / 2, 0)}`;
}

/**
 * @param {(key: number) => void} cut called with the word whose line was clicked
 * @returns {{node: SVGElement, draw: Function}}
 */
export function createArcs(cut) {
  const lines = svg("g");
  const touch = svg("g");
  const tooltip = svg("title");
  const node = svg("svg", { role: "img" }, lines, svg("g", {}, tooltip, touch));
  const made = new Map(); // "head key" -> its line, its end, and the wider area that can be clicked
  const about = new Map(); // area -> what lies there now
  let near = null;

  function pieces(head, key) {
    const name = `${head} ${key}`;
    if (!made.has(name)) {
      const colour = COLOURS[head % COLOURS.length];
      const line = svg("path", { class: "arc", stroke: colour });
      const end = svg("circle", { class: "end", fill: colour });
      const area = svg("path", { class: "area" });
      lines.append(line, end);
      touch.append(area);
      made.set(name, { line, end, area });
    }
    return made.get(name);
  }

  /** The strongest of the lines under the pointer, a cut one counting as half. */
  const pointedAt = ({ clientX, clientY }) =>
    document
      .elementsFromPoint(clientX, clientY)
      .map((element) => about.get(element))
      .filter(Boolean)
      .sort((a, b) => b.strength - a.strength)[0] ?? null;
  const point = (found) => {
    near?.line.classList.remove("near");
    found?.line.classList.add("near");
    near = found;
    set(tooltip, { text: found?.text ?? "" });
  };
  touch.addEventListener("pointermove", (event) => point(pointedAt(event)));
  touch.addEventListener("pointerleave", () => point(null));
  touch.addEventListener("click", (event) => {
    const found = pointedAt(event);
    if (found) cut(found.key);
  });

  /**
   * @param {{places: number[], query: number, heads: {head: number, row: number[], cut: boolean[]}[],
   *          frame: any, words: string[], label: string}} picture
   */
  function draw({ places, query, heads, frame, words, label }) {
    set(node, { "aria-label": label });
    const hidden = new Set(made.keys());
    heads.forEach(({ head, row, cut: cuts }, lane) => {
      row.forEach((weight, key) => {
        const { line, end, area } = pieces(head, key);
        const isCut = cuts[key];
        if (weight < FAINTEST && !isCut) return;
        hidden.delete(`${head} ${key}`);
        const at = places[key] + (lane - (heads.length - 1) / 2) * 4;
        const d = arcPath(places[query], at, frame, lane);
        const width = isCut ? 1.5 : 0.75 + 7 * weight;
        const opacity = isCut ? 0.7 : 0.22 + 0.78 * weight;
        set(line, { d, style: `stroke-width:${width.toFixed(2)};opacity:${opacity.toFixed(3)}` });
        line.classList.toggle("cut", isCut);
        const landing = key === query ? at + 5.5 : at;
        const [cx, cy] = frame.down ? [frame.base, landing] : [landing, frame.base];
        const endOpacity = isCut ? 0 : 0.3 + 0.7 * weight;
        set(end, { cx, cy, r: 1.5 + 3.5 * weight, style: `opacity:${endOpacity.toFixed(3)}` });
        set(area, { d, style: "" });
        const text = isCut
          ? `restore the line to “${words[key]}”`
          : `head ${head + 1}: “${words[query]}” looks at “${words[key]}” ${weight.toFixed(2)}; click to cut`;
        about.set(area, { key, line, text, strength: isCut ? 0.5 : weight });
      });
    });
    for (const name of hidden) {
      const { line, end, area } = made.get(name);
      line.style.opacity = end.style.opacity = "0";
      area.style.pointerEvents = "none";
    }
  }
  return { node, draw };
}
