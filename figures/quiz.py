"""Multiple-choice questions with a reply to each answer: plain text, calm colours, nothing from the network."""

import html
import json
from collections.abc import Mapping

from IPython.display import display

from .live import JS, LANGUAGE, json_for_html


def quiz(name: str, questions: Mapping[str, Mapping[str, str]]) -> None:
    """Display questions; `name` is unique in the book: under it a browser keeps the answers.

    `questions` maps each question to its answers, and each answer to the reply that it gets when it is
    checked; the right answer starts with "+ ", a wrong one with "- ". Answers are shuffled when they are
    shown. Raises ValueError unless each question has exactly one right answer and each answer a reply.
    """
    items = [_item(question, answers) for question, answers in questions.items()]
    words = json.loads((JS / LANGUAGE / "quiz.json").read_text(encoding="utf-8"))
    data = json_for_html({"name": name, "questions": items, "words": words})
    script = (JS / "quiz.js").read_text(encoding="utf-8").strip().rstrip(";")
    page = (
        f'<div class="questions"><script type="application/json">{data}</script>'
        f"<ol>{''.join(_listed(item, words['answer']) for item in items)}</ol></div>"
        f"<style>{_STYLE}</style>"
        f'<script>if (location.search !== "?print") ({script})(document.currentScript.parentElement.querySelector(".questions"));</script>'
    )
    text = "\n".join(f"{i}. {question}" for i, question in enumerate(questions, start=1))
    display({"text/html": page, "text/plain": text}, raw=True)  # type: ignore[no-untyped-call]


def _item(question: str, answers: Mapping[str, str]) -> dict[str, object]:
    marks = [answer[:2] for answer in answers]
    if not set(marks) <= {"+ ", "- "} or marks.count("+ ") != 1 or not all(answers.values()):
        raise ValueError(f"one answer '+ …', the others '- …', each with a reply: {question!r}")
    said = [
        [answer[2:], mark == "+ ", reply]
        for mark, (answer, reply) in zip(marks, answers.items(), strict=True)
    ]
    return {"question": question, "answers": said}


def _listed(item: dict[str, object], word: str) -> str:
    """A question where no script runs, its answer folded."""
    answers: list[tuple[str, bool, str]] = item["answers"]  # type: ignore[assignment]
    choices = "".join(f"<li>{html.escape(text)}</li>" for text, _, _ in answers)
    right, reply = next((text, reply) for text, is_right, reply in answers if is_right)
    return (
        f"<li>{html.escape(str(item['question']))}<ul>{choices}</ul><details><summary>{word}</summary>"
        f"<p>{html.escape(right)}. {html.escape(reply)}</p></details></li>"
    )


_STYLE = """
.questions { display: grid; gap: 1rem; max-width: 42rem; color-scheme: light dark }
body[data-jp-theme-light="false"] .questions, html[data-theme="dark"] .questions { color-scheme: dark }
body[data-jp-theme-light="true"] .questions, html[data-theme="light"] .questions { color-scheme: light }
.questions .Quiz { display: grid; gap: .4rem; min-width: 0; margin: 0; padding: .9rem 1rem 1rem; border: 0; border-radius: 10px; background: light-dark(#f3f5f8, #232833); color: light-dark(#1d2330, #e7e9ee); line-height: 1.4 }
.questions legend { float: left; width: 100%; margin: 0 0 .2rem; padding: 0; font-size: 1rem; font-weight: 600; color: inherit }
.questions .MCButton { display: flex; align-items: center; gap: .6rem; min-height: 2.75rem; padding: .3rem .8rem; border: 1px solid light-dark(#aab2bf, #5b6474); border-radius: 8px; background: light-dark(#fff, #14171d); cursor: pointer; clear: both }
.questions .MCButton input { flex: none; margin: 0 }
.questions .MCButton:focus-within { outline: 2px solid light-dark(#0b5cad, #7cc0ff); outline-offset: 1px }
.questions .correctButton { border: 2px solid light-dark(#017d6a, #22b086) }
.questions .incorrectButton { border: 2px solid light-dark(#c74306, #f9920f) }
.questions button { justify-self: start; min-height: 2.75rem; padding: .3rem 1.1rem; border: 1px solid light-dark(#aab2bf, #5b6474); border-radius: 8px; background: light-dark(#fff, #2c323f); color: inherit; font: inherit; cursor: pointer }
.questions .again { border-color: transparent; background: none; font-size: .875rem; color: light-dark(#586070, #a9b0bd) }
.questions .Feedback { margin: 0; min-height: 1.4em; font-size: 1rem }
.questions .Feedback.correct { color: light-dark(#01614f, #4cc9b5) }
.questions .Feedback.incorrect { color: light-dark(#a33604, #ffb27a) }
"""
