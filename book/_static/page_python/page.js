// Makes an editor of a cell on the page, and shows what Python says to it. Loaded when a reader first asks for it.
import { edit } from "./editor.js";
import { Kept } from "./kept.js";
import { Python } from "./python.js";

const chapter = location.pathname.split("/").pop().replace(/\.html$/, "");
const book = await (await fetch(new URL(`cells/${chapter}.json`, import.meta.url))).json();
const python = new Python({ ...book.python, folder: new URL(book.python.folder, import.meta.url).href });
const order = book.cells.map(([id]) => id);
const LONGER = 60; // seconds, if the reader wants so
const megabytes = (Object.values(book.python.files).reduce((sum, [, packed]) => sum + packed, 0) / 1e6).toFixed(1);
const editors = new Map(); // by the cell's id
let count = 0;

document.head.append(element("link", { rel: "stylesheet", href: new URL("page.css", import.meta.url).href }));

// Opens the editor of the cell that this button stands under.
export function open(button) {
  const { cell } = button.dataset;
  if (!editors.has(cell)) editors.set(cell, mount(button, cell));
  editors.get(cell).focus();
}

// Opens what was written here before.
export function restore() {
  for (const button of document.querySelectorAll("button.opens-python")) {
    const kept = new Kept(`${chapter} ${button.dataset.cell}`, textOf(button.dataset.cell));
    if (kept.read() !== null || kept.earlier().length) editors.set(button.dataset.cell, mount(button, button.dataset.cell));
  }
}

const textOf = (cell) => book.cells[order.indexOf(cell)][1];

function mount(button, cell) {
  const start = textOf(cell), kept = new Kept(`${chapter} ${cell}`, start);
  const exercise = "exercise" in button.dataset, [, above] = book.places[cell];
  const offer = button.closest(".offer"), place = offer.previousElementSibling;
  const input = place.querySelector(".cell_input"), code = input.querySelector("pre");
  const first = kept.read() ?? start;

  const hint = element("p", { className: "python-hint", id: `python-hint-${++count}` },
    "Tab indents; Esc, then Tab, leaves. Shift-Enter ", exercise ? "checks. " : "runs. ",
    `The first ${exercise ? "check" : "run"} on a page starts Python (${megabytes} MB, kept by the browser). `,
    above ? `Needs ${above === 1 ? "the cell" : `${above} cells`} above: run first. ` : "");
  const note = element("p", { className: "python-note" });
  const frame = element("div", { className: "python-editor" });
  const check = element("button", { type: "button", className: "python-main" }, exercise ? "Check" : "Run");
  const stop = element("button", { type: "button" }, "Stop");
  const again = element("button", { type: "button" }, "Start again");
  const reply = element("div", { className: "python-reply", hidden: true });
  const box = element("div", { className: "python-cell" }, frame,
    element("div", { className: "python-buttons" }, check, stop, again), hint, note, reply);

  const show = (text) => { code.textContent = text; }; // what is printed on paper
  const editor = edit(frame, {
    text: first, label: exercise ? "Your answer, Python" : "Code of the cell, Python", describedBy: hint.id,
    run: () => run(), changed(text) {
      show(text);
      if (text === start) kept.erase();
      else if (!kept.write(text)) say("This browser keeps nothing for this page: what you write is lost when you leave it.");
    },
  });
  show(first);
  frame.addEventListener("keydown", (event) => event.stopPropagation()); // "/" is no search here
  input.classList.add("python-edited");
  input.append(box);
  offer.hidden = true;
  offerEarlier();
  listen();

  let running;
  set(stop, false);
  check.onclick = run;
  stop.onclick = () => running?.stop();
  again.onclick = () => { editor.replace(start); reply.hidden = true; place.classList.remove("python-answered"); editor.focus(); };

  async function run() {
    if (running) return;
    set(check, false);
    set(stop, true);
    const says = new Reply(reply, exercise, patience);
    place.classList.toggle("python-answered", exercise);
    const earlier = book.cells.slice(0, order.indexOf(cell));
    const request = {
      id: cell, source: editor.text(), above: earlier.map(([id, source]) => [id, editors.get(id)?.text() ?? source]),
    };
    running = python.ask(request, (kind, ...said) => says.hear(kind, ...said));
    await running.done;
    says.end();
    running = undefined;
    set(check, true);
    set(stop, false);
  }

  // Longer for the whole page, from now on.
  function patience(seconds) {
    python.manifest.seconds = seconds;
    check.focus();
    run();
  }

  function say(...what) { note.replaceChildren(...what); }

  function offerEarlier() {
    const [old] = kept.earlier();
    if (!old || kept.read() !== null) return;
    const take = element("button", { type: "button" }, "Put back what you wrote");
    const drop = element("button", { type: "button" }, "Erase it");
    take.onclick = () => { editor.replace(old.text); kept.forget(old.key); say(); editor.focus(); };
    drop.onclick = () => { kept.forget(old.key); say(); editor.focus(); };
    say("This cell has changed since you wrote in it. ", take, " ", drop);
  }

  // Another tab with the same page writes too.
  function listen() {
    addEventListener("storage", (event) => {
      const text = event.newValue ?? start;
      if (event.key === kept.key && !frame.contains(document.activeElement) && text !== editor.text()) editor.replace(text);
    });
  }

  return editor;
}

