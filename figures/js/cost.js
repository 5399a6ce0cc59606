/** @file Live figure "where does the cost go": projections, feed-forward and scores of one layer against n and width. */

import { along, valueAt } from "./chart.js";
import { createSays, html, set, slider, spread, svg, watch } from "./dom.js";
import { costWords } from "./en/cost.js";
import { counted } from "./en/common.js";
import { addTools, root } from "./figure.js";
import { PARTS, evenAt, growthOf, layerCost } from "./layer_cost.js";
import { chooseIn } from "./pointer.js";

const TRAITS = ["n", "d"];
const TOKENS = { low: 100, high: 1_000_000, log: true };
const PER_DECADE = 20; // places of the slider
const PLACES = 4 * PER_DECADE;
const WIDTHS = [128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384];
const placeOf = (n) => Math.round(PLACES * along(TOKENS, n));

/** The tokens at a place of the slider: two digits, or exactly 6 d where that is nearest. */
export function tokensAt(place, d) {
  if (placeOf(evenAt(d)) === place) return evenAt(d);
  return Number(valueAt(TOKENS, place / PLACES).toPrecision(2));
}

const BOX = { width: 340, height: 236, left: 46, right: 330, top: 26, bottom: 212 };
const CURVE = spread(81, (i) => valueAt(TOKENS, i / 80));
const ROOM = 138; // px that the words beside the cursor need

/** The shares of the cost against n, one area above another; at the cursor a bar with its parts named. */
function createShares(pick) {
  const { left, right, top, bottom } = BOX;
  const toX = (n) => left + along(TOKENS, n) * (right - left);
  const toY = (share) => bottom - share * (bottom - top);
  const areas = PARTS.map((name) => svg("path", { class: `area of-${name}` }));
  const bars = PARTS.map((name) => svg("rect", { class: `bar of-${name}`, width: 12 }));
  const words = PARTS.map((name) => svg("text", { class: `word of-${name}` }));
  const mark = svg("line", { class: "mark", y1: top - 5, y2: bottom });
  const cross = svg("circle", { class: "cross", r: 3.5, cy: toY(0.5) });
  const note = svg("text", { class: "note", y: top - 10 });
  const ticks = svg(
    "g",
    { class: "ticks" },
    ...[0, 0.5, 1].map((share) =>
      svg("text", { x: left - 6, y: toY(share) + 4, "text-anchor": "end" }, costWords.percent(share)),
    ),
    ...[2, 3, 4, 5, 6].map((power) =>
      svg(
        "text",
        { x: toX(10 ** power), y: bottom + 17, "text-anchor": "middle" },
        power < 6 ? counted(10 ** power) : costWords.million,
      ),
    ),
  );
  const node = svg(
    "svg",
    { class: "shares", role: "img", viewBox: `0 0 ${BOX.width} ${BOX.height}` },
    ...areas,
    ticks,
    mark,
    cross,
    ...bars,
    ...words,
    note,
  );
  chooseIn(node, (at) => pick(Math.round(PLACES * Math.min(1, Math.max(0, (at.x - left) / (right - left))))));

  /** Where each part begins and ends, as shares of the cost. */
  const bounds = (n, d) => {
    const seen = layerCost(n, d);
    let floor = 0;
    return PARTS.map((name) => [floor, (floor += seen[name] / seen.total)]);
  };

  function draw(n, d, label) {
    const all = CURVE.map((at) => bounds(at, d));
    const point = (i, share) => `${toX(CURVE[i]).toFixed(1)} ${toY(share).toFixed(1)}`;
    areas.forEach((area, part) => {
      const upper = all.map((bound, i) => point(i, bound[part][1]));
      const lower = all.map((bound, i) => point(i, bound[part][0])).reverse();
      set(area, { d: `M${[...upper, ...lower].join("L")}Z` });
    });
    const x = toX(n);
    const even = toX(evenAt(d));
    set(mark, { x1: even, x2: even });
    set(cross, { cx: even });
    const late = even > 220;
    set(note, {
      x: late ? even + 6 : even - 6,
      "text-anchor": late ? "end" : "start",
      text: costWords.even(evenAt(d)),
    });
    const away = even < x ? 1 : -1; // the words stand on the side without the mark, if there is room
    const fits = away > 0 ? x + ROOM < right : x - ROOM > left;
    const side = fits ? away : x < (left + right) / 2 ? 1 : -1;
    const near = side > 0 && even > x && even < x + 45; // then they begin behind the mark
    const seen = bounds(n, d);
    const heights = seen.map(([from, to]) => toY((from + to) / 2) + 4);
    heights[0] = Math.min(heights[0], bottom - 4);
    for (const i of [1, 2]) heights[i] = Math.min(heights[i], heights[i - 1] - 14);
    heights[2] = Math.max(heights[2], top + 11);
    for (const i of [1, 0]) heights[i] = Math.max(heights[i], heights[i + 1] + 14);
    PARTS.forEach((name, i) => {
      const [from, to] = seen[i];
      set(bars[i], { x: x - 6, y: toY(to), height: toY(from) - toY(to) });
      set(words[i], {
        x: near ? Math.max(even + 6, x + 11) : x + 11 * side,
        y: heights[i],
        "text-anchor": side > 0 ? "start" : "end",
        text: `${costWords.parts[name]} ${costWords.share(to - from)}`,
      });
    });
    set(node, { "aria-label": label });
  }
  return { node, draw };
}

