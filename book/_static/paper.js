/* On the sheet that printing.py makes of one chapter or of all: solutions and answers go to the back, links stay on paper. */
addEventListener("load", () => {
  const make = (tag, props, ...inside) => {
    const element = Object.assign(document.createElement(tag), props);
    element.append(...inside);
    return element;
  };
  const back = document.querySelector("#back");
  const words = (heading) => [...(heading?.cloneNode(true).childNodes ?? [])].filter((node) => node.className !== "headerlink");
  const see = (node, id, said) => node.before(make("p", { className: "see" }, make("a", { href: `#${id}` }, said)));

  const solved = make("section", {}, make("h1", {}, "Solutions"));
  const answered = make("section", {}, make("h1", {}, "Answers to the questions"));
  let solutions = 0;
  for (const chapter of document.querySelectorAll("article:not(#back)")) {
    const headings = [...chapter.querySelectorAll("h3")];
    const found = [...chapter.querySelectorAll(".tag_solution")];
    if (found.length) solved.append(make("h2", {}, ...words(chapter.querySelector("h1"))));
    for (const solution of found) {
      const above = headings.findLast((heading) => heading.compareDocumentPosition(solution) & Node.DOCUMENT_POSITION_FOLLOWING);
      const id = `solution-${++solutions}`;
      see(solution, id, "The solution is at the back.");
      const fold = solution.querySelector("details");
      fold?.replaceWith(...[...fold.childNodes].filter((node) => node.tagName !== "SUMMARY"));
      solved.append(make("h3", { id }, ...words(above)), solution);
    }
    const questions = [...chapter.querySelectorAll(".questions > ol > li")];
    if (!questions.length) continue;
    const id = `answers-${answered.children.length}`;
    see(chapter.querySelector(".questions"), id, "The answers are at the back.");
    const list = make("ol", {});
    for (const question of questions) {
      const fold = question.querySelector("details");
      list.append(make("li", {}, ...fold.querySelector("p").childNodes));
      fold.remove();
    }
    answered.append(make("h2", { id }, ...words(chapter.querySelector("h1"))), list);
  }
  for (const part of [solved, answered]) if (part.children.length > 1) back.append(part);
  for (const link of document.querySelectorAll("a[href]")) {
    const target = link.getAttribute("href");
    const here = target.startsWith("#") && document.getElementById(decodeURIComponent(target.slice(1)));
    if (!here && !/^(https?|mailto):/.test(target)) link.removeAttribute("href");
  }
});
