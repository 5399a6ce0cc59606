/* How far a reader has come, kept in this browser alone: parts whose end was on the screen for a while, questions answered. */
{
  const LINGER = 1500; // milliseconds
  const KEY = `progress ${new URL("..", document.currentScript.src).pathname}`;
  const read = () => {
    try {
      return JSON.parse(localStorage.getItem(KEY)) ?? {};
    } catch {
      return {};
    }
  };
  const write = (all) => {
    try {
      localStorage.setItem(KEY, JSON.stringify(all));
    } catch {} // a browser that keeps nothing has no progress to show
  };
  const make = (tag, props, ...inside) => {
    const element = Object.assign(document.createElement(tag), props);
    element.append(...inside);
    return element;
  };
  const next = ({ parts, done }) => Object.keys(parts).find((id) => !done.includes(id));
  const goOn = (page, { parts, done, questions, answered }) => {
    const part = next({ parts, done });
    const said = [`${done.length} of ${Object.keys(parts).length} parts read`, `${answered.length} of ${questions} questions answered`];
    const way = part ? [" · ", make("a", { href: `${page}#${part}` }, `Go on at ${parts[part]}`)] : [];
    return make("p", { className: "progress" }, said.join(", "), ...way);
  };

  const heads = [...document.querySelectorAll("article h2[id^='part-']")];
  if (heads.length) {
    const page = location.pathname.split("/").at(-1);
    const parts = Object.fromEntries(heads.map((head) => [head.id, head.firstChild.textContent.split(":")[0]]));
    const fresh = { parts, done: [], questions: 0, answered: [] };
    const here = () => ({ ...fresh, ...read()[page], parts, questions: document.querySelectorAll(".Quiz").length });
    const keep = (part) => {
      const mine = here();
      if (mine.done.includes(part)) return;
      mine.done.push(part);
      write({ ...read(), [page]: mine });
      show();
    };
    const show = () => {
      const { done } = here();
      for (const link of document.querySelectorAll(".contents a")) link.classList.toggle("read", done.includes(link.hash.slice(1)));
    };
    const timers = new Map();
    const seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        clearTimeout(timers.get(target));
        const { id } = target.parentElement.querySelector("h2");
        if (isIntersecting) timers.set(target, setTimeout(() => keep(id), LINGER));
      }
    });
    for (const head of heads) seen.observe(head.parentElement.lastElementChild);
    addEventListener("answered", () => {
      const questions = [...document.querySelectorAll(".Quiz")];
      const answered = questions.flatMap((one, i) => (one.querySelector(":is(.correct, .incorrect)") ? [i] : []));
      write({ ...read(), [page]: { ...here(), answered } });
    });
    addEventListener("load", () => {
      const mine = here();
      if (mine.done.length && next(mine)) document.querySelector(".offer.head")?.after(goOn("", mine));
      show();
    });
  }

  const list = document.querySelector(".chapter-list");
  const all = Object.entries(read());
  if (list && all.length) {
    for (const [page, mine] of all) list.querySelector(`a[href$="/${page}"]`)?.parentElement.append(goOn(`chapters/${page}`, mine));
    const erase = make("button", { className: "erase" }, "Erase what this browser keeps of my progress");
    erase.onclick = () => {
      localStorage.removeItem(KEY);
      for (const said of document.querySelectorAll(".progress, .erase")) said.remove();
    };
    list.after(erase);
  }
}
