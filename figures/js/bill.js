/** @file Live figure "where does the bill go": projections, feed-forward and scores of one layer against n and width. */

import { along, valueAt } from "./chart.js";
import { html, root, set, slider, svg, watch } from "./dom.js";
import { PARTS, bill, brief, evenAt, growth, large, percent, times } from "./layer.js";

const TRAITS = ["n", "d"];
const TOKENS = { low: 100, high: 1_000_000, log: true };
const PER_DECADE = 20; // places of the slider
const PLACES = 4 * PER_DECADE;
const WIDTHS = [128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384];
const KNOWN = {
  512: "the base Transformer",
  768: "the smallest GPT-2",
  1024: "the big Transformer",
  12288: "GPT-3",
};
const count = (number) => number.toLocaleString("en");

const placeOf = (n) => Math.round(PLACES * along(TOKENS, n));

/** The tokens at a place of the slider: two digits, or exactly 6 d where that is nearest. */
export function tokensAt(place, d) {
  if (placeOf(evenAt(d)) === place) return evenAt(d);
  return Number(valueAt(TOKENS, place / PLACES).toPrecision(2));
}

/** What the picture shows, in words. */
export function describe({ n, d }) {
  const { projections, feed_forward, scores, total } = bill(n, d);
  const even = evenAt(d);
  const when =
    n === even
      ? `This is n\u00a0=\u00a06·d: scores and sum cost as much as all the rest.`
      : `They ${n < even ? "overtake" : "overtook"} all the rest at n\u00a0=\u00a06·d\u00a0=\u00a0${count(even)}.`;
  return (
    `At ${count(n)} tokens a layer ${count(d)} wide costs ${large(total, true)} FLOPs: ` +
    `projections ${percent(projections / total)}, feed-forward ${percent(feed_forward / total)}, ` +
    `scores and sum ${percent(scores / total)}. ${when} ` +
    `Twice the tokens: ${brief(growth(n, d))} times the bill.`
  );
}

const BOX = { width: 340, height: 236, left: 46, right: 330, top: 26, bottom: 212 };
const CURVE = Array.from({ length: 81 }, (_, i) => valueAt(TOKENS, i / 80));
const ROOM = 138; // px that the words beside the cursor need

/** The shares of the bill against n, one area above another; at the cursor a bar with its parts named. */
function createShares(pick) {
  const { left, right, top, bottom } = BOX;
  const toX = (n) => left + along(TOKENS, n) * (right - left);
  const toY = (share) => bottom - share * (bottom - top);
  const areas = PARTS.map(({ name }) => svg("path", { class: `area of-${name}` }));
  const bars = PARTS.map(({ name }) => svg("rect", { class: `bar of-${name}`, width: 12 }));
  const words = PARTS.map(({ name }) => svg("text", { class: `word of-${name}` }));
  const mark = svg("line", { class: "mark", y1: top - 5, y2: bottom });
  const cross = svg("circle", { class: "cross", r: 3.5, cy: toY(0.5) });
  const note = svg("text", { class: "note", y: top - 10 });
  const ticks = svg(
    "g",
    { class: "ticks" },
    ...[0, 0.5, 1].map((share) =>
      svg("text", { x: left - 6, y: toY(share) + 4, "text-anchor": "end" }, `${100 * share} %`),
    ),
    ...[2, 3, 4, 5, 6].map((power) =>
      svg(
        "text",
        { x: toX(10 ** power), y: bottom + 17, "text-anchor": "middle" },
        power < 6 ? count(10 ** power) : "10⁶",
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
  const choose = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(node.getScreenCTM().inverse());
    pick(Math.round(PLACES * Math.min(1, Math.max(0, (at.x - left) / (right - left)))));
  };
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    choose(event);
  });
  node.addEventListener("pointermove", (event) => event.buttons && choose(event));

  /** Where each part begins and ends, as shares of the bill. */
  const bounds = (n, d) => {
    const seen = bill(n, d);
    let floor = 0;
    return PARTS.map(({ name }) => [floor, (floor += seen[name] / seen.total)]);
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
      text: `half and half at n = 6·d = ${count(evenAt(d))}`,
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
    PARTS.forEach(({ text }, i) => {
      const [from, to] = seen[i];
      set(bars[i], { x: x - 6, y: toY(to), height: toY(from) - toY(to) });
      set(words[i], {
        x: near ? Math.max(even + 6, x + 11) : x + 11 * side,
        y: heights[i],
        "text-anchor": side > 0 ? "start" : "end",
        text: `${text} ${percent(to - from)}`,
      });
    });
    set(node, { "aria-label": label });
  }
  return { node, draw };
}

