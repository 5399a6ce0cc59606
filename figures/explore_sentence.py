"""Live figure "rewire the sentence": where each word looks, and what changes when that is changed."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any, ClassVar, Literal

import traitlets

from attention_lib.models.corpus import (
    ADJECTIVES,
    CLASS_OF,
    NOUNS,
    PLURAL,
    read_sentence,
    split_words,
)
from attention_lib.models.encoder import Cut, Edit, Encoder, HeadOff, Run, Take, exchange

from .live import COLOURS, LiveFigure, bundle, escape, load_weights

_BASE = 176
SENTENCE = "the animal did not cross the street because it was too tired"
_KINDS = {Cut: "cut", HeadOff: "off", Take: "take"}


def edit_to_json(edit: Edit) -> dict[str, dict[str, Any]]:
    """An edit as js/encoder.js takes it: {"cut" | "off" | "take": its fields}."""
    fields = asdict(edit)
    if fields.get("words") is not None:
        fields["words"] = list(split_words(fields["words"]))
    return {_KINDS[type(edit)]: fields}


def edits_from_json(edit: dict[str, dict[str, Any]], twin: Sequence[str]) -> tuple[Edit, ...]:
    """The edits of the library that an edit made in the page stands for.

    The page has two shorthands: "exchange", and a take whose words are "twin".
    """
    ((kind, fields),) = edit.items()
    if kind == "exchange":
        return exchange(**fields)
    if fields.get("words") == "twin":
        fields = {**fields, "words": tuple(twin)}
    return ({"cut": Cut, "off": HeadOff, "take": Take}[kind](**fields),)


class ExploreSentence(LiveFigure):
    """The words of a sentence, where each one looks, and what the pronoun stands for.

    sentence: of the grammar in `attention_lib.models.corpus`. weights: shipped weights by name. query:
    position of the word that looks (the pronoun unless given). layer, head: counted from 0; the
    pointing head unless given; head="all" shows every head. edits: as `attention_lib.models.encoder` takes
    them; later ones are made by hand.

    Raises ValueError for a sentence or an edit that the encoder cannot take.
    """

    name: ClassVar[str] = "sentence"
    _esm = bundle("sentence")

    words = traitlets.List(traitlets.Unicode()).tag(sync=True)
    query = traitlets.Int().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    head = traitlets.Int(allow_none=True).tag(sync=True)
    edits: traitlets.List[Any] = traitlets.List().tag(sync=True)
    roles = traitlets.Dict().tag(sync=True)
    classes = traitlets.Dict().tag(sync=True)
    pair = traitlets.List(traitlets.Unicode()).tag(sync=True)
    weights = traitlets.Bytes().tag(sync=True)

    def __init__(
        self,
        sentence: str | Sequence[str] = SENTENCE,
        *,
        weights: str = "pronoun-0",
        query: int | None = None,
        layer: int | None = None,
        head: int | Literal["all"] | None = None,
        edits: Iterable[Edit] = (),
    ) -> None:
        read = read_sentence(sentence)
        encoder = Encoder.load(weights)
        edits = tuple(edits)
        pointing = encoder.pointing_head or (encoder.layers - 1, 0)
        nouns = [read.words[i] for i in read.nouns]
        classes = {
            kind: {
                "nouns": list(NOUNS[kind]),
                "plurals": [PLURAL[noun] for noun in NOUNS[kind]],
                "adjectives": list(ADJECTIVES[kind]),
            }
            for kind in NOUNS
        }
        pair = [ADJECTIVES[CLASS_OF[noun]][0] for noun in nouns]
        pair[read.right] = read.words[read.adjective]
        query = read.pronoun if query is None else query
        layer = pointing[0] if layer is None else layer
        shown = None if head == "all" else pointing[1] if head is None else head
        _check("query", query, len(read.words))
        _check("layer", layer, encoder.layers)
        _check("head", shown or 0, encoder.heads)
        encoder(read.words, edits)
        self._weights_name = weights
        self._encoder = encoder
        super().__init__(
            words=list(read.words),
            query=query,
            layer=layer,
            head=shown,
            edits=[edit_to_json(edit) for edit in edits],
            roles={
                "nouns": list(read.nouns),
                "pronoun": read.pronoun,
                "adjective": read.adjective,
            },
            classes=classes,
            pair=pair,
            weights=load_weights(weights),
        )

    @traitlets.validate("words")
    def _known_words(self, proposal: dict[str, Any]) -> list[str]:
        words: list[str] = proposal["value"]
        self._encoder.encode(words)
        if self.words and len(words) != len(self.words):
            raise ValueError(f"the sentence keeps its {len(self.words)} words: found {len(words)}")
        return words

    def run(self) -> Run:
        """What the library computes for the sentence on show, the reader's edits included."""
        position = self.roles["adjective"]
        first, second = self.pair
        twin = list(self.words)
        twin[position] = second if twin[position] == first else first
        edits = [edit for made in self.edits for edit in edits_from_json(made, twin)]
        return self._encoder(self.words, edits)

    def state(self) -> dict[str, Any]:
        """The traits; the weights by name."""
        names = ("words", "query", "layer", "head", "edits", "roles", "classes", "pair")
        return {name: getattr(self, name) for name in names} | {"weights": self._weights_name}

    def summary(self) -> str:
        """Where the query looks and what the model answers."""
        run = self.run()
        looks = []
        for head in self._heads():
            row = run.weights[self.layer][head, self.query]
            key = int(row.argmax())
            looks.append(f"at “{self.words[key]}” in head {head + 1} ({row[key]:.2f})")
        pronoun = self.roles["pronoun"]
        answer = f"{run.answer(pronoun)} ({run.probabilities(pronoun).max():.2f})"
        return (
            f"“{' '.join(self.words)}”: in layer {self.layer + 1}, “{self.words[self.query]}” looks "
            f"most {', '.join(looks)}. The model answers: {answer}."
        )

    def resting_svg(self) -> str:
        """Lines from the query along the sentence, the weights below, and the answer's bars."""
        run = self.run()
        size, places = _places(self.words, self.width)
        heads = self._heads()
        parts = []
        for lane, head in enumerate(heads):
            row = run.weights[self.layer][head, self.query]
            beside = lane - (len(heads) - 1) / 2
            parts += [
                _line(places[self.query], x, beside, float(weight), COLOURS[head % len(COLOURS)])
                for x, weight in zip(places, row, strict=True)
                if weight >= 0.015
            ]
        row = run.weights[self.layer][heads[0], self.query]
        for i, (word, x) in enumerate(zip(self.words, places, strict=True)):
            bold = ' font-weight="700"' if i == self.query else ""
            style = f'y="{_BASE + 20}" font-size="{size}"{bold}'
            parts.append(f'<text x="{x}" {style}>{escape(word)}</text>')
            if len(heads) == 1 and row[i] >= 0.005:
                parts.append(
                    f'<text x="{x}" y="{_BASE + 40}" font-size="12" opacity=".8">{row[i]:.2f}</text>'
                )
        title = f"Where “{self.words[self.query]}” looks"
        return self.svg(_BASE + 116, title, *parts, self._bars(run))

    def _heads(self) -> list[int]:
        """The heads on show."""
        return list(range(self._encoder.heads)) if self.head is None else [self.head]

    def _bars(self, run: Run) -> str:
        """The probabilities of the two nouns as bars."""
        probabilities = run.probabilities(self.roles["pronoun"])
        bars = []
        for y, noun in zip((_BASE + 64, _BASE + 88), self.roles["nouns"], strict=True):
            p = probabilities[run.answers.index(self.words[noun])]
            bars.append(
                f'<text x="150" y="{y + 12}" text-anchor="end">{escape(self.words[noun])}</text>'
                f'<rect x="160" y="{y}" width="{400 * p:.1f}" height="14" rx="3" opacity=".8"/>'
                f'<text x="{170 + 400 * p:.1f}" y="{y + 12}" text-anchor="start">{p:.2f}</text>'
            )
        return "".join(bars)


