/** @file Live figure "switch heads off": the questions of a sentence, what each head looks at, and what fails without it. */

import { button, choice, createSays, html, number, rove, set, uniqueName, watch } from "./dom.js";
import { headsWords } from "./en/heads.js";
import { loadEncoder } from "./encoder.js";
import { addTools, root } from "./figure.js";
import { createSwitches, headName } from "./head_switches.js";
import { readLexicon, swaps, tag } from "./relations.js";

const TRAITS = ["sentence", "words", "asked", "off"];
const FAINTEST_SHADE = 0.1; // words that are given less are not shaded

/** The head that is on and gives the most weight; null if none is on. */
export function strongestHead(weights, isOff) {
  let best = null;
  weights.forEach((row, layer) =>
    row.forEach((weight, head) => {
      if (!isOff(layer, head) && !(best && weights[best[0]][best[1]] >= weight)) best = [layer, head];
    }),
  );
  return best;
}

function render({ model, el }) {
  const encoder = loadEncoder(model.get("weights"));
  const lexicon = readLexicon(model.get("lexicon"));
  const sentences = model.get("sentences");
  const get = (name) => model.get(name);
  const change = (changes) => {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  };
  const isOff = (layer, head) => get("off").some(([l, h]) => l === layer && h === head);
  const toggle = (layer, head) => {
    const rest = get("off").filter(([l, h]) => l !== layer || h !== head);
    change({ off: isOff(layer, head) ? rest : [...rest, [layer, head]] });
  };

  const figure = root(el, "heads", model);
  figure.append(html("style", {}, STYLE));
  const picker = choice(
    headsWords.sentence,
    sentences.map((_, i) => ({ value: i, label: String(i + 1) })),
    (sentence) => {
      const asks = (words) => tag(words, lexicon);
      const before = asks(get("words")).find(({ asked }) => asked === get("asked"));
      const after = asks(sentences[sentence]);
      const same = after.find(({ relation }) => relation === before?.relation);
      const other = after.find(({ relation }) => relation !== "article");
      change({ sentence, words: sentences[sentence], asked: (same ?? other ?? after[0]).asked });
    },
  );
  const line = html("fieldset", { class: "line" });
  const look = html("p", { class: "hint look" });
  const says = createSays();
  const title = html("p", { class: "heading" });
  let pointed = null;
  const point = (at) => {
    pointed = at;
    if (last) drawLook();
  };
  const board = createSwitches({ layers: encoder.layers, heads: encoder.heads, toggle, point });
  const on = button(headsWords.allOn, () => change({ off: [] }), { class: "hand" });
  const bars = createBars();
  figure.append(
    html(
      "div",
      { class: "stage" },
      ...(sentences.length > 1 ? [html("div", { class: "controls" }, picker.node)] : []),
      line,
      title,
      board.node,
      look,
      says.node,
    ),
    html(
      "div",
      { class: "halves" },
      bars.node,
      html("div", { class: "foot" }, html("p", { class: "hint" }, headsWords.hint), on),
    ),
  );
  const swapping = rove(line, headsWords.swaps, () => [...line.querySelectorAll("select")]);
  line.removeAttribute("role");
  line.removeAttribute("aria-label");

  let cells = [];
  let made = ""; // the shape of the sentence that `cells` were made for
  let last = null;

  /** Cells anew for another sentence; for a swapped word the same ones, which keep the focus. */
  function drawWords(words, questions, run) {
    const choices = swaps(words, lexicon);
    const shape = `${get("sentence")} ${choices.map((c) => (c ? "s" : "w")).join("")} ${questions.map((q) => q.asked)}`;
    if (shape !== made) {
      made = shape;
      const name = uniqueName();
      cells = words.map((_, i) => {
        const asking = questions.some(({ asked }) => asked === i);
        if (asking) return askingCell(name, room(words[i], lexicon), () => change({ asked: i }));
        return choices[i] ? swapCell((word) => change({ words: get("words").map((old, j) => (j === i ? word : old)) })) : plainCell();
      });
      line.replaceChildren(
        html("legend", { class: "sr" }, headsWords.words),
        ...cells.map(({ node }) => node),
      );
      swapping.refresh();
    }
    cells.forEach((cell, i) => {
      const question = questions.find(({ asked }) => asked === i);
      const given = question && encoder.ranking(run, i)[0].word;
      cell.draw({
        word: words[i],
        groups: choices[i],
        given,
        wrong: question && given !== question.answer,
        chosen: question === last.question,
      });
      cell.node.classList.toggle("tells", i === last.question.tells);
    });
  }

  /** Where one head looks: the one that is pointed at, or that which looks most at the word that tells. */
  function drawLook() {
    const { words, question, run, best } = last;
    const at = pointed ?? best;
    const row = at && run.weights[at[0]][at[1]][question.asked];
    cells.forEach(({ node, weight }, i) => {
      const seen = row && row[i] >= FAINTEST_SHADE;
      node.style.setProperty("--w", seen ? row[i].toFixed(3) : "0");
      set(weight, { text: seen ? row[i].toFixed(2) : "" });
    });
    figure.dataset.shown = at ? headName(...at) : "";
    const seen = { words, question, row, pointed: pointed !== null, faintest: FAINTEST_SHADE };
    const text = at && headsWords.describeLook({ ...seen, name: headName(...at), off: isOff(...at) });
    set(look, { text: text ?? headsWords.noneOn });
  }

  function update() {
    const words = get("words");
    const off = get("off");
    const run = encoder.run(words, off.map(([layer, head]) => ({ off: { layer, head } })));
    const questions = tag(words, lexicon);
    const question = questions.find(({ asked }) => asked === get("asked")) ?? questions[0];
    const rows = run.weights.map((layer) => layer.map((head) => head[question.asked]));
    const weights = rows.map((layer) => layer.map((row) => row[question.tells]));
    const best = strongestHead(weights, isOff);
    const ranking = encoder.ranking(run, question.asked);
    const wrong = questions.filter(({ asked, answer }) => encoder.ranking(run, asked)[0].word !== answer).length;
    last = { words, question, run, best };

    picker.show(get("sentence"));
    drawWords(words, questions, run);
    drawLook();
    const names = off.map((head) => headName(...head));
    says.show(headsWords.describe({ words, question, answer: ranking[0], off: names, wrong, asked: questions.length }));
    set(title, { text: headsWords.title(words[question.asked], words[question.tells]) });
    board.draw(rows, question.tells, isOff, words[question.tells]);
    bars.draw(words[question.asked], ranking, question.answer);
    Object.assign(figure.dataset, {
      asked: words[question.asked],
      answer: ranking[0].word,
      wrong,
      off: names.join(" "),
    });
  }

  const known = new Set(encoder.words);
  const whole = (x, most) => Number.isInteger(x) && x >= 0 && x < most;
  const legal = ({ sentence, words, asked, off }) =>
    whole(sentence, sentences.length) &&
    words.length === sentences[sentence].length &&
    words.every((word) => known.has(word)) &&
    tag(words, lexicon).some((question) => question.asked === asked) &&
    off.every((at) => Array.isArray(at) && at.length === 2 && whole(at[0], encoder.layers) && whole(at[1], encoder.heads));
  const untool = addTools(figure, model, TRAITS, legal);
  const stop = watch(model, TRAITS, update);
  update();
  return () => {
    stop();
    untool();
    el.replaceChildren();
  };
}

