"""Live figure "rewire the sentence": where each word looks, and what changes when that is changed."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
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

from .live import LiveFigure, bundle, load_weights

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


def _check(name: str, number: int, limit: int) -> None:
    if not 0 <= number < limit:
        raise ValueError(f"{name} must be from 0 to {limit - 1}: found {number}")
