"""Multiple-choice questions by jupyterquiz: calm colours, a fixed id, nothing from the network."""

import re
from collections.abc import Mapping

from IPython.display import display
from jupyterquiz.dynamic.loader import load_questions_script
from jupyterquiz.dynamic.renderer import build_script, build_styles, render_div

COLOURS = {
    "--jq-multiple-choice-bg": "#eef2f6",
    "--jq-mc-button-bg": "#ffffff",
    "--jq-mc-button-border": "#9aa5b1",
    "--jq-mc-button-inset-shadow": "#cbd2d9",
    "--jq-incorrect-color": "#a8321c",
    "--jq-correct-color": "#2c6e31",
    "--jq-text-color": "#1f2933",
    "--jq-link-color": "#2f6690",
}
# jupyterquiz looks for MathJax and may fetch one; the questions are plain text and need none.
_FETCH = re.compile(r"\(function \(\) \{\s*var script = .*?\}\)\(\);", re.DOTALL)


def quiz(name: str, questions: Mapping[str, Mapping[str, str]]) -> None:
    """Display questions; `name` is unique in its notebook (letters and digits).

    `questions` maps each question to its answers, and each answer to the reply that a click on it
    gets; the right answer starts with "+ ", a wrong one with "- ". The order stays as written.
    Raises ValueError unless each question has exactly one right answer and each answer a reply.
    """
    items = [_item(question, answers) for question, answers in questions.items()]
    prefix, static, url = load_questions_script(items, name)
    box = render_div(name, False, False, False, len(items), 680, 8, "left")
    script = _FETCH.sub("", build_script(prefix, static, url, name, True))
    script = script.replace("MathJax", "NoMathJax").replace("console.log(", "void (")
    script += _AFTER.replace("NAME", name)
    page = f"{box}</div>{build_styles(name, COLOURS)}<style>{_STYLE.replace('NAME', name)}</style>"
    text = "\n".join(f"{i}. {question}" for i, question in enumerate(questions, start=1))
    display({"text/html": page, "text/plain": text}, raw=True)  # type: ignore[no-untyped-call]
    display(  # type: ignore[no-untyped-call]
        {"application/javascript": script, "text/plain": f"(the questions of {name})"}, raw=True
    )


def _item(question: str, answers: Mapping[str, str]) -> dict[str, object]:
    marks = [answer[:2] for answer in answers]
    if not set(marks) <= {"+ ", "- "} or marks.count("+ ") != 1 or not all(answers.values()):
        raise ValueError(f"one answer '+ …', the others '- …', each with a reply: {question!r}")
    return {
        "question": question,
        "type": "multiple_choice",
        "answers": [
            {"answer": answer[2:], "correct": mark == "+ ", "feedback": reply}
            for mark, (answer, reply) in zip(marks, answers.items(), strict=True)
        ],
    }


# JupyterLab takes keys from whatever does not say, itself, that it wants them.
_AFTER = """
document.querySelectorAll("#NAME input").forEach((input) => {
  input.dataset.lmSuppressShortcuts = "true";
});
document.querySelectorAll("#NAME .Feedback").forEach((reply) => {
  reply.setAttribute("aria-live", "polite");
});
"""
_STYLE = """
#NAME .Quiz, #NAME .Feedback { font-size: 1rem; line-height: 1.4; }
#NAME .MCButton { font-size: 0.95rem; color: var(--jq-text-color); box-shadow: none; }
#NAME .MCButton.correctButton, #NAME .MCButton.incorrectButton { color: #fff; }
#NAME .MCButton:focus-within { outline: 3px solid #5b9bd5; }
body[data-jp-theme-light="false"] #NAME, html[data-theme="dark"] #NAME {
  --jq-multiple-choice-bg: #2a323c; --jq-mc-button-bg: #1c232b; --jq-mc-button-border: #52606d;
  --jq-text-color: #e4e7eb;
}
body[data-jp-theme-light="false"] #NAME .Feedback.correct, html[data-theme="dark"] #NAME .Feedback.correct { color: #8fd694; }
body[data-jp-theme-light="false"] #NAME .Feedback.incorrect, html[data-theme="dark"] #NAME .Feedback.incorrect { color: #ff9b85; }
"""
