/* For a lecture, a chapter's page with ?slides: one part a screen, larger, solutions and replies held back until asked for. */
if (new URLSearchParams(location.search).has("slides")) {
  const root = document.documentElement;
  const chapter = document.querySelector("article > section");
  const parts = [...chapter.children].filter((part) => part.matches("section"));
  const slides = [[...chapter.children].filter((part) => !parts.includes(part)), ...parts.map((part) => [part])];
  const bar = Object.assign(document.createElement("nav"), { className: "slides-bar", ariaLabel: "Slides" });
  const button = (words, name, act) => {
    const made = Object.assign(document.createElement("button"), { textContent: words, ariaLabel: name, onclick: act });
    bar.append(made);
    return made;
  };
  let at = Math.max(0, slides.findIndex((slide) => slide.some((part) => location.hash && part.querySelector(location.hash))));
  const go = (to) => {
    at = Math.max(0, Math.min(slides.length - 1, to));
    slides.forEach((slide, i) => slide.forEach((part) => part.classList.toggle("away", i !== at)));
    count.textContent = `${at + 1} of ${slides.length}`;
    scrollTo(0, 0);
  };
  const reveal = () => root.classList.toggle("revealed");
  const leave = () => location.replace(location.pathname + (at ? `#${slides[at][0].querySelector("h2").id}` : ""));
  button("‹", "Part before", () => go(at - 1));
  const count = Object.assign(document.createElement("span"), { role: "status" });
  bar.append(count);
  button("›", "Next part", () => go(at + 1));
  button("Answers", "Show or hide answers", reveal);
  button("×", "Leave the slides", leave);
  document.body.append(bar);
  root.classList.add("slides");
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.target.closest("input, select, textarea, [contenteditable], [role=slider], .live")) return;
    const act = { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(slides.length - 1), a: reveal, Escape: leave }[event.key];
    if (act) (event.preventDefault(), act());
  });
  go(at);
}