/** The bill of n tokens and that of 2 n: two bars on one scale, and line by line. */
function createReceipt(says) {
  const bars = [1, 2].map(() =>
    html(
      "div",
      { class: "paid" },
      html("span"),
      html("i", { class: "track" }, ...PARTS.map(({ name }) => html("b", { class: `of-${name}` }))),
    ),
  );
  const picture = html("div", { class: "bars", role: "img" }, ...bars);
  const title = html("p", { class: "heading" });
  const cells = (kind) => [1, 2, 3].map(() => html(kind));
  const head = html("tr", {}, html("th", { scope: "col" }, "FLOPs at n ="), ...cells("th"));
  const rows = [...PARTS].reverse().map(({ name, text, formula }) =>
    html(
      "tr",
      { class: `of-${name}` },
      html("th", { scope: "row" }, html("span", {}, text), " ", html("small", {}, formula)),
      ...cells("td"),
    ),
  );
  const sum = html("tr", { class: "sum" }, html("th", { scope: "row" }, "together"), ...cells("td"));
  const table = html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows, sum));
  const node = html("section", { class: "receipt" }, title, picture, table, says);

  function draw(n, d) {
    const both = [bill(n, d), bill(2 * n, d)];
    const most = both[1].total;
    set(title, { text: `Twice the tokens: ${times(growth(n, d))}` });
    both.forEach((seen, i) => {
      const [label, track] = bars[i].children;
      set(label, { text: i ? "2·n" : "n" });
      PARTS.forEach(({ name }, part) => {
        track.children[part].style.width = `${((100 * seen[name]) / most).toFixed(3)}%`;
      });
    });
    set(picture, {
      "aria-label": `Two bars on one scale: ${large(both[0].total, true)} FLOPs for ${count(n)} tokens, ${large(most, true)} for ${count(2 * n)}.`,
    });
    const fill = (row, values) => values.forEach((text, i) => set(row.children[i + 1], { text }));
    fill(head, [count(n), count(2 * n), "times"]);
    const line = (row, name) =>
      fill(row, [...both.map((seen) => large(seen[name])), times(both[1][name] / both[0][name])]);
    [...PARTS].reverse().forEach(({ name }, i) => line(rows[i], name));
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
  const figure = root(el, "bill", model);
  const tokens = slider("tokens n", { min: 0, max: PLACES, step: 1 }, pick, () => count(model.get("n")));
  const width = slider(
    "width d",
    { min: 0, max: WIDTHS.length - 1, step: 1 },
    (i) => change("d", WIDTHS[i]),
    (i) => count(WIDTHS[i]),
  );
  const shares = createShares(pick);
  const says = html("p", { class: "says", role: "status", "aria-live": "polite" });
  const receipt = createReceipt(says);
  const whose = html("p", { class: "hint whose" });
  figure.append(
    html("style", {}, STYLE),
    html("div", { class: "controls" }, tokens.node, width.node),
    html(
      "div",
      { class: "halves" },
      html("section", {}, html("p", { class: "heading" }, "Share of the bill against n"), shares.node),
      receipt.node,
    ),
    whose,
  );

  function update() {
    const [n, d] = TRAITS.map((name) => model.get(name));
    const text = describe({ n, d });
    shares.draw(n, d, `Shares of the bill of one layer against the number of tokens. ${text}`);
    receipt.draw(n, d);
    tokens.show(placeOf(n));
    width.show(WIDTHS.indexOf(d));
    set(says, { text });
    set(whose, {
      text: `Matrix products, forward, a multiply and an add counted as two; no mask. M, G, T, P: 10⁶, 10⁹, 10¹², 10¹⁵.${KNOWN[d] ? ` Width ${count(d)}: ${KNOWN[d]}.` : ""}`,
    });
    Object.assign(figure.dataset, { n, d, total: bill(n, d).total, growth: growth(n, d).toFixed(4) });
  }

  const stop = watch(model, TRAITS, update);
  update();
  return () => {
    stop();
    el.replaceChildren();
  };
}

