"""The grammar: what it says, what it holds out, and that the same seed says it again."""

import random
import subprocess
import sys
from itertools import combinations

import pytest

from attention_lib.models.corpus import (
    ADJECTIVES,
    ANSWERS,
    CLASS_OF,
    MAX_LENGTH,
    NOUN_FORMS,
    NOUNS,
    PLURAL,
    VOCABULARY,
    Grammar,
    Sentence,
    Split,
    read_sentence,
    split_words,
)

SINGULAR = {plural: noun for noun, plural in PLURAL.items()} | {noun: noun for noun in PLURAL}
GRAMMAR = Grammar()
TIRED = "the animal did not cross the street because it was too tired"


def draw(split: Split, n: int, seed: int = 0, grammar: Grammar = GRAMMAR) -> list[Sentence]:
    rng = random.Random(seed)
    return [grammar.sentence(rng, split) for _ in range(n)]


def singular(words: tuple[str, ...]) -> set[str]:
    return {SINGULAR[word] for word in words if word in SINGULAR}


def test_three_classes_of_nouns_and_adjectives() -> None:
    assert {kind: len(nouns) for kind, nouns in NOUNS.items()} == dict.fromkeys(
        ("animate", "place", "thing"), 14
    )
    assert {kind: len(group) for kind, group in ADJECTIVES.items()} == dict.fromkeys(NOUNS, 8)
    assert len(NOUN_FORMS) == len(set(NOUN_FORMS)) == 84


def test_every_word_has_one_place_in_the_vocabulary_and_one_role() -> None:
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 164
    assert set(NOUN_FORMS) <= set(VOCABULARY) == set(ANSWERS)
    assert VOCABULARY[0] == "the"
    assert len(CLASS_OF) == 84 + 24


def test_held_out_combinations() -> None:
    assert len(GRAMMAR.held_out_nouns) == 160
    assert len(GRAMMAR.held_out_adjectives) == 86
    assert frozenset(("animal", "street")) in GRAMMAR.held_out_nouns
    assert {("animal", "tired"), ("street", "wide")} <= GRAMMAR.held_out_adjectives
    assert all(CLASS_OF[a] != CLASS_OF[b] for a, b in GRAMMAR.held_out_nouns)
    assert all(CLASS_OF[noun] == CLASS_OF[a] for noun, a in GRAMMAR.held_out_adjectives)


def test_training_never_holds_a_held_out_combination_together() -> None:
    """Not even as a bystander: animal and street share no training sentence."""
    for sentence in draw("train", 3000):
        nouns = singular(sentence.words)
        assert not any(frozenset(pair) in GRAMMAR.held_out_nouns for pair in combinations(nouns, 2))
        adjective = sentence.words[sentence.adjective]
        assert not any((noun, adjective) in GRAMMAR.held_out_adjectives for noun in nouns)


def test_a_test_sentence_is_held_out_twice() -> None:
    for sentence in draw("test", 300):
        pair = frozenset(SINGULAR[sentence.words[i]] for i in sentence.nouns)
        assert pair in GRAMMAR.held_out_nouns
        right = (SINGULAR[sentence.answer], sentence.words[sentence.adjective])
        assert right in GRAMMAR.held_out_adjectives


def test_sentences_are_varied_balanced_and_readable() -> None:
    sentences = draw("train", 4000)
    assert max(len(s.words) for s in sentences) == MAX_LENGTH
    assert {word for s in sentences for word in s.words} == set(VOCABULARY)
    assert abs(sum(s.right for s in sentences) / 4000 - 0.5) < 0.03
    first = [CLASS_OF[s.words[s.nouns[0]]] for s in sentences]
    assert all(abs(first.count(kind) / 4000 - 1 / 3) < 0.03 for kind in NOUNS)
    assert abs(sum("they" in s.words for s in sentences) / 4000 - 0.5) < 0.03
    assert abs(sum(s.words[-1] == "." for s in sentences) / 4000 - 0.5) < 0.03
    assert all(read_sentence(str(s)) == s for s in sentences)


def test_marks() -> None:
    s = read_sentence(TIRED)
    assert (s.nouns, s.pronoun, s.adjective, s.right) == ((1, 6), 8, 11, 0)
    assert (s.answer, s.other, s.right_noun, s.other_noun) == ("animal", "street", 1, 6)
    wide = s.with_adjective("wide")
    assert str(wide) == TIRED.replace("tired", "wide")
    assert (wide.answer, wide.other) == ("street", "animal")


