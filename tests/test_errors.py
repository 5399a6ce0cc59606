"""Wrong input: one sentence that says what was found, raised by the library itself."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
import torch

import attention_lib
import attention_lib.torch
from attention_lib import ShapeError

from .paths import Path

A: Any = attention_lib
AT: Any = attention_lib.torch
HOME = FilePath(attention_lib.__file__).parent
NUMPY, TORCH = Path("numpy", "float32"), Path("torch", "float32")
BOTH = [NUMPY, TORCH]


def refuse(call: Callable[[], Any], kind: type[Exception], *fragments: str) -> None:
    """Raise AssertionError unless `call` raises `kind` itself, in one line with all fragments."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    error = caught.value
    text = str(error)
    assert type(error) is kind, f"{type(error).__name__}: {text}"
    assert "\n" not in text
    for fragment in fragments:
        assert fragment in text, f"{fragment!r} is not in: {text}"
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    assert FilePath(innermost).is_relative_to(HOME), innermost
    assert error.__suppress_context__ or error.__context__ is None, "shows two errors"


def ones(path: Path, *shape: int) -> Any:
    return path.array(np.ones(shape))


def booleans(path: Path, *shape: int) -> Any:
    return path.array(np.ones(shape, dtype=bool))


def test_the_check_refuses_numpys_and_torchs_own_errors() -> None:
    for call in (
        lambda: np.ones((2, 3)) @ np.ones((2, 3)),
        lambda: torch.ones(2, 3) @ torch.ones(2, 3),
        lambda: np.linalg.inv(np.zeros((2, 3))),
    ):
        with pytest.raises(AssertionError):
            refuse(call, ValueError)


