/** @file Live figure "switch heads off": the questions of a sentence, what each head looks at, and what fails without it. */

import { choice, html, root, set, uniqueName, watch } from "./dom.js";
import { loadEncoder } from "./encoder.js";
import { createBoard, headName } from "./headboard.js";
import { readLexicon, swaps, tag } from "./relations.js";

const FAINTEST_SHADE = 0.1; // words that are given less are not shaded

const ASKS = {
  article: (words, { tells }) => `the gender that “${words[tells]}” has in French`,
  agreement: (words, { tells }) => `the number of “${words[tells]}”`,
  coreference: (words, { tells }) => `the noun it stands for, “${words[tells]}”`,
  sense: (words, { tells }) => `its meaning, which “${words[tells]}” tells`,
};

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

/** The question on show, its answer, and how all answers fare. */
export function describe({ words, question, answer, off, wrong, asked }) {
  const given = `the model answers ${answer.word} (${answer.p.toFixed(2)})`;
  const names = off.map((head) => headName(...head));
  const without = names.length > 3 ? `${names.length} heads` : names.join(", ").replace(/, (?=[^,]*$)/, " and ");
  return [
    `“${words[question.asked]}” asks for ${ASKS[question.relation](words, question)}.`,
    `${without ? `With ${without} off` : "With all heads on"} ${given}${answer.word === question.answer ? "." : `; right is ${question.answer}.`}`,
    wrong ? `${wrong} of ${asked} answers ${wrong > 1 ? "are" : "is"} wrong.` : `All ${asked} answers are right.`,
  ].join(" ");
}

/**
 * Where a head looks, which is pointed at or else is the one that looks most at the word that tells.
 * @param {{words: string[], question: any, at: [number, number], row: number[], off: boolean, pointed: boolean}} look
 */
