"""The forward pass: against loops, torch's own attention, values worked by hand, and wrong answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from . import reference
from .paths import DOUBLE, NUMPY, PATHS, TORCH, Path, naive, to_float64
from .reference import Floats, check_budget

B, HQ, HK, T, S, D_K, D_V = 2, 6, 3, 5, 7, 11, 9

Case = dict[str, Any]


def draw(*shape: int, seed: int = 0) -> Floats:
    """Normal numbers: scores of about 1, so nothing saturates and a missing scale is seen."""
    return np.random.default_rng((seed, *shape)).normal(size=shape)


def case(name: str) -> Case:
    """The named arguments of attention, all sizes different and odd where they can be."""
    q, k, v = draw(B, HQ, T, D_K), draw(B, HK, S, D_K), draw(B, HK, S, D_V)
    mask = draw(B, 1, T, S, seed=1) > -0.5
    some: dict[str, Case] = {
        "plain": {},
        "mask": {"mask": mask},
        "causal": {"causal": True},
        "mask and causal": {"mask": mask, "causal": True},
        "bias": {"bias": draw(HQ, T, S, seed=2)},
        "bias that hides": {"bias": np.where(mask, draw(B, 1, T, S, seed=2), -np.inf)},
        "scale": {"scale": 0.37},
        "dead row": {"mask": mask & (np.arange(T) != 2)[:, None]},
        "more queries": {"q": draw(B, HQ, S + 4, D_K), "causal": True},
        "one head": {"q": draw(B, HQ, T, D_K), "k": k[:, :1], "v": v[:, :1]},
        "as many heads": {"k": draw(B, HQ, S, D_K), "v": draw(B, HQ, S, D_V)},
        "no heads": {"q": q[0, 0], "k": k[0, 0], "v": v[0, 0], "causal": True},
        "batch broadcasts": {"k": k[:1], "v": v[0]},
        "everything": {"mask": mask, "bias": draw(T, S), "causal": True, "scale": 0.5},
    }
    return {"q": q, "k": k, "v": v} | some[name]


CASES = [
    "plain", "mask", "causal", "mask and causal", "bias", "bias that hides", "scale", "dead row",
    "more queries", "one head", "as many heads", "no heads", "batch broadcasts", "everything",
]  # fmt: skip


def same(path: Path, found: Any, expected: Any) -> None:
    """Raise AssertionError unless two runs of the library agree, NaN for NaN, inf for inf."""
    np.testing.assert_allclose(
        to_float64(found), to_float64(expected), rtol=2 * path.eps, atol=2 * path.eps, strict=True
    )


def on_path(path: Path, arguments: Case) -> tuple[Case, Case]:
    """The arguments for the library, and the same rounded numbers as float64 for the reference."""
    native = {
        name: path.array(x) if isinstance(x, np.ndarray) else x for name, x in arguments.items()
    }
    exact = {
        name: path.rounded(x) if isinstance(x, np.ndarray) and x.dtype != bool else x
        for name, x in arguments.items()
    }
    return native, exact


def compare(attend: Callable[..., Any], path: Path, name: str) -> None:
    """Raise AssertionError unless `attend` gives output and weights as exact as the dtype allows."""
    native, exact = on_path(path, case(name))
    out, weights = attend(**native, return_weights=True)
    if out.dtype != path.native or weights.dtype != path.native:
        raise AssertionError(f"dtypes {out.dtype}, {weights.dtype}, expected {path.native}")
    expected = reference.attention(**exact)
    noise, _ = naive(path, **exact)
    check_budget(to_float64(out), expected.out, noise, path.eps)
    hidden = expected.weights == 0
    if to_float64(weights)[hidden].any():
        raise AssertionError("a hidden key has weight")
    np.testing.assert_allclose(
        to_float64(weights), expected.weights, rtol=0, atol=4 * path.eps, strict=True
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_output_and_weights_are_as_exact_as_the_dtype(path: Path, name: str) -> None:
    compare(path.lib.attention, path, name)


def test_the_reference_itself_by_hand() -> None:
    """Scores ln 3 and 0 give weights 3/4 and 1/4."""
    q, k = np.array([[2.0, 0.0]]), np.array([[math.log(3) / math.sqrt(2), 5.0], [0.0, -1.0]])
    v = np.array([[4.0], [8.0]])
    found = reference.attention(q, k, v, d_out=np.array([[1.0]]))
    np.testing.assert_allclose(found.weights, [[0.75, 0.25]], rtol=1e-15)
    np.testing.assert_allclose(found.out, [[5.0]], rtol=1e-15)
    np.testing.assert_allclose(found.d_v, [[0.75], [0.25]], rtol=1e-15)
    # d_score = w (d_w - mean) = ±3/4, times the other vector / sqrt(2)
    np.testing.assert_allclose(
        found.d_k, [[-1.5 / math.sqrt(2), 0], [1.5 / math.sqrt(2), 0]], rtol=1e-14
    )


@pytest.mark.parametrize("path", DOUBLE, ids=str)
def test_worked_by_hand(path: Path) -> None:
    """One query, three keys of width 4: scores 0, ln 2, ln 5 give weights 1/8, 2/8, 5/8."""
    q = [[2.0, 0.0, 0.0, 7.0]]
    k = [[0.0, 1, 2, 0], [math.log(2), 3, 1, 0], [math.log(5), 0, 1, 0]]
    v = [[8.0, 0.0], [0.0, 16.0], [8.0, 8.0]]
    out, weights = path.lib.attention(*map(path.array, (q, k, v)), return_weights=True)
    np.testing.assert_allclose(to_float64(weights), [[1 / 8, 2 / 8, 5 / 8]], rtol=1e-15)
    np.testing.assert_allclose(to_float64(out), [[6.0, 9.0]], rtol=1e-15)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("dead row", "more queries")])
def test_agrees_with_torch_functional(name: str) -> None:
    """F.scaled_dot_product_attention is the third opinion; its own causal flag is upper left."""
    arguments = case(name)
    path = Path("torch", "float64")
    native, _ = on_path(path, arguments)
    q, k, v = (native.pop(x) for x in "qkv")
    rows, columns = q.shape[-2], k.shape[-2]
    added = torch.zeros(rows, columns, dtype=torch.float64) + native.get("bias", torch.zeros(()))
    if "mask" in native:
        added = added.masked_fill(~native["mask"], -math.inf)
    if native.get("causal"):
        later = torch.arange(columns) > torch.arange(rows)[:, None] + columns - rows
        added = added.masked_fill(later, -math.inf)
    grouped = q.ndim > 2 and k.shape[-3] not in (1, q.shape[-3])
    if name == "batch broadcasts":
        k, v = k.expand(B, -1, -1, -1), v.expand(B, -1, -1, -1)
    if name == "one head":
        k, v = k.expand(-1, HQ, -1, -1), v.expand(-1, HQ, -1, -1)
    theirs = F.scaled_dot_product_attention(
        q, k, v, added, scale=native.get("scale"), enable_gqa=grouped
    )
    alive = ~torch.isneginf(added).all(-1, keepdim=True)
    for other in DOUBLE:
        ours = other.lib.attention(**on_path(other, arguments)[0])
        np.testing.assert_allclose(
            to_float64(ours), to_float64(theirs.where(alive, 0)), rtol=0, atol=1e-14
        )


# ---------------------------------------------------------------- wrong attentions


def wrong(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    *,
    bias: Any = None,
    causal: bool = False,
    scale: float | None = None,
    return_weights: bool = True,
    fault: str,
) -> tuple[Any, Any]:
    """Attention in NumPy with one named fault; without one ("none") it is right."""
    dtype = q.dtype
    q, k, v = (x.astype(np.promote_types(dtype, np.float32)) for x in (q, k, v))
    groups = q.shape[-3] // k.shape[-3] if min(q.ndim, k.ndim) > 2 else 1
    if groups > 1 and k.shape[-3] > 1:
        if fault == "grouped heads tiled":
            k, v = (np.concatenate([x] * groups, axis=-3) for x in (k, v))
        else:
            k, v = (np.repeat(x, groups, axis=-3) for x in (k, v))
    width = {"divided by d_k": q.shape[-1] ** 2, "scaled by d_v": v.shape[-1]}
    factor = 1 / math.sqrt(width.get(fault, q.shape[-1])) if scale is None else scale
    factor = {"no scale": 1.0, "scaled twice": factor**2}.get(fault, factor)
    if fault == "scale ignored":
        factor = 1 / math.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2) * factor
    if bias is not None and fault != "bias ignored":
        scores = (scores + bias) if fault != "bias scaled" else scores + bias * factor
        scores = scores - 2 * bias if fault == "bias subtracted" else scores
    rows, columns = scores.shape[-2:]
    allowed = np.ones((rows, columns), dtype=bool)
    shift = {"causal from the upper left": 0, "sees one key too many": columns - rows + 1}
    shift |= {"sees not itself": columns - rows - 1}
    if causal and not (fault == "causal lost with a mask" and mask is not None):
        allowed = np.tril(allowed, shift.get(fault, columns - rows))
        allowed = allowed.T[::-1, ::-1].T if fault == "causal upside down" else allowed
    if mask is not None and not (fault == "mask lost with causal" and causal):
        allowed = allowed & (~mask if fault == "mask inverted" else mask)
    if fault == "mask united with causal" and mask is not None and causal:
        allowed = mask | np.tril(np.ones((rows, columns), dtype=bool), columns - rows)
    if bias is not None:
        allowed = allowed & ~np.isneginf(bias)
    if fault in ("masked after the softmax", "masked with a large negative number"):
        hidden = scores if fault[7] == "a" else np.where(allowed, scores, -1e4)
    else:
        hidden = np.where(allowed, scores, -np.inf)
    if fault == "hidden scores are 0":
        hidden = np.where(allowed, scores, 0)
    axis = -2 if fault == "softmax over the queries" else -1
    with np.errstate(invalid="ignore"):
        top = (
            0
            if fault == "none"
            else np.where(np.isfinite(hidden), hidden, -1e30).max(axis, keepdims=True)
        )
        weights = np.exp(hidden - top)
        weights = weights / (weights.sum(axis, keepdims=True) if fault != "not normalised" else 1)
    if fault == "masked after the softmax":
        weights = np.where(allowed, weights, 0)
    if fault == "dead rows look everywhere":
        weights = np.where(allowed.any(-1, keepdims=True), weights, 1 / columns)
    elif fault != "masked with a large negative number":
        weights = np.nan_to_num(weights)
    out = weights @ (k if fault == "keys instead of values" and k.shape == v.shape else v)
    if fault == "heads in reverse" and out.ndim > 2:
        out = out[..., ::-1, :, :]
    if fault == "weights averaged over heads" and out.ndim > 2:
        weights = np.broadcast_to(weights.mean(-3, keepdims=True), weights.shape)
    if fault == "output in float64":
        return out.astype(np.float64), weights.astype(np.float64)
    return out.astype(dtype), weights.astype(dtype)


# The fault, and the case whose comparison must notice it.
WRONG = [
    ("no scale", "plain"),
    ("scaled twice", "plain"),
    ("divided by d_k", "plain"),
    ("scaled by d_v", "plain"),
    ("scale ignored", "scale"),
    ("softmax over the queries", "plain"),
    ("not normalised", "plain"),
    ("heads in reverse", "plain"),
    ("weights averaged over heads", "plain"),
    ("grouped heads tiled", "plain"),
    ("mask inverted", "mask"),
    ("masked after the softmax", "mask"),
    ("hidden scores are 0", "mask"),
    ("masked with a large negative number", "dead row"),
    ("dead rows look everywhere", "dead row"),
    ("causal from the upper left", "causal"),
    ("causal upside down", "more queries"),
    ("sees one key too many", "causal"),
    ("sees not itself", "causal"),
    ("causal lost with a mask", "mask and causal"),
    ("mask lost with causal", "mask and causal"),
    ("mask united with causal", "mask and causal"),
    ("bias ignored", "bias"),
    ("bias scaled", "bias"),
    ("bias subtracted", "bias"),
]


@pytest.mark.parametrize(("fault", "name"), WRONG, ids=[fault for fault, _ in WRONG])
@pytest.mark.parametrize("path", NUMPY, ids=str)
def test_the_comparison_refuses_a_wrong_attention(path: Path, fault: str, name: str) -> None:
    with pytest.raises(AssertionError):
        compare(lambda **arguments: wrong(**arguments, fault=fault), path, name)


def test_the_comparison_refuses_another_dtype() -> None:
    with pytest.raises(AssertionError, match="dtypes float64"):
        compare(
            lambda **arguments: wrong(**arguments, fault="output in float64"), NUMPY[1], "plain"
        )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", NUMPY, ids=str)
def test_the_comparison_accepts_another_right_attention(path: Path, name: str) -> None:
    """The same code without a fault passes, so it is the fault that is refused above."""
    compare(lambda **arguments: wrong(**arguments, fault="none"), path, name)


# ---------------------------------------------------------------- properties


@st.composite
def problems(draw_: Any) -> Case:
    """Any arguments that fit: broadcast and missing axes, groups, empty axes, dead rows."""
    size = st.integers(1, 3)
    batch = draw_(st.lists(st.integers(0, 3), max_size=2))
    kv_heads, group = draw_(size), draw_(size)
    rows, columns = draw_(st.integers(0, 4)), draw_(st.integers(0, 4))
    rng = np.random.default_rng(draw_(st.integers(0, 2**32 - 1)))

    def leading(heads: int) -> list[int]:
        """Some of the leading axes, some of them 1; heads go only with all that come before."""
        cut = draw_(st.integers(0, len(batch)))
        axes = [draw_(st.sampled_from([1, n])) for n in batch[cut:]]
        return [*axes, heads]

    def pairs() -> tuple[int, ...]:
        axes = leading(draw_(st.sampled_from([1, kv_heads * group])))
        axes = axes[draw_(st.integers(0, len(axes))) :]
        return (*axes, draw_(st.sampled_from([1, rows])), draw_(st.sampled_from([1, columns])))

    d_k, d_v = draw_(size), draw_(size)
    arguments: Case = {
        "q": rng.normal(size=(*leading(kv_heads * group), rows, d_k)),
        "k": rng.normal(size=(*leading(kv_heads), columns, d_k)),
        "v": rng.normal(size=(*leading(kv_heads), columns, d_v)),
        "causal": draw_(st.booleans()),
        "scale": draw_(st.sampled_from([None, 0.7, -1.3])),
    }
    if draw_(st.booleans()):
        arguments["mask"] = rng.random(pairs()) < draw_(st.sampled_from([0.0, 0.4, 0.8, 1.0]))
    if draw_(st.booleans()):
        bias = rng.normal(size=pairs())
        arguments["bias"] = np.where(rng.random(bias.shape) < 0.3, -np.inf, bias)
    return arguments


@given(problems())
def test_any_shapes_masks_and_biases(arguments: Case) -> None:
    expected = reference.attention(**arguments)
    for path in DOUBLE:
        native, _ = on_path(path, arguments)
        out, weights = path.lib.attention(**native, return_weights=True)
        np.testing.assert_allclose(to_float64(out), expected.out, atol=1e-13, strict=True)
        # Weights have no axis that only v has.
        found = np.broadcast_to(to_float64(weights), expected.weights.shape)
        np.testing.assert_allclose(found, expected.weights, atol=1e-13)
        alone = path.lib.attention(**native)
        same(path, alone, out)


def layouts(x: Any, kind: str) -> Any:
    """The same numbers as `x`, laid out differently."""
    if isinstance(x, torch.Tensor):
        x = x.clone()
        if kind == "transposed":
            return x.mT.contiguous().mT
        wide = x.new_zeros(*x.shape[:-1], 2 * x.shape[-1])
        wide[..., ::2] = x
        return wide[..., ::2]
    if kind == "transposed":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if kind == "strided":
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    return np.ascontiguousarray(x[..., ::-1, :])[..., ::-1, :]


@pytest.mark.parametrize("kind", ["transposed", "strided", "reversed"])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_views_are_like_copies(path: Path, kind: str) -> None:
    if kind == "reversed" and path.library == "torch":
        kind = "strided"
    arguments = case("everything")
    native, exact = on_path(path, arguments)
    views = native | {x: layouts(native[x], kind) for x in ("q", "k", "v", "mask", "bias")}
    expected = reference.attention(**exact).out
    out = path.lib.attention(**views)
    check_budget(to_float64(out), expected, naive(path, **exact)[0], path.eps)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_expanded_is_like_copied(path: Path) -> None:
    q, k, v = path.array(draw(1, T, D_K)), path.array(draw(S, D_K)), path.array(draw(S, D_V))
    expand: Any = np.broadcast_to if path.library == "numpy" else torch.broadcast_to
    views = expand(q, (B, 3, T, D_K)), expand(k, (B, 3, S, D_K)), expand(v, (B, 3, S, D_V))
    copies = [path.array(to_float64(x)) for x in views]
    found, expected = (path.lib.attention(*x, causal=True) for x in (views, copies))
    same(path, found, expected)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_inputs_are_never_modified(path: Path) -> None:
    native, _ = on_path(path, case("everything"))
    native["v"][..., 3, 2] = math.nan  # the special path too
    arrays = {name: x for name, x in native.items() if hasattr(x, "shape")}
    before = {name: to_float64(x).copy() for name, x in arrays.items()}
    if path.library == "numpy":
        for x in arrays.values():
            x.flags.writeable = False
    out, weights = path.lib.attention(**native, return_weights=True)
    out[...], weights[...] = 7.0, 7.0  # and what comes back is no view of them
    for name, x in arrays.items():
        np.testing.assert_array_equal(to_float64(x), before[name])


@pytest.mark.parametrize("path", PATHS, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_empty_axes(path: Path, causal: bool, masked: bool) -> None:
    """No keys: zeros. No queries or no batch: nothing."""
    for b, t, s in ((2, 3, 0), (2, 0, 5), (0, 3, 5), (2, 0, 0)):
        q, k, v = (path.array(np.ones(x)) for x in ((b, 3, t, 7), (b, 3, s, 7), (b, 3, s, 9)))
        mask = path.array(np.ones((t, s), dtype=bool)) if masked else None
        out, weights = path.lib.attention(q, k, v, mask, causal=causal, return_weights=True)
        assert tuple(out.shape) == (b, 3, t, 9)
        assert tuple(weights.shape) == (b, 3, t, s)
        assert out.dtype == weights.dtype == path.native
        assert s or not to_float64(out).any()


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_one_key_gets_all_the_weight(path: Path) -> None:
    q, k, v = (path.array(draw(*x)) for x in ((1, 3, 5), (1, 1, 5), (1, 1, 7)))
    out, weights = path.lib.attention(q, k, v, return_weights=True)
    assert (to_float64(weights) == 1).all()
    same(path, out, np.repeat(to_float64(v), 3, axis=-2))


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_order_of_keys_does_not_matter_and_of_queries_carries_over(path: Path) -> None:
    native, exact = on_path(path, case("plain"))
    budget = naive(path, **exact)[0]
    order, expected = [3, 0, 6, 2, 5, 1, 4], reference.attention(**exact).out
    shuffled = path.lib.attention(
        native["q"], native["k"][..., order, :], native["v"][..., order, :]
    )
    check_budget(to_float64(shuffled), expected, budget, path.eps)
    rows = [4, 2, 0, 1, 3]
    turned = path.lib.attention(native["q"][..., rows, :], native["k"], native["v"])
    check_budget(to_float64(turned), expected[..., rows, :], budget[..., rows, :], path.eps)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_scores_of_ten_thousand_are_fine(path: Path) -> None:
    q, k = path.array([[100.0], [-100.0]]), path.array([[100.0], [99.0], [-100.0]])
    v = path.array([[1.0], [2.0], [4.0]])
    out, weights = path.lib.attention(q, k, v, return_weights=True)
    np.testing.assert_allclose(to_float64(out), [[1.0], [4.0]], rtol=path.eps)
    np.testing.assert_allclose(to_float64(weights), [[1, 0, 0], [0, 0, 1]], atol=1e-40)


def test_a_caller_who_raises_on_every_floating_point_event_gets_no_false_alarm() -> None:
    q, k, v = draw(3, T, D_K) * 500, draw(3, T, D_K), draw(3, T, D_V)
    with np.errstate(all="raise"):
        for path in NUMPY:
            x = [path.array(a) for a in (q, k, v)]
            mask = np.eye(T, dtype=bool) & (np.arange(T) > 1)[:, None]
            path.lib.attention(*x, mask)
            path.lib.attention(*x, causal=True)
            path.lib.attention_gradient(*x, x[2], mask)
            path.lib.softmax(x[0])


# ---------------------------------------------------------------- NaN and infinity

POISON = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("poison", [*POISON, "huge"])
@pytest.mark.parametrize("how", ["mask", "bias", "causal"])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_poison_that_no_row_sees_reaches_nothing(path: Path, how: str, poison: Any) -> None:
    """Key 4 is hidden from every query, and in the third way query 0 sees no key.

    The largest numbers there, as memory not yet written may hold, overflow nowhere (no warning).
    """
    poison = path.lowest if poison == "huge" else poison
    native, _ = on_path(path, {"q": draw(2, 5, 7), "k": draw(2, 5, 7), "v": draw(2, 5, 3)})
    if how == "causal":
        hidden: Case = {"causal": True, "mask": path.array(np.tri(5, k=-1, dtype=bool))}
    else:
        seen = np.arange(5) < 4
        bias = np.where(seen, 0.0, -np.inf)[None, :]
        hidden = {"mask": path.array(seen[None])} if how == "mask" else {"bias": path.array(bias)}
    clean_out, clean_weights = path.lib.attention(**native, **hidden, return_weights=True)
    dirty = {name: path.array(to_float64(x)) for name, x in native.items()}
    dirty["k"][..., 4, :] = dirty["v"][..., 4, :] = poison
    if how == "causal":
        dirty["q"][..., 0, :] = poison  # the query that sees nothing
    out, weights = path.lib.attention(**dirty, **hidden, return_weights=True)
    same(path, out, clean_out)
    same(path, weights, clean_weights)


@pytest.mark.parametrize("poison", POISON)
@pytest.mark.parametrize("what", ["q", "k", "v", "bias"])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_poison_reaches_the_rows_that_see_it_and_no_other(
    path: Path, what: str, poison: float
) -> None:
    """Token 3 of 5, causal: as a key it is seen by queries 3 and 4, as a query it is row 3 alone.

    In torch a value that some rows see may reach the others, by 0 · NaN; it is never hidden.
    """
    arguments = {"q": draw(2, 5, 7), "k": draw(2, 5, 7), "v": draw(2, 5, 3), "bias": draw(5, 5)}
    native, _ = on_path(path, arguments)
    clean = to_float64(path.lib.attention(**native, causal=True))
    native[what][..., 3, 3 if what == "bias" else 2] = poison
    out, weights = path.lib.attention(**native, causal=True, return_weights=True)
    out, weights = to_float64(out), to_float64(weights)
    reached = {"q": [3], "k": [3, 4], "v": [3, 4], "bias": [3]}[what]
    others = [i for i in range(5) if i not in reached]
    if path.library == "numpy" or what != "v":
        same(path, out[:, others], clean[:, others])
    assert not weights[:, np.triu(np.ones((5, 5), dtype=bool), 1)].any(), "a hidden key has weight"
    if what == "v":
        wanted = np.full((2, 2), poison)
        np.testing.assert_array_equal(out[:, reached, 2], wanted)
        same(path, out[:, reached, :2], clean[:, reached, :2])
    elif math.isnan(poison) or (what == "bias" and poison > 0):
        assert np.isnan(out[:, reached]).all()
    else:
        assert (out[:, reached] != clean[:, reached]).any(-1).all()


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_poison_without_any_mask_is_never_hidden(path: Path) -> None:
    native, _ = on_path(path, {"q": draw(2, 5, 7), "k": draw(2, 5, 7), "v": draw(2, 5, 3)})
    native["v"][0, 1, 1] = math.nan
    out = to_float64(path.lib.attention(**native))
    assert np.isnan(out[0, :, 1]).all()
    assert np.isfinite(out[0][:, [0, 2]]).all()
    assert np.isfinite(out[1]).all()


@pytest.mark.parametrize("path", NUMPY, ids=str)
def test_both_infinities_in_one_row_make_nan(path: Path) -> None:
    v = path.array([[math.inf], [-math.inf], [1.0]])
    q, k = path.array(draw(3, 5)), path.array(draw(3, 5))
    out = to_float64(path.lib.attention(q, k, v, causal=True))
    np.testing.assert_array_equal(out, [[math.inf], [math.nan], [math.nan]])


@pytest.mark.parametrize("poison", POISON)
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_an_infinity_of_which_the_weight_is_rounded_to_0_is_nan_on_every_path(
    path: Path, poison: float
) -> None:
    """Key 0 has a weight of exp(-4e4), 0 in any dtype; key 1 has all the rest."""
    q, k = path.array([[200.0]] * 3), path.array([[-200.0], [0.0]])
    v = path.array([[poison, 1.0], [5.0, 7.0]])
    every = path.array(np.ones((3, 2), dtype=bool))
    some = path.array(np.array([[1, 1], [1, 1], [0, 1]], dtype=bool))
    row_by_row = [(some, 2)] if path.library == "numpy" else []
    for mask, rows in ((None, 3), (every, 3), *row_by_row):
        out, weights = path.lib.attention(q, k, v, mask, return_weights=True)
        assert not to_float64(weights)[:, 0].any()
        expected = np.array([[math.nan, 7.0]] * rows + [[5.0, 7.0]] * (3 - rows))
        np.testing.assert_array_equal(to_float64(out), expected)


# ---------------------------------------------------------------- autocast, compile, vmap


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("how", [{}, {"causal": True}], ids=["plain", "causal"])
def test_autocast_changes_nothing(half: str, how: Case) -> None:
    """Scores of 64 · 64 · 64 overflow in float16, and so does a sum over 4000 keys of 200."""
    path = Path("torch", half)
    q = k = path.array(np.full((2, 4000, 64), 64.0))
    v = path.array(np.full((2, 4000, 3), 200.0))
    for arguments in ([q, k, v], [x.float() for x in (q, k, v)]):
        arguments[0] = arguments[0][:, -2:]
        expected = path.lib.attention(*arguments, scale=1.0, **how)
        with torch.autocast("cpu", getattr(torch, half)):
            out = path.lib.attention(*arguments, scale=1.0, **how)
        assert out.dtype == arguments[0].dtype
        assert torch.isfinite(out).all()
        assert torch.equal(out, expected)


TRANSFORMED: list[Case] = [
    {},
    {"causal": True},
    {"mask": torch.from_numpy(draw(4, 5) > 0)},
    {"bias": torch.from_numpy(np.where(draw(6, 4, 5) > 0, 0.5, -np.inf))},
]


def poisoned() -> list[torch.Tensor]:
    """q, k and v (2, 6 or 3, T or S, 7); batch 1 holds poison that only its last query may see."""
    q, k, v = (torch.from_numpy(draw(2, *x, 7)) for x in ((6, 4), (3, 5), (3, 5)))
    v[1, :, -1, 2], k[1, 0, -1] = math.inf, math.nan
    return [q, k, v]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", TRANSFORMED, ids=lambda how: "".join(how) or "plain")
def test_compiled_in_one_graph_it_gives_the_same(how: Case, backend: str) -> None:
    torch._dynamo.reset()

    def attend(*leaves: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = Path("torch", "float64").lib.attention(*leaves, **how)
        return out

    compiled = torch.compile(attend, backend=backend, fullgraph=True)
    found, expected = ([x.requires_grad_() for x in poisoned()] for _ in range(2))
    for function, leaves in ((compiled, found), (attend, expected)):
        torch.autograd.backward(function(*leaves)[..., :-1, :].sum())
    same(Path("torch", "float64"), compiled(*found).detach(), attend(*expected).detach())
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(to_float64(a.grad), to_float64(b.grad), atol=1e-14)


@pytest.mark.parametrize("how", TRANSFORMED, ids=lambda how: "".join(how) or "plain")
def test_vmap_and_the_gradients_of_torch_func(how: Case) -> None:
    """Per sample, with values that all samples share, and with gradients inside and outside."""
    lib, path = Path("torch", "float64").lib, Path("torch", "float64")
    q, k, v = poisoned()

    def attend(q: Any, k: Any, v: Any) -> Any:
        return lib.attention(q, k, v, **how)

    def loss(*leaves: Any) -> Any:
        return attend(*leaves)[..., :-1, :].sum()

    func: Any = torch.func
    same(path, func.vmap(attend)(q, k, v), attend(q, k, v))
    same(path, func.vmap(attend, (0, 0, None))(q, k, v[1]), attend(q, k, v[1]))
    expected = func.grad(loss, (0, 1, 2))(q, k, v)
    for a, b in zip(func.vmap(func.grad(loss, (0, 1, 2)))(q, k, v), expected, strict=True):
        same(path, a, b)
    shared = func.grad(lambda v: func.vmap(attend, (0, 0, None))(q, k, v)[..., :-1, :].sum())(v[0])
    same(path, shared, func.grad(lambda v: loss(q, k, v))(v[0]))


# ---------------------------------------------------------------- softmax


@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.integers(-3, 2), st.integers(0, 99))
def test_softmax_along_any_axis(shape: list[int], axis: int, seed: int) -> None:
    axis = axis % len(shape) - len(shape)
    scores = np.random.default_rng(seed).normal(size=shape)
    scores = np.where(np.random.default_rng(seed + 1).random(shape) < 0.3, -np.inf, scores)
    expected = np.zeros(shape)
    moved, into = np.moveaxis(scores, axis, -1), np.moveaxis(expected, axis, -1)
    for where in np.ndindex(moved.shape[:-1]):
        row = {j: float(x) for j, x in enumerate(moved[where]) if x != -np.inf}
        for j, weight in reference.softmax(row).items():
            into[*where, j] = weight
    for path in DOUBLE:
        found = path.lib.softmax(path.array(scores), axis)
        np.testing.assert_allclose(to_float64(found), expected, atol=1e-15, strict=True)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_softmax_by_hand_and_with_large_scores(path: Path) -> None:
    scores = path.array([[0.0, math.log(3)], [1e4, 1e4], [-np.inf, -np.inf], [-np.inf, -1e4]])
    expected = [[0.25, 0.75], [0.5, 0.5], [0.0, 0.0], [0.0, 1.0]]
    found = path.lib.softmax(scores)
    assert found.dtype == path.native
    np.testing.assert_allclose(to_float64(found), expected, rtol=2 * path.eps)
    assert np.isnan(to_float64(path.lib.softmax(path.array([0.0, math.nan])))).all()


def test_softmax_gradients_stay_finite_where_all_is_hidden() -> None:
    scores = torch.tensor([[-math.inf, -math.inf], [0.0, -math.inf]], requires_grad=True)
    attention_of = Path("torch", "float32").lib.softmax(scores)
    (attention_of * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()


# ---------------------------------------------------------------- reported faults


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N1_a_fully_masked_row_gives_zeros_in_both_spellings(path: Path) -> None:
    q, k, v = (path.array(draw(1, 1, 3, 3, seed=s)) for s in range(3))
    mask = np.ones((3, 3), dtype=bool)
    mask[1] = False
    plain = to_float64(path.lib.attention(q, k, v))
    for hidden in ({"mask": mask}, {"bias": np.where(mask, 0.0, -np.inf)}):
        arguments = {name: path.array(x) for name, x in hidden.items()}
        out, weights = path.lib.attention(q, k, v, **arguments, return_weights=True)
        assert not to_float64(out)[0, 0, 1].any()
        assert not to_float64(weights)[0, 0, 1].any()
        same(path, to_float64(out)[0, 0, [0, 2]], plain[0, 0, [0, 2]])


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N1_a_row_of_finfo_min_is_a_number_and_hides_nothing(path: Path) -> None:
    """It swallows the scores, so the row is the mean of the values (in the dtype of the sums)."""
    q, k, v = (path.array(draw(1, 1, 3, 3, seed=s)) for s in range(3))
    wide = path.dtype if path.dtype == "float64" else "float32"
    summed = Path(path.library, wide)
    bias = np.zeros((3, 3))
    bias[1] = summed.lowest
    out = to_float64(path.lib.attention(q, k, v, bias=summed.array(bias)))
    np.testing.assert_allclose(
        out[0, 0, 1], to_float64(v)[0, 0].mean(0), rtol=4 * path.eps, atol=path.eps
    )
    # In half precision its own finfo.min is small beside float32, in which the sums are made.
    bias[1] = path.lowest
    assert np.isfinite(to_float64(path.lib.attention(q, k, v, bias=path.array(bias)))).all()


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N3_scores_of_64_by_64_do_not_overflow(path: Path) -> None:
    q = k = path.array(np.full((1, 1, 3, 64), 64.0))
    v = path.array(draw(1, 1, 3, 5))
    out = to_float64(path.lib.attention(q, k, v))
    mean = to_float64(v).mean(-2, keepdims=True)
    np.testing.assert_allclose(out, np.broadcast_to(mean, out.shape), atol=path.eps)
    assert 64 * 64 * 64 / math.sqrt(64) == 32768


@pytest.mark.parametrize("path", [p for p in PATHS if p.dtype == "float16"], ids=str)
@pytest.mark.parametrize("spelling", ["mask", "bias"])
def test_N4_hiding_fits_half_precision(path: Path, spelling: str) -> None:
    """First one key is hidden, then a whole row; float16(-1e9) is -inf."""
    q, k, v = (path.array(draw(1, 1, 3, 5, seed=s)) for s in range(3))
    minus_1e9 = float(torch.full((), -1e9, dtype=torch.float16))
    assert minus_1e9 == -math.inf
    mask = np.ones((3, 3), dtype=bool)
    for hide in (np.s_[:, 1], np.s_[2, :]):
        mask[hide] = False
        given_ = mask if spelling == "mask" else np.where(mask, 0.0, minus_1e9)
        out = to_float64(path.lib.attention(q, k, v, **{spelling: path.array(given_)}))
        exact = reference.attention(to_float64(q), to_float64(k), to_float64(v), mask).out
        np.testing.assert_allclose(out, exact, atol=2 * path.eps)
    assert not out[0, 0, 2].any()


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N5_two_masks_meet_in_one_cell(path: Path) -> None:
    """Causal and padding hide the same cells: booleans intersect, sums of finfo.min are -inf."""
    q, k, v = (path.array(draw(2, 1, 4, 5, seed=s)) for s in range(3))
    padding = np.arange(4) < np.array([3, 0])[:, None, None, None]
    exact = reference.attention(
        to_float64(q), to_float64(k), to_float64(v), padding, causal=True
    ).out
    low = path.lowest
    with np.errstate(over="ignore"):
        added = path.array(np.where(np.tri(4, dtype=bool), 0.0, low)) + path.array(
            np.where(padding, 0.0, low)
        )
    assert np.isneginf(to_float64(added)).any()
    ways: list[Case] = [
        {"mask": path.array(padding), "causal": True},
        {"mask": path.array(padding & np.tri(4, dtype=bool))},
        {"bias": path.array(np.where(padding, 0.0, -np.inf)), "causal": True},
    ]
    for way in ways:
        out = to_float64(path.lib.attention(q, k, v, **way))
        np.testing.assert_allclose(out, exact, atol=4 * path.eps)
        assert not out[1].any(), "sentence 1 is all padding"
    out = to_float64(path.lib.attention(q, k, v, bias=added))
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out[0], exact[0], atol=4 * path.eps)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_N9_no_scalar_promotes(path: Path) -> None:
    q, k, v = (path.array(draw(1, 2, 3, 64, seed=s)) for s in range(3))
    expected = to_float64(path.lib.attention(q, k, v))
    scales: list[Any] = [1 / 8, 1 / np.sqrt(64), np.float32(0.125), np.float16(0.125)]
    if path.library == "torch":
        scales += [torch.full((), 0.125), torch.full((1, 1, 1, 1, 1), 0.125, dtype=torch.float64)]
    for scale in scales:
        out, weights = path.lib.attention(q, k, v, scale=scale, return_weights=True)
        assert out.dtype == weights.dtype == path.native
        same(path, out, expected)
    assert path.lib.attention(q, k, v, scale=1).dtype == path.native
    assert path.lib.softmax(q).dtype == path.native


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_A1_causal_is_aligned_to_the_lower_right(path: Path) -> None:
    """2 queries on 5 keys see 11110 and 11111; of 5 queries on 2 keys the first three see nothing."""
    for rows, columns, seen in (
        (2, 5, ["11110", "11111"]),
        (5, 2, ["00", "00", "00", "10", "11"]),
    ):
        q, k, v = (path.array(draw(1, 1, n, 3)) for n in (rows, columns, columns))
        out, weights = path.lib.attention(q, k, v, causal=True, return_weights=True)
        found = ["".join(str(int(w > 0)) for w in row) for row in to_float64(weights)[0, 0]]
        assert found == seen
        for row, pattern in zip(to_float64(out)[0, 0], seen, strict=True):
            assert row.any() == ("1" in pattern)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_A2_a_decoding_step_is_the_last_row_of_the_full_pass(path: Path) -> None:
    q, k, v = (path.array(draw(1, 2, 6, 7, seed=s)) for s in range(3))
    full = to_float64(path.lib.attention(q, k, v, causal=True))
    for past in range(6):
        step = path.lib.attention(
            q[..., past : past + 1, :], k[..., : past + 1, :], v[..., : past + 1, :], causal=True
        )
        np.testing.assert_allclose(
            to_float64(step), full[..., past : past + 1, :], atol=4 * path.eps
        )
    assert abs(to_float64(step) - to_float64(v)[..., :1, :]).max() > 0.1, "not v[0]"


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_A3_true_means_may_look(path: Path) -> None:
    """Token 3 of 4 is perturbed: outputs 0 to 2 stay, under a lower triangle of True."""
    q, k, v = (draw(1, 1, 4, 5, seed=s) for s in range(3))
    mask = path.array(np.tri(4, dtype=bool))
    before = path.lib.attention(*map(path.array, (q, k, v)), mask)
    k[..., 3, :] += 1
    v[..., 3, :] -= 2
    after = path.lib.attention(*map(path.array, (q, k, v)), mask)
    moved = abs(to_float64(after) - to_float64(before)).max((0, 1, 3))
    assert moved[:3].max() <= 2 * path.eps
    assert moved[3] > 0.1


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_A12_neighbouring_query_heads_share_a_key_head(path: Path) -> None:
    """Values of head 0 are 0, of head 1 are 1: four query heads read 0, 0, 1, 1. 3 on 2 is refused."""
    q, k = path.array(draw(1, 4, 3, 5)), path.array(draw(1, 2, 3, 5))
    v = path.array(np.broadcast_to(np.arange(2.0)[None, :, None, None], (1, 2, 3, 1)))
    out = to_float64(path.lib.attention(q, k, v))
    np.testing.assert_allclose(out[0, :, :, 0], [[0] * 3, [0] * 3, [1] * 3, [1] * 3], atol=path.eps)
    with pytest.raises(ValueError, match=r"q \(1, 3, 3, 5\) has 3, k \(1, 2, 3, 5\) has 2"):
        path.lib.attention(q[:, :3], k, v)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("option", ["causal", "window", "bias"])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_A15_each_option_counts_with_and_without_a_mask(
    path: Path, option: str, masked: bool
) -> None:
    q, k, v = (path.array(draw(1, 1, 4, 5, seed=s)) for s in range(3))
    mask = np.ones((4, 4), dtype=bool)
    if masked:
        mask[:, 0] = False
    arguments: Case = {"mask": path.array(mask) if masked else None}
    hidden = np.triu(np.ones((4, 4), dtype=bool), 1)
    if option == "causal":
        arguments["causal"] = True
    elif option == "bias":
        arguments["bias"] = path.array(np.where(hidden, -np.inf, 0))
    else:
        window = to_float64(path.lib.sliding_window_mask(4, 2)).astype(bool)
        hidden = hidden | np.tri(4, k=-2, dtype=bool)
        arguments["mask"] = path.array(window & mask)
    _, weights = path.lib.attention(q, k, v, **arguments, return_weights=True)
    expected = ~hidden & mask
    np.testing.assert_array_equal(to_float64(weights)[0, 0] > 0, expected)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_A20_asking_for_weights_changes_nothing(path: Path) -> None:
    q, k, v = (path.array(draw(1, 2, 4, 5, seed=s)) for s in range(3))
    alone = path.lib.attention(q, k, v, causal=True)
    out, weights = path.lib.attention(q, k, v, causal=True, return_weights=True)
    same(path, out, alone)
    assert not np.triu(to_float64(weights), 1).any()


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_A25_a_mask_for_another_length_is_refused_with_both_numbers(path: Path) -> None:
    """Made for 8 tokens: 5 tokens take its corner, 16 are refused."""
    stored = path.lib.causal_mask(8)
    five, sixteen = path.array(draw(1, 1, 5, 3)), path.array(draw(1, 1, 16, 3))
    sliced = path.lib.attention(five, five, five, stored[:5, :5])
    same(path, sliced, path.lib.attention(five, five, five, causal=True))
    with pytest.raises(ValueError, match=r"\(1, 1, 16, 16\): mask \(8, 8\)"):
        path.lib.attention(sixteen, sixteen, sixteen, stored)


@pytest.mark.parametrize("path", TORCH, ids=str)
def test_a_learned_scale_has_a_gradient(path: Path) -> None:
    q, k, v = (path.array(draw(1, 2, 3, 5, seed=s)) for s in range(3))
    scale = torch.tensor([0.4], dtype=path.native, requires_grad=True)
    path.lib.attention(q, k, v, scale=scale).sum().backward()
    assert scale.grad is not None
    assert scale.grad.dtype == path.native
    assert float(scale.grad.abs()) > 0


@pytest.mark.parametrize("how", TRANSFORMED, ids=lambda how: "".join(how) or "plain")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by torch itself
def test_forward_mode(how: Case) -> None:
    """A directional derivative, and Jacobian and Hessian, as reverse mode gives them."""
    lib: Any = Path("torch", "float64").lib
    func: Any = torch.func
    q, k, v = (torch.from_numpy(draw(*x, 7)) for x in ((6, 4), (3, 5), (3, 5)))

    def attend(q: Any) -> Any:
        return lib.attention(q, k, v, **how)

    out, change = func.jvp(attend, (q,), (torch.ones_like(q),))
    torch.testing.assert_close(out, attend(q))
    jacobian = func.jacrev(attend)(q)
    torch.testing.assert_close(change, jacobian.sum((3, 4, 5)), rtol=0, atol=1e-12)
    torch.testing.assert_close(func.jacfwd(attend)(q), jacobian, rtol=0, atol=1e-12)

    def loss(q: Any) -> Any:
        return attend(q).square().sum()

    found, expected = func.hessian(loss)(q), func.jacrev(func.jacrev(loss))(q)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