# Shapes of q, k, v, and of mask or bias where the name says so; what the sentence must hold.
SHAPES: list[tuple[str, dict[str, tuple[int, ...]], list[str]]] = [
    ("q without a width", {"q": (5,)}, ["q must have at least two axes (..., T, d_k)", "q (5,)"]),
    ("q a number", {"q": ()}, ["q must have at least two axes", "q ()"]),
    ("k one axis", {"k": (11,)}, ["k must have at least two axes (..., S, d_k)", "k (11,)"]),
    ("v one axis", {"v": (7,)}, ["v must have at least two axes", "v (7,)"]),
    (
        "widths of q and k",
        {"q": (2, 3), "k": (2, 4), "v": (2, 4)},
        ["q and k must share their last axis d_k: q (2, 3), k (2, 4)"],
    ),
    ("no width", {"q": (5, 0), "k": (7, 0), "v": (7, 3)}, ["d_k", "q (5, 0), k (7, 0)"]),
    (
        "k and v of other lengths",
        {"v": (2, 3, 8, 9)},
        ["share axis -2", "k (2, 3, 7, 11), v (2, 3, 8, 9)"],
    ),
    (
        "k and v of other heads",
        {"v": (2, 6, 7, 9)},
        ["same heads", "k (2, 3, 7, 11), v (2, 6, 7, 9)"],
    ),
    (
        "heads that do not divide",
        {"q": (2, 4, 5, 11)},
        ["q (2, 4, 5, 11) has 4", "k (2, 3, 7, 11) has 3", "(B, 1, T, d_k)"],
    ),
    ("fewer query heads", {"q": (2, 1, 5, 11)}, ["has 1", "has 3"]),
    ("no key heads", {"k": (2, 0, 7, 11), "v": (2, 0, 7, 9)}, ["has 6", "has 0"]),
    (
        "a batch without heads",
        {"q": (3, 5, 11), "k": (2, 7, 11), "v": (2, 7, 9)},
        ["q (3, 5, 11) has 3, k (2, 7, 11) has 2", "a batch without heads is (B, 1, T, d_k)"],
    ),
    (
        "other batches",
        {"k": (4, 3, 7, 11), "v": (4, 3, 7, 9)},
        ["leading axes must broadcast", "q (2, 6, 5, 11), k (4, 3, 7, 11), v (4, 3, 7, 9)"],
    ),
    ("mask transposed", {"mask": (7, 5)}, ["(2, 6, 5, 7): mask (7, 5)"]),
    ("mask one axis", {"mask": (7,)}, ["mask must broadcast to (..., T, S)", "mask (7,)"]),
    ("mask a number", {"mask": ()}, ["mask must broadcast", "mask ()"]),
    ("mask (B, T, S)", {"mask": (2, 5, 7)}, ["(2, 6, 5, 7): mask (2, 5, 7)"]),
    ("mask too long", {"mask": (6, 7)}, ["mask (6, 7)"]),
    ("mask for key heads", {"mask": (2, 3, 5, 7)}, ["(2, 6, 5, 7): mask (2, 3, 5, 7)"]),
    ("bias transposed", {"bias": (6, 7, 5)}, ["(2, 6, 5, 7): bias (6, 7, 5)"]),
    ("bias one axis", {"bias": (7,)}, ["bias must broadcast to (..., T, S)", "bias (7,)"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shapes", "fragments"), [x[1:] for x in SHAPES], ids=[x[0] for x in SHAPES]
)
@pytest.mark.parametrize("path", BOTH, ids=str)
def test_shapes(path: Path, shapes: dict[str, tuple[int, ...]], fragments: list[str]) -> None:
    arguments = {"q": ones(path, 2, 6, 5, 11), "k": ones(path, 2, 3, 7, 11)}
    arguments["v"] = ones(path, 2, 3, 7, 9)
    for name, shape in shapes.items():
        arguments[name] = booleans(path, *shape) if name == "mask" else ones(path, *shape)
    refuse(lambda: path.lib.attention(**arguments), ShapeError, *fragments)
    assert issubclass(ShapeError, ValueError)
    if path is NUMPY:
        d_out = ones(path, 2, 6, 5, 9)
        refuse(lambda: A.attention_gradient(d_out=d_out, **arguments), ShapeError, *fragments)


def test_a_mask_may_not_stretch_the_pairs() -> None:
    """S = 1 would broadcast against a mask of 5 columns."""
    for path in BOTH:
        q, k = ones(path, 3, 2), ones(path, 1, 2)
        mask = booleans(path, 3, 5)
        refuse(partial(path.lib.attention, q, k, k, mask), ShapeError, "(3, 1): mask (3, 5)")


@pytest.mark.parametrize("name", ["q", "k", "v", "bias", "d_out"])
def test_what_is_no_float_array(name: str) -> None:
    good = {"q": np.ones((5, 3)), "k": np.ones((7, 3)), "v": np.ones((7, 2))}
    good |= {"bias": np.ones((5, 7)), "d_out": np.ones((5, 2))}
    function: Any = A.attention_gradient
    if name != "d_out":
        del good["d_out"]
        function = A.attention
    for dtype in ("int64", "int8", "uint8", "bool", "complex64", "complex128", "object", "U1"):
        bad = good[name].astype(dtype)
        refuse(
            partial(function, **good | {name: bad}),
            TypeError,
            f"{name} must hold float16, float32 or float64",
            f"found {bad.dtype}",
        )
    others: list[tuple[Any, str]] = [
        (good[name].tolist(), "found list"),
        (tuple(good[name]), "found tuple"),
        (2.5, "found float"),
        (np.float64(2.5), "found numpy.float64 of shape ()"),
        ("q", "found str"),
        (good[name].data, "found memoryview of shape"),
    ]
    if name != "bias":
        others.append((None, "found NoneType"))
    for bad, found in others:
        refuse(
            partial(function, **good | {name: bad}),
            TypeError,
            f"{name} must be a NumPy array",
            found,
        )
    tensor = torch.from_numpy(good[name])
    refuse(
        lambda: function(**good | {name: tensor}),
        TypeError,
        f"{name} must be a NumPy array (attention_lib.torch is for tensors)",
        f"found torch.Tensor of shape {tuple(tensor.shape)}",
    )


@pytest.mark.parametrize("name", ["q", "k", "v", "bias"])
def test_what_is_no_float_tensor(name: str) -> None:
    good = {"q": torch.ones(5, 3), "k": torch.ones(7, 3), "v": torch.ones(7, 2)}
    good["bias"] = torch.ones(5, 7)
    for dtype in (torch.int64, torch.uint8, torch.bool, torch.complex64):
        bad = good[name].to(dtype)
        refuse(
            partial(AT.attention, **good | {name: bad}),
            TypeError,
            f"{name} must hold float16, bfloat16, float32 or float64",
            f"found {str(dtype)[6:]}",
        )
    for other, found in ((good[name].tolist(), "found list"), (1.5, "found float")):
        refuse(
            partial(AT.attention, **good | {name: other}),
            TypeError,
            f"{name} must be a torch tensor",
            found,
        )
    array: Any = good[name].numpy()
    refuse(
        lambda: AT.attention(**good | {name: array}),
        TypeError,
        f"{name} must be a torch tensor (torch.from_numpy(...) makes one; attention_lib has",
        f"found numpy.ndarray of shape {array.shape}",
    )


@pytest.mark.parametrize("path", BOTH, ids=str)
def test_masks_that_are_no_booleans(path: Path) -> None:
    """N1, A3: a float mask is refused with the name of `bias`, an integer one with advice."""
    q, k = ones(path, 5, 3), ones(path, 7, 3)
    floating, whole = ones(path, 5, 7), booleans(path, 5, 7) * 1
    for mask, fragments in (
        (floating, ["float32", "added to the scores go to `bias`", "True = may look"]),
        (whole, ["int64", "compare it with 0 first", "True = may look"]),
    ):
        refuse(
            partial(path.lib.attention, q, k, k, mask),
            TypeError,
            "mask must be boolean",
            *fragments,
        )
    for other in (
        [[True] * 7] * 5,
        True,
        "causal",
        booleans(TORCH if path is NUMPY else NUMPY, 5, 7),
    ):
        refuse(
            partial(path.lib.attention, q, k, k, other),
            TypeError,
            "mask must be a",
            "of booleans: found",
        )


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_mixed_dtypes(library: str) -> None:
    half, single, double = (Path(library, f"float{n}") for n in (16, 32, 64))
    lib = half.lib
    for paths in ((single, double, double), (half, half, single), (double, single, double)):
        q, k, v = (path.array(np.ones((5, 3))) for path in paths)
        found = ", ".join(path.dtype for path in paths)
        refuse(
            partial(lib.attention, q, k, v),
            TypeError,
            f"q, k and v must share one dtype: found {found}",
        )
    x, bias = single.array(np.ones((5, 3))), double.array(np.ones((5, 5)))
    refuse(
        lambda: lib.attention(x, x, x, bias=bias),
        TypeError,
        "bias must be no wider than float32",
        "found float64",
    )
    # What is no wider is welcome.
    assert lib.attention(x, x, x, bias=half.array(np.ones((5, 5)))).dtype == single.native
    y = half.array(np.ones((5, 3)))
    assert lib.attention(y, y, y, bias=single.array(np.ones((5, 5)))).dtype == half.native


@pytest.mark.parametrize("path", BOTH, ids=str)
def test_options_of_attention(path: Path) -> None:
    x = ones(path, 5, 3)
    for scale, found in (
        ("1", "found str"),
        (1j, "found complex"),
        ([0.5], "found list"),
        (np.ones(2), "found numpy.ndarray of shape (2,)"),
        (torch.ones(3), "found torch.Tensor of shape (3,)"),
        (torch.ones((), dtype=torch.int64), "found torch.Tensor of shape ()"),
    ):
        refuse(
            partial(path.lib.attention, x, x, x, scale=scale),
            TypeError,
            "scale must be a number, or None for 1/sqrt(d_k)",
            found,
        )
    refuse(partial(path.lib.attention, x, x, x, scale=10**400), ValueError, "scale is too large")
    third = path.lib.attention(x, x, x, scale=Fraction(1, 3))
    np.testing.assert_array_equal(third, path.lib.attention(x, x, x, scale=1 / 3))
    mask = path.lib.causal_mask(5)
    for causal in (mask, "lower-right", 1, None):
        refuse(
            partial(path.lib.attention, x, x, x, causal=causal),
            TypeError,
            "causal must be True or False (arrays go to `mask`)",
        )


def test_the_incoming_gradient() -> None:
    x, v = np.ones((2, 6, 5, 3)), np.ones((2, 3, 5, 7))
    refuse(
        lambda: A.attention_gradient(x, x[:, :3], v, np.ones((2, 6, 5, 3))),
        ShapeError,
        "(2, 6, 5, 7): d_out (2, 6, 5, 3)",
    )
    refuse(
        lambda: A.attention_gradient(x, x[:, :3], v, np.ones((2, 6, 5, 7), dtype=np.float32)),
        TypeError,
        "d_out must have the dtype of q, float64: found float32",
    )


@pytest.mark.parametrize("path", BOTH, ids=str)
def test_softmax(path: Path) -> None:
    x = ones(path, 2, 3)
    for axis in (2, -3, -(10**30)):
        refuse(
            partial(path.lib.softmax, x, axis),
            ShapeError,
            f"scores must have axis {axis}: scores (2, 3)",
        )
    for no_axis in (1.0, "last", None, (0, 1)):
        refuse(partial(path.lib.softmax, x, no_axis), TypeError, "axis must be an integer")
    refuse(lambda: path.lib.softmax(path.array(1.0)), ShapeError, "scores ()")
    refuse(lambda: path.lib.softmax([0.0, 1.0]), TypeError, "scores must be a", "found list")
    refuse(lambda: path.lib.softmax(booleans(path, 3)), TypeError, "scores must hold", "found bool")


@pytest.mark.parametrize("lib", [A, AT], ids=["numpy", "torch"])
def test_masks(lib: Any) -> None:
    refuse(lambda: lib.causal_mask(-1), ValueError, "T must be at least 0: found -1")
    refuse(lambda: lib.causal_mask(2, -3), ValueError, "S must be at least 0: found -3")
    refuse(lambda: lib.causal_mask(2.0), TypeError, "T must be an integer: found 2.0")
    refuse(lambda: lib.causal_mask(2, "5"), TypeError, "S must be an integer: found '5'")
    refuse(lambda: lib.causal_mask(None), TypeError, "T must be an integer: found None")
    refuse(
        lambda: lib.causal_mask(2, align="left"),
        ValueError,
        "align must be 'lower-right' or 'upper-left': found 'left'",
    )
    refuse(
        lambda: lib.causal_mask(2, align=np.zeros(2)), ValueError, "align must be", "found array"
    )
    refuse(lambda: lib.sliding_window_mask(5, 0), ValueError, "window must be at least 1: found 0")
    refuse(lambda: lib.sliding_window_mask(5, -2), ValueError, "window", "found -2")
    refuse(
        lambda: lib.sliding_window_mask(5, 2.0), TypeError, "window must be an integer: found 2.0"
    )
    refuse(lambda: lib.sliding_window_mask(-5, 2), ValueError, "T must be at least 0: found -5")
    refuse(lambda: lib.padding_mask([3, 9], 8), ValueError, "between 0 and S = 8: found [3, 9]")
    refuse(lambda: lib.padding_mask([3, -1]), ValueError, "found [3, -1]")
    refuse(lambda: lib.padding_mask([3.0]), TypeError, "lengths must be integers: found float64")
    refuse(lambda: lib.padding_mask([True]), TypeError, "lengths must be integers: found bool")
    refuse(lambda: lib.padding_mask([[3, 4]]), ShapeError, "one axis (B,): lengths (1, 2)")
    refuse(lambda: lib.padding_mask(3), ShapeError, "one axis (B,): lengths ()")
    refuse(lambda: lib.padding_mask([3, [4, 5]]), ShapeError, "lengths", "found [3, [4, 5]]")
    refuse(lambda: lib.padding_mask([3], -1), ValueError, "S must be at least 0: found -1")
    refuse(lambda: lib.document_mask(3), ShapeError, "need an axis: found () and ()")
    refuse(lambda: lib.document_mask([[1, 2], [3]]), ShapeError, "rows of equal length")
    refuse(
        lambda: lib.document_mask(np.ones((2, 3)), np.ones((5, 3))),
        ShapeError,
        "leading axes must broadcast: documents (2, 3) and (5, 3)",
    )


@pytest.mark.parametrize("path", BOTH, ids=str)
def test_positions(path: Path) -> None:
    lib, x = path.lib, ones(path, 2, 5, 6)
    refuse(lambda: lib.rotary(ones(path, 5, 7)), ShapeError, "must be even: found 7")
    refuse(lambda: lib.rotary(ones(path, 6)), ShapeError, "x must be (..., T, d): x (6,)")
    refuse(lambda: lib.rotary(x.tolist()), TypeError, "x must be a", "found list")
    refuse(lambda: lib.rotary(booleans(path, 5, 6)), TypeError, "x must hold", "found bool")
    refuse(
        lambda: lib.rotary(x, pairing="neox"),
        ValueError,
        "pairing must be 'half' or 'interleaved': found 'neox'",
    )
    wrong: list[Any] = [[0, 1, 2], 3, np.zeros((3, 5)), np.zeros((1, 2, 5)), np.zeros((2, 1))]
    for positions in wrong:
        shape = np.shape(positions)
        refuse(
            partial(lib.rotary, x, positions),
            ShapeError,
            "positions must broadcast to the axes (..., T) of x",
            f"positions {shape}, x (2, 5, 6)",
        )
    refuse(lambda: lib.rotary(x, [1j] * 5), TypeError, "positions must be real", "found complex128")
    refuse(lambda: lib.rotary(x, [True] * 5), TypeError, "positions must be real", "found bool")
    refuse(lambda: lib.rotary(x, ["a"] * 5), TypeError, "positions must be real", "found <U1")
    refuse(lambda: lib.rotary(x, [[1, 2], [3]]), ShapeError, "positions", "found [[1, 2], [3]]")
    refuse(lambda: lib.rotary(x, base=0), ValueError, "base must be above 0: found 0")
    refuse(lambda: lib.rotary(x, base=float("nan")), ValueError, "base must be above 0: found nan")
    refuse(lambda: lib.rotary(x, base=10**400), ValueError, "base is too large for a float")
    refuse(lambda: lib.rotary(x, base="10000"), TypeError, "base must be a number: found str")
    refuse(lambda: lib.sinusoids(5, 7), ShapeError, "must be even: found 7")
    refuse(lambda: lib.sinusoids(-1, 6), ValueError, "T must be at least 0: found -1")
    refuse(lambda: lib.sinusoids(5, 0), ValueError, "d_model must be at least 1: found 0")
    refuse(lambda: lib.sinusoids(5.0, 6), TypeError, "T must be an integer: found 5.0")
    refuse(lambda: lib.sinusoids(5, 6, base=-1), ValueError, "base must be above 0: found -1")
    other = torch.float32 if path is NUMPY else np.float32
    for dtype in ("foo", int, other, complex):
        for make in (lib.sinusoids, lib.alibi_bias):
            refuse(partial(make, 4, 6, dtype=dtype), TypeError, "dtype must be", "float64: found")
    refuse(lambda: lib.alibi_bias(0, 5), ValueError, "heads must be at least 1: found 0")
    refuse(lambda: lib.alibi_bias(2, -5), ValueError, "T must be at least 0: found -5")
    refuse(lambda: lib.alibi_bias(2, 5, -1), ValueError, "S must be at least 0: found -1")
    refuse(lambda: lib.alibi_bias(2.5, 5), TypeError, "heads must be an integer: found 2.5")


def test_tensors_without_numbers_or_on_another_device() -> None:
    x, meta = torch.ones(5, 4), torch.ones(5, device="meta")
    refuse(lambda: AT.rotary(x, meta), TypeError, "positions must be numbers", "device meta")
    refuse(lambda: AT.padding_mask(meta), TypeError, "lengths must be numbers", "device meta")
    refuse(lambda: AT.document_mask(meta), TypeError, "documents must be numbers", "device meta")
    refuse(lambda: AT.attention(x, x.to("meta"), x), TypeError, "on one device: found cpu, meta")
    refuse(
        lambda: AT.attention(x, x, x, scale=meta[:1]), TypeError, "on one device: found cpu, meta"
    )
    there = x.to("meta")
    assert AT.attention(there, there, there, scale=torch.ones(())).is_meta
    assert AT.attention(there, there, there, causal=True).is_meta


def test_sparse_tensors() -> None:
    x = torch.ones(5, 5)
    found = ("must be dense (to_dense() makes it so)", "found sparse_coo")
    refuse(lambda: AT.attention(x, x.to_sparse(), x), TypeError, f"k {found[0]}", found[1])
    mask = torch.ones(5, 5, dtype=torch.bool).to_sparse()
    refuse(lambda: AT.attention(x, x, x, mask), TypeError, f"mask {found[0]}", found[1])
    refuse(lambda: AT.padding_mask(x[0].long().to_sparse()), TypeError, f"lengths {found[0]}")


@pytest.mark.parametrize("path", BOTH, ids=str)
def test_split_and_merge(path: Path) -> None:
    x = ones(path, 2, 5, 7)
    refuse(lambda: path.lib.split_heads(x, 3), ShapeError, "3 heads divide: x (2, 5, 7)")
    refuse(lambda: path.lib.split_heads(x, 0), ValueError, "heads must be at least 1: found 0")
    refuse(lambda: path.lib.split_heads(x, 7.0), TypeError, "heads must be an integer: found 7.0")
    refuse(lambda: path.lib.split_heads(ones(path, 6), 3), ShapeError, "x (6,)")
    refuse(lambda: path.lib.split_heads([[1.0, 2.0]], 2), TypeError, "found list")
    refuse(lambda: path.lib.merge_heads(ones(path, 5, 7)), ShapeError, "(..., H, T, d): x (5, 7)")
    refuse(lambda: path.lib.merge_heads([[[1.0]]]), TypeError, "found list")


def test_multi_head_attention() -> None:
    make: Any = A.MultiHeadAttention
    refuse(lambda: make(7, 2, rng=0), ShapeError, "d_model 7, heads 2")
    refuse(lambda: make(6, 3, kv_heads=2, rng=0), ShapeError, "heads 3, kv_heads 2")
    refuse(lambda: make(0, 1, rng=0), ValueError, "d_model must be at least 1: found 0")
    refuse(lambda: make(6, 0, rng=0), ValueError, "heads must be at least 1: found 0")
    refuse(
        lambda: make(6, 3, kv_heads=0, rng=0), ValueError, "kv_heads must be at least 1: found 0"
    )
    refuse(lambda: make(6, 3, d_k=0, rng=0), ValueError, "d_k must be at least 1: found 0")
    refuse(lambda: make(6, 3, d_v=-1, rng=0), ValueError, "d_v must be at least 1: found -1")
    refuse(lambda: make(6.0, 3, rng=0), TypeError, "d_model must be an integer: found 6.0")
    refuse(lambda: make(6, "3", rng=0), TypeError, "heads must be an integer: found '3'")
    for seed in (None, "seed", 1.5, np.random):
        refuse(partial(make, 6, 3, rng=seed), TypeError, "rng, a seed or Generator")
    refuse(lambda: make(6, 3, rng=-1), ValueError, "rng", "at least 0: found -1")

    mha = make(6, 3, bias=True, rng=0)
    x = np.ones((2, 5, 6))
    refuse(lambda: mha(np.ones((2, 5, 7))), ShapeError, "d_model 6: x (2, 5, 7)")
    refuse(lambda: mha(np.ones(6)), ShapeError, "x (6,)")
    refuse(lambda: mha(x, np.ones((2, 7, 5))), ShapeError, "d_model 6: context (2, 7, 5)")
    refuse(lambda: mha(x, np.ones((3, 7, 6))), ShapeError, "leading axes must broadcast")
    refuse(lambda: mha(x.tolist()), TypeError, "x must be a NumPy array", "found list")
    refuse(lambda: mha(torch.ones(2, 5, 6)), TypeError, "x must be a NumPy array", "torch.Tensor")
    refuse(lambda: mha(x.astype(int)), TypeError, "x must hold", "found int64")
    refuse(lambda: mha(x, x.astype(np.float32)), TypeError, "found float64, float32, float32")
    refuse(
        lambda: mha(x, mask=np.ones((2, 5, 5), bool)), ShapeError, "(2, 3, 5, 5): mask (2, 5, 5)"
    )
    refuse(lambda: mha(x, mask=np.ones((5, 5))), TypeError, "mask must be boolean")
    refuse(lambda: mha(x, causal="yes"), TypeError, "causal must be True or False")


def test_weights_loaded_by_hand() -> None:
    """Assigned weights that do not fit are named, each with what it was."""
    x = np.ones((2, 5, 6))
    for name in "QKVO":
        mha: Any = A.MultiHeadAttention(6, 3, bias=True, rng=0)
        for shape in ((4, 6), (6, 7), (6, 12), (6,)):
            setattr(mha, f"W_{name}", np.ones(shape))
            refuse(partial(mha, x), ShapeError, f"W_{name} must be (6, 6): W_{name} {shape}")
        setattr(mha, f"W_{name}", torch.ones(6, 6))
        refuse(partial(mha, x), TypeError, f"W_{name} must be a NumPy array")
        setattr(mha, f"W_{name}", np.ones((6, 6)))
        setattr(mha, f"b_{name}", np.ones(5))
        refuse(partial(mha, x), ShapeError, f"b_{name} must be (6,): b_{name} (5,)")
        for wrong in ([0.0] * 6, torch.zeros(6), "bias"):
            setattr(mha, f"b_{name}", wrong)
            refuse(partial(mha, x), TypeError, f"b_{name} must be a NumPy array")
        setattr(mha, f"b_{name}", np.ones(6, dtype=complex))
        refuse(partial(mha, x), TypeError, f"b_{name} must hold", "found complex128")


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors(layout: torch.layout) -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=layout)
    refuse(lambda: AT.attention(x, x, x), TypeError, "q must be one tensor", "a nested tensor")
    refuse(lambda: AT.softmax(x), TypeError, "scores must be one tensor")


@pytest.mark.parametrize("lib", [A, AT], ids=["numpy", "torch"])
def test_numbers_that_no_memory_holds(lib: Any) -> None:
    """A size is refused; a window, stride or block may be larger than all there is."""
    n = 2**63
    refuse(lambda: lib.causal_mask(1, n), ValueError, "S must be below", f"found {n}")
    refuse(lambda: lib.causal_mask(n), ValueError, "T must be below", f"found {n}")
    refuse(lambda: lib.padding_mask([n]), ValueError, "S must be below")
    refuse(lambda: lib.alibi_bias(2, n), ValueError, "T must be below")
    refuse(lambda: lib.sinusoids(n, 4), ValueError, "T must be below")
    refuse(lambda: lib.sinusoids(2, n), ValueError, "width must be below")
    refuse(lambda: lib.alibi_bias(n, 2), ValueError, "heads must be below")
    one = np.ones((1, 1), dtype=bool) if lib is A else torch.ones(1, 1, dtype=torch.bool)
    for mask in (
        lib.sliding_window_mask(3, n, causal=False),
        lib.global_window_mask(3, n, n, causal=False),
        lib.block_mask(3, one, block_size=n),
    ):
        assert mask.all()
    np.testing.assert_array_equal(lib.strided_mask(3, n), lib.causal_mask(3))


def test_a_block_larger_than_all_there_is() -> None:
    x, one = np.ones((5, 3)), np.ones((1, 1), dtype=bool)
    found = A.block_sparse_attention(x, x, x, one, block_size=2**63)
    np.testing.assert_allclose(found, A.attention(x, x, x))
    refuse(
        lambda: A.block_sparse_attention(x, x, x, np.ones((2, 1), dtype=bool), block_size=2**63),
        ShapeError,
        "= (1, 1): blocks (2, 1)",
        f"block_size {2**63}",
    )