/** Letters of the longest answer that a word may get and be understood. */
const room = (word, { senses }) => Math.max(...(senses[word] ?? ["masculine"]).map((answer) => answer.length));

/** A word that asks: a radio button with its answer below, for which there is room, right or wrong. */
function askingCell(name, letters, choose) {
  const input = html("input", { type: "radio", name, onchange: choose });
  const [weight, text, answer] = [html("small"), html("span"), html("small", { class: "answer" })];
  const node = html("label", { class: "cell asking", style: `--letters: ${letters}` }, weight, input, text, answer);
  const draw = ({ word, given, wrong, chosen }) => {
    set(text, { text: word });
    set(answer, { text: wrong ? headsWords.wrong(given) : given, class: `answer${wrong ? " wrong" : ""}` });
    set(input, { "aria-label": headsWords.asking(word, given, wrong) });
    input.checked = chosen;
  };
  return { node, weight, draw };
}

/** A word with others that may stand in its place. */
function swapCell(swap) {
  const select = html("select", { onchange: ({ target }) => swap(target.value) });
  const [weight, text] = [html("small"), html("span")];
  const node = html("span", { class: "cell swap" }, weight, text, select, html("small"));
  let offered = "";
  const draw = ({ word, groups }) => {
    const wanted = JSON.stringify(groups);
    if (wanted !== offered) {
      offered = wanted;
      const option = (value) => html("option", { value }, value);
      select.replaceChildren(
        ...groups.map(({ label, words }) => html("optgroup", { label }, ...words.map(option))),
      );
    }
    if (select.value !== word) select.value = word; // setting it would forget the letters typed so far
    set(select, { "aria-label": headsWords.swap(word) });
    set(text, { text: word });
  };
  return { node, weight, draw };
}

function plainCell() {
  const [weight, text] = [html("small"), html("span")];
  const node = html("span", { class: "cell" }, weight, text, html("small"));
  return { node, weight, draw: ({ word }) => set(text, { text: word }) };
}

/** Bars of the three most probable answers; the right one is always among them. */
function createBars() {
  const title = html("p", { class: "heading" });
  const rows = Array.from({ length: 3 }, () => {
    const [name, bar, value] = [html("span"), html("b"), number()];
    return { name, bar, value, node: html("div", { class: "bar" }, name, html("i", {}, bar), value) };
  });
  const node = html("section", {}, title, html("div", { class: "bars" }, ...rows.map((row) => row.node)));
  function draw(asked, ranking, right) {
    set(title, { text: headsWords.answers(asked) });
    const first = ranking.slice(0, 3);
    if (!first.some(({ word }) => word === right)) first[2] = ranking.find(({ word }) => word === right);
    rows.forEach(({ name, bar, value, node: row }, i) => {
      const { word, p } = first[i];
      set(name, { text: word === right ? headsWords.right(word) : i ? word : headsWords.wrong(word) });
      set(value, { text: p.toFixed(2) });
      set(row, { class: i ? "bar" : "bar best" });
      bar.style.width = `${(100 * p).toFixed(2)}%`;
    });
  }
  return { node, draw };
}

