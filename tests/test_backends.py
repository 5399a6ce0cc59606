"""Which backend answers, that all give the same, and what is said where one cannot."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

from attention_lib.torch import attention, backends, chosen_backend
from attention_lib.torch.kernels import launch as triton_launch

from .test_attention import CASES, case, draw, on_path
from .test_imports import loaded_by
from .test_tiled_torch import FLOAT64, gradients


def few(requires_grad: bool = False) -> list[Tensor]:
    return [torch.from_numpy(draw(2, 3, 5, 4, seed=s)).requires_grad_(requires_grad) for s in (1, 2, 3)]  # fmt: skip


@pytest.fixture
def all_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MANY", 1)
    monkeypatch.setattr(backends, "LONG", 1)


# ---------------------------------------------------------------- the same from all


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled", "sdpa"])
@pytest.mark.parametrize("name", CASES)
def test_every_backend_gives_the_same(name: str, backend: str) -> None:
    """Dead rows, more queries than keys, grouped heads, masks, biases and all of them."""
    native, _ = on_path(FLOAT64, case(name))
    expected = attention(**native, backend="dense")
    out = attention(**native, backend=backend)
    assert isinstance(out, Tensor)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-13)
    d_out = torch.from_numpy(draw(*out.shape, seed=5))
    found, exact = (
        gradients(lambda b=b, **x: attention(**x, backend=b), native, d_out)
        for b in (backend, "dense")
    )
    for leaf, x in found.items():
        torch.testing.assert_close(x, exact[leaf], rtol=0, atol=1e-12, msg=leaf)


def test_sdpa_by_itself_lines_up_the_first_query() -> None:
    """The trap: with one query of six it would see the first key only."""
    q, k, v = (torch.from_numpy(draw(1, 1, n, 4)) for n in (1, 6, 6))
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(theirs, v[..., :1, :])
    ours = attention(q, k, v, causal=True, backend="sdpa")
    torch.testing.assert_close(ours, attention(q, k, v, backend="dense"))


# ---------------------------------------------------------------- what auto chooses


def test_auto_goes_by_the_number_of_pairs() -> None:
    x = torch.ones(1, 1024, 8)
    assert chosen_backend(x, x, x).name == "tiled"
    assert chosen_backend(x[:, :1023], x, x).name == "dense"
    assert "pairs" in chosen_backend(x, x, x, causal=True).reason
    heads = torch.ones(4, 512, 8)
    assert chosen_backend(heads, heads[:1], heads[:1]).name == "tiled"
    short = torch.ones(70, 127, 8)
    long = torch.ones(70, 2**14, 8)
    for q, k in ((short, short), (short[:, :1], long), (long, short[:, :1])):
        assert chosen_backend(q, k, k, causal=q.shape[-2] == 1).name == "dense"
    assert chosen_backend(short, short, short, causal=True).name == "tiled"
    assert chosen_backend(long[:, :128], long[:, :128], long[:, :128]).name == "tiled"
    mask = torch.ones(4, 512, 512, dtype=torch.bool)
    assert chosen_backend(heads[0], heads[0], heads[0], mask[:1]).name == "dense"


@pytest.mark.usefixtures("all_are_many")
@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # by torch itself
def test_auto_is_dense_where_nothing_else_can() -> None:
    q, k, v = few()
    assert chosen_backend(q, k, v).name == "tiled"
    assert chosen_backend(q, k, v, return_weights=True).name == "dense"
    assert chosen_backend(*(x.to("meta") for x in (q, k, v))).name == "dense"
    names: list[str] = []

    def ask(x: Tensor) -> Tensor:
        names.append(chosen_backend(x, x, x).name)
        out = attention(x, x, x)
        assert isinstance(out, Tensor)
        return out

    torch.func.vmap(ask)(q)
    torch.func.grad(lambda x: ask(x).sum())(q)
    with forward_ad.dual_level():
        ask(forward_ad.make_dual(q, q))  # type: ignore[no-untyped-call]
    assert names == 3 * ["dense"]


@pytest.mark.usefixtures("all_are_many")
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_any_order_are_there_when_they_are_asked_for(causal: bool) -> None:
    """auto is tiled here, whose second derivative is that of dense attention."""
    leaves = few(requires_grad=True)
    bias = torch.from_numpy(draw(5, 5)).requires_grad_()
    scale = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert chosen_backend(*leaves).name == "tiled"

    def attend(*x: Tensor) -> Any:
        return attention(*x[:3], bias=x[3], scale=x[4], causal=causal)

    assert torch.autograd.gradcheck(attend, (*leaves, bias, scale), fast_mode=True)
    assert torch.autograd.gradgradcheck(attend, (*leaves, bias, scale), fast_mode=True)


@pytest.mark.usefixtures("all_are_many")
@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # by torch itself
def test_jacobians_and_hessians_of_one_tensor_three_times() -> None:
    x = torch.from_numpy(draw(1, 4, 3))
    autograd = torch.autograd.functional

    def squared(x: Tensor, backend: str) -> Any:
        out: Any = attention(x, x, x, causal=True, backend=backend)
        return out.pow(2).sum()

    def jacobian(f: Any, x: Tensor) -> Any:
        return autograd.jacobian(f, x, vectorize=True)  # type: ignore[no-untyped-call]

    found, expected = (
        autograd.hessian(  # type: ignore[no-untyped-call]
            lambda x, b=b: squared(x, b), x
        )
        for b in ("auto", "dense")
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    found, expected = (
        jacobian(lambda x, b=b: attention(x, x, x, backend=b), x) for b in ("auto", "dense")
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("all_are_many")
def test_a_hidden_nan_reaches_nothing_by_auto() -> None:
    q, k, v = few()
    v[..., 3, 2] = k[..., 3, 0] = math.nan
    out = attention(q, k, v, torch.arange(5)[None] < 3, causal=True)
    assert isinstance(out, Tensor)
    assert out.isfinite().all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("backend", ["auto", "dense"])
@pytest.mark.usefixtures("all_are_many")
def test_many_gradients_at_once(backend: str, causal: bool) -> None:
    x, d_outs = torch.from_numpy(draw(2, 5, 3)).requires_grad_(), torch.from_numpy(draw(7, 2, 5, 3))
    out = attention(x, x, x, causal=causal, backend=backend)
    (found,) = torch.autograd.grad(out, x, d_outs, retain_graph=True, is_grads_batched=True)
    expected = [torch.autograd.grad(out, x, d_out, retain_graph=True)[0] for d_out in d_outs]
    torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-14)


@pytest.mark.usefixtures("all_are_many")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("backend", ["auto", "dense"])
@pytest.mark.parametrize("how", ["make_fx", "jit"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by torch itself
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")  # that shapes are constants
def test_what_is_traced_is_right_for_other_numbers(how: str, backend: str, causal: bool) -> None:
    """The second key is finite while it is traced, and not afterwards."""
    names: list[str] = []

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Any:
        names.append(chosen_backend(q, k, v).name)
        return attention(q, k, v, causal=causal, backend=backend)

    leaves = few()
    traced = (
        make_fx(attend)(*leaves)
        if how == "make_fx"
        else torch.jit.trace(attend, tuple(leaves), check_trace=False)  # type: ignore[no-untyped-call]
    )
    assert names == ["dense"]
    leaves[2][..., 1, :] = math.inf
    torch.testing.assert_close(traced(*leaves), attend(*leaves), equal_nan=True)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("backend", ["auto", "dense", "tiled", "sdpa"])
def test_a_backward_pass_inside_autocast_is_as_exact(backend: str, causal: bool) -> None:
    leaves = [x.detach().float().requires_grad_() for x in few()]
    grads = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            out = attention(*leaves, causal=causal, backend=backend)
            assert isinstance(out, Tensor)
            grads.append(torch.autograd.grad(out.pow(2).sum(), leaves))
    torch.testing.assert_close(*grads, rtol=0, atol=1e-6)


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled"])
def test_the_output_may_be_changed_in_place(backend: str) -> None:
    """At 1024 tokens auto is tiled."""
    x = torch.from_numpy(draw(1024, 3)).requires_grad_()
    out = attention(x, x, x, backend=backend)
    assert isinstance(out, Tensor)
    (expected,) = torch.autograd.grad(out.sum(), x, retain_graph=True)
    out += 1
    torch.testing.assert_close(torch.autograd.grad(out.sum(), x)[0], expected, rtol=0, atol=0)


@pytest.mark.usefixtures("all_are_many")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by torch itself
def test_a_class_of_its_own_and_what_is_compiled_are_dense() -> None:
    class Own(Tensor):
        pass

    q, k, v = few()
    assert chosen_backend(q, k, v.as_subclass(Own)).name == "dense"
    torch._dynamo.reset()
    compiled = torch.compile(attention, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v, causal=True), attention(q, k, v, causal=True))


def test_the_axes_of_every_tensor_count_as_heads() -> None:
    few, many = torch.ones(1, 512, 8), torch.ones(4, 1, 512, 8)
    for wide in range(3):
        assert chosen_backend(*(many if i == wide else few for i in range(3))).name == "tiled"


def test_a_gpu_without_the_kernel_takes_sdpa_where_it_needs_no_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # no Triton
    monkeypatch.setattr(Tensor, "device", torch.device("cuda", 0), raising=False)
    x, mask = torch.ones(1024, 8), torch.ones(1024, 1024, dtype=torch.bool)
    scale = torch.tensor(0.5)
    assert chosen_backend(x, x, x).name == "sdpa"
    for hidden in ({"mask": mask}, {"bias": mask.float()}, {"causal": True}, {"scale": scale}):
        options: Any = hidden
        assert chosen_backend(x, x, x, **options).name == "tiled"
    x.requires_grad_()
    assert chosen_backend(x, x, x).name == "tiled"
    with torch.no_grad():
        assert chosen_backend(x, x, x).name == "sdpa"


def test_what_no_query_sees_and_what_sees_nothing_reach_nothing_by_sdpa() -> None:
    leaves, seen = few(), torch.ones(5, 5, dtype=torch.bool)
    seen[:, 3] = seen[2] = False
    d_out = torch.from_numpy(draw(2, 3, 5, 4, seed=5))
    results = []
    for poison in (0.0, math.nan):
        q, k, v = (x.clone() for x in leaves)
        q[..., 2, :] = k[..., 3, :] = v[..., 3, :] = poison
        grads = gradients(
            lambda **x: attention(**x, mask=seen, backend="sdpa"), {"q": q, "k": k, "v": v}, d_out
        )
        results.append([attention(q, k, v, seen, backend="sdpa"), *grads.values()])
    torch.testing.assert_close(*results, rtol=0, atol=0)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("backend", "options", "reason"),
    [
        ("tiled", {"return_weights": True}, "it holds no weights to return; use 'dense'"),
        ("sdpa", {"return_weights": True}, "it holds no weights to return; use 'dense'"),
        ("triton", {"return_weights": True}, "it holds no weights to return; use 'dense'"),
        ("triton", {"mask": torch.ones(5, 5, dtype=torch.bool)}, "takes no mask; use 'dense'"),
        ("triton", {"bias": torch.zeros(5, 5)}, "takes no bias; use 'dense'"),
        ("triton", {"scale": torch.tensor(0.5)}, "a scale that is a number"),
        ("sdpa", {"scale": torch.tensor(0.5)}, "a scale that is a number"),
        ("sdpa", {"bias": torch.zeros(5, 5)}, "a bias of the dtype of q: found torch.float32"),
    ],
)
def test_what_cannot_run_says_why_and_what_can(backend: str, options: Any, reason: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        attention(*few(), **options, backend=backend)
    assert str(caught.value).startswith(f"backend={backend!r} cannot run here: ")
    assert reason in str(caught.value)
    assert str(caught.value).endswith(" or 'auto'")


def test_tiled_by_its_name_is_differentiable_once() -> None:
    leaves = few(requires_grad=True)
    out = attention(*leaves, backend="tiled")
    assert isinstance(out, Tensor)
    with pytest.raises(RuntimeError, match="differentiable once"):
        torch.autograd.grad(out.sum(), leaves, create_graph=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by torch itself
def test_sdpa_has_no_forward_mode_and_says_so() -> None:
    q = few()[0]
    with pytest.raises(RuntimeError, match=r"^backend='sdpa' .* no forward mode; use 'dense'"):
        torch.func.jvp(lambda x: attention(x, x, x, backend="sdpa"), (q,), (q,))


def test_causal_of_numpy_is_taken_by_every_backend() -> None:
    for causal in (np.False_, np.True_):
        for backend in ("dense", "tiled", "sdpa"):
            out = attention(*few(), causal=causal, backend=backend)  # type: ignore[arg-type]
            assert isinstance(out, Tensor)
            torch.testing.assert_close(out, attention(*few(), causal=bool(causal)))


@pytest.mark.parametrize("backend", ["flash", "Dense", None, 3])
def test_a_name_that_is_none(backend: Any) -> None:
    with pytest.raises(ValueError, match="backend must be one of auto, dense, tiled, triton, sdpa"):
        attention(*few(), backend=backend)


class FakeGpu:
    """As much of a tensor on a GPU as the choice looks at."""

    def __init__(self, dtype: torch.dtype, width: int) -> None:
        self.device, self.dtype, self.shape = torch.device("cuda", 0), dtype, (1, 2, 5, width)


@pytest.mark.parametrize(
    ("capability", "dtype", "width", "reason"),
    [
        ((7, 5), torch.float16, 64, "compute capability 8.0 or more: found 7.5"),
        ((9, 0), torch.float64, 64, "no float64"),
        ((9, 0), torch.float32, 160, "up to 128 wide: found 160"),
        ((9, 0), torch.bfloat16, 300, "up to 256 wide: found 300"),
        ((8, 0), torch.bfloat16, 256, None),
        ((9, 0), torch.float32, 128, None),
    ],
)
def test_where_the_kernel_runs(
    capability: Any, dtype: Any, width: int, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    x: Any = FakeGpu(dtype, width)
    found = triton_launch.why_not(x, x)
    assert found is None if reason is None else reason in str(found)


def test_without_triton_or_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = few()
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    if importlib.util.find_spec("triton") is not None:
        with pytest.raises(RuntimeError, match="runs on CUDA devices: found cpu"):
            attention(q, k, v, backend="triton")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"Triton is not installed .*; use 'dense' or 'auto'"):
        attention(q, k, v, backend="triton")
    assert chosen_backend(q, k, v).name == "dense"


def test_importing_and_attending_load_no_triton() -> None:
    assert "triton" not in loaded_by(
        "import torch, attention_lib.torch.kernels.operators; from attention_lib.torch import attention; "
        "x = torch.ones(1, 1024, 8); attention(x, x, x, causal=True)"
    )


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_on_a_gpu_auto_takes_the_kernel(dtype: torch.dtype) -> None:
    pytest.importorskip("triton", reason="needs Triton: make test EXTRAS=gpu")
    q, k, v = (x.to("cuda", dtype) for x in few())
    assert chosen_backend(q, k, v, causal=True).name == "triton"
    exact = attention(q.double(), k.double(), v.double(), causal=True, backend="dense")
    assert isinstance(exact, Tensor)
    out = attention(q, k, v, causal=True)
    torch.testing.assert_close(out, exact.to(dtype), rtol=2e-2, atol=2e-2)


# ---------------------------------------------------------------- what torch's own gets wrong


@pytest.mark.parametrize("scale", [-0.5, 0.0, -0.0, 0])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sdpa_takes_any_scale(causal: bool, scale: float) -> None:
    """With a scale of 0 or less and causal, torch's own multiplies its -inf by it: NaN."""
    found, expected = (
        attention(*few(), causal=causal, scale=scale, backend=b) for b in ("sdpa", "dense")
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("backend", ["dense", "tiled", "sdpa"])
def test_gradients_of_grouped_heads_are_added_up_in_float32(backend: str) -> None:
    """Heads whose parts of d_k and d_v overflow float16 one after another, and not in sum."""
    q, k, v = (torch.from_numpy(draw(1, n, 4, 8, seed=n)).half() for n in (8, 1, 1))
    k, v = (torch.from_numpy(draw(1, 2, 4, 8, seed=n)).half().requires_grad_() for n in (2, 3))
    d_out = torch.full((1, 8, 4, 8), 3e4).half()
    d_out[:, 2:4] *= -1
    d_out[:, 6:] *= -1
    out = attention(q, k, v, backend=backend)
    assert isinstance(out, Tensor)
    exact = attention(q.double(), k.double(), v.double(), backend="dense")
    assert isinstance(exact, Tensor)
    (found,) = torch.autograd.grad(out, v, d_out)
    (expected,) = torch.autograd.grad(exact, v, d_out.double())
    assert found.isfinite().all()
    torch.testing.assert_close(found.double(), expected.double(), rtol=0.01, atol=200)


@pytest.mark.parametrize("backend", ["auto", "dense", "tiled", "sdpa"])
def test_fake_tensors(backend: str) -> None:
    """Which have shapes and a device, and no numbers."""
    with FakeTensorMode():
        q = torch.ones(1, 2, 600, 4, requires_grad=True)
        mask = torch.ones(600, 600, dtype=torch.bool)
        for options in ({}, {"causal": True}, {"mask": mask}):
            out = attention(q, q, q, backend=backend, **options)
            assert isinstance(out, Tensor)
            assert out.shape == q.shape
            assert torch.autograd.grad(out.sum(), q)[0].shape == q.shape