def test_marks_amid_bystanders_and_topics() -> None:
    s = read_sentence(
        "After the storm the boxes near the frogs did not fit the lakes beside this bank "
        "because they were too full again."
    )
    assert [s.words[i] for i in s.nouns] == ["boxes", "lakes"]
    assert (s.words[s.pronoun], s.words[s.adjective], s.answer) == ("they", "full", "boxes")
    assert s.words[-1] == "."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the animal ran", "'did'"),
        ("the animal did not cross because it was too tired", "noun is missing"),
        (TIRED.replace("tired", "heavy"), "'heavy' must fit one of the nouns"),
        (TIRED.replace("street", "dog"), "and only one"),
        (TIRED.removesuffix(" tired"), "'too'"),
    ],
)
def test_what_is_no_sentence_of_the_grammar(text: str, found: str) -> None:
    with pytest.raises(ValueError, match=found):
        read_sentence(text)


def test_words_of_a_text() -> None:
    assert split_words("The animal slept.") == ("the", "animal", "slept", ".")
    assert split_words(["The", "animal"]) == ("The", "animal")
    assert split_words(word for word in ("the", ".")) == ("the", ".")  # type: ignore[arg-type]
    for wrong, found in ((None, "NoneType"), ([1, 2], "list"), (b"the", "bytes"), (3, "int")):
        for read in (split_words, read_sentence):
            with pytest.raises(TypeError, match=f"a text or a sequence of words: found {found}"):
                read(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("simple", [False, True])
def test_minimal_pairs_differ_in_the_adjective_alone(simple: bool) -> None:
    pairs = GRAMMAR.minimal_pairs(150, 3, simple=simple)
    for one, two in pairs:
        assert [i for i, (a, b) in enumerate(zip(one.words, two.words, strict=True)) if a != b] == [
            one.adjective
        ]
        assert (one.right, two.right) == (0, 1)
        for s in (one, two):
            assert (SINGULAR[s.answer], s.words[s.adjective]) in GRAMMAR.held_out_adjectives
        assert frozenset((SINGULAR[one.answer], SINGULAR[one.other])) in GRAMMAR.held_out_nouns
    if simple:
        assert {len(one.words) for one, _ in pairs} == {12}


def test_the_same_seed_draws_the_same() -> None:
    assert draw("train", 20, seed=5) == draw("train", 20, seed=5) != draw("train", 20, seed=6)
    assert GRAMMAR.minimal_pairs(5, 1) == Grammar().minimal_pairs(5, 1)
    assert Grammar(1).held_out_nouns != GRAMMAR.held_out_nouns


def test_the_draws_do_not_depend_on_the_hash_of_strings() -> None:
    code = (
        "import random; from attention_lib.models.corpus import Grammar; g = Grammar(3); "
        "print(sorted(map(sorted, g.held_out_nouns)), g.sentence(random.Random(1), 'test'))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]


def test_shuffled_adjectives_tell_nothing() -> None:
    sentences = draw("train", 3000, grammar=Grammar(shuffled=True))
    fits = [
        (CLASS_OF[s.words[s.adjective]] == CLASS_OF[noun])
        for s in sentences
        for noun in (s.answer, s.other)
    ]
    assert abs(sum(fits[::2]) - sum(fits[1::2])) / 3000 < 0.04
    assert sum(fits) / 3000 < 0.7
    assert abs(sum(s.right for s in sentences) / 3000 - 0.5) < 0.03


def test_an_unknown_split() -> None:
    with pytest.raises(ValueError, match="'train' or 'test', not 'dev'"):
        GRAMMAR.sentence(random.Random(0), "dev")  # type: ignore[arg-type]


def test_what_is_held_out_is_told_from_the_words_alone() -> None:
    grammar = Grammar()
    assert grammar.holds_out("the animal did not cross the street".split())
    assert grammar.holds_out("the streets near the animals".split())
    assert grammar.holds_out("the animals were too tired".split())
    assert not grammar.holds_out("it was too tired today".split())
    rng = random.Random(5)
    assert not any(grammar.holds_out(grammar.sentence(rng, "train").words) for _ in range(3000))
    assert all(grammar.holds_out(grammar.sentence(rng, "test").words) for _ in range(50))
