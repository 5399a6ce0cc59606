/** @file Attention from one word drawn as lines along a row (or, on a narrow screen, a column) of words. */

import { set, svg } from "./dom.js";
import { sentenceWords } from "./en/sentence.js";
import { COLOURS } from "./look.js";

const FAINTEST = 0.015; // weights below this are not drawn
const MOVE = 450; // ms

/**
 * A line from one place on the row to another, bulging away from it.
 * @param {number} from @param {number} to along the row, px
 * @param {{reach: number, room: number, base: number, down: boolean}} frame
 *   reach: length of the row; room: how far lines may bulge; base: where they start; down: the row is a column
 * @param {number} lane which of the parallel lines of several heads
 */
export function arcPath(from, to, { reach, room, base, down }, lane) {
  const apart = Math.abs(to - from);
  const near = Math.max(0, 1 - apart / 22); // 1: the word looks at itself
  const spread = 11 * near;
  const bulge = 26 + 4 * near + (1 - near) * (room * 1.28 - 26) * Math.sqrt(apart / reach) - lane * 7;
  const point = (along, across) =>
    down
      ? `${(base + across).toFixed(1)} ${along.toFixed(1)}`
      : `${along.toFixed(1)} ${(base - across).toFixed(1)}`;
  return `M${point(from - spread / 2, 0)} C${point(from - spread, bulge)} ${point(to + spread, bulge)} ${point(to + spread / 2, 0)}`;
}

/**
 * @param {(key: number) => void} cut called with the word whose line was clicked
 * @returns {{node: SVGElement, draw: Function, stop: () => void}}
 */
export function createArcs(cut) {
  const lines = svg("g");
  const touch = svg("g");
  const tooltip = svg("title");
  const node = svg("svg", { class: "drawn", role: "img" }, lines, svg("g", {}, tooltip, touch));
  const made = new Map(); // "head rank" -> its line, its end, the wider area that can be clicked, and where it is now
  const about = new Map(); // area -> what lies there now
  let near = null;
  let moving = 0; // the frame that is asked for

  function pieces(head, rank) {
    const name = `${head} ${rank}`;
    if (!made.has(name)) {
      const colour = COLOURS[head % COLOURS.length];
      const line = svg("path", { class: "arc", stroke: colour });
      const end = svg("circle", { class: "end", fill: colour });
      const area = svg("path", { class: "area" });
      lines.append(line, end);
      touch.append(area);
      made.set(name, { line, end, area, now: null });
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

  /** Put a line where it is to be: {from, to, weight, cut}. */
  function place({ line, end, area }, { from, to, weight, isCut, lane, frame }) {
    const d = arcPath(from, to, frame, lane);
    const opacity = isCut ? 0.7 : weight < FAINTEST ? 0 : 0.22 + 0.78 * weight;
    set(line, { d, style: `stroke-width:${(isCut ? 1.5 : 0.75 + 7 * weight).toFixed(2)};opacity:${opacity.toFixed(3)}` });
    const landing = Math.abs(to - from) < 1 ? to + 5.5 : to;
    const [cx, cy] = frame.down ? [frame.base, landing] : [landing, frame.base];
    const endOpacity = isCut || weight < FAINTEST ? 0 : 0.3 + 0.7 * weight;
    set(end, { cx, cy, r: 1.5 + 3.5 * weight, style: `opacity:${endOpacity.toFixed(3)}` });
    set(area, { d });
  }

  /** Move all lines from where they are to where they are to be. */
  function move(wanted, atOnce) {
    cancelAnimationFrame(moving);
    const begun = performance.now();
    const starts = new Map([...wanted.keys()].map((piece) => [piece, piece.now]));
    const frame = (time) => {
      const share = atOnce ? 1 : Math.min(1, Math.max(0, (time - begun) / MOVE));
      const eased = share * share * (3 - 2 * share);
      for (const [piece, goal] of wanted) {
        const start = starts.get(piece) ?? goal;
        const between = (name) => start[name] + (goal[name] - start[name]) * eased;
        piece.now = { ...goal, from: between("from"), to: between("to"), weight: between("weight") };
        place(piece, piece.now);
      }
      if (share < 1) moving = requestAnimationFrame(frame);
    };
    frame(begun);
  }

  let drawn = ""; // the query, the direction and the heads of what is drawn
  /**
   * The strongest line of a head stays one line: it moves from word to word.
   * @param {{places: number[], query: number, heads: {head: number, row: number[], cut: boolean[]}[],
   *          frame: any, words: string[], label: string}} picture
   */
  function draw({ places, query, heads, frame, words, label }) {
    set(node, { "aria-label": label });
    const wanted = new Map();
    heads.forEach(({ head, row, cut: cuts }, lane) => {
      const strength = (key) => (cuts[key] ? -1 : row[key]);
      const ranked = row.map((_, key) => key).sort((a, b) => strength(b) - strength(a));
      ranked.forEach((key, rank) => {
        const piece = pieces(head, rank);
        const isCut = cuts[key];
        const to = places[key] + (lane - (heads.length - 1) / 2) * 4;
        wanted.set(piece, { from: places[query], to, weight: isCut ? 0 : row[key], isCut, lane, frame });
        const seen = isCut || row[key] >= FAINTEST;
        piece.line.classList.toggle("cut", isCut);
        piece.area.style.pointerEvents = seen ? "" : "none";
        const text = isCut
          ? sentenceWords.restore(words[key])
          : sentenceWords.line({ head, from: words[query], to: words[key], weight: row[key].toFixed(2) });
        about.set(piece.area, { key, line: piece.line, text, strength: isCut ? 0.5 : row[key] });
      });
    });
    for (const piece of made.values()) {
      if (wanted.has(piece)) continue;
      piece.line.style.opacity = piece.end.style.opacity = "0";
      piece.area.style.pointerEvents = "none";
      piece.now = null;
    }
    const shape = JSON.stringify([query, frame.down, heads.map(({ head }) => head)]);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    move(wanted, shape !== drawn || still);
    drawn = shape;
  }
  return { node, draw, stop: () => cancelAnimationFrame(moving) };
}
