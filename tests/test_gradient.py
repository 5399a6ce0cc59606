"""The hand-derived backward pass and torch's automatic one, against loops and against each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given

import attention_lib
import attention_lib.torch

from . import reference
from .paths import DOUBLE, NUMPY, PATHS, TORCH, Path, naive, to_float64
from .reference import Floats, check_budget
from .test_attention import CASES, Case, case, draw, on_path, problems


def gradients(path: Path, arguments: Case, d_out: Any) -> tuple[Any, ...]:
    """d_q, d_k and d_v on a path: by attention_gradient in NumPy, by autograd in torch."""
    if path.library == "numpy":
        return tuple(path.lib.attention_gradient(d_out=d_out, **arguments))
    leaves = {name: arguments[name].clone().requires_grad_() for name in "qkv"}
    out = path.lib.attention(**(arguments | leaves))
    return torch.autograd.grad(out, list(leaves.values()), d_out)


def out_shape(arguments: Case) -> tuple[int, ...]:
    return reference.attention(**arguments).out.shape


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_gradients_are_as_exact_as_the_dtype(path: Path, name: str) -> None:
    arguments = case(name)
    d_out = draw(*out_shape(arguments), seed=5)
    native, exact = on_path(path, arguments)
    d_out, d_out_exact = path.array(d_out), path.rounded(d_out)
    found = gradients(path, native, d_out)
    expected = reference.attention(**exact, d_out=d_out_exact)[2:]
    _, noise = naive(path, **exact, d_out=d_out_exact)
    for x, truth, yardstick, leaf in zip(found, expected, noise, "qkv", strict=True):
        assert x.dtype == path.native
        assert x.shape == native[leaf].shape
        check_budget(to_float64(x), truth, yardstick, path.eps, factor=3)


def test_the_budget_refuses_wrong_gradients() -> None:
    """Without the scale, without the row sum, transposed, or with one head's gradient lost."""
    arguments = case("plain")
    path = Path("numpy", "float32")
    native, exact = on_path(path, arguments)
    d_out = draw(*out_shape(arguments), seed=5).astype(np.float32)
    d_out_exact = d_out.astype(np.float64)
    d_q, d_k, d_v = (to_float64(x) for x in gradients(path, native, d_out))
    expected = reference.attention(**exact, d_out=d_out_exact)
    noise = naive(path, **exact, d_out=d_out_exact)[1]
    root = math.sqrt(native["q"].shape[-1])
    lost = d_k.copy()
    lost[0, 1] = 0
    wrong = [
        (d_q * root, expected.d_q, noise[0]),
        (d_k / root, expected.d_k, noise[1]),
        (d_k[..., ::-1, :], expected.d_k, noise[1]),
        (lost, expected.d_k, noise[1]),
        (d_v / 2, expected.d_v, noise[2]),
        (d_q * (1 + 1e-4), expected.d_q, noise[0]),
        (d_q * np.nan, expected.d_q, noise[0]),
    ]
    for found, truth, yardstick in wrong:
        with pytest.raises(AssertionError):
            check_budget(found, truth, yardstick, path.eps, factor=3)


@given(problems())
def test_any_shapes_masks_and_biases(arguments: Case) -> None:
    """Broadcast and grouped axes are added up; empty ones and dead rows give zeros."""
    expected = reference.attention(**arguments)
    d_out = draw(*expected.out.shape, seed=5)
    expected = reference.attention(**arguments, d_out=d_out)
    for path in DOUBLE:
        native, _ = on_path(path, arguments)
        found = gradients(path, native, path.array(d_out))
        for x, truth in zip(found, expected[2:], strict=True):
            np.testing.assert_allclose(to_float64(x), truth, atol=1e-12, strict=True)


@pytest.mark.parametrize("name", ["plain", "everything", "batch broadcasts"])
def test_the_reference_gradient_is_the_slope(name: str) -> None:
    """The loops' gradient itself, against central differences of the loops' output."""
    arguments = case(name)
    d_out = draw(*out_shape(arguments), seed=5)
    expected = reference.attention(**arguments, d_out=d_out)
    for leaf, d_leaf in zip("qkv", expected[2:], strict=True):
        step = 1e-5 * draw(*arguments[leaf].shape, seed=6)
        up, down = (
            (
                reference.attention(**arguments | {leaf: arguments[leaf] + sign * step}).out * d_out
            ).sum()
            for sign in (1, -1)
        )
        assert (up - down) / 2 == pytest.approx((d_leaf * step).sum(), rel=1e-6)


@pytest.mark.parametrize("kind", ["transposed", "stride 0"])
@pytest.mark.parametrize("path", NUMPY, ids=str)
def test_views_of_the_incoming_gradient(path: Path, kind: str) -> None:
    native, _ = on_path(path, case("mask"))
    shape = out_shape(case("mask"))
    if kind == "transposed":
        d_out = path.array(draw(*shape)).swapaxes(-1, -2).copy().swapaxes(-1, -2)
    else:
        d_out = np.broadcast_to(path.array(draw(shape[-1])), shape)
    native = {n: x.copy() if isinstance(x, np.ndarray) else x for n, x in native.items()}
    for x in native.values():
        x.flags.writeable = False
    found = gradients(path, native, d_out)
    expected = gradients(path, native, d_out.copy())
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=4 * path.eps * abs(y).max())


