"""A small grammar of English in which only the meaning of one adjective says what "it" stands for.

    the animal did not cross the street because it was too tired     ("it" is the animal)
    the animal did not cross the street because it was too wide      ("it" is the street)

Some pairs of nouns, and some nouns with some adjectives, are held out: no training sentence holds
them together, so that a model that gets them right has learned more than the pairs it saw.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from ..shapes import describe

Split = Literal["train", "test"]

NOUNS: dict[str, tuple[str, ...]] = {
    "animate": tuple(
        "animal dog horse fox wolf bird cat cow mouse goat frog turtle hen bee".split()
    ),
    "place": tuple(
        "street road river beach forest hill valley bridge field lake path park garden "
        "tunnel".split()
    ),
    "thing": tuple(
        "box table chair car cup lamp clock bag book boat truck piano glass basket".split()
    ),
}
ADJECTIVES: dict[str, tuple[str, ...]] = {
    "animate": tuple("tired hungry scared sleepy lazy thirsty angry shy".split()),
    "place": tuple("wide busy deep crowded narrow steep muddy long".split()),
    "thing": tuple("heavy full broken fragile expensive rusty empty cheap".split()),
}
VERBS: dict[tuple[str, str], tuple[str, ...]] = {
    ("animate", "place"): ("cross", "enter", "leave", "like"),
    ("animate", "thing"): ("carry", "take", "push", "like"),
    ("place", "animate"): ("frighten", "please", "suit", "bother"),
    ("thing", "animate"): ("frighten", "hurt", "please", "bother"),
    ("thing", "place"): ("block", "reach", "fit", "cross"),
    ("place", "thing"): ("suit", "hide", "fit", "ruin"),
}
TOPICS = tuple(
    "storm rain wind snow flood sunset meeting payment traffic contract office market".split()
)
AMBIGUOUS = ("bank", "bat", "seal", "crane", "trunk", "branch")
PREPOSITIONS = ("near", "beside", "behind", "with")
ADVERBS = ("today", "again", "yesterday", "now")
FUNCTION_WORDS = tuple("the this did not because it they was were too after during .".split())
IRREGULAR_PLURALS = {
    "fox": "foxes",
    "wolf": "wolves",
    "mouse": "mice",
    "beach": "beaches",
    "box": "boxes",
    "glass": "glasses",
}
PLURAL = {
    noun: IRREGULAR_PLURALS.get(noun, noun + "s") for nouns in NOUNS.values() for noun in nouns
}
NOUN_FORMS: tuple[str, ...] = (*PLURAL, *PLURAL.values())
VOCABULARY: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            *FUNCTION_WORDS,
            *NOUN_FORMS,
            *(adjective for group in ADJECTIVES.values() for adjective in group),
            *(verb for group in VERBS.values() for verb in group),
            *TOPICS,
            *AMBIGUOUS,
            *PREPOSITIONS,
            *ADVERBS,
        )
    )
)
# Any word may fill the blank; that only nouns do is left to be learned.
ANSWERS = VOCABULARY
MAX_LENGTH = 23  # words in the longest sentence of the grammar

CLASS_OF: dict[str, str] = {
    word: kind
    for kind in NOUNS
    for noun in NOUNS[kind]
    for word in (noun, PLURAL[noun], *ADJECTIVES[kind])
}


@dataclass(frozen=True)
class Sentence:
    """Words with their roles; positions count from 0.

    nouns: positions of the two nouns that the pronoun could stand for. pronoun, adjective:
    positions of "it" (or "they") and of the word that decides. right: 0 or 1, which of the two
    nouns the pronoun stands for.
    """

    words: tuple[str, ...]
    nouns: tuple[int, int]
    pronoun: int
    adjective: int
    right: int

    def __str__(self) -> str:
        return " ".join(self.words)

    @property
    def right_noun(self) -> int:
        """Position of the noun that the pronoun stands for."""
        return self.nouns[self.right]

    @property
    def other_noun(self) -> int:
        """Position of the noun that the pronoun does not stand for."""
        return self.nouns[1 - self.right]

    @property
    def answer(self) -> str:
        """The noun that the pronoun stands for."""
        return self.words[self.right_noun]

    @property
    def other(self) -> str:
        """The noun that the pronoun does not stand for."""
        return self.words[self.other_noun]

    def with_adjective(self, adjective: str) -> "Sentence":
        """The same sentence with another adjective, which may move the right answer.

        Raises ValueError if the adjective fits neither noun.
        """
        words = list(self.words)
        words[self.adjective] = adjective
        return read_sentence(words)


def split_words(text: str | Sequence[str]) -> tuple[str, ...]:
    """Lower-case words of a text, a full stop being a word of its own.

    A sequence of words is returned as a tuple, unchanged. Raises TypeError for anything else.
    """
    if isinstance(text, str):
        return tuple(text.lower().replace(".", " . ").split())
    words = tuple(text) if isinstance(text, Iterable) else (text,)
    if not all(isinstance(word, str) for word in words):
        raise TypeError(f"a sentence is a text or a sequence of words: found {describe(text)}")
    return words


def read_sentence(text: str | Sequence[str], right: int | None = None) -> Sentence:
    """Find the two nouns, the pronoun and the adjective in a sentence of the grammar.

    The nouns are the first noun of the sentence and the first one after "did"; the adjective
    follows "too", and its class says which of the two nouns is right, unless `right` says it.

    Raises ValueError, saying what is missing.
    """
    words = split_words(text)
    nouns = [i for i, word in enumerate(words) if word in NOUN_FORMS]
    pronouns = [i for i, word in enumerate(words) if word in ("it", "they")]
    if "did" not in words or "too" not in words[:-1] or not pronouns:
        raise ValueError(f"a sentence needs 'did', 'it' or 'they', and 'too': {' '.join(words)!r}")
    subject = [i for i in nouns if i < words.index("did")]
    object_ = [i for i in nouns if i > words.index("did")]
    if not subject or not object_:
        raise ValueError(f"a noun is missing before or after 'did': {' '.join(words)!r}")
    pair = (subject[0], object_[0])
    adjective = words.index("too") + 1
    if right is not None:
        return Sentence(words, pair, pronouns[0], adjective, right)
    classes = [CLASS_OF[words[i]] for i in pair]
    if classes.count(CLASS_OF.get(words[adjective], "")) != 1:
        raise ValueError(
            f"{words[adjective]!r} must fit one of the nouns {words[pair[0]]!r} "
            f"and {words[pair[1]]!r}, and only one"
        )
    return Sentence(words, pair, pronouns[0], adjective, classes.index(CLASS_OF[words[adjective]]))


class Grammar:
    """Draws sentences, and keeps some combinations of words out of the training sentences.

    held_out_nouns: 160 of the 588 pairs of nouns of different classes.
    held_out_adjectives: 86 of the 336 pairs of a noun and an adjective of its class.
    animal/street, animal/tired and street/wide are always among them.

    shuffled=True is the control: the adjective is drawn from all classes and tells nothing.
    """

    def __init__(self, seed: int = 0, *, shuffled: bool = False) -> None:
        rng = random.Random(seed)
        always = ("animal", "street")
        pairs = [
            (a, b)
            for one, two in combinations(NOUNS.values(), 2)
            for a in one
            for b in two
            if (a, b) != always
        ]
        self.held_out_nouns = frozenset(map(frozenset, [always, *rng.sample(pairs, 159)]))
        adjectives = {("animal", "tired"), ("street", "wide")}
        for kind, nouns in NOUNS.items():
            for noun in nouns:
                free = [a for a in ADJECTIVES[kind] if (noun, a) not in adjectives]
                adjectives |= {(noun, a) for a in rng.sample(free, 2)}
        self.held_out_adjectives = frozenset(adjectives)
        self.shuffled = shuffled

    def sentence(self, rng: random.Random, split: Split) -> Sentence:
        """Draw one sentence.

        split "train": nothing that is held out. "test": both the pair of nouns and the right noun
        with its adjective are held out. Of a shuffled grammar, `right` is a coin's fall that the
        adjective knows nothing of, and in "test" the adjective is held out with either noun.
        """
        if split not in ("train", "test"):
            raise ValueError(f"split must be 'train' or 'test', not {split!r}")
        while True:
            nouns = self._draw_nouns(rng)
            right = rng.randrange(2)
            kinds = list(ADJECTIVES) if self.shuffled else [CLASS_OF[nouns[right]]]
            adjective = rng.choice(ADJECTIVES[rng.choice(kinds)])
            held_out = (
                frozenset(nouns) in self.held_out_nouns,
                any((noun, adjective) in self.held_out_adjectives for noun in nouns),
            )
            if not any(held_out) if split == "train" else all(held_out):
                break
        return read_sentence(self._draw_words(rng, nouns, adjective, split), right)

    def holds_out(self, words: Sequence[str]) -> bool:
        """Whether two nouns, or a noun and an adjective, that are held out both stand in `words`."""
        singular = {plural: noun for noun, plural in PLURAL.items()}
        nouns = {singular.get(word, word) for word in words if word in NOUN_FORMS}
        return any(pair <= nouns for pair in self.held_out_nouns) or any(
            noun in nouns and adjective in words for noun, adjective in self.held_out_adjectives
        )

    def minimal_pairs(
        self, n: int, seed: int, *, simple: bool = False
    ) -> list[tuple[Sentence, Sentence]]:
        """Draw n pairs of sentences that differ in the adjective alone.

        In the first sentence the first noun is right, in the second the second; both have their
        pair of nouns and their noun with its adjective held out. simple=True leaves the bare
        frame of the opening example: one clause each, singular, no full stop.
        """
        rng = random.Random(seed)
        pairs: list[tuple[Sentence, Sentence]] = []
        while len(pairs) < n:
            nouns = self._draw_nouns(rng)
            if frozenset(nouns) not in self.held_out_nouns:
                continue
            one, two = (
                rng.choice(
                    [a for a in ADJECTIVES[CLASS_OF[x]] if (x, a) in self.held_out_adjectives]
                )
                for x in nouns
            )
            first = read_sentence(self._draw_words(rng, nouns, one, "test", simple=simple))
            pairs.append((first, first.with_adjective(two)))
        return pairs

    def _draw_nouns(self, rng: random.Random) -> tuple[str, str]:
        first, second = rng.sample(list(NOUNS), 2)
        return rng.choice(NOUNS[first]), rng.choice(NOUNS[second])

    def _draw_words(
        self,
        rng: random.Random,
        nouns: tuple[str, str],
        adjective: str,
        split: Split,
        *,
        simple: bool = False,
    ) -> list[str]:
        kinds = (CLASS_OF[nouns[0]], CLASS_OF[nouns[1]])
        plural = not simple and rng.random() < 0.5
        first, second = (PLURAL[noun] if plural else noun for noun in nouns)
        before: list[str] = []
        beside: list[str] = []
        after: list[str] = []
        end: list[str] = []
        if not simple:
            if rng.random() < 0.6:
                topic = [rng.choice(("after", "during")), "the", rng.choice(TOPICS)]
                after = [rng.choice(PREPOSITIONS), "this", rng.choice(AMBIGUOUS)]
                before, after = (topic, after) if rng.random() < 0.5 else ([], after + topic)
            bystanders = self._bystanders(nouns, split)
            if bystanders and rng.random() < 0.6:
                third = rng.choice(bystanders)
                third = PLURAL[third] if rng.random() < 0.5 else third
                beside = [rng.choice(PREPOSITIONS), "the", third]
            end = [rng.choice(ADVERBS)] if rng.random() < 0.5 else []
            end += ["."] if rng.random() < 0.5 else []
        verb = rng.choice(VERBS[kinds])
        pronoun = ["they", "were"] if plural else ["it", "was"]
        return [
            *before,
            *("the", first),
            *beside,
            *("did", "not", verb, "the", second),
            *after,
            *("because", *pronoun, "too", adjective),
            *end,
        ]

    def _bystanders(self, nouns: tuple[str, str], split: Split) -> list[str]:
        """Nouns of the third class; in training none that is held out with either noun."""
        (kind,) = set(NOUNS) - {CLASS_OF[noun] for noun in nouns}
        return [
            noun
            for noun in NOUNS[kind]
            if split == "test"
            or not any(frozenset((noun, other)) in self.held_out_nouns for other in nouns)
        ]
