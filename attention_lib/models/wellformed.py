"""Whether the grammar of `attention_lib.models.corpus` could have said a sentence."""

import re
from collections.abc import Iterable, Sequence

from .corpus import (
    ADJECTIVES,
    ADVERBS,
    AMBIGUOUS,
    CLASS_OF,
    NOUNS,
    PLURAL,
    PREPOSITIONS,
    TOPICS,
    VERBS,
    split_words,
)


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


_NOUN = _any((*PLURAL.values(), *PLURAL))
_TOPIC = rf"(?:after|during) the {_any(TOPICS)}"
_PLACE = rf"{_any(PREPOSITIONS)} this {_any(AMBIGUOUS)}"
_FRAME = re.compile(
    rf"(?P<topic>{_TOPIC} )?"
    rf"the (?P<first>{_NOUN})(?: {_any(PREPOSITIONS)} the (?P<third>{_NOUN}))? "
    rf"did not (?P<verb>{_any(verb for group in VERBS.values() for verb in group)}) "
    rf"the (?P<second>{_NOUN})(?P<place> {_PLACE})?(?P<late_topic> {_TOPIC})? "
    rf"because (?P<pronoun>it was|they were) too "
    rf"(?P<adjective>{_any(word for group in ADJECTIVES.values() for word in group)})"
    rf"(?: {_any(ADVERBS)})?(?: \.)?"
)


def is_sentence(text: str | Sequence[str]) -> bool:
    """Whether the grammar could have said these words.

    Every word in its place; both nouns singular with "it was" or both plural with "they were"; the
    nouns of two classes, the verb one that goes with them, and the adjective one that fits one of
    them; a noun beside the first of the third class; a topic just once, and only with a place.
    """
    found = _FRAME.fullmatch(" ".join(split_words(text)))
    if found is None:
        return False
    first, second, third = found["first"], found["second"], found["third"]
    kinds = CLASS_OF[first], CLASS_OF[second]
    plural = found["pronoun"] == "they were"
    return (
        kinds[0] != kinds[1]
        and found["verb"] in VERBS[kinds]
        and CLASS_OF[found["adjective"]] in kinds
        and all((noun in PLURAL.values()) == plural for noun in (first, second))
        and (third is None or {*kinds, CLASS_OF[third]} == set(NOUNS))
        and (found["topic"] is None or found["late_topic"] is None)
        and (found["place"] is not None) == bool(found["topic"] or found["late_topic"])
    )
