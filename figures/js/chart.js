/** @file Curves in a frame with a linear or a logarithmic axis each way; the pointer may choose a place along them. */

import { fill, set, svg } from "./dom.js";
import { chooseIn } from "./pointer.js";

const WIDTH = 340;
const MARGIN = { left: 44, right: 66, top: 16, bottom: 20 };

/**
 * Where a value lies along an axis, 0 to 1; what lies outside is put at its end.
 * @param {{low: number, high: number, log?: boolean}} axis @param {number} value
 */
export function along({ low, high, log = false }, value) {
  const on = log ? Math.log : (x) => x;
  const share = (on(Math.max(value, log ? Number.MIN_VALUE : -Infinity)) - on(low)) / (on(high) - on(low));
  return Math.min(1, Math.max(0, share));
}

/** The value at a place along an axis, 0 to 1. */
export const valueAt = ({ low, high, log = false }, share) =>
  log ? low * (high / low) ** share : low + share * (high - low);

/**
 * @param {{x: Axis, y: Axis, height?: number, curves: string[], pick?: (x: number) => void}} options
 *   Axis: {low, high, log?, ticks: [number, string][]}; curves: a class each, drawn in this order
 * @returns {{node: SVGElement, draw: (seen: {curves: ([number, number][] | null)[], mark?: number, note?: string,
 *   dots?: {x: number, y: number, class: string}[], names?: {y: number, text: string, class?: string}[],
 *   label: string}) => void}}
 */
export function createChart({ x, y, height = 118, curves, pick = null }) {
  const right = WIDTH - MARGIN.right;
  const bottom = height - MARGIN.bottom;
  const toX = (value) => MARGIN.left + along(x, value) * (right - MARGIN.left);
  const toY = (value) => bottom - along(y, value) * (bottom - MARGIN.top);
  const paths = curves.map((name) => svg("path", { class: `curve ${name}` }));
  const mark = svg("line", { class: "mark", y1: MARGIN.top - 4, y2: bottom });
  const note = svg("text", { class: "note", y: MARGIN.top - 6 });
  const dots = svg("g");
  const names = svg("g");
  const grid = svg(
    "g",
    { class: "grid" },
    ...y.ticks.flatMap(([value, text]) => [
      svg("line", { x1: MARGIN.left, x2: right, y1: toY(value), y2: toY(value) }),
      svg("text", { x: MARGIN.left - 6, y: toY(value) + 4, "text-anchor": "end" }, text),
    ]),
    ...x.ticks.map(([value, text]) =>
      svg("text", { x: toX(value), y: height - 5, "text-anchor": "middle" }, text),
    ),
  );
  const node = svg(
    "svg",
    { class: `chart${pick ? " picked" : ""}`, role: "img", viewBox: `0 0 ${WIDTH} ${height}` },
    grid,
    mark,
    ...paths,
    dots,
    names,
    note,
  );
  if (pick) chooseIn(node, (at) => pick(valueAt(x, Math.min(1, Math.max(0, (at.x - MARGIN.left) / (right - MARGIN.left))))));

  function draw(seen) {
    paths.forEach((path, i) => {
      const points = seen.curves[i];
      const d = points?.map(([px, py]) => `${toX(px).toFixed(1)} ${toY(py).toFixed(1)}`).join("L");
      set(path, { d: d ? `M${d}` : null });
    });
    const at = seen.mark === undefined ? -100 : toX(seen.mark);
    set(mark, { x1: at, x2: at });
    const turned = at > MARGIN.left + 0.6 * (right - MARGIN.left);
    set(note, { x: at + (turned ? -5 : 5), "text-anchor": turned ? "end" : "start", text: seen.note ?? "" });
    fill(dots, "circle", seen.dots ?? [], (dot) => ({
      cx: toX(dot.x),
      cy: toY(dot.y),
      r: 4.5,
      class: `dot-at ${dot.class}`,
    }));
    const lines = [...(seen.names ?? [])].sort((a, b) => b.y - a.y);
    const heights = lines.map((name) => toY(name.y) + 4);
    // Names stand below one another, never on one another.
    for (let i = 1; i < heights.length; i++) heights[i] = Math.max(heights[i], heights[i - 1] + 12);
    heights.reduceRight((next, at, i) => (heights[i] = Math.min(at, next - 12)), bottom + 16);
    fill(names, "text", lines, (name) => ({
      x: right + 6,
      y: heights[lines.indexOf(name)],
      class: `name ${name.class ?? ""}`,
      text: name.text,
    }));
    set(node, { "aria-label": seen.label });
  }
  return { node, draw };
}

export const CHART_STYLE = `
.live .chart { width: 100%; max-width: 30rem; font-size: 11.5px; font-variant-numeric: tabular-nums }
.live .chart.picked { cursor: ew-resize }
.live .chart .grid line { stroke: var(--line); stroke-width: 1 }
.live .chart .mark { stroke: var(--ink); stroke-width: 1.25 }
.live .chart .note { fill: var(--ink); font-weight: 600 }
.live .chart .curve { fill: none; stroke: var(--c, var(--slate)); stroke-width: 1.75; stroke-linejoin: round; stroke-linecap: round }
.live .chart .behind { stroke-width: 6; opacity: .3 }
.live .chart .curve.faint { opacity: .45 }
.live .chart .dashed { stroke-dasharray: 4 4 }
.live .chart .dot-at { fill: var(--c, var(--slate)) }
.live .chart .name { fill: var(--c, var(--quiet)); font-weight: 600 }
`;
