"""The Triton kernels: interpreted where there is no GPU, compiled where there is one."""

from __future__ import annotations

import ast
import importlib
import itertools
import math
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import attention_lib
from attention_lib.torch import attention
from attention_lib.torch.kernels import launch as triton_launch
from attention_lib.torch.kernels.launch import Tile
from attention_lib.torch.kernels.operators import flash, flash_attention, flash_backward

from .conftest import has_gpu
from .paths import Path, naive, to_float64
from .reference import check_budget
from .test_attention import draw

pytest.importorskip("triton", reason="needs Triton: make test EXTRAS=gpu")

DEVICE = "cuda" if has_gpu() else "cpu"
EXACT = torch.float32 if has_gpu() else torch.float64
LIMIT = 2e-5 if has_gpu() else 1e-13

Result = dict[str, Tensor]


@pytest.fixture(autouse=True)
def unequal_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that queries and keys cannot be confused; interpreted, the time goes by tiles."""
    monkeypatch.setattr(triton_launch, "SMALL", Tile(64, 32))


def tensors(*shapes: tuple[int, ...], dtype: torch.dtype = EXACT) -> list[Tensor]:
    drawn = (torch.from_numpy(draw(*shape, seed=i)) for i, shape in enumerate(shapes))
    return [x.to(DEVICE, dtype) for x in drawn]


def run(function: Any, q: Tensor, k: Tensor, v: Tensor, d_out: Tensor) -> Result:
    """Output and gradients."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    out = function(*leaves)
    found = torch.autograd.grad(out, leaves, d_out)
    return dict(zip(("out", "d_q", "d_k", "d_v"), (out.detach(), *found), strict=True))


def by_numpy(causal: bool, q: Tensor, k: Tensor, v: Tensor, d_out: Tensor) -> Result:
    """Output and gradients of NumPy, which a NaN reaches just where it may be seen."""
    q_, k_, v_, d_out_ = (x.double().cpu().numpy() for x in (q, k, v, d_out))
    found = (
        attention_lib.attention(q_, k_, v_, causal=causal),
        *attention_lib.attention_gradient(q_, k_, v_, d_out_, causal=causal),
    )
    names = ("out", "d_q", "d_k", "d_v")
    return {n: torch.from_numpy(x).to(q.device) for n, x in zip(names, found, strict=True)}


def compare(
    found: Result,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    d_out: Tensor,
    causal: bool,
    expected: Result | None = None,
) -> None:
    """Raise AssertionError unless all are `expected`, by default what dense attention gives."""
    expected = expected or run(
        lambda *x: attention(*x, causal=causal, backend="dense"),
        *(x.double() for x in (q, k, v, d_out)),
    )
    for name, x in found.items():
        truth = expected[name]
        assert x.shape == truth.shape
        if name != "out":  # by which way a gradient is infinite or NaN depends on the order of sums
            x, truth = (y.where(y.isfinite(), math.nan) for y in (x, truth))
        torch.testing.assert_close(
            x.double(), truth, rtol=LIMIT, atol=LIMIT, equal_nan=True, msg=name
        )


def by_kernel(causal: bool) -> Any:
    return lambda *x: attention(*x, causal=causal, backend="triton")


# Fewer, as many and more queries than keys; with causal the first of more queries see nothing.
LENGTHS = [(1, 1), (1, 129), (31, 33), (33, 1), (127, 127), (129, 31)]
WIDTHS = [16, 24, 64, 80, 128]
CASES = list(itertools.product(LENGTHS, WIDTHS, [False, True]))