// What Python says to one run, as text: nothing of it is read as HTML.
class Reply {
  constructor(box, exercise, patience) {
    Object.assign(this, { exercise, patience });
    this.progress = element("p", { className: "python-stage" });
    this.said = element("div", { className: "python-said" });
    this.said.setAttribute("role", "status");
    box.replaceChildren(this.progress, this.said);
    box.hidden = false;
    this.#stage("Waiting for another cell");
  }

  hear(kind, ...said) { this[kind]?.(...said); }

  load(bytes, total) {
    const bar = element("progress", { max: total, value: bytes });
    bar.setAttribute("aria-label", "Python is loading");
    const size = (n) => (n / 1e6).toFixed(1);
    if (bytes < total) this.#stage(`Loading Python: ${size(bytes)} of ${size(total)} MB `, bar);
    else this.#stage("Starting Python");
  }

  stage(words) { this.#stage(words); }
  above(number, of) { this.#stage(of === 1 ? "Running the cell above first" : `Running cells above first: ${number} of ${of}`); }
  running() { this.#stage(this.exercise ? "Checking" : "Running"); }

  text(text) {
    if (this.pre?.parentNode !== this.said || this.said.lastChild !== this.pre) this.said.append(this.pre = element("pre", {}));
    this.pre.append(text);
  }

  picture(svg, alt) {
    const src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    const box = element("div", { className: "scroll", tabIndex: 0 }, element("img", { src, alt }));
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Your picture");
    this.said.append(box);
  }

  error(text) { this.said.append(element("pre", { className: "python-error" }, text)); }
  stopped() { this.#words("Stopped. What you wrote is kept; the next check starts Python again."); }
  late(seconds) {
    this.#words(`No answer in ${seconds} seconds, so Python was stopped. Is there a loop without an end? What you wrote is kept; the next check starts Python again.`);
    const longer = element("button", { type: "button", onclick: () => this.patience(LONGER) }, `Run it for up to ${LONGER} seconds`);
    if (seconds < LONGER) this.said.append(longer);
  }
  broken(what, why) { this.#words(`${what}${why ? `: ${why}` : ""} Try again: what you wrote is kept.`.replace(/([^.?!]) Try/, "$1. Try")); }

  end() {
    this.progress.remove();
    const unsaid = this.exercise ? "Nothing was checked: end your answer with the line check(…), or press Start again." : "Done; it prints nothing.";
    if (!this.said.hasChildNodes()) this.#words(unsaid);
  }

  #words(words) { this.said.append(element("p", {}, words)); }
  #stage(...what) { this.progress.replaceChildren(...what); }
}

// A button keeps the focus when it cannot be used.
function set(button, usable) { button.setAttribute("aria-disabled", String(!usable)); }

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