def _check(name: str, number: int, limit: int) -> None:
    if not 0 <= number < limit:
        raise ValueError(f"{name} must be from 0 to {limit - 1}: found {number}")


def _places(words: Sequence[str], width: int) -> tuple[float, list[float]]:
    """The size of the letters and the middle of each word in a row, from a guess at its width."""
    letters = [max(len(word), 3) + 0.7 for word in words]
    size = min(15.0, round((width - 16) / sum(letters) / 0.6, 1))
    gap = (width - 16 - sum(letters) * size * 0.6) / len(words)
    ends = [8.0]
    for count in letters:
        ends.append(ends[-1] + count * size * 0.6 + gap)
    return size, [round((one + two) / 2, 1) for one, two in pairwise(ends)]


def _line(start: float, end: float, beside: float, weight: float, colour: str) -> str:
    """A line bulging up from the row; its width and strength are the weight.

    beside: which of the parallel lines of several heads it is, 0 in the middle.
    """
    spread = 11 if start == end else 0
    bulge = 30 if start == end else 26 + 186 * abs(end - start) ** 0.5 / 700**0.5
    top, end = round(_BASE - bulge + 4 * beside, 1), end + 4 * beside
    return (
        f'<path d="M{start} {_BASE}C{start - spread} {top} {end + spread:.1f} {top} {end:.1f} '
        f'{_BASE}" fill="none" stroke="{colour}" stroke-linecap="round" '
        f'stroke-width="{0.75 + 7 * weight:.2f}" opacity="{0.25 + 0.75 * weight:.2f}"/>'
    )
