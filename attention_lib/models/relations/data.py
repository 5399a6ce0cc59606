"""Sentences that ask four questions at once, each answered by another word of the sentence.

    after that storm the animals near the street did not cross the lake beside this bank

article      "the"    which gender has the noun that follows?       masculine
agreement    "did"    is the subject singular or plural?            plural, whatever stands between
coreference  "it"     which noun does it stand for?                 that which fits "tired" or "wide"
sense        "bank"   which of its two meanings?                    bank (river), because of "storm"

Combinations of words are held out as in `attention_lib.models.corpus`, and so are ambiguous nouns with topics.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ...shapes import describe
from .. import corpus
from ..corpus import (
    ADJECTIVES,
    AMBIGUOUS,
    CLASS_OF,
    NOUN_FORMS,
    NOUNS,
    PLURAL,
    TOPICS,
    Grammar,
    Split,
    split_words,
)

Relation = Literal["article", "agreement", "coreference", "sense"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)

# The gender that each noun has in French.
FEMININE = frozenset(
    "cow mouse goat frog turtle hen bee street road river beach forest hill valley box table chair "
    "car cup lamp clock".split()
)
NATURE, WORK = TOPICS[:6], TOPICS[6:]
SENSES: dict[str, tuple[str, str]] = {  # what each ambiguous noun means beside NATURE and WORK
    "bank": ("bank (river)", "bank (money)"),
    "bat": ("bat (animal)", "bat (club)"),
    "seal": ("seal (animal)", "seal (stamp)"),
    "crane": ("crane (bird)", "crane (machine)"),
    "trunk": ("trunk (tree)", "trunk (suitcase)"),
    "branch": ("branch (tree)", "branch (office)"),
}
WORDS: tuple[str, ...] = tuple(
    word for word in (*corpus.VOCABULARY, "that") if word not in ("they", "were")
)
LABELS = (
    "masculine",
    "feminine",
    "singular",
    "plural",
    *(sense for pair in SENSES.values() for sense in pair),
)
# Any word may be an answer; that only nouns are is left to be learned.
ANSWERS: tuple[str, ...] = (*LABELS, *WORDS)
MAX_LENGTH = 23  # words in the longest sentence

_SINGULAR = {form: noun for noun, plural in PLURAL.items() for form in (noun, plural)}


@dataclass(frozen=True)
class Question:
    """What one word of a sentence asks; positions count from 0.

    asked: position of the word that asks. tells: position of the word that the answer is read from.
    cue: of coreference, position of the adjective that decides which noun `tells` is.
    """

    relation: Relation
    asked: int
    tells: int
    answer: str
    cue: int | None = None


@dataclass(frozen=True)
class TaggedSentence:
    """Words with the questions that they ask, in the order of the positions that ask."""

    words: tuple[str, ...]
    questions: tuple[Question, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


def tag_sentence(text: str | Sequence[str]) -> TaggedSentence:
    """Find all the questions that a sentence asks and answers.

    "the" asks if a noun follows. "did" asks if a noun stands before it, and no "it" in the sentence:
    with it all nouns are singular. "it" asks if the adjective after "too" fits just one of the
    two nouns, the first of the sentence and the first after "did". An ambiguous noun asks if there is
    one topic. Raises TypeError for what is no text.
    """
    words = split_words(text)
    nouns = [i for i, word in enumerate(words) if word in NOUN_FORMS]
    topics = [i for i, word in enumerate(words) if word in TOPICS]
    did = words.index("did") if "did" in words else len(words)
    subject = [i for i in nouns if i < did][:1]
    object_ = [i for i in nouns if i > did][:1]
    questions = []
    for i, word in enumerate(words):
        if word == "the" and i + 1 in nouns:
            gender = "feminine" if _SINGULAR[words[i + 1]] in FEMININE else "masculine"
            questions.append(Question("article", i, i + 1, gender))
        elif word == "did" and subject and "it" not in words:
            number = "singular" if words[subject[0]] in PLURAL else "plural"
            questions.append(Question("agreement", i, subject[0], number))
        elif word == "it" and "too" in words[:-1]:
            cue = words.index("too") + 1
            fitting = [
                n for n in subject + object_ if CLASS_OF[words[n]] == CLASS_OF.get(words[cue])
            ]
            if len(fitting) == 1:
                questions.append(Question("coreference", i, fitting[0], words[fitting[0]], cue))
        elif word in SENSES and len(topics) == 1:
            sense = SENSES[word][words[topics[0]] in WORK]
            questions.append(Question("sense", i, topics[0], sense))
    return TaggedSentence(words, tuple(questions))


class RelationGrammar:
    """Draws sentences, and keeps some combinations of words out of the training sentences.

    held_out: the pairs of nouns, and of nouns and adjectives, that `corpus.Grammar` holds out.
    held_out_topics: 12 of the 72 pairs of an ambiguous noun and a topic, for each noun one of NATURE
    and one of WORK.
    """

    def __init__(self, seed: int = 0) -> None:
        self.held_out = Grammar(seed)
        rng = random.Random(seed)
        self.held_out_topics = frozenset(
            (noun, rng.choice(topics)) for noun in AMBIGUOUS for topics in (NATURE, WORK)
        )

    def sentence(self, rng: random.Random, split: Split) -> TaggedSentence:
        """Draw one sentence.

        split "train": nothing that is held out stands together. "test": the subject with the object,
        the noun that "it" stands for with its adjective, and the ambiguous noun with its topic are
        all held out, as far as the sentence has them.
        Raises TypeError for another rng than a random.Random, ValueError for another split.
        """
        if not isinstance(rng, random.Random):
            raise TypeError(f"rng must be a random.Random: found {describe(rng)}")
        if split not in ("train", "test"):
            raise ValueError(f"split must be 'train' or 'test', not {split!r}")
        pronoun, bystander, topic = (rng.random() < share for share in (0.6, 0.7, 0.7))
        while True:
            words, pairs = self._draw(rng, pronoun, bystander, topic)
            if split == "test" and all(pairs):
                break
            if split == "train" and not any(pairs) and not self.held_out.holds_out(words):
                break
        return tag_sentence(words)

    def _draw(
        self, rng: random.Random, pronoun: bool, bystander: bool, topic: bool
    ) -> tuple[list[str], list[bool]]:
        """Words, and of each combination that can be held out whether it is."""
        kinds = rng.sample(list(NOUNS), 3)
        nouns = [rng.choice(NOUNS[kind]) for kind in kinds]
        pairs = [frozenset(nouns[:2]) in self.held_out.held_out_nouns]
        first, second, third = (
            PLURAL[noun] if (free or not pronoun) and rng.random() < 0.5 else noun
            for noun, free in zip(nouns, (False, False, True), strict=True)
        )
        before: list[str] = []
        beside = [rng.choice(corpus.PREPOSITIONS), "the", third] if bystander else []
        after: list[str] = []
        end: list[str] = []
        if topic:
            about, noun = rng.choice(TOPICS), rng.choice(AMBIGUOUS)
            pairs.append((noun, about) in self.held_out_topics)
            before = [rng.choice(("after", "during")), "that", about]
            after = [rng.choice(corpus.PREPOSITIONS), "this", noun]
            if rng.random() < 0.5:
                before, after = [], after + before
        if pronoun:
            right = rng.randrange(2)
            adjective = rng.choice(ADJECTIVES[kinds[right]])
            pairs.append((nouns[right], adjective) in self.held_out.held_out_adjectives)
            end = ["because", "it", "was", "too", adjective]
        if rng.random() < 0.5:
            end.append(rng.choice(corpus.ADVERBS))
        if rng.random() < 0.5:
            end.append(".")
        verb = rng.choice(corpus.VERBS[kinds[0], kinds[1]])
        words = ["the", first, *beside, "did", "not", verb, "the", second]
        return [*before, *words, *after, *end], pairs
