"""The figure of chapter 4, "switch heads off"."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from attention_lib.models.encoder import Encoder, HeadOff, Run, initial_weights
from attention_lib.models.relations.data import (
    ANSWERS,
    MAX_LENGTH,
    WORDS,
    RelationGrammar,
    TaggedSentence,
    tag_sentence,
)
from attention_lib.models.relations.runs import WEIGHTS
from figures.explore_heads import SENTENCES, ExploreHeads, lexicon
from figures.explore_sentence import edit_to_json
from figures.live import page

from . import live_helpers
from .live_helpers import data, node

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

SEEDS = range(5)
# Sentences outside the grammar: what asks in one asks no longer if a word is missing or doubled.
ODD = (
    "the",
    "did the fox",
    "the the fox did",
    "it was too",
    "it was too wide",
    "too tired the fox did not cross the lake it",
    "the fox did not like the cat because it was too shy",
    "the fox did not cross the lake because it was too too wide",
    "the fox did not cross the lake because it was too rusty",
    "the rain did not cross the bank after that payment",
    "this bank and that crane after rain",
    "foxes near the lake did not cross the cup did",
)


@pytest.fixture(scope="module")
def drawn() -> list[TaggedSentence]:
    """Sentences of the grammar, of either split."""
    rng, grammar = random.Random(0), RelationGrammar()
    return [grammar.sentence(rng, split) for _ in range(120) for split in ("train", "test")]


def relations(call: str, sentences: list[list[str]]) -> Any:
    """What js/relations.js makes of each sentence: call is `tag` or `swaps`."""
    code = (
        'import { readLexicon, swaps, tag } from "../../figures/js/relations.js";'
        f"const lexicon = readLexicon({json.dumps(lexicon())});"
        f"const made = {json.dumps(sentences)}.map((words) => {call}(words, lexicon));"
        "console.log(JSON.stringify(made));"
    )
    done = node("--input-type=module", "-", stdin=code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.needs("node")
def test_javascript_tests_pass() -> None:
    done = node("--test", "heads.test.mjs")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs("node")
def test_the_page_finds_the_library_s_questions(drawn: list[TaggedSentence]) -> None:
    sentences = [*drawn, *map(tag_sentence, (*SENTENCES, *ODD))]
    found = relations("tag", [list(sentence.words) for sentence in sentences])
    for sentence, questions in zip(sentences, found, strict=True):
        expected = [
            {name: getattr(q, name) for name in ("relation", "asked", "tells", "answer", "cue")}
            for q in sentence.questions
        ]
        assert questions == expected, str(sentence)


@pytest.mark.needs("node")
def test_a_swap_leaves_every_question(drawn: list[TaggedSentence]) -> None:
    sentences = [*map(tag_sentence, SENTENCES), *drawn[:7]]
    offered = relations("swaps", [list(sentence.words) for sentence in sentences])
    known = Encoder.load("heads-0").words
    for sentence, groups in zip(sentences, offered, strict=True):
        asked = [(q.relation, q.asked) for q in sentence.questions]
        places = [i for i, at in enumerate(groups) if at]
        assert len(places) >= 2
        for i in places:
            words = [word for group in groups[i] for word in group["words"]]
            assert sentence.words[i] in words
            assert set(words) <= set(known)
            for word in words:
                swapped = tag_sentence([*sentence.words[:i], word, *sentence.words[i + 1 :]])
                assert [(q.relation, q.asked) for q in swapped.questions] == asked


@pytest.mark.needs("node")
def test_the_page_computes_as_the_library_does() -> None:
    encoder = Encoder.load("heads-0")
    heads = list(itertools.product(range(encoder.layers), range(encoder.heads)))
    sets = [(), *((head,) for head in heads), tuple(heads[:5]), tuple(heads[3::4]), tuple(heads)]
    compare(encoder, WEIGHTS / "heads-0.safetensors", sets)


@pytest.mark.needs("node")
@pytest.mark.parametrize(("heads", "feed_forward"), [(16, 0), (4, 24)])
def test_other_encoders_agree(tmp_path: Path, heads: int, feed_forward: int) -> None:
    path = random_encoder(tmp_path, heads, feed_forward)
    last = (1, heads - 1)
    compare(Encoder.load(path), path, [(), (last,), ((0, 0), (0, 2), last)])


def random_encoder(folder: Path, heads: int, feed_forward: int = 0) -> Path:
    """Untrained weights in a file, their scores large enough for weights that differ."""
    tensors = initial_weights(
        3,
        heads=heads,
        d_model=32,
        words=len(WORDS),
        answers=len(ANSWERS),
        max_length=MAX_LENGTH,
        feed_forward=feed_forward,
    )
    about: dict[str, Any] = {
        "words": WORDS,
        "answers": ANSWERS,
        "pointing_head": None,
        "recipe": {},
    }
    metadata = {name: json.dumps(value) for name, value in (about | {"heads": heads}).items()}
    path = folder / f"random-{heads}.safetensors"
    save_file({name: 3 * tensor for name, tensor in tensors.items()}, path, metadata=metadata)
    return path


def compare(encoder: Encoder, path: Path, sets: list[tuple[tuple[int, int], ...]]) -> None:
    """The page's logits and weights against the library's, with each set of heads off."""
    words = SENTENCES[1].split()
    edits = [[HeadOff(*head) for head in off] for off in sets]
    cases = [
        {"weights": str(path), "words": words, "edits": [edit_to_json(edit) for edit in some]}
        for some in edits
    ]
    done = node("vectors.mjs", stdin=json.dumps({"encode": cases}))
    assert done.returncode == 0, done.stderr
    seen = []
    for some, got in zip(edits, json.loads(done.stdout)["encode"], strict=True):
        run = encoder(words, some)
        np.testing.assert_allclose(got["logits"], run.logits, rtol=1e-4, atol=2e-4)
        np.testing.assert_allclose(got["weights"], np.array(run.weights), rtol=1e-4, atol=1e-5)
        seen.append(run.logits)
    assert all(np.abs(logits - seen[0]).max() > 0.01 for logits in seen[1:])


def test_what_a_notebook_stores() -> None:
    live_helpers.check_stored(ExploreHeads(), ExploreHeads())
    off = [(0, 1), (1, 2), (1, 7)]
    live_helpers.check_stored(ExploreHeads(off=off), ExploreHeads(off=off))


@pytest.mark.needs("node")
def test_bundle_is_one_module() -> None:
    live_helpers.check_bundle("heads")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_sentence_is_new_and_answered_right_by_all_heads(seed: int) -> None:
    encoder, grammar = Encoder.load(f"heads-{seed}"), RelationGrammar()
    for text in SENTENCES:
        sentence = tag_sentence(text)
        run = encoder(sentence.words)
        for question in sentence.questions:
            assert run.answer(question.asked) == question.answer, (text, question)
        nouns = [q.tells for q in sentence.questions if q.relation == "article"]
        assert grammar.held_out.holds_out(sentence.words)
        senses = [q for q in sentence.questions if q.relation == "sense"]
        pairs = [(sentence.words[q.asked], sentence.words[q.tells]) for q in senses]
        assert set(pairs) <= grammar.held_out_topics
        assert len(nouns) >= 2
    asked = {q.relation for text in SENTENCES for q in tag_sentence(text).questions}
    assert asked == {"article", "agreement", "coreference", "sense"}


def needed(encoder: Encoder, text: str, relation: str) -> tuple[tuple[int, int], Run]:
    """The head without which a sentence's first such question loses most, and the run without it."""
    sentence = tag_sentence(text)
    question = next(q for q in sentence.questions if q.relation == relation)
    right = encoder.answers.index(question.answer)
    runs = {
        (layer, head): encoder(sentence.words, HeadOff(layer, head))
        for layer in range(encoder.layers)
        for head in range(encoder.heads)
    }
    head = min(runs, key=lambda head: runs[head].probabilities(question.asked)[right])
    return head, runs[head]


