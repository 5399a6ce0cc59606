/* The questions of a quiz under the hand: shuffled when they are shown, checked when that is asked, kept in the browser.
   A function of the element that holds them as JSON, {name, questions: [{question, answers: [[text, right, reply]]}], words},
   before a list for where no script runs. It knows no id, so it may be shown twice. */
(box) => {
  const { name, questions, words } = JSON.parse(box.querySelector('[type="application/json"]').textContent);
  const make = (tag, attributes = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), attributes);
    node.append(...children);
    return node;
  };
  const shuffled = (list) => {
    const rest = [...list];
    return list.map(() => rest.splice(Math.floor(Math.random() * rest.length), 1)[0]);
  };
  // Where a browser keeps nothing, answers last as long as the page.
  const stored = (question) => `quiz ${name} ${question}`;
  const kept = (question) => {
    try {
      return localStorage.getItem(stored(question));
    } catch {
      return null;
    }
  };
  const keep = (question, answer) => {
    try {
      if (answer === null) localStorage.removeItem(stored(question));
      else localStorage.setItem(stored(question), answer);
    } catch {
      // not kept
    }
  };
  const tell = () =>
    box.dispatchEvent(new CustomEvent("answered", { bubbles: true, detail: { name, right: box.querySelectorAll(".Quiz.right").length, of: questions.length } }));

  function show({ question, answers }) {
    const group = `quiz-${Math.random().toString(36).slice(2)}`;
    const reply = make("p", { className: "Feedback" });
    reply.setAttribute("role", "status");
    const choices = shuffled(answers).map(([text, right, said]) => {
      const input = make("input", { type: "radio", name: group });
      input.dataset.lmSuppressShortcuts = "true"; // JupyterLab asks the very element that has the focus
      input.addEventListener("change", () => mark(null));
      return { text, right, said, input, node: make("label", { className: "MCButton" }, input, make("span", {}, text)) };
    });
    const node = make(
      "fieldset",
      { className: "Quiz" },
      make("legend", {}, question),
      ...choices.map((choice) => choice.node),
      make("button", { type: "button", textContent: words.check, onclick: () => check(true) }),
      reply,
    );
    const mark = (chosen) => {
      for (const { node: label, right } of choices) {
        label.classList.toggle("correctButton", label === chosen?.node && right);
        label.classList.toggle("incorrectButton", label === chosen?.node && !right);
      }
      node.classList.toggle("right", Boolean(chosen?.right));
      reply.className = `Feedback ${chosen ? (chosen.right ? "correct" : "incorrect") : ""}`;
      reply.textContent = chosen ? `${chosen.right ? words.right : words.wrong} ${chosen.said}` : "";
    };
    const check = (now) => {
      const chosen = choices.find(({ input }) => input.checked);
      if (!chosen) return void (reply.textContent = words.choose);
      mark(chosen);
      if (now) keep(question, chosen.text);
      if (now) tell();
    };
    const before = choices.find(({ text }) => text === kept(question));
    if (before) {
      before.input.checked = true;
      check(false);
    }
    const forget = () => {
      keep(question, null);
      for (const { input } of choices) input.checked = false;
      mark(null);
    };
    return { node, forget };
  }

  const shown = questions.map(show);
  const again = make("button", { type: "button", className: "again", textContent: words.again });
  again.addEventListener("click", () => {
    for (const { forget } of shown) forget();
    tell();
  });
  box.replaceChildren(...shown.map(({ node }) => node), again);
  tell();
}
