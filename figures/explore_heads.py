"""Live figure "switch heads off": what a sentence asks, what each head looks at, what fails without it."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

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
from attention_lib.shapes import describe

from .live import LiveFigure, bundle, load_weights

# In none of them was anything seen together in training that can be held out.
SENTENCES = (
    "after that snow the animals near the clock did not cross the street beside this bank",
    "after that snow the animal did not cross the street beside this bank because it was too tired",
    "the boats with the frog did not reach the river near this crane during that traffic",
    "the clock did not bother the mouse behind this trunk after that snow because it was too angry",
)


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