/** The cost of n tokens and that of 2 n: two bars on one scale, and line by line. */
function createReceipt() {
  const bars = [1, 2].map(() =>
    html(
      "div",
      { class: "paid" },
      html("span"),
      html("i", { class: "track" }, ...PARTS.map((name) => html("b", { class: `of-${name}` }))),
    ),
  );
  const picture = html("div", { class: "bars", role: "img" }, ...bars);
  const title = html("p", { class: "heading" });
  const cells = (kind) => [1, 2, 3].map(() => html(kind));
  const head = html("tr", {}, html("th", { scope: "col" }, costWords.columns.at), ...cells("th"));
  const rows = [...PARTS].reverse().map((name) =>
    html(
      "tr",
      { class: `of-${name}` },
      html("th", { scope: "row" }, html("span", {}, costWords.parts[name]), " ", html("small", {}, costWords.formulas[name])),
      ...cells("td"),
    ),
  );
  const sum = html("tr", { class: "sum" }, html("th", { scope: "row" }, costWords.together), ...cells("td"));
  const table = html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows, sum));
  const node = html("section", { class: "receipt" }, title, picture, table);

  function draw(n, d) {
    const both = [layerCost(n, d), layerCost(2 * n, d)];
    const most = both[1].total;
    set(title, { text: costWords.doubled(growthOf(n, d)) });
    both.forEach((seen, i) => {
      const [label, track] = bars[i].children;
      set(label, { text: i ? costWords.twice : costWords.once });
      PARTS.forEach((name, part) => {
        track.children[part].style.width = `${((100 * seen[name]) / most).toFixed(3)}%`;
      });
    });
    set(picture, {
      "aria-label": costWords.barsLabel(n, both[0].total, most),
    });
    const fill = (row, values) => values.forEach((text, i) => set(row.children[i + 1], { text }));
    fill(head, [counted(n), counted(2 * n), costWords.columns.times]);
    const line = (row, name) =>
      fill(row, [...both.map((seen) => costWords.large(seen[name])), costWords.times(both[1][name] / both[0][name])]);
    [...PARTS].reverse().forEach((name, i) => line(rows[i], name));
    line(sum, "total");
  }
  return { node, draw };
}