@pytest.mark.parametrize(("lengths", "width", "causal"), CASES, ids=str)
def test_output_and_gradients_are_those_of_dense_attention(
    lengths: tuple[int, int], width: int, causal: bool
) -> None:
    """Grouped heads, one key head or as many; values as wide or not."""
    T, S = lengths
    number = CASES.index((lengths, width, causal))
    heads, key_heads = [(2, 1), (4, 2), (3, 3)][number % 3]
    d_v = width if number % 2 else width - 5
    q, k, v, d_out = tensors(
        (1, heads, T, width), (1, key_heads, S, width), (1, key_heads, S, d_v), (1, heads, T, d_v)
    )
    found = run(by_kernel(causal), q, k, v, d_out)
    compare(found, q, k, v, d_out, causal)
    if causal and T > S:
        assert not found["out"][..., : T - S, :].any()
        assert not found["d_q"][..., : T - S, :].any()


@pytest.mark.parametrize("fault", ["not causal", "upper left", "scale", "head", "no shrink"])
def test_the_comparison_refuses_what_is_wrong(fault: str) -> None:
    q, k, v, d_out = tensors((1, 4, 33, 16), (1, 2, 65, 16), (1, 2, 65, 16), (1, 4, 33, 16))
    wrong = {
        "not causal": by_kernel(False),
        "upper left": lambda q, k, v: by_kernel(True)(q, k[..., :33, :], v[..., :33, :]),
        "scale": lambda q, k, v: by_kernel(True)(q * 1.01, k, v),
        "head": lambda q, k, v: by_kernel(True)(q, k.flip(1), v.flip(1)),
        "no shrink": lambda q, k, v: by_kernel(True)(q, k[..., 32:, :], v[..., 32:, :]),
    }[fault]
    with pytest.raises(AssertionError):
        compare(run(wrong, q, k, v, d_out), q, k, v, d_out, True)


@pytest.fixture
def exact_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's interpreter keeps bfloat16 as bits and multiplies those; widened first, it is right."""
    if has_gpu():
        return
    import triton.language as tl

    interpreter = importlib.import_module("triton.runtime.interpreter")
    multiply = interpreter.InterpreterBuilder.create_dot

    def wide(x: Any) -> Any:
        if x.dtype.scalar != tl.bfloat16:
            return x
        return interpreter.TensorHandle(
            (x.data.astype(np.uint32) << 16).view(np.float32), tl.float32
        )

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return multiply(self, wide(a), wide(b), *rest)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", create_dot)
    monkeypatch.setattr(triton_launch, "_why_not_interpreted", lambda device, dtype: None)


@pytest.mark.usefixtures("exact_bfloat16")
@pytest.mark.parametrize("shape", [(1, 2, 33, 24), (1, 1, 129, 64), (2, 2, 256, 64)], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_G4_G5_as_exact_as_the_dtype(dtype: str, causal: bool, shape: tuple[int, ...]) -> None:
    """Twice the error of the plain formula in the same dtype, three times for gradients."""
    if shape[2] == 256 and (causal or dtype == "float32"):
        pytest.skip("needs a GPU") if not has_gpu() else None
    path = Path("torch", dtype)
    x = [path.rounded(draw(*shape, seed=i)) for i in range(4)]
    found = run(by_kernel(causal), *(path.array(a).to(DEVICE) for a in x))
    noise, gradients = naive(path, x[0], x[1], x[2], causal=causal, d_out=x[3])
    leaves = [torch.from_numpy(a).requires_grad_() for a in x[:3]]
    truth = attention(*leaves, causal=causal, backend="dense")
    assert isinstance(truth, Tensor)
    exact = torch.autograd.grad(truth, leaves, torch.from_numpy(x[3]))
    check_budget(to_float64(found["out"].cpu()), to_float64(truth), noise, path.eps)
    for name, expected, yardstick in zip(("d_q", "d_k", "d_v"), exact, gradients, strict=True):
        found_here = to_float64(found[name].cpu())
        check_budget(found_here, to_float64(expected), yardstick, path.eps, factor=3)


def test_G5_the_switch_for_tf32_changes_no_bit() -> None:
    q, k, v, d_out = tensors(*4 * [(1, 4, 128, 64)], dtype=torch.float32)
    before = torch.backends.cuda.matmul.allow_tf32
    found = []
    try:
        for torch.backends.cuda.matmul.allow_tf32 in (False, True):
            found.append(run(by_kernel(False), q, k, v, d_out))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


@pytest.mark.parametrize("width", [5, 16, 80, 96, 128, 256])
def test_G1_any_width_and_one_query(width: int) -> None:
    if has_gpu() and width > 128:
        pytest.skip("needs a GPU with float64")
    for T, S in ((1, 20), (20, 20)):
        q, k, v, d_out = tensors(*((1, 2, n, width) for n in (T, S, S, T)))
        compare(run(by_kernel(True), q, k, v, d_out), q, k, v, d_out, True)


def test_G3_the_same_inputs_give_the_same_bits() -> None:
    q, k, v, d_out = tensors(*4 * [(1, 2, 129, 24)], dtype=torch.float32)
    once, again = (run(by_kernel(True), q, k, v, d_out) for _ in range(2))
    assert all(torch.equal(once[name], again[name]) for name in once)


# ---------------------------------------------------------------- what is hidden


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of infinities
@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("what", ["q", "k", "v", "d_out"])
def test_poison_reaches_just_what_it_reaches_in_numpy(what: str, poison: float) -> None:
    """In one token that the earlier ones of its tile may not see."""
    arguments = dict(zip(("q", "k", "v", "d_out"), tensors(*4 * [(1, 1, 45, 16)]), strict=True))
    arguments[what][..., 40, 3] = poison
    found = run(by_kernel(True), **arguments)
    assert found["out"][..., :40, :].isfinite().all()
    compare(found, **arguments, causal=True, expected=by_numpy(True, **arguments))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("keys", "causal"), [((0, 32), False), ((0, 45), False), ((3, 45), True)])
