"""The sentences of chapter 4: what they ask, what answers it, and what is held out of training."""

import random
import subprocess
import sys
from collections import Counter
from itertools import combinations

import pytest

from attention_lib.models.corpus import (
    AMBIGUOUS,
    CLASS_OF,
    NOUN_FORMS,
    NOUNS,
    PLURAL,
    TOPICS,
    Split,
)
from attention_lib.models.relations.data import (
    ANSWERS,
    FEMININE,
    LABELS,
    MAX_LENGTH,
    NATURE,
    RELATIONS,
    SENSES,
    WORDS,
    Question,
    RelationGrammar,
    TaggedSentence,
    tag_sentence,
)

GRAMMAR = RelationGrammar()
SINGULAR = {plural: noun for noun, plural in PLURAL.items()} | {noun: noun for noun in PLURAL}
TIRED = "the animal did not cross the street because it was too tired"


def draw(split: Split, n: int, seed: int = 0) -> list[TaggedSentence]:
    rng = random.Random(seed)
    return [GRAMMAR.sentence(rng, split) for _ in range(n)]


TRAIN, TEST = draw("train", 4000), draw("test", 400, seed=1)


def asked(sentence: TaggedSentence, relation: str) -> list[Question]:
    return [q for q in sentence.questions if q.relation == relation]


def test_words_and_answers() -> None:
    assert len(WORDS) == len(set(WORDS)) == 163
    assert len(ANSWERS) == len(set(ANSWERS)) == 16 + 163
    assert {word for s in TRAIN for word in s.words} == set(WORDS)
    assert max(len(s.words) for s in TRAIN) == MAX_LENGTH
    assert {noun for nouns in NOUNS.values() for noun in nouns} > FEMININE
    assert len(FEMININE) == 21
    assert set(SENSES) == set(AMBIGUOUS)


def test_one_sentence_asks_three_kinds_of_question() -> None:
    s = tag_sentence(
        "After that storm the animals near the street did not cross the lake beside this bank."
    )
    assert s.questions == (
        Question("article", 3, 4, "masculine"),
        Question("article", 6, 7, "feminine"),
        Question("agreement", 8, 4, "plural"),
        Question("article", 11, 12, "masculine"),
        Question("sense", 15, 2, "bank (river)"),
    )
    assert str(s).endswith("beside this bank .")


@pytest.mark.parametrize(("adjective", "noun"), [("tired", 1), ("wide", 6)])
def test_the_adjective_decides_what_it_stands_for(adjective: str, noun: int) -> None:
    s = tag_sentence(TIRED.replace("tired", adjective))
    assert asked(s, "coreference") == [Question("coreference", 8, noun, s.words[noun], 11)]
    assert not asked(s, "agreement")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("the wolf near the frogs did not like the lake", "singular"),
        ("the wolves near the frog did not like the lake", "plural"),
        ("during that rain the frog did not like the lakes", "singular"),
    ],
)
def test_agreement_is_with_the_first_noun(text: str, answer: str) -> None:
    (question,) = asked(tag_sentence(text), "agreement")
    assert question.answer == answer
    assert tag_sentence(text).words[question.tells] in ("wolf", "wolves", "frog")


@pytest.mark.parametrize("word", AMBIGUOUS)
@pytest.mark.parametrize("topic", TOPICS)
def test_the_topic_decides_the_sense(word: str, topic: str) -> None:
    texts = (f"near this {word} after that {topic}", f"after that {topic} near this {word}")
    for text, place in zip(texts, ((2, 5), (5, 2)), strict=True):
        (question,) = tag_sentence(text).questions
        assert (question.asked, question.tells) == place
        assert question.answer == SENSES[word][topic not in NATURE]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the this the",
        "did not cross",
        TIRED.replace("the ", "a ").replace("tired", "heavy"),
        "it was too",
        "a dog did not like a cat because it was too tired",
        "near this bank",
        "after that storm near this bank after that office",
    ],
)
def test_what_the_words_do_not_answer_is_not_asked(text: str) -> None:
    assert tag_sentence(text).questions == ()


def test_what_is_no_text() -> None:
    for wrong, found in ((None, "NoneType"), ([1, 2], "list"), (3, "int")):
        with pytest.raises(TypeError, match=f"a text or a sequence of words: found {found}"):
            tag_sentence(wrong)  # type: ignore[arg-type]


def test_every_sentence_asks_as_its_words_do() -> None:
    for s in TRAIN[:1000] + TEST:
        assert tag_sentence(str(s)) == s
        positions = [q.asked for q in s.questions]
        assert positions == sorted(set(positions))
        assert len(asked(s, "article")) == s.words.count("the")
        assert len(asked(s, "agreement")) == ("it" not in s.words)
        assert len(asked(s, "coreference")) == ("it" in s.words)
        assert len(asked(s, "sense")) == ("this" in s.words)
        for q in asked(s, "coreference"):
            assert q.cue is not None
            assert CLASS_OF[s.words[q.cue]] == CLASS_OF[q.answer]
            nouns = [i for i, word in enumerate(s.words) if word in NOUN_FORMS]
            did = s.words.index("did")
            assert q.tells in (nouns[0], next(i for i in nouns if i > did))