function render({ model, el }) {
  const change = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const pick = (place) => change("n", tokensAt(place, model.get("d")));
  const figure = root(el, "cost", model);
  const tokens = slider(costWords.tokens, { min: 0, max: PLACES, step: 1 }, pick, () => counted(model.get("n")));
  const width = slider(
    costWords.width,
    { min: 0, max: WIDTHS.length - 1, step: 1 },
    (i) => change("d", WIDTHS[i]),
    (i) => counted(WIDTHS[i]),
  );
  const shares = createShares(pick);
  const says = createSays();
  const receipt = createReceipt();
  const whose = html("p", { class: "hint whose" });
  figure.append(
    html("style", {}, STYLE),
    html(
      "div",
      { class: "stage" },
      html("div", { class: "controls" }, tokens.node, width.node),
      html("section", { class: "chosen" }, html("p", { class: "heading" }, costWords.chart), shares.node),
      says.node,
      receipt.node,
    ),
    whose,
  );

  function update() {
    const [n, d] = TRAITS.map((name) => model.get(name));
    const [cost, even, growth] = [layerCost(n, d), evenAt(d), growthOf(n, d)];
    const text = costWords.describe({ n, d, cost, even, growth });
    shares.draw(n, d, costWords.chartLabel(text));
    receipt.draw(n, d);
    tokens.show(placeOf(n));
    width.show(WIDTHS.indexOf(d));
    says.show(text);
    set(whose, { text: costWords.hint(d) });
    Object.assign(figure.dataset, { n, d, total: cost.total, growth: growth.toFixed(4) });
  }

  const legal = ({ n, d }) => Number.isInteger(n) && n >= TOKENS.low && n <= TOKENS.high && WIDTHS.includes(d);
  const untool = addTools(figure, model, TRAITS, legal);
  const stop = watch(model, TRAITS, update);
  update();
  return () => {
    stop();
    untool();
    el.replaceChildren();
  };
}

const STYLE = `
.live-cost .of-projections { --c: var(--teal) }
.live-cost .of-feed_forward { --c: var(--blue) }
.live-cost .of-scores { --c: var(--orange) }
.live-cost .stage { display: grid; grid-template-columns: minmax(0, 1.1fr) minmax(0, 1fr); gap: .5rem 2rem; align-items: start }
.live-cost .stage > .controls { grid-column: 1 / -1; display: grid; grid-template-columns: subgrid }
.live-cost .chosen { grid-row: span 2 }
.live-cost .controls .slider { grid-template-columns: 4.2rem minmax(3rem, 1fr) 4.6rem }
.live-cost .shares { width: 100%; max-width: 32rem; font-size: 10.5px; font-variant-numeric: tabular-nums; cursor: ew-resize }
.live-cost .area { fill: var(--c); fill-opacity: .16; stroke: var(--c); stroke-opacity: .5; stroke-width: .75 }
.live-cost .bar { fill: var(--c) }
.live-cost svg .word { fill: var(--c); font-weight: 600; paint-order: stroke; stroke: color-mix(in srgb, var(--c) 16%, Canvas); stroke-width: 3px; stroke-linejoin: round }
.live-cost .mark { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 2 3 }
.live-cost .cross { fill: var(--ink) }
.live-cost svg .note { fill: var(--ink) }
.live-cost .bars { display: grid; gap: .35rem; margin-bottom: .9rem }
.live-cost .paid { display: grid; grid-template-columns: 1.6rem minmax(0, 1fr); align-items: center; font-size: .875rem; color: var(--quiet) }
.live-cost .track { display: flex; height: 1.5rem }
.live-cost .track b { background: var(--c) }
.live-cost .track b:first-child { border-radius: 4px 0 0 4px }
.live-cost .track b:last-child { border-radius: 0 4px 4px 0 }
.live-cost table { width: 100%; margin: 0; border-collapse: collapse; border: 0; font-size: .875rem; font-variant-numeric: tabular-nums; background: none }
.live-cost :is(th, td) { padding: .3rem 0 .3rem .6rem; border: 0; text-align: right; font-weight: 400; white-space: nowrap; background: none }
.live-cost :is(th, td):first-child { padding-left: 0; text-align: left }
.live-cost thead th { color: var(--quiet); border-bottom: 1px solid var(--line) }
.live-cost tbody th span { color: var(--c); font-weight: 600 }
.live-cost small { font-size: .8125rem; color: var(--quiet) }
.live-cost .sum :is(th, td) { border-top: 1px solid var(--line); font-weight: 600 }
@container (max-width: 50em) { .live-cost .stage, .live-cost .stage > .controls { grid-template-columns: minmax(0, 1fr) } .live-cost .stage > .controls { gap: 0 } .live-cost .chosen { grid-row: auto } .live-cost .shares { max-width: 34rem } }
@container (max-width: 24em) {
  .live-cost :is(table, thead, tbody, tr, th, td) { display: block; white-space: normal }
  .live-cost tr { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .6rem; padding: .3rem 0; border-bottom: 1px solid var(--line) }
  .live-cost tr > :is(th, td) { padding: 0; border: 0 }
  .live-cost tr > :first-child { flex: 1 0 100% }
}
`;

export default { render };
