"""Live figure "switch heads off": what a sentence asks, what each head looks at, what fails without it."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
import traitlets

from attention_lib.models.corpus import ADJECTIVES, NOUNS, PLURAL, split_words
from attention_lib.models.encoder import Encoder, HeadOff, Run
from attention_lib.models.relations.data import (
    FEMININE,
    NATURE,
    SENSES,
    WORK,
    Question,
    TaggedSentence,
    tag_sentence,
)
from attention_lib.models.relations.measure import Head, check_heads_off
from attention_lib.shapes import Array, describe

from .live import COLOURS, LiveFigure, bundle, escape, load_weights
from .rest import text

# In none of them was anything seen together in training that can be held out.
SENTENCES = (
    "after that snow the animals near the clock did not cross the street beside this bank",
    "after that snow the animal did not cross the street beside this bank because it was too tired",
    "the boats with the frog did not reach the river near this crane during that traffic",
    "the clock did not bother the mouse behind this trunk after that snow because it was too angry",
)
PER_ROW = 8  # heads
FAINTEST = 0.1  # weights below this are not shaded
_TILE, _STEP, _LETTER = 42, 46, 8.2


def lexicon() -> dict[str, Any]:
    """What the page must know of the words to find the questions and their answers."""
    nouns = {
        kind: {
            gender: {
                noun: PLURAL[noun]
                for noun in members
                if (noun in FEMININE) == (gender == "feminine")
            }
            for gender in ("masculine", "feminine")
        }
        for kind, members in NOUNS.items()
    }
    return {
        "nouns": nouns,
        "adjectives": {kind: list(words) for kind, words in ADJECTIVES.items()},
        "topics": {"nature": list(NATURE), "work": list(WORK)},
        "senses": {noun: list(pair) for noun, pair in SENSES.items()},
    }


class ExploreHeads(LiveFigure):
    """A sentence that asks several questions, its answers, and a switch for each head.

    sentences: one or several of the grammar in `attention_lib.models.relations.data`; the first is shown.
    weights: shipped weights by name, or a .safetensors file by path. asked: position of the word whose
    question is shown; unless given, the first that is not an article. off: heads that are off,
    (layer, head) from 0.

    Raises ValueError for a sentence that asks nothing or that the encoder cannot read, for a word
    that does not ask, and for a head that is not there; TypeError for what is no head or no name.
    """

    name: ClassVar[str] = "heads"
    _esm = bundle("heads")

    sentences = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    sentence = traitlets.Int(0).tag(sync=True)
    words = traitlets.List(traitlets.Unicode()).tag(sync=True)
    asked = traitlets.Int().tag(sync=True)
    off = traitlets.List(traitlets.List(traitlets.Int())).tag(sync=True)
    lexicon = traitlets.Dict().tag(sync=True)
    weights = traitlets.Bytes().tag(sync=True)

    def __init__(
        self,
        sentences: str | Sequence[str] = SENTENCES,
        *,
        weights: str = "heads-0",
        asked: int | None = None,
        off: Iterable[Head] = (),
    ) -> None:
        texts = (sentences,) if isinstance(sentences, str) else tuple(sentences)
        if not isinstance(weights, str):
            raise TypeError(f"weights must be a name or a path: found {describe(weights)}")
        encoder = Encoder.load(weights)
        heads = check_heads_off(encoder, off)
        tagged = [_tag(sentence) for sentence in texts]
        if not tagged:
            raise ValueError("sentences must hold at least one sentence: found none")
        for each in tagged:
            encoder(each.words, [HeadOff(*head) for head in heads])
        asking = [question.asked for question in tagged[0].questions]
        if asked is not None and asked not in asking:
            raise ValueError(f"asked must be one of {', '.join(map(str, asking))}: found {asked}")
        self._weights_name = weights
        self._encoder = encoder
        super().__init__(
            sentences=[list(each.words) for each in tagged],
            words=list(tagged[0].words),
            asked=_first(tagged[0].questions).asked if asked is None else asked,
            off=[list(head) for head in heads],
            lexicon=lexicon(),
            weights=load_weights(weights),
        )

    @traitlets.validate("words")
    def _known_words(self, proposal: dict[str, Any]) -> list[str]:
        words: list[str] = proposal["value"]
        self._encoder.encode(words)
        _tag(words)
        return words

    @traitlets.validate("off")
    def _known_heads(self, proposal: dict[str, Any]) -> list[list[int]]:
        return [list(head) for head in check_heads_off(self._encoder, proposal["value"])]

    def run(self) -> Run:
        """What the library computes for the sentence on show, with the heads that are off."""
        return self._encoder(self.words, [HeadOff(*head) for head in self.off])

    def state(self) -> dict[str, Any]:
        """The traits; the weights by name."""
        names = ("sentences", "sentence", "words", "asked", "off", "lexicon")
        return {name: getattr(self, name) for name in names} | {"weights": self._weights_name}

    def summary(self) -> str:
        """All answers, and which head looks from the word on show to the word that tells."""
        run, questions = self.run(), tag_sentence(self.words).questions
        shown = self._shown(questions)
        weights = _looks(run, shown)
        layer, head = np.unravel_index(int(weights.argmax()), weights.shape)
        answers = ", ".join(
            f"“{self.words[question.asked]}” {run.answer(question.asked)}"
            + ("" if run.answer(question.asked) == question.answer else " (wrong)")
            for question in questions
        )
        names = ", ".join(_name(*one) for one in self.off)
        return (
            f"“{' '.join(self.words)}”. The answers, {f'with {names} off' if names else 'with all heads on'}: "
            f"{answers}. From “{self.words[shown.asked]}” to “{self.words[shown.tells]}” head "
            f"{_name(layer, head)} gives the most weight, {weights[layer, head]:.2f}."
        )

    def resting_svg(self) -> str:
        """The words with their answers, the heads as tiles, and the first three answers as bars."""
        run, questions = self.run(), tag_sentence(self.words).questions
        shown = self._shown(questions)
        weights = _looks(run, shown)
        layer, head = np.unravel_index(int(weights.argmax()), weights.shape)
        words, below, top = self._words(
            run, questions, shown, run.weights[layer][head, shown.asked]
        )
        title = (
            f"Weight of each head from “{self.words[shown.asked]}” to “{self.words[shown.tells]}”"
        )
        tiles, bottom = self._tiles(weights, top + 34)
        return self.svg(
            bottom + 10,
            "What is answered, and by which heads",
            words,
            f'<g font-size="12">{below}{tiles}</g>',
            text(16, top + 20, title, "start", 'font-weight="600"'),
            self._bars(run, shown, top + 34),
        )

    def _shown(self, questions: Sequence[Question]) -> Question:
        """The question of the word on show."""
        return next((q for q in questions if q.asked == self.asked), questions[0])

    def _words(
        self, run: Run, questions: Sequence[Question], shown: Question, row: Array
    ) -> tuple[str, str, int]:
        """The words in lines, shaded by `row`, the answers below them, and where they end."""
        answers = {question.asked: question.answer for question in questions}
        x, y = 16.0, 40
        words, below = [], []
        for i, word in enumerate(self.words):
            answer = run.answer(i) if i in answers else ""
            wrong = answer != answers.get(i, "")
            width = max(len(word) * _LETTER, (len(answer) + 2 * wrong) * 6.5) + 12
            if x + width > self.width - 16:
                x, y = 16.0, y + 58
            middle, half = round(x + width / 2), round(len(word) * _LETTER / 2 + 6)
            if i == shown.asked or row[i] >= FAINTEST:
                ring = ' stroke="currentColor" stroke-width="2"' if i == shown.asked else ""
                words.append(
                    f'<rect x="{middle - half}" y="{y - 17}" width="{2 * half}" height="24" '
                    f'rx="6" {_shade(row[i])}{ring}/>'
                )
            bold = ' font-weight="600"' if i in answers else ""
            words.append(f'<text x="{middle}" y="{y}"{bold}>{escape(word)}</text>')
            if answer:
                bold = ' font-weight="700"' if wrong else ""
                words_below = f"✗ {answer}" if wrong else answer
                below.append(f'<text x="{middle}" y="{y + 22}"{bold}>{escape(words_below)}</text>')
            x += width + 3
        return "".join(words), "".join(below), y + 34

    def _tiles(self, weights: Array, top: int) -> tuple[str, int]:
        """One tile for each head, shaded by its weight, dashed if it is off, and where they end."""
        off = {tuple(head) for head in self.off}
        whole: list[str] = []
        dashed: list[str] = []
        parts = []
        for layer, heads in enumerate(weights):
            for head, weight in enumerate(heads):
                x, y = 16 + head % PER_ROW * _STEP, top + head // PER_ROW * _STEP
                gone = (layer, head) in off
                (dashed if gone else whole).append(f"M{x} {y}h{_TILE}v{_TILE}h-{_TILE}z")
                if weight >= FAINTEST and not gone:
                    square = f'x="{x}" y="{y}" width="{_TILE}" height="{_TILE}"'
                    parts.append(f"<rect {square} {_shade(weight)}/>")
                under = "off" if gone else f"{weight:.2f}"
                parts.append(
                    f'<text x="{x + _TILE // 2}" y="{y + 18}" font-weight="600">'
                    f"{_name(layer, head)}</text>"
                    f'<text x="{x + _TILE // 2}" y="{y + 34}">{under}</text>'
                )
            top += -(-len(heads) // PER_ROW) * _STEP + 6
        outline = 'fill="none" stroke="currentColor" stroke-linejoin="round"'
        parts.append(f'<path d="{"".join(whole)}" {outline} opacity=".3"/>')
        if dashed:
            parts.append(f'<path d="{"".join(dashed)}" {outline} stroke-dasharray="3 3"/>')
        return "".join(parts), top

    def _bars(self, run: Run, shown: Question, top: int) -> str:
        """The three most probable answers."""
        p = run.probabilities(shown.asked)
        parts = []
        for line, best in enumerate(p.argsort()[::-1][:3]):
            y = top + 24 * line
            parts.append(text(536, y + 12, run.answers[best], "end"))
            parts.append(
                f'<rect x="544" y="{y}" width="{160 * p[best]:.1f}" height="14" rx="3" opacity=".8"/>'
            )
            parts.append(text(550 + 160 * p[best], y + 12, f"{p[best]:.2f}", "start"))
        return "".join(parts)


def _tag(sentence: str | Sequence[str]) -> TaggedSentence:
    """A sentence with its questions, or ValueError if it asks none."""
    tagged = tag_sentence(sentence)
    if not tagged.questions:
        raise ValueError(
            f"a sentence must ask something: found {' '.join(split_words(sentence))!r}"
        )
    return tagged


def _first(questions: Sequence[Question]) -> Question:
    """The first question that is not an article's, if there is one."""
    return next((q for q in questions if q.relation != "article"), questions[0])


def _looks(run: Run, question: Question) -> Array:
    """The weight of each head from the word that asks to the word that tells (L, H)."""
    return np.array([weights[:, question.asked, question.tells] for weights in run.weights])


def _shade(weight: float) -> str:
    """The fill of what is given this weight; the ink stays legible on it."""
    return f'fill="{COLOURS[0]}" fill-opacity="{0.55 * weight:.2f}"'


def _name(layer: Any, head: Any) -> str:
    """A head in words, counted from 1: "2.3" is head 3 of layer 2."""
    return f"{layer + 1}.{head + 1}"