export function describeLook({ words, question: { asked, tells }, at, row, off, pointed }) {
  const quote = (i) => `“${words[i]}”`;
  const name = `head ${headName(...at)}`;
  if (!pointed) {
    const weight = row[tells].toFixed(2);
    return row[tells] < FAINTEST_SHADE
      ? `No head that is on gives ${quote(tells)} more than ${weight}.`
      : `Shaded: where ${name} looks from ${quote(asked)}. It gives ${quote(tells)} the most weight, ${weight}.`;
  }
  const most = Math.max(...row);
  const where =
    most < FAINTEST_SHADE
      ? `From ${quote(asked)} ${name} looks at nothing in particular.`
      : `Shaded: where ${name} looks from ${quote(asked)}, most at ${quote(row.indexOf(most))} (${most.toFixed(2)}).`;
  return off ? `${where} It is off: it looks, and adds nothing.` : where;
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
    "sentence",
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
  const says = html("p", { class: "says", role: "status", "aria-live": "polite" });
  const title = html("p", { class: "heading" });
  let pointed = null;
  const point = (at) => {
    pointed = at;
    if (last) drawLook();
  };
  const board = createBoard({ layers: encoder.layers, heads: encoder.heads, toggle, point });
  const on = html("button", { type: "button", class: "hand", onclick: () => change({ off: [] }) }, "all on");
  const bars = createBars();
  figure.append(
    ...(sentences.length > 1 ? [html("div", { class: "controls" }, picker.node)] : []),
    line,
    look,
    says,
    html(
      "div",
      { class: "below" },
      html(
        "section",
        {},
        title,
        board.node,
        html("div", { class: "foot" }, html("p", { class: "hint" }, "Named layer.head. Press one to switch it off."), on),
      ),
      bars.node,
    ),
  );

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
        html("legend", { class: "sr" }, "The word whose question is shown"),
        ...cells.map(({ node }) => node),
      );
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
    const text = at && describeLook({ words, question, at, row, off: isOff(...at), pointed: pointed !== null });
    set(look, { text: text ?? "No head is on." });
  }

  function update() {
    const words = get("words");
    const off = get("off");
    const run = encoder.run(words, off.map(([layer, head]) => ({ off: { layer, head } })));
    const questions = tag(words, lexicon);
    const question = questions.find(({ asked }) => asked === get("asked")) ?? questions[0];
    const weights = run.weights.map((layer) => layer.map((head) => head[question.asked][question.tells]));
    const best = strongestHead(weights, isOff);
    const ranking = encoder.ranking(run, question.asked);
    const wrong = questions.filter(({ asked, answer }) => encoder.ranking(run, asked)[0].word !== answer).length;
    last = { words, question, run, best };

    picker.show(get("sentence"));
    drawWords(words, questions, run);
    drawLook();
    set(says, { text: describe({ words, question, answer: ranking[0], off, wrong, asked: questions.length }) });
    set(title, { text: `Weight of each head from “${words[question.asked]}” to “${words[question.tells]}”` });
    board.draw(weights, isOff, words[question.tells]);
    bars.draw(words[question.asked], ranking, question.answer);
    Object.assign(figure.dataset, {
      asked: words[question.asked],
      answer: ranking[0].word,
      wrong,
      off: off.map((head) => headName(...head)).join(" "),
    });
  }

  const stop = watch(model, ["sentence", "words", "asked", "off"], update);
  update();
  return () => {
    stop();
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
    set(answer, { text: wrong ? `✗ ${given}` : given, class: `answer${wrong ? " wrong" : ""}` });
    set(input, { "aria-label": `${word}: ${given}${wrong ? ", wrong" : ""}` });
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
    set(select, { "aria-label": `swap “${word}”` });
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
    const [name, bar, number] = [html("span"), html("b"), html("output")];
    return { name, bar, number, node: html("div", { class: "bar" }, name, html("i", {}, bar), number) };
  });
  const node = html("section", {}, title, html("div", { class: "bars" }, ...rows.map((row) => row.node)));
  function draw(asked, ranking, right) {
    set(title, { text: `Answers to “${asked}”` });
    const first = ranking.slice(0, 3);
    if (!first.some(({ word }) => word === right)) first[2] = ranking.find(({ word }) => word === right);
    rows.forEach(({ name, bar, number, node: row }, i) => {
      const { word, p } = first[i];
      set(name, { text: word === right ? `✓ ${word}` : i ? word : `✗ ${word}` });
      set(number, { text: p.toFixed(2) });
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
.live-heads .swap select { position: absolute; inset: 1rem 0 1.15rem; width: 100%; min-height: 0; height: auto; opacity: 0; cursor: pointer }
.live-heads .look { margin-top: .3rem; min-height: 1.45em }
.live-heads .below { display: grid; grid-template-columns: minmax(0, 25.5rem) minmax(0, 1fr); gap: 1rem 2.5rem; align-items: start }
.live-heads .board { display: grid; gap: .6rem }
.live-heads .layer { display: grid; grid-template-columns: repeat(var(--columns), minmax(0, 3rem)); gap: .25rem }
.live-heads .head { display: grid; justify-items: center; align-content: center; min-height: 2.75rem; padding: 0; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums; background: color-mix(in srgb, var(--shade) calc(var(--w) * 42%), var(--raised)); transition: background-color .25s }
.live-heads .head small { font-size: .75rem; font-weight: 400 }
.live-heads .head[aria-pressed=false] { border-style: dashed; border-color: var(--quiet); background: none; color: var(--quiet) }
.live-heads .head[aria-pressed=false] span { text-decoration: line-through }
.live-heads .foot button { flex: none }
.live-heads .foot { display: flex; align-items: center; justify-content: space-between; gap: 1rem; max-width: 25.5rem; margin-top: .5rem }
.live-heads .bars { display: grid; gap: .2rem }
.live-heads .bar { display: grid; grid-template-columns: 8.2rem minmax(2rem, 1fr) 2.6rem; gap: .6rem; align-items: center; font-size: .9375rem }
.live-heads .bar i { height: .85rem; border-radius: 3px; background: var(--wash); overflow: hidden }
.live-heads .bar b { display: block; height: 100%; background: var(--slate); transition: width .25s }
.live-heads .best { font-weight: 600 }
.live-heads .best b { background: var(--ink) }
@container (max-width: 700px) { .live-heads .look { margin-top: .3rem; min-height: 1.45em }
.live-heads .below { grid-template-columns: minmax(0, 1fr) } }
@container (max-width: 480px) { .live-heads .look { min-height: 2.9em } .live-heads .says { min-height: 5.8em } .live-heads .head { font-size: .8125rem } }
`;

export default { render };
