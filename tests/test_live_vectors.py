"""The pages' JavaScript computes what the Python library computes, and the figures are well made."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from attention_lib import attention
from attention_lib.models import stored_files
from attention_lib.models.encoder import (
    Cut,
    Edit,
    Encoder,
    HeadOff,
    Take,
    exchange,
    initial_weights,
)
from figures.explore_plane import ExplorePlane
from figures.explore_sentence import ExploreSentence, edit_to_json
from figures.live import JS, LiveFigure, bundle, page

from . import live_helpers
from .live_helpers import node

HEADS, LAYERS, WIDTH = 3, 2, 15
WORDS = tuple("abcdefghijk")
ANSWERS = tuple("pqrstuv")
SENTENCE = tuple("bafdgkaea")
TWIN = tuple("bafdgkaec")
EDITS: dict[str, Sequence[Edit]] = {
    "none": (),
    "cut in one head": (Cut(1, 7, 1, head=2),),
    "cut in every head": (Cut(0, 7, 1),),
    "everything cut": tuple(Cut(0, 3, key, head=1) for key in range(len(SENTENCE))),
    "head off": (HeadOff(0, 1), HeadOff(1, 0)),
    "query taken": (Take("query", 1, 7, 2),),
    "key taken in one head": (Take("key", 0, 7, 2, head=1),),
    "value taken": (Take("value", 1, 1, 5),),
    "twin's query": (Take("query", 1, 7, 7, words=TWIN),),
    "twin's key, one head": (Take("key", 1, 2, 5, head=0, words=TWIN),),
    "twin's value, first layer": (Take("value", 0, 8, 8, words=TWIN),),
    "values exchanged": exchange("value", 1, 1, 5),
    "keys exchanged in one head": exchange("key", 0, 1, 5, head=2),
    "round of three": tuple(Take("value", 1, a, b) for a, b in ((1, 5), (5, 7), (7, 1))),
    "the last take counts": (Take("key", 1, 1, 2), Take("key", 1, 1, 3, head=1)),
    "all at once": (
        Cut(0, 7, 1),
        *exchange("query", 0, 2, 3),
        HeadOff(0, 2),
        Take("value", 1, 7, 8, words=TWIN),
        Cut(1, 7, 8, head=0),
    ),
}


def compute(cases: dict[str, Any]) -> dict[str, Any]:
    """What the modules in figures/js make of the cases."""
    done = node("vectors.mjs", stdin=json.dumps(cases))
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.needs("node")
def test_attention_agrees() -> None:
    rng = np.random.default_rng(0)
    cases: list[dict[str, Any]] = []
    for T, S, d_k, d_v in ((1, 5, 2, 2), (3, 7, 5, 11), (7, 3, 1, 5)):
        q, k, v = (rng.normal(size=shape) for shape in ((T, d_k), (S, d_k), (S, d_v)))
        mask = rng.random((T, S)) < 0.6
        mask[T // 2] = False
        for seen, scale in ((None, None), (mask, None), (mask, 0.7), (None, 0.0)):
            cases.append({"q": q, "k": k, "v": v, "mask": seen, "scale": scale})
    as_lists = json.loads(json.dumps(cases, default=np.ndarray.tolist))
    for case, got in zip(cases, compute({"attend": as_lists})["attend"], strict=True):
        mask, scale = case["mask"], case["scale"]
        out, weights = attention(
            case["q"], case["k"], case["v"], mask, scale=scale, return_weights=True
        )
        np.testing.assert_allclose(got["weights"], weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(got["out"], out, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module", params=["float16", "float32"])
def weights_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random encoder of odd sizes, its scores moderate and its norms not the identity."""
    rng = np.random.default_rng(1)
    tensors = initial_weights(
        2,
        layers=LAYERS,
        heads=HEADS,
        d_model=WIDTH,
        words=len(WORDS),
        answers=len(ANSWERS),
        max_length=len(SENTENCE) + 2,
    )
    for name, tensor in tensors.items():
        scaled = 2 * tensor + (0.3 * rng.normal(size=tensor.shape) if "norm" in name else 0)
        tensors[name] = scaled.astype(request.param)
    about = {
        "heads": str(HEADS),
        "words": json.dumps(WORDS),
        "answers": json.dumps(ANSWERS),
        "pointing_head": "[1, 0]",
        "recipe": "{}",
    }
    path = tmp_path_factory.mktemp("weights") / f"{request.param}.safetensors"
    save_file(tensors, path, metadata=about)
    return path