const STYLE = `
.live-bill .of-projections { --c: var(--teal) }
.live-bill .of-feed_forward { --c: var(--blue) }
.live-bill .of-scores { --c: var(--orange) }
.live-bill .controls { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: .4rem 2rem; margin-bottom: 1rem }
.live-bill .controls .slider { grid-template-columns: 4.2rem minmax(4rem, 1fr) 4.6rem }
.live-bill .halves { display: grid; grid-template-columns: minmax(0, 1.1fr) minmax(0, 1fr); gap: 1rem 2rem; align-items: start }
.live-bill .shares { width: 100%; max-width: 32rem; font-size: 10.5px; font-variant-numeric: tabular-nums; cursor: ew-resize; touch-action: pan-y }
.live-bill .area { fill: var(--c); fill-opacity: .16; stroke: var(--c); stroke-opacity: .5; stroke-width: .75 }
.live-bill .bar { fill: var(--c) }
.live-bill svg .word { fill: var(--c); font-weight: 600; paint-order: stroke; stroke: color-mix(in srgb, var(--c) 16%, Canvas); stroke-width: 3px; stroke-linejoin: round }
.live-bill .mark { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 2 3 }
.live-bill .cross { fill: var(--ink) }
.live-bill svg .note { fill: var(--ink) }
.live-bill .says { margin: 1rem 0 0 }
.live-bill .whose { margin-top: .75rem }
.live-bill .bars { display: grid; gap: .35rem; margin-bottom: .9rem }
.live-bill .paid { display: grid; grid-template-columns: 1.6rem minmax(0, 1fr); align-items: center; font-size: .875rem; color: var(--quiet) }
.live-bill .track { display: flex; height: 1.5rem }
.live-bill .track b { background: var(--c) }
.live-bill .track b:first-child { border-radius: 4px 0 0 4px }
.live-bill .track b:last-child { border-radius: 0 4px 4px 0 }
.live-bill table { width: 100%; margin: 0; border-collapse: collapse; border: 0; font-size: .875rem; font-variant-numeric: tabular-nums; background: none }
.live-bill :is(th, td) { padding: .3rem 0 .3rem .6rem; border: 0; text-align: right; font-weight: 400; white-space: nowrap; background: none }
.live-bill :is(th, td):first-child { padding-left: 0; text-align: left }
.live-bill thead th { color: var(--quiet); border-bottom: 1px solid var(--line) }
.live-bill tbody th span { color: var(--c); font-weight: 600 }
.live-bill small { font-size: .8125rem; color: var(--quiet) }
.live-bill .sum :is(th, td) { border-top: 1px solid var(--line); font-weight: 600 }
@container (max-width: 620px) {
  .live-bill :is(.halves, .controls) { grid-template-columns: minmax(0, 1fr) }
}
@container (max-width: 400px) { .live-bill th:first-child { white-space: normal } .live-bill .shares { font-size: 11.5px } .live-bill small { display: block } .live-bill :is(th, td) { padding-left: .35rem } .live-bill :is(table, small) { font-size: .8125rem } }
`;

export default { render };