# ---------------------------------------------------------------- what is hidden

HIDDEN: dict[str, Case] = {
    "mask": {"mask": np.array([[1, 1, 0], [0, 0, 0], [1, 1, 0]], dtype=bool)},
    "causal": {"causal": True, "mask": np.array([[0, 1, 1], [1, 1, 0], [1, 1, 0]], dtype=bool)},
}
HIDDEN["bias"] = {"bias": np.where(HIDDEN["mask"]["mask"], 0.5, -np.inf)}


@pytest.mark.parametrize("poison", [0.0, math.nan, math.inf, "huge"])
@pytest.mark.parametrize("how", HIDDEN)
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_what_no_row_sees_changes_no_gradient(path: Path, how: str, poison: Any) -> None:
    """Key 2 is hidden from all, and one row sees nothing: zeros there, finite everywhere."""
    arguments = {"q": draw(2, 3, 5), "k": draw(2, 3, 5), "v": draw(2, 3, 7)} | HIDDEN[how]
    native, exact = on_path(path, arguments)
    d_out = draw(2, 3, 7, seed=5)
    expected = reference.attention(**exact, d_out=path.rounded(d_out))[2:]
    dead = 0 if how == "causal" else 1
    poison = path.lowest if poison == "huge" else poison
    native["k"][:, 2] = native["v"][:, 2] = native["q"][:, dead] = poison
    found = [to_float64(x) for x in gradients(path, native, path.array(d_out))]
    for x, truth in zip(found, expected, strict=True):
        assert np.isfinite(x).all()
        np.testing.assert_allclose(x, truth, rtol=0, atol=8 * path.eps)
    assert not found[0][:, dead].any()
    assert not found[1][:, 2].any()
    assert not found[2][:, 2].any()


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("what", ["q", "k", "v", "d_out"])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_poison_reaches_the_gradients_of_those_that_see_it_and_no_other(
    path: Path, what: str, poison: float
) -> None:
    """Token 3 of 5, causal. As a query it sees keys 0 to 3; as a key queries 3 and 4 see it.

    In torch what some rows see may reach the others; it is never hidden.
    """
    native, _ = on_path(path, {"q": draw(2, 5, 7), "k": draw(2, 5, 7), "v": draw(2, 5, 3)})
    d_out = path.array(draw(2, 5, 3, seed=5))
    clean = [to_float64(x) for x in gradients(path, native | {"causal": True}, d_out)]
    poisoned = d_out if what == "d_out" else native[what]
    poisoned[:, 3, 1] = poison
    found = [to_float64(x) for x in gradients(path, native | {"causal": True}, d_out)]
    rows = [3] if what in ("q", "d_out") else [3, 4]
    unseen = 4 if what in ("q", "d_out") else 5
    others = [i for i in range(5) if i not in rows]
    if path.library == "numpy":
        np.testing.assert_allclose(found[0][:, others], clean[0][:, others], atol=4 * path.eps)
        for x, y in zip(found[1:], clean[1:], strict=True):
            np.testing.assert_allclose(x[:, unseen:], y[:, unseen:], atol=4 * path.eps)
    if math.isnan(poison) or what in ("v", "d_out"):
        assert not np.isfinite(found[0][:, rows]).all(-1).any()
        assert not np.isfinite(found[1][:, 0]).all(), (
            "the gradient of a key that a poisoned row sees"
        )


# ---------------------------------------------------------------- reported faults


@pytest.mark.parametrize("how", ["mask", "bias"])
@pytest.mark.parametrize("path", TORCH, ids=str)
def test_N2_a_dead_row_poisons_no_gradient(path: Path, how: str) -> None:
    """h = x @ W with W (2, 4), q = k = v = h, row 1 sees nothing, the loss reads row 0."""
    x, start = path.array(draw(2, 2)), path.array(draw(2, 4, seed=1))
    mask = torch.tensor([[True, True], [False, False]])
    added = torch.zeros(2, 2, dtype=path.native).masked_fill(~mask, -math.inf)
    hidden = {"mask": mask} if how == "mask" else {"bias": added}

    def gradient(rows: int, **arguments: Any) -> Any:
        W = start.clone().requires_grad_()
        h = x @ W
        out = path.lib.attention(h[:rows], h, h, **arguments)
        (out[0] ** 2).sum().backward()
        return to_float64(W.grad)

    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        found = gradient(2, **hidden)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, gradient(1), rtol=0, atol=8 * path.eps * abs(found).max())


