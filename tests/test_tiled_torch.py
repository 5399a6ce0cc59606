"""Tiled attention for tensors: its gradients, what it keeps, what it computes, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import forward_ad, gradcheck
from torch.nn import functional as F

import attention_lib
from attention_lib.cost.counters import count_flops, peak_live_bytes
from attention_lib.torch import attention, tiled_attention

from . import reference
from .paths import TORCH, Path, naive, to_float64
from .reference import check_budget
from .test_attention import CASES, POISON, Case, case, draw, on_path, problems
from .test_tiled import BLOCKS, always_with_maximum, blocks

FLOAT64 = Path("torch", "float64")


def attend(*arguments: Any, **options: Any) -> Tensor:
    out = tiled_attention(*arguments, **options)
    assert isinstance(out, Tensor)
    return out


def gradients(
    function: Callable[..., Any], arguments: Case, d_out: Tensor, d_lse: Tensor | None = None
) -> dict[str, Tensor]:
    """Gradients of q, k, v and, where they are given, of the bias and a learned scale."""
    leaves = {
        name: x.detach().clone().requires_grad_()
        for name, x in arguments.items()
        if isinstance(x, Tensor) and x.is_floating_point()
    }
    if d_lse is None:
        results, upstream = [function(**arguments | leaves)], [d_out]
    else:
        results, upstream = function(**arguments | leaves, return_lse=True), [d_out, d_lse]
    found = torch.autograd.grad(results, list(leaves.values()), upstream, allow_unused=True)
    return {
        name: torch.zeros_like(leaf) if x is None else x
        for (name, leaf), x in zip(leaves.items(), found, strict=True)
    }


def dense_with_lse(**arguments: Any) -> tuple[Tensor, Tensor]:
    """Dense attention and the log-sum-exp of its scores, all by autograd."""
    arguments.pop("return_lse")
    q, k, bias, mask = (arguments.get(name) for name in ("q", "k", "bias", "mask"))
    assert q is not None
    assert k is not None
    if q.ndim > 2 and k.ndim > 2:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3) if k.shape[-3] > 1 else k
    scale = arguments.get("scale")
    scores = q @ k.mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    allowed = torch.ones(scores.shape[-2:], dtype=torch.bool)
    if arguments.get("causal"):
        allowed = allowed.tril(scores.shape[-1] - scores.shape[-2])
    if bias is not None:
        scores, allowed = scores + bias, allowed & ~bias.isneginf()
    allowed = allowed if mask is None else allowed & mask
    out = attention(**arguments)
    assert isinstance(out, Tensor)
    scores = scores.where(allowed, -math.inf).expand(*out.shape[:-1], -1)
    alive = allowed.any(-1)
    return out, scores.masked_fill(~alive[..., None], 0).logsumexp(-1).masked_fill(
        ~alive, -math.inf
    )


@pytest.mark.parametrize("sizes", BLOCKS[1:], ids=str)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", TORCH, ids=str)
def test_gradients_are_as_exact_as_the_dtype(path: Path, name: str, sizes: Any) -> None:
    arguments = case(name)
    d_out = draw(*reference.attention(**arguments).out.shape, seed=5)
    native, exact = on_path(path, arguments)
    d_exact = path.rounded(d_out)
    with blocks(sizes):
        found = gradients(attend, native, path.array(d_out))
    expected = reference.attention(**exact, d_out=d_exact)[2:]
    _, noise = naive(path, **exact, d_out=d_exact)
    for truth, yardstick, leaf in zip(expected, noise, "qkv", strict=True):
        assert found[leaf].dtype == path.native
        check_budget(to_float64(found[leaf]), truth, yardstick, path.eps, factor=3)


@given(problems(), st.integers(2, 4), st.integers(1, 4), st.booleans(), st.booleans())
def test_any_shapes_masks_and_biases_with_both_results(
    arguments: Case, queries: int, keys: int, maximum: bool, learned: bool
) -> None:
    """The gradients of q, k, v, bias and scale, through the output and the log-sum-exp."""
    native, _ = on_path(FLOAT64, arguments)
    if learned and arguments["scale"] is not None:
        native["scale"] = torch.tensor(arguments["scale"], dtype=torch.float64)
    _, tensors = always_with_maximum()
    out, lse = dense_with_lse(**native, return_lse=True)
    d_out, d_lse = (torch.from_numpy(draw(*x.shape, seed=5)) for x in (out, lse))
    d_lse = d_lse.where(lse.isfinite(), 0)
    with blocks((queries, keys, 1)):
        if maximum:
            with tensors:
                found = gradients(tiled_attention, native, d_out, d_lse)
        else:
            found = gradients(tiled_attention, native, d_out, d_lse)
    expected = gradients(dense_with_lse, native, d_out, d_lse)
    assert found.keys() == expected.keys()
    for name, x in found.items():
        np.testing.assert_allclose(
            to_float64(x), to_float64(expected[name]), atol=1e-12, err_msg=name, strict=True
        )


@pytest.mark.parametrize("causal", [False, True])
def test_gradcheck(causal: bool) -> None:
    q, k, v = (
        torch.from_numpy(draw(*shape)).requires_grad_()
        for shape in ((2, 3, 2), (1, 4, 2), (1, 4, 1))
    )
    bias = torch.from_numpy(draw(2, 1, 4)).requires_grad_()
    scale = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def both(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: Tensor) -> Any:
        return tiled_attention(q, k, v, bias=bias, causal=causal, scale=scale, return_lse=True)

    with blocks((4, 3, 1)):
        assert gradcheck(both, (q, k, v, bias, scale))


def test_the_sizes_that_are_used_against_torch() -> None:
    """Whole and partial blocks of the real sizes, forward and backward."""
    q, k, v, d_out = (torch.from_numpy(draw(1, 3, 1100, 16, seed=s)).float() for s in range(4))
    for causal in (False, True):
        found = gradients(attend, {"q": q, "k": k, "v": v, "causal": causal}, d_out)
        expected = gradients(
            lambda q, k, v, is_causal: F.scaled_dot_product_attention(q, k, v, is_causal=is_causal),
            {"q": q, "k": k, "v": v, "is_causal": causal},
            d_out,
        )
        for name, x in found.items():
            torch.testing.assert_close(x, expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", [torch.finfo(torch.float32).min, -1e9, 1e4])
@pytest.mark.parametrize("keys", [1, 2, 7])
def test_a_logarithm_is_not_lost_beside_large_scores(level: float, keys: int) -> None:
    """Rows 0 and 1 are padded by a number: all their scores are equal, or nearly, and large."""
    native, _ = on_path(Path("torch", "float32"), {name: draw(5, 7) for name in "qkv"})
    native["bias"] = torch.zeros(5, 5)
    native["bias"][:2] = level
    d_out = torch.from_numpy(draw(5, 7, seed=5)).float()
    expected = gradients(lambda **x: attention(**x, backend="dense"), native, d_out)
    with blocks((2, keys, 1)):
        found = gradients(attend, native, d_out)
    for name, x in found.items():
        torch.testing.assert_close(x, expected[name], rtol=0, atol=2e-6, msg=name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_results_may_be_changed_in_place_before_the_backward_pass(dtype: torch.dtype) -> None:
    grads = []
    for changed in (False, True):
        q = torch.from_numpy(draw(3, 5, 7)).to(dtype).requires_grad_()
        out, lse = tiled_attention(q, q, q, return_lse=True)
        if changed:
            out += 1
            lse *= 1
        (out.sum() + lse.sum()).backward()
        grads.append(q.grad)
    torch.testing.assert_close(*grads, rtol=0, atol=0)


# ---------------------------------------------------------------- what is hidden


@pytest.mark.parametrize("poison", POISON)
@pytest.mark.parametrize("how", ["mask", "bias", "causal"])
def test_poison_that_no_row_sees_reaches_no_gradient(how: str, poison: float) -> None:
    """Key 4 is hidden from every query; in the third way query 0 sees no key."""
    native, _ = on_path(FLOAT64, {"q": draw(2, 5, 7), "k": draw(2, 5, 7), "v": draw(2, 5, 3)})
    d_out = torch.from_numpy(draw(2, 5, 3, seed=5))
    seen = torch.arange(5) < 4
    ways: dict[str, Case] = {
        "mask": {"mask": seen[None]},
        "bias": {"bias": torch.zeros(1, 5, dtype=torch.float64).masked_fill(~seen, -math.inf)},
        "causal": {"causal": True, "mask": torch.ones(5, 5, dtype=torch.bool).tril(-1)},
    }
    hidden = ways[how]
    dirty = {name: x.clone() for name, x in native.items()}
    dirty["k"][..., 4, :] = dirty["v"][..., 4, :] = poison
    dirty_d_out = d_out.clone()
    if how == "causal":
        dirty["q"][..., 0, :] = dirty_d_out[..., 0, :] = poison
    for sizes in BLOCKS[1:]:
        with blocks(sizes):
            clean = gradients(attend, native | hidden, d_out)
            found = gradients(attend, dirty | hidden, dirty_d_out)
        for name, x in found.items():
            torch.testing.assert_close(x, clean[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("what", ["q", "k", "v", "bias", "d_out"])
def test_nan_that_a_row_sees_is_hidden_in_no_gradient(what: str) -> None:
    """Token 3 of 5, causal: its own gradients, and those of what it looks at."""
    arguments = {"q": draw(2, 5, 7), "k": draw(2, 5, 7), "v": draw(2, 5, 3), "bias": draw(5, 5)}
    native, _ = on_path(FLOAT64, arguments)
    d_out = torch.from_numpy(draw(2, 5, 3, seed=5))
    where = d_out if what == "d_out" else native[what]
    where[..., 3, 2] = math.nan
    expected = attention_lib.attention_gradient(
        native["q"].numpy(),
        native["k"].numpy(),
        native["v"].numpy(),
        d_out.numpy(),
        bias=native["bias"].numpy(),
        causal=True,
    )
    for sizes in BLOCKS:
        with blocks(sizes):
            found = gradients(attend, native | {"causal": True}, d_out)
        for name, truth in zip("qkv", expected, strict=True):
            assert np.isnan(to_float64(found[name])[np.isnan(truth)]).all(), name


@pytest.mark.parametrize("spelling", ["mask", "bias"])
def test_N2_a_dead_row_leaves_all_gradients_finite(spelling: str) -> None:
    x, W = torch.from_numpy(draw(2, 2)), torch.from_numpy(draw(2, 4)).requires_grad_()
    mask = torch.tensor([[True, True], [False, False]])
    hidden: Any = mask if spelling == "mask" else torch.zeros(2, 2).masked_fill(~mask, -math.inf)
    grads = []
    for function in (attention, attend):
        h = x @ W
        options: Case = {spelling: hidden}
        out = function(h, h, h, **options)
        assert isinstance(out, Tensor)
        grads.append(torch.autograd.grad(out[0].sum(), W)[0])
    assert grads[1].isfinite().all()
    torch.testing.assert_close(*grads)


# ---------------------------------------------------------------- what it keeps, computes, refuses


def bytes_at(n: int, device: str, *, backward: bool, **options: Any) -> int:
    q, k, v = (torch.ones(1, 2, n, 16, device=device, requires_grad=backward) for _ in range(3))

    def call() -> None:
        out = attend(q, k, v, **options)
        if backward:
            out.sum().backward()  # type: ignore[no-untyped-call]

    return peak_live_bytes(call)


@pytest.mark.parametrize("options", [{}, {"causal": True}], ids=["all", "causal"])
@pytest.mark.parametrize("backward", [False, True])
def test_live_bytes_grow_exactly_as_n(backward: bool, options: Case) -> None:
    """From 4,096 to 8,192 twice as much as from 2,048 to 4,096; almost the same on meta tensors."""
    sizes = [bytes_at(n, "meta", backward=backward, **options) for n in (2048, 4096, 8192)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0]) > 0
    assert sizes[2] < 8192 * 8192 * 4 / 10
    assert bytes_at(2048, "cpu", backward=backward, **options) == pytest.approx(sizes[0], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("backward", [False, True])
def test_live_bytes_grow_exactly_as_n_where_numbers_are_computed(backward: bool) -> None:
    sizes = [bytes_at(n, "cpu", backward=backward) for n in (2048, 4096, 8192)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0]) > 0


def test_for_the_backward_pass_only_what_grows_with_n_is_kept() -> None:
    q, k, v = (torch.ones(3, 700, 5, requires_grad=True) for _ in range(3))
    kept: list[Tensor] = []

    def keep(x: Tensor) -> Tensor:
        kept.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        tiled_attention(q, k, v)
    assert sorted(tuple(x.shape) for x in kept) == 2 * [(3, 700, 1)] + 4 * [(3, 700, 5)]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_flops_are_those_of_the_two_products(device: str) -> None:
    """4 · H · n² · d: exactly four times as many for twice the tokens, dense or tiled."""

    def flops(function: Callable[..., Any], n: int) -> int:
        q, k, v = (torch.ones(1, 2, n, 8, device=device) for _ in range(3))
        return count_flops(lambda: function(q, k, v))

    for function in (attention, tiled_attention):
        assert flops(function, 1000) == 4 * 2 * 1000**2 * 8
        assert flops(function, 2000) == 4 * flops(function, 1000)


def test_flops_of_hidden_blocks_are_not_spent() -> None:
    q, k, v = (torch.ones(3, 12, 5) for _ in range(3))
    mask = torch.zeros(12, 12, dtype=torch.bool)
    mask[3, 10] = True
    with blocks((4, 3, 1)):
        assert count_flops(lambda: tiled_attention(q, k, v, mask)) == 4 * 3 * 4 * 3 * 5
        assert count_flops(lambda: tiled_attention(q, k, v, mask & False)) == 0
        causal = count_flops(lambda: tiled_attention(q, k, v, causal=True))
    assert causal == 4 * 3 * 5 * sum(2 * end for end in (2, 4, 6, 8, 10, 12))


def test_meta_tensors_have_the_shapes_and_dtypes() -> None:
    q, k = (torch.ones(2, heads, 5, 7, device="meta", dtype=torch.bfloat16) for heads in (6, 3))
    mask = torch.ones(5, 5, device="meta", dtype=torch.bool)
    out, lse = tiled_attention(q, k, k[..., :3], mask, return_lse=True)
    assert (out.shape, out.dtype, out.device.type) == ((2, 6, 5, 3), torch.bfloat16, "meta")
    assert (lse.shape, lse.dtype) == ((2, 6, 5), torch.float32)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_autocast_changes_nothing(half: torch.dtype, causal: bool) -> None:
    """Scores of 64 · 64 · 64 overflow in float16, and so does a sum over 4000 keys of 200."""
    k, v = torch.full((2, 4000, 64), 64.0), torch.full((2, 4000, 3), 200.0)
    k[:, 1::3] = 63.9
    for dtype in (half, torch.float32):
        arguments: Case = {"q": k[:, -2:].to(dtype), "k": k.to(dtype), "v": v.to(dtype)}
        arguments |= {"scale": 1.0, "causal": causal}
        d_out = torch.from_numpy(draw(2, 2, 3)).to(dtype)
        arguments["v"] += torch.from_numpy(draw(2, 4000, 3)).to(dtype)
        expected, grads = attend(**arguments), gradients(attend, arguments, d_out)
        with torch.autocast("cpu", half):
            out, found = attend(**arguments), gradients(attend, arguments, d_out)
        assert out.dtype == dtype
        assert out.isfinite().all()
        assert torch.equal(out, expected)
        assert all(torch.equal(found[name], grads[name]) for name in grads)


def test_the_gradient_of_the_gradient_is_refused() -> None:
    q = torch.from_numpy(draw(3, 5, 7)).requires_grad_()
    with pytest.raises(RuntimeError, match="once; attention with backend='dense' has gradients"):
        torch.autograd.grad(attend(q, q, q).sum(), q, create_graph=True)


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # by torch itself
def test_transforms_and_forward_mode_are_refused_where_dense_attention_takes_them() -> None:
    q = torch.from_numpy(draw(2, 5, 3))

    def in_forward_mode(f: Any) -> object:
        with forward_ad.dual_level():
            return f(forward_ad.make_dual(q, q))  # type: ignore[no-untyped-call]

    def many_gradients(f: Any) -> object:
        jacobian = torch.autograd.functional.jacobian
        return jacobian(lambda x: f(x).sum(0), q, vectorize=True)  # type: ignore[no-untyped-call]

    calls: list[Callable[[Any], object]] = [
        lambda f: torch.func.vmap(f)(q),
        lambda f: torch.func.grad(lambda x: f(x).sum())(q),
        lambda f: torch.func.jvp(f, (q,), (q,)),
        in_forward_mode,
        many_gradients,
    ]
    for call in calls:
        call(lambda x: attention(x, x, x))
        with pytest.raises(
            RuntimeError,
            match=r"^tiled_attention (takes|has) no .*; attention with backend='dense' ",
        ):
            call(lambda x: attend(x, x, x))


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("causal", [False, True])
def test_on_a_gpu_it_is_the_same(causal: bool) -> None:
    q, k, v, d_out = (torch.from_numpy(draw(2, 4, 700, 32, seed=s)) for s in range(4))
    mask = torch.from_numpy(draw(700, 700, seed=9) > -1)
    arguments: Case = {"q": q, "k": k, "v": v, "mask": mask, "causal": causal}
    there = {name: x.cuda() if isinstance(x, Tensor) else x for name, x in arguments.items()}
    torch.testing.assert_close(attend(**there).cpu(), attend(**arguments))
    found = gradients(attend, there, d_out.cuda())
    for name, x in gradients(attend, arguments, d_out).items():
        torch.testing.assert_close(found[name].cpu(), x)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("hide", ["causal", "mask", "bias"])
def test_a_query_that_sees_nothing_does_not_reach_the_gradient_of_a_learned_scale(
    hide: str, bad: float
) -> None:
    q, k, v = (torch.from_numpy(draw(n, 5, seed=n)) for n in (7, 6, 6))
    q[0] = bad
    sees = torch.arange(7)[:, None].expand(7, 6) > 0
    rule: Case = {"causal": True}
    if hide != "causal":
        rule = {hide: sees if hide == "mask" else torch.zeros(7, 6).masked_fill(~sees, -math.inf)}
    found = []
    for backend in ("dense", "tiled"):
        scale = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
        leaf = q.clone().requires_grad_()
        with blocks((4, 3, 2)):
            out = attention(leaf, k, v, **rule, scale=scale, backend=backend)
            assert isinstance(out, Tensor)
            d_scale, d_q = torch.autograd.grad(out.square().sum(), [scale, leaf])
        assert not d_q[0].any()
        found.append(torch.cat([d_scale[None], d_q[1:].flatten()]))
    assert found[0].isfinite().all()
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)


def test_a_query_that_is_seen_does_reach_it() -> None:
    scale = torch.tensor(1.0, requires_grad=True)
    out = attend(torch.tensor([[math.nan]]), torch.ones(2, 1), torch.ones(2, 1), scale=scale)
    assert torch.autograd.grad(out.sum(), scale)[0].isnan()