def test_no_answer_is_known_before_it_is_read() -> None:
    answers = Counter((q.relation, q.answer) for s in TRAIN for q in s.questions)
    total = Counter(q.relation for s in TRAIN for q in s.questions)
    assert answers["article", "feminine"] / total["article"] == pytest.approx(0.5, abs=0.03)
    assert answers["agreement", "plural"] / total["agreement"] == pytest.approx(0.5, abs=0.03)
    for sense in LABELS[4:]:
        assert answers["sense", sense] / total["sense"] == pytest.approx(1 / 12, abs=0.015)
    nouns = [answers["coreference", noun] / total["coreference"] for noun in PLURAL]
    assert max(nouns) < 2 / 42
    assert min(nouns) > 0.5 / 42
    first = [q.tells < s.words.index("did") for s in TRAIN for q in asked(s, "coreference")]
    assert sum(first) / len(first) == pytest.approx(0.5, abs=0.03)
    topic_first = [q.tells < q.asked for s in TRAIN for q in asked(s, "sense")]
    assert sum(topic_first) / len(topic_first) == pytest.approx(0.5, abs=0.03)


def test_an_attractor_of_the_other_number_stands_between_in_a_third() -> None:
    apart = 0
    for s in (sentence for sentence in TRAIN if "it" not in sentence.words):
        did = s.words.index("did")
        nouns = [word for word in s.words[:did] if word in NOUN_FORMS]
        apart += len({noun in PLURAL for noun in nouns}) == 2
    assert apart / sum("it" not in s.words for s in TRAIN) == pytest.approx(0.35, abs=0.03)


def test_what_is_held_out() -> None:
    assert GRAMMAR.held_out.held_out_nouns == RelationGrammar().held_out.held_out_nouns
    assert len(GRAMMAR.held_out_topics) == 12
    assert Counter((noun, topic in NATURE) for noun, topic in GRAMMAR.held_out_topics) == Counter(
        (noun, nature) for noun in AMBIGUOUS for nature in (True, False)
    )


def test_training_never_holds_a_held_out_combination_together() -> None:
    for s in TRAIN:
        nouns = {SINGULAR[word] for word in s.words if word in SINGULAR}
        pairs = map(frozenset, combinations(sorted(nouns), 2))
        assert not any(pair in GRAMMAR.held_out.held_out_nouns for pair in pairs)
        cues = [s.words[q.cue] for q in s.questions if q.cue is not None]
        for noun in nouns:
            assert not any((noun, cue) in GRAMMAR.held_out.held_out_adjectives for cue in cues)
        for q in asked(s, "sense"):
            assert (s.words[q.asked], s.words[q.tells]) not in GRAMMAR.held_out_topics


def test_a_test_sentence_is_new_in_all_that_it_asks() -> None:
    for s in TEST:
        nouns = [i for i, word in enumerate(s.words) if word in NOUN_FORMS]
        object_ = next(i for i in nouns if i > s.words.index("did"))
        pair = frozenset(SINGULAR[s.words[i]] for i in (nouns[0], object_))
        assert pair in GRAMMAR.held_out.held_out_nouns
        for q in asked(s, "coreference"):
            assert q.cue is not None
            assert (q.answer, s.words[q.cue]) in GRAMMAR.held_out.held_out_adjectives
        for q in asked(s, "sense"):
            assert (s.words[q.asked], s.words[q.tells]) in GRAMMAR.held_out_topics
    assert {q.relation for s in TEST for q in s.questions} == set(RELATIONS)


def test_the_same_seed_draws_the_same() -> None:
    assert draw("train", 20, 5) == draw("train", 20, 5) != draw("train", 20, 6)
    assert RelationGrammar(1).held_out_topics != GRAMMAR.held_out_topics


def test_the_draws_do_not_depend_on_the_hash_of_strings() -> None:
    code = (
        "import random; from attention_lib.models.relations.data import RelationGrammar; g = RelationGrammar(3); "
        "print(sorted(g.held_out_topics), *(g.sentence(random.Random(i), 'test') for i in range(5)))"
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


def test_what_is_no_generator() -> None:
    with pytest.raises(TypeError, match=r"rng must be a random.Random: found int"):
        GRAMMAR.sentence(0, "test")  # type: ignore[arg-type]


def test_an_unknown_split() -> None:
    with pytest.raises(ValueError, match="'train' or 'test', not 'dev'"):
        GRAMMAR.sentence(random.Random(0), "dev")  # type: ignore[arg-type]