@pytest.mark.parametrize("how", ["mask", "bias"])
@pytest.mark.parametrize("path", NUMPY, ids=str)
def test_N2_by_hand_in_numpy(path: Path, how: str) -> None:
    """The same chain, with attention_gradient."""
    x, W = path.array(draw(2, 2)), path.array(draw(2, 4, seed=1))
    h = x @ W
    mask = np.array([[True, True], [False, False]])
    hidden = {"mask": mask} if how == "mask" else {"bias": path.array(np.where(mask, 0, -np.inf))}
    out = path.lib.attention(h, h, h, **hidden)
    d_out = np.zeros_like(out)
    d_out[0] = 2 * out[0]
    found = path.lib.attention_gradient(h, h, h, d_out, **hidden)
    assert not found[0][1].any()
    alone = path.lib.attention_gradient(h[:1], h, h, d_out[:1])
    for name, a, b in zip("qkv", found, alone, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(
            a[: len(b)], b, rtol=0, atol=64 * path.eps * max(1, abs(b).max()), err_msg=name
        )


def test_N16_gradcheck_in_double() -> None:
    """Finite differences need float64; on q, k, v and bias, with a mask, a dead row and groups."""
    q, k, v = (torch.from_numpy(draw(1, 1, 3, 4, seed=s)).requires_grad_() for s in range(3))
    assert torch.autograd.gradcheck(attention_lib.torch.attention, (q, k, v))
    mask = torch.tensor([[True, False, True], [False] * 3, [True] * 3])
    bias = torch.from_numpy(draw(2, 3, 3)).requires_grad_()
    q = torch.from_numpy(draw(1, 2, 3, 4)).requires_grad_()

    def attend(*leaves: Any) -> Any:
        q, k, v, bias, scale = leaves
        return attention_lib.torch.attention(
            q, k, v, mask, bias=bias, scale=scale, causal=True, return_weights=True
        )

    scale = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(attend, (q, k, v, bias, scale))
    assert torch.autograd.gradgradcheck(attend, (q, k, v, bias, scale))


def test_gradcheck_of_softmax_and_rotary() -> None:
    x = torch.from_numpy(draw(2, 3, 4)).requires_grad_()
    assert torch.autograd.gradcheck(lambda y: attention_lib.torch.softmax(y, -2), (x,))
    for pairing in ("half", "interleaved"):
        assert torch.autograd.gradcheck(
            lambda y, pairing=pairing: attention_lib.torch.rotary(y, pairing=pairing), (x,)
        )


@pytest.mark.parametrize("name", CASES)
def test_by_hand_equals_autograd(name: str) -> None:
    """NumPy's derivation against torch's attention, both in float64."""
    arguments = case(name)
    d_out = draw(*out_shape(arguments), seed=5)
    by_hand, automatic = (
        gradients(path, on_path(path, arguments)[0], path.array(d_out)) for path in DOUBLE
    )
    for a, b in zip(by_hand, automatic, strict=True):
        np.testing.assert_allclose(a, to_float64(b), rtol=0, atol=1e-13)


def test_worked_by_hand() -> None:
    """Weights 3/4 and 1/4, values 4 and 8: d_score = ±3/4 for d_out = 1 (see test_attention)."""
    q: Floats = np.array([[2.0, 0.0]])
    k = np.array([[math.log(3) / math.sqrt(2), 5.0], [0.0, -1.0]])
    v = np.array([[4.0], [8.0]])
    d_q, d_k, d_v = attention_lib.attention_gradient(q, k, v, np.ones((1, 1)))
    np.testing.assert_allclose(d_v, [[0.75], [0.25]], rtol=1e-15)
    np.testing.assert_allclose(d_k, [[-1.5 / math.sqrt(2), 0], [1.5 / math.sqrt(2), 0]], rtol=1e-14)
    np.testing.assert_allclose(d_q, [[-0.375 * math.log(3), -4.5 / math.sqrt(2)]], rtol=1e-14)


@pytest.mark.parametrize("hide", ["mask", "bias"])
@pytest.mark.parametrize("leading", [(), (1,)])
@pytest.mark.parametrize("last_is_seen", [False, True])
def test_a_mask_with_more_axes_is_taken_whatever_it_hides(
    hide: str, leading: tuple[int, ...], last_is_seen: bool
) -> None:
    """A mask (2, 3, 4) over q (3, 2), that hides key 3 from all or not: the gradients of torch."""
    q, k, v, d_out = draw(*leading, 3, 2), draw(4, 2), draw(4, 2, seed=1), draw(2, 3, 2, seed=2)
    mask = np.ones((2, 3, 4), dtype=bool)
    mask[..., 3] = last_is_seen
    rule = {"mask": mask} if hide == "mask" else {"bias": np.where(mask, 0.0, -np.inf)}
    found = attention_lib.attention_gradient(q, k, v, d_out, **rule)
    leaves = [torch.from_numpy(x).requires_grad_() for x in (q, k, v)]
    tensors: Case = {name: torch.from_numpy(x) for name, x in rule.items()}
    out = attention_lib.torch.attention(*leaves, **tensors, backend="dense")
    expected = torch.autograd.grad(out, leaves, torch.from_numpy(d_out))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-14, strict=True)