@pytest.mark.needs("node")
def test_encoder_agrees_under_every_edit(weights_file: Path) -> None:
    encoder = Encoder.load(weights_file)
    cases = [
        {"weights": str(weights_file), "words": SENTENCE, "edits": [edit_to_json(e) for e in edits]}
        for edits in EDITS.values()
    ]
    plain = encoder(SENTENCE)
    for (name, edits), got in zip(EDITS.items(), compute({"encode": cases})["encode"], strict=True):
        run = encoder(SENTENCE, edits)
        for what in ("q", "k", "v", "weights", "logits"):
            expected = np.array(getattr(run, what))
            np.testing.assert_allclose(
                np.array(got[what]), expected, rtol=1e-5, atol=1e-5, err_msg=f"{name}: {what}"
            )
        assert (name == "none") == np.array_equal(run.logits, plain.logits), name


@pytest.mark.needs("node")
def test_shipped_weights_agree() -> None:
    encoder = Encoder.load("pronoun-0")
    figure = ExploreSentence()
    words = list(figure.words)
    path = stored_files()["pronoun-0.safetensors"]
    (got,) = compute({"encode": [{"weights": str(path), "words": words, "edits": []}]})["encode"]
    run = encoder(words)
    np.testing.assert_allclose(got["logits"], run.logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got["weights"], np.array(run.weights), rtol=1e-4, atol=1e-5)


@pytest.mark.needs("node")
def test_javascript_tests_pass() -> None:
    done = node("--test", "figures.test.mjs")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs("node")
@pytest.mark.parametrize("name", ["sentence", "plane"])
def test_bundle_is_one_module(name: str) -> None:
    live_helpers.check_bundle(name)


def test_bundler_refuses_what_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.js").write_text('import * as all from "./dom.js";\n', encoding="utf-8")
    monkeypatch.setattr("figures.live.JS", tmp_path)
    with pytest.raises(ValueError, match="cannot read"):
        bundle("odd")


@pytest.mark.parametrize("make", [ExploreSentence, ExplorePlane])
def test_what_a_notebook_stores(make: type[LiveFigure]) -> None:
    live_helpers.check_stored(make(), make())


def test_sentence_takes_edits_heads_and_other_sentences() -> None:
    cut = ExploreSentence(edits=[Cut(1, 8, 1)], head="all")
    assert cut.head is None
    assert cut.state()["edits"] == [{"cut": {"layer": 1, "query": 8, "key": 1, "head": None}}]
    plural = ExploreSentence("the foxes did not enter the parks because they were too muddy .")
    assert plural.state()["pair"] == ["tired", "muddy"]
    assert plural.state()["classes"]["animate"]["plurals"][3] == "foxes"
    with pytest.raises(ValueError, match="does not know"):
        ExploreSentence("the animal did not cross the blorp street because it was too wide")


def test_sentence_runs_what_the_page_made() -> None:
    figure = ExploreSentence()
    figure.words = [*figure.words[:-1], "wide"]
    assert figure.run().answer(8) == "street"
    figure.edits = [
        {"exchange": {"what": "value", "layer": 1, "a": 1, "b": 6, "head": None}},
        {"take": {"what": "query", "layer": 0, "to": 8, "source": 8, "head": 1, "words": "twin"}},
    ]
    twin = [*figure.words[:-1], "tired"]
    edits = (*exchange("value", 1, 1, 6), Take("query", 0, 8, 8, 1, twin))
    expected = Encoder.load("pronoun-0")(figure.words, edits)
    np.testing.assert_array_equal(figure.run().logits, expected.logits)


def test_sentence_refuses_what_is_not_there() -> None:
    figure = ExploreSentence()
    with pytest.raises(ValueError, match="keeps its 12 words"):
        figure.words = figure.words[1:]
    with pytest.raises(ValueError, match="does not know"):
        figure.words = ["blorp", *figure.words[1:]]
    for name, number in (("query", 12), ("layer", -1), ("head", 4)):
        arguments: dict[str, Any] = {name: number}
        with pytest.raises(ValueError, match=f"{name} must be from 0 to .*: found {number}"):
            ExploreSentence(**arguments)


def test_plane_refuses_other_shapes() -> None:
    with pytest.raises(ValueError, match=r"values \(2, 2\)"):
        ExplorePlane(values=[[0, 1], [1, 0]])
    with pytest.raises(ValueError, match=r"query \(3,\)"):
        ExplorePlane(query=(1, 2, 3))


def test_page_stands_alone() -> None:
    text = page(ExploreSentence())
    assert set(re.findall(r"https?://[\w./]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert text.count("liveFigures.modules[") == 1


def test_figures_load_no_widget_until_asked() -> None:
    code = "import sys, figures; print([m for m in ('torch', 'anywidget') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=JS.parent.parent,
    )
    assert done.stdout.strip() == "[]"