def test_keys_of_which_all_scores_are_minus_infinity(keys: tuple[int, int], causal: bool) -> None:
    """A whole first tile of them: it has no weight. All of them: NaN, as in NumPy."""
    q, k, v, d_out = tensors(*4 * [(1, 1, 45, 16)])
    q[..., 0].abs_()
    k[..., slice(*keys), 0] = -math.inf
    found = run(by_kernel(causal), q, k, v, d_out)
    assert found["out"].isfinite().all() == (keys != (0, 45))
    compare(found, q, k, v, d_out, causal, by_numpy(causal, q, k, v, d_out))


def test_poison_in_queries_that_see_nothing_reaches_nothing() -> None:
    clean = tensors((1, 2, 70, 16), (1, 1, 40, 16), (1, 1, 40, 16), (1, 2, 70, 16))
    dirty = [x.clone() for x in clean]
    for x in (dirty[0], dirty[3]):
        x[..., :30, :] = math.nan
    found = run(by_kernel(True), *dirty)
    q, k, v, d_out = clean
    compare(found, q, k, v, d_out, True)
    out, lse = flash_attention(q, k, v, True, 0.25)
    assert out[..., :30, :].eq(0).all()
    assert lse[..., :30].isneginf().all()
    assert lse[..., 30:].isfinite().all()


# ---------------------------------------------------------------- the operators