const STYLE = `
.live-heads { --shade: var(--blue) }
.live-heads .line { margin-top: .6rem; text-wrap: balance }
.live-heads .cell { position: relative; display: inline-grid; vertical-align: top; margin-bottom: .4rem; justify-items: center; align-content: start; grid-template-rows: 1rem auto 1.15rem }
.live-heads .cell small { min-height: 1rem; font-size: .75rem; line-height: 1rem; color: var(--quiet); font-variant-numeric: tabular-nums }
.live-heads .cell span { padding: .1rem .4rem; border-radius: 7px; white-space: nowrap; background: color-mix(in srgb, var(--shade) calc(var(--w, 0) * 42%), transparent); transition: background-color .25s }
.live-heads .asking { cursor: pointer; min-width: calc((var(--letters) + 3) * .43rem) }
.live-heads .asking input { position: absolute; inset: 0; margin: 0; opacity: 0; cursor: pointer }
.live-heads .asking span { font-weight: 600; box-shadow: 0 0 0 1px var(--line) }
.live-heads .asking:hover span { box-shadow: 0 0 0 1px var(--quiet) }
.live-heads .asking :checked + span { box-shadow: 0 0 0 2px var(--ink) }
.live-heads .cell .answer { margin-top: .15rem; font-size: .8125rem; white-space: nowrap }
.live-heads .cell .answer.wrong { color: light-dark(#b3261e, #ffb4a9); font-weight: 600 }
.live-heads .tells span { text-decoration: underline 2px; text-underline-offset: .25em }
.live-heads .swap span::after { content: " ▾"; display: inline-block; color: var(--quiet); font-size: .75rem; margin-left: .2rem; text-decoration: none }
.live-heads .swap:hover span { box-shadow: 0 0 0 1px var(--line) }
.live-heads .swap:focus-within span { outline: 2px solid var(--focus); outline-offset: 1px }
.live-heads .swap select { position: absolute; inset: 0; width: 100%; min-height: 0; height: 100%; opacity: 0; cursor: pointer }
.live-heads .look { margin-top: .4rem; min-height: 1.45em }
.live-heads .stage { display: grid; grid-template-columns: minmax(0, 1fr) }
.live-heads .board { display: grid; gap: .6rem }
.live-heads .layer { display: grid; grid-template-columns: repeat(var(--columns), minmax(0, 6rem)); gap: .25rem }
.live-heads .head { display: grid; grid-template-columns: 1fr 1fr; align-content: center; gap: .1rem; min-width: 0; min-height: 2.75rem; padding: .1rem .3rem; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums; background: color-mix(in srgb, var(--shade) calc(var(--w) * 22%), var(--raised)); transition: background-color .25s }
.live-heads .head > span { text-align: left; font-size: .8125rem }
.live-heads .head small { font-size: .75rem; font-weight: 400; text-align: right }
.live-heads .look-of { order: 3; grid-column: 1 / -1; width: 100%; height: 1.5rem }
.live-heads .look-of rect { fill: var(--slate); fill-opacity: .75 }
.live-heads .look-of .told { fill: var(--shade); fill-opacity: 1 }
.live-heads .head[aria-pressed=false] .look-of { opacity: .45 }
.live-heads .head[aria-pressed=false] { border-style: dashed; border-color: var(--quiet); background: none; color: var(--quiet) }
.live-heads .head[aria-pressed=false] span { text-decoration: line-through }
.live-heads .foot button { flex: none }
.live-heads .foot { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 1rem }
.live-heads .bars { display: grid; gap: .2rem }
.live-heads .bar { display: grid; grid-template-columns: minmax(0, 8.2rem) minmax(1rem, 1fr) auto; gap: .6rem; align-items: center; font-size: .9375rem }
.live-heads .bar i { height: .85rem; border-radius: 3px; background: var(--wash); overflow: hidden }
.live-heads .bar b { display: block; height: 100%; background: var(--slate); transition: width .25s }
.live-heads .best { font-weight: 600 }
.live-heads .best b { background: var(--ink) }
@container (max-width: 34em) {
  .live-heads .layer { grid-template-columns: repeat(4, minmax(0, 1fr)) }
  .live-heads .look { min-height: 2.9em }
  .live-heads .line { font-size: .875rem }
  .live-heads .cell { margin-bottom: .1rem }
  .live-heads .cell span { padding: .1rem .25rem }
  .live-heads .head { grid-template-columns: minmax(0, 1fr); padding: .1rem }
  .live-heads .head > span, .live-heads .head small { text-align: center }
  .live-heads .head small { display: none }
}
`;

export default { render };