def test_off_is_told() -> None:
    encoder = Encoder.load("heads-0")
    did = SENTENCES[0].split().index("did")
    head, run = needed(encoder, SENTENCES[0], "agreement")
    figure = ExploreHeads(off=[head])
    np.testing.assert_array_equal(figure.run().logits, run.logits)
    assert run.answer(did) == "singular"
    assert figure.state()["off"] == [list(head)]


def test_other_sentences_words_and_encoders(tmp_path: Path) -> None:
    path = random_encoder(tmp_path, 16)
    figure = ExploreHeads("the foxes did not cross the lake today .", weights=str(path), asked=5)
    assert figure.asked == 5
    figure.words = ["the", "hen", *figure.words[2:]]
    assert figure.run().words[1] == "hen"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"sentences": ()}, "at least one sentence"),
        ({"sentences": "this storm"}, "must ask something: found 'this storm'"),
        ({"sentences": "the blorp near the fox"}, "does not know the word 'blorp'"),
        ({"asked": 4}, "asked must be one of 3, 6, 8, 11, 15: found 4"),
        ({"off": [(2, 0)]}, "2 layers of 8 heads, from 0: found layer 2, head 0"),
        ({"off": [(0, 8)]}, "2 layers of 8 heads, from 0: found layer 0, head 8"),
        ({"weights": "heads-x"}, "no weights 'heads-x'"),
    ],
)
def test_refuses_what_is_not_there(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ExploreHeads(**arguments)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"off": [0]}, r"a head is a pair of integers \(layer, head\), from 0: found 0"),
        ({"off": [(0, 0.5)]}, r"a head is a pair of integers .* found \(0, 0.5\)"),
        ({"off": 3}, r"off must be pairs \(layer, head\): found int"),
        ({"weights": 5}, "weights must be a name or a path: found int"),
    ],
)
def test_refuses_what_is_of_another_type(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        ExploreHeads(**arguments)


def test_a_head_is_off_once() -> None:
    figure = ExploreHeads(off=[(0, 0), (0, 0)])
    assert figure.off == [[0, 0]]
    figure.off = [[1, 2], [0, 1], [1, 2]]
    assert figure.off == [[1, 2], [0, 1]]
    with pytest.raises(ValueError, match="found layer 0, head 8"):
        figure.off = [[0, 8]]
    assert figure.off == [[1, 2], [0, 1]]


def test_refuses_words_that_ask_nothing() -> None:
    figure = ExploreHeads()
    with pytest.raises(ValueError, match="must ask something"):
        figure.words = ["rain"]


@pytest.fixture(scope="module")
def notebook(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    pytest.importorskip("jupyterlab")
    cells = ("import figures\nfigures.ExploreHeads()",)
    with live_helpers.live_notebook(browser, tmp_path_factory.mktemp("lab"), cells) as opened:
        yield opened


@pytest.fixture
def figure(notebook: Page) -> Locator:
    """The figure at rest: the first sentence, "did" on show, all heads on."""
    live = notebook.locator(".live-heads")
    live.get_by_role("radio", name="2", exact=True).check()
    live.get_by_role("radio", name="1", exact=True).check()
    live.get_by_role("button", name="all on").click()
    live.get_by_role("radio", name="did").check()
    return live


def answers(figure: Locator) -> list[str]:
    """What stands below the words that ask."""
    return figure.locator(".answer").all_inner_texts()


def expected(run: Run) -> list[str]:
    """The same from the library."""
    given = [(run.answer(q.asked), q.answer) for q in tag_sentence(run.words).questions]
    return [answer if answer == right else f"✗ {answer}" for answer, right in given]


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_heads_by_keyboard_in_jupyterlab(figure: Locator, notebook: Page) -> None:
    encoder = Encoder.load("heads-0")
    (layer, head), without = needed(encoder, SENTENCES[0], "agreement")
    assert answers(figure) == expected(encoder(SENTENCES[0]))
    assert [data(figure, name) for name in ("asked", "answer", "wrong", "off")] == [
        "did",
        "plural",
        "0",
        "",
    ]
    figure.get_by_role("button", name="head 1.1,").focus()
    keys = ["ArrowDown"] * layer + ["ArrowRight"] * head
    for key in keys:
        notebook.keyboard.press(key)
    name = f"{layer + 1}.{head + 1}"
    switch = figure.get_by_role("button", name=f"head {name},")
    assert switch.get_attribute("aria-pressed") == "true"
    assert data(figure, "shown") == name
    notebook.keyboard.press("Space")
    assert switch.get_attribute("aria-pressed") == "false"
    assert switch.inner_text().split() == [name, "off"]
    assert answers(figure) == expected(without)
    assert "✗ singular" in answers(figure)
    did = without.words.index("did")
    says = figure.locator(".says").inner_text()
    best = without.probabilities(did).max()
    assert f"With {name} off the model answers singular ({best:.2f}); right is plural" in says
    assert figure.locator(".bar .number").first.inner_text() == f"{best:.2f}"
    assert "It is off: it looks, and adds nothing." in figure.locator(".look").inner_text()
    assert figure.get_by_role("radio", name="did: singular, wrong").is_checked()
    notebook.keyboard.press("Enter")
    assert answers(figure) == expected(encoder(SENTENCES[0]))
    notebook.keyboard.press("Home")
    notebook.keyboard.press("Space")
    notebook.keyboard.press("End")
    notebook.keyboard.press("Space")
    assert data(figure, "off") == f"1.1 {encoder.layers}.{encoder.heads}"
    figure.get_by_role("button", name="all on").press("Enter")
    assert data(figure, "off") == ""


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_words_by_keyboard_in_jupyterlab(figure: Locator, notebook: Page) -> None:
    encoder = Encoder.load("heads-0")
    figure.get_by_label("swap “animals”").focus()
    notebook.keyboard.type("hen")
    swap = figure.get_by_label("swap “hens”")
    assert swap.evaluate("select => select === document.activeElement")
    assert answers(figure) == expected(encoder(SENTENCES[0].replace("animals", "hens")))
    swap.select_option("hen")
    words = SENTENCES[0].replace("animals", "hen")
    assert answers(figure) == expected(encoder(words))
    assert "asks for the number of “hen”" in figure.locator(".says").inner_text()
    figure.get_by_role("radio", name="did").focus()
    notebook.keyboard.press("ArrowRight")
    notebook.keyboard.press("ArrowRight")
    assert data(figure, "asked") == "bank"
    run = encoder(words)
    bank, snow = len(run.words) - 1, 2
    numbers = figure.locator(".head small").all_inner_texts()
    assert numbers == [f"{w[h, bank, snow]:.2f}" for w in run.weights for h in range(encoder.heads)]
    figure.get_by_role("radio", name="1", exact=True).focus()
    notebook.keyboard.press("ArrowRight")
    assert data(figure, "asked") == "bank"
    assert answers(figure) == expected(encoder(SENTENCES[1]))
    figure.get_by_label("swap “tired”").select_option("wide")
    assert answers(figure)[-1] == "street"
    assert notebook.locator(".jp-Notebook .jp-Cell").count() == 1


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_a_head_is_pointed_at(figure: Locator, notebook: Page) -> None:
    run = Encoder.load("heads-0")(SENTENCES[0])
    did = run.words.index("did")
    rest = data(figure, "shown")
    for layer, weights in enumerate(run.weights):
        for head, rows in enumerate(weights):
            name = f"{layer + 1}.{head + 1}"
            figure.get_by_role("button", name=f"head {name},").hover()
            assert data(figure, "shown") == name
            shown = figure.locator(".cell > small:first-child").all_inner_texts()
            assert shown == [f"{w:.2f}" if w >= 0.1 else "" for w in rows[did]]
    figure.locator(".says").hover()
    assert data(figure, "shown") == rest


@pytest.mark.browser
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_from_the_file_system(browser: Browser, tmp_path: Path, scheme: str) -> None:
    made = ExploreHeads()
    path = tmp_path / "page.html"
    path.write_text(page(made), encoding="utf-8")
    with live_helpers.checked_page(browser, path.as_uri(), "heads", scheme) as live:
        for button in live.locator(".head").all():
            button.click()
        words = SENTENCES[0].split()
        encoder = Encoder.load("heads-0")
        none = [HeadOff(i, j) for i in range(encoder.layers) for j in range(encoder.heads)]
        assert answers(live) == expected(encoder(words, none))
        live.get_by_role("radio", name="bank").focus()
        assert live.locator(".look").inner_text() == "No head is on."
        contrasts = live.evaluate(live_helpers.CONTRASTS)
        assert [found for found in contrasts if found[1] < 4.5] == []
        live.get_by_role("button", name="all on").click()
        assert data(live, "wrong") == "0"


@pytest.mark.browser
@pytest.mark.needs("chromium")
def test_cleaning_up_leaves_nothing(browser: Browser, tmp_path: Path) -> None:
    made = ExploreHeads()
    path = tmp_path / "page.html"
    path.write_text(page(made), encoding="utf-8")
    opened = browser.new_page()
    opened.goto(path.as_uri())
    opened.locator(".live-heads").wait_for()
    state = dict(made.state()) | {"weights": None}
    left = opened.evaluate(
        """([state, base64]) => {
          state.weights = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
          const figure = globalThis.liveFigures.modules.heads();
          let listeners = 0;
          const model = { get: (name) => state[name], set() {}, save_changes() {},
            on: () => (listeners += 1), off: () => (listeners -= 1) };
          const el = document.createElement("div");
          document.body.append(el);
          const clean = figure.render({ model, el });
          const during = [listeners, el.childElementCount];
          clean();
          return [...during, listeners, el.childElementCount];
        }""",
        [state, opened.evaluate("globalThis.liveFigures.weights['heads-0']")],
    )
    assert left == [4, 2, 0, 0]
    opened.close()