@pytest.mark.skipif(has_gpu(), reason="needs float64, which the kernel has in the interpreter only")
def test_gradcheck_through_both_results() -> None:
    leaves = [x.requires_grad_() for x in tensors((1, 2, 5, 3), (1, 1, 7, 3), (1, 1, 7, 2))]

    def both(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flash_attention(q, k, v, True, 0.7)

    assert torch.autograd.gradcheck(both, leaves, fast_mode=True)
    longer = [x.requires_grad_() for x in tensors(*3 * [(1, 1, 70, 16)])]
    assert torch.autograd.gradcheck(both, longer, fast_mode=True)


@pytest.mark.skipif(has_gpu(), reason="needs float64, which the kernel has in the interpreter only")
def test_the_gradients_have_gradients() -> None:
    """By way of dense attention; q, k and v may be one tensor."""
    leaves = [x.requires_grad_() for x in tensors((1, 2, 5, 3), (1, 1, 7, 3), (1, 1, 7, 2))]
    assert torch.autograd.gradgradcheck(by_kernel(True), leaves, fast_mode=True)
    (x,) = tensors((1, 1, 4, 3))

    def squared(x: Tensor, backend: str) -> Any:
        out: Any = attention(x, x, x, causal=True, backend=backend)
        return out.pow(2).sum()

    found, expected = (
        torch.autograd.functional.hessian(  # type: ignore[no-untyped-call]
            lambda x, name=name: squared(x, name), x
        )
        for name in ("triton", "dense")
    )
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_opcheck() -> None:
    q, k, v, d_out = tensors((1, 2, 5, 3), (1, 1, 7, 3), (1, 1, 7, 2), (1, 2, 5, 2))
    out, lse = flash(q, k, v, True, 0.5)
    torch.library.opcheck(flash_backward, (d_out, None, q, k, v, out, lse, True, 0.5))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    torch.library.opcheck(flash, (*leaves, True, 0.5))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_in_one_graph_it_gives_the_same() -> None:
    torch._dynamo.reset()
    q, k, v, d_out = tensors((1, 2, 5, 16), (1, 1, 7, 16), (1, 1, 7, 16), (1, 2, 5, 16))
    compiled = torch.compile(by_kernel(True), backend="aot_eager", fullgraph=True)
    found, expected = (run(f, q, k, v, d_out) for f in (compiled, by_kernel(True)))
    for name, x in found.items():
        torch.testing.assert_close(x, expected[name], rtol=0, atol=0)


def test_meta_tensors_have_the_shapes_and_dtypes() -> None:
    q, k = (torch.ones(2, h, 5, 7, device="meta", dtype=torch.bfloat16) for h in (6, 3))
    q.requires_grad_()
    out, lse = flash_attention(q, k, k[..., :3], True, 0.5)
    assert (out.shape, out.dtype) == ((2, 6, 5, 3), torch.bfloat16)
    assert (lse.shape, lse.dtype) == ((2, 6, 5), torch.float32)
    assert torch.autograd.grad(out.sum(), q)[0].shape == q.shape


def layouts() -> Iterator[tuple[str, list[Tensor]]]:
    """Ways to lie in memory, and to leave leading axes to broadcasting."""
    (x,) = tensors((2, 3, 33, 3 * 16))
    yield "strided", list(x.chunk(3, -1))
    yield "transposed", [x[..., i : i + 16].transpose(-2, -3).contiguous().mT.mT.transpose(-2, -3)
                         for i in (0, 16, 32)]  # fmt: skip
    yield "every second", [x[..., ::2, i : i + 16] for i in (0, 1, 2)]
    yield "expanded", [y[:1, :1].expand(2, 3, -1, -1) for y in x.chunk(3, -1)]
    q, k, v = x.chunk(3, -1)
    yield "batch broadcasts", [q, k[:1], v[0]]
    yield "no heads", [q[0, 0], k[0, 0], v[0, 0]]
    yield "two batch axes", [q[None], k[:, None], v[:1, None]]
    yield "one key head", [q, k[:, :1], v[:, :1]]


@pytest.mark.parametrize("name", [name for name, _ in layouts()])
def test_any_strides_and_leading_axes(name: str) -> None:
    q, k, v = dict(layouts())[name]
    expected = attention(q, k, v, causal=True, backend="dense")
    assert isinstance(expected, Tensor)
    (d_out,) = tensors(tuple(expected.shape))
    compare(run(by_kernel(True), q, k, v, d_out), q, k, v, d_out, True)


@pytest.mark.parametrize("sizes", [(0, 2, 5, 7), (2, 0, 5, 7), (2, 2, 0, 7), (2, 2, 5, 0)], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_nothing_at_all(sizes: tuple[int, ...], causal: bool) -> None:
    B, H, T, S = sizes
    q, k, v, d_out = (torch.ones(B, H, n, 3, dtype=EXACT, device=DEVICE) for n in (T, S, S, T))
    found = run(by_kernel(causal), q, k, v, d_out)
    assert found["out"].shape == (B, H, T, 3)
    assert not any(x.any() for x in found.values())


def test_N3_scores_that_overflow_float16_and_autocast() -> None:
    q = k = torch.full((1, 1, 33, 64), 64.0, dtype=torch.float16, device=DEVICE)
    (v,) = tensors((1, 1, 33, 64), dtype=torch.float16)
    out = by_kernel(False)(q, k, v)
    torch.testing.assert_close(out, v.float().mean(-2, keepdim=True).half().expand_as(v))
    if DEVICE == "cuda":
        with torch.autocast("cuda", torch.bfloat16):
            assert torch.equal(by_kernel(False)(q, k, v), out)


# ---------------------------------------------------------------- large numbers


def test_a_head_that_32_bits_cannot_count_is_refused() -> None:
    many, one = (torch.empty(1, 1, n, 24, device="meta") for n in (2**26, 1))
    for found in (triton_launch.why_not(many, one), triton_launch.why_not(one, many)):
        assert found is not None
        assert found.startswith("it counts within a head in 32 bits, up to 67108863 ")
        assert found.endswith("s: found 67108864")
    assert triton_launch.why_not(many[..., 1:, :], many[..., 1:, :]) is None


@pytest.mark.skipif(has_gpu(), reason="asks the interpreter for addresses")
@pytest.mark.parametrize("name", ["forward", "backward_q", "backward_kv"])
def test_heads_lie_further_apart_than_32_bits_count(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program of the last tile of head 128, of 2²⁰ rows 16 wide; it reads and writes nothing."""
    interpreter = importlib.import_module("triton.runtime.interpreter")
    kernels = importlib.import_module("attention_lib.torch.kernels.flash")
    met: set[int] = set()

    def load(addresses: Any, mask: Any, other: Any, dtype: Any) -> Any:
        met.update(addresses[mask].tolist())
        return other.astype(dtype)

    def store(addresses: Any, values: Any, mask: Any) -> None:
        met.update(addresses[mask].tolist())

    monkeypatch.setattr(interpreter._interpreter, "load", load)
    monkeypatch.setattr(interpreter._interpreter, "store", store)
    head, many, few, tile = 128, 2**20, 32, Tile(64, 32)
    keys = name == "backward_kv"
    program = head * many // (tile.keys if keys else tile.queries)
    program += many // tile.keys - 1 if keys else 0  # of queries, the last tile is the first
    monkeypatch.setattr(
        interpreter.InterpreterBuilder,
        "set_grid_idx",
        lambda self, *_: setattr(self, "grid_idx", (program, 0, 0)),
    )
    T, S = (few, many) if keys else (many, few)
    kernel = getattr(kernels, f"{name}_kernel")
    pointers = {x: torch.zeros(1, dtype=torch.float64) for x in kernel.arg_names if x.isupper()}
    given = triton_launch.constants(torch.float64, 16, 16, False, False, tile)
    pointers = {x: y for x, y in pointers.items() if x not in {"T", "S", *given}}
    kernel[(1,)](*pointers.values(), 1.0, T, S, 1, **given)
    for x, pointer in pointers.items():
        if x != "FINITE":
            rows = T if x in ("Q", "OUT", "LSE", "D_OUT", "MEAN", "D_Q") else S
            width = 1 if x in ("LSE", "MEAN") else 16
            last = (head + 1) * rows * width - 1
            assert pointer.data_ptr() + 8 * last in met, x


# ---------------------------------------------------------------- the source


def lines_of_code(path: FilePath) -> int:
    """Without blank lines, comments and docstrings."""
    source = path.read_text(encoding="utf-8")
    words: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            words.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in words
        for number, line in enumerate(source.splitlines(), 1)
    )


def test_the_kernels_are_under_200_lines() -> None:
    path = FilePath(triton_launch.__file__).with_name("flash.py")
    assert 100 < lines_of_code(path) < 200
