"""The dimension key, ShapeError, and the checks that every attention in the library shares.

    B  batch     T  queries            d_k      width of one head's queries and keys
    H  heads     S  keys and values    d_v      width of one head's values
                                       d_model  width of a token between the layers

Arrays are (..., H, T, d_k): axis -3 is always heads, the axes before it broadcast. A name that ends
in axes, such as `scores_TS`, says what its last axes are.
"""

import math
import numbers
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]
Mask = npt.NDArray[np.bool_]
Shape = tuple[int, ...]

LONGEST = 2**48  # numbers of an axis
FLOATS = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))


class ShapeError(ValueError):
    """Shapes that do not fit together; the message says which were found."""


def check_count(name: str, value: Any, least: int | None = 0) -> int:
    """Return `value` as an int. Raises TypeError if it is no integer, ValueError below `least`."""
    try:
        # One that torch.compile knows by its symbol is an int, and stays a symbol.
        count = value if type(value) is int else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer: found {value!r}") from None
    if least is not None and count < least:
        raise ValueError(f"{name} must be at least {least}: found {count}")
    return count


def check_size(name: str, value: Any) -> int:
    """`check_count` for the length of an axis. Raises ValueError for more than any memory holds."""
    count = check_count(name, value)
    if count >= LONGEST:
        raise ValueError(f"{name} must be below {LONGEST}, for no memory holds more: found {count}")
    return count


def check_real(name: str, value: Any, kind: str = "a number") -> float:
    """Return `value` as a float. Raises TypeError if it is no real number, ValueError if too large."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {kind}: found {describe(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for a float") from None


def check_options(causal: Any, scale: Any) -> None:
    """Raise TypeError unless `causal` is a truth value and `scale` None or a real number."""
    if not isinstance(causal, bool | np.bool_):
        raise TypeError(
            f"causal must be True or False (arrays go to `mask`): found {describe(causal)}"
        )
    if scale is not None:
        check_real("scale", scale, "a number, or None for 1/sqrt(d_k)")


def as_generator(rng: Any) -> "np.random.Generator":  # which is loaded only when it is used
    """The Generator of a seed, or the one given. Raises TypeError or ValueError for what is neither."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(check_count("rng, a seed or a numpy.random.Generator,", rng))


def check_flag(name: str, value: Any) -> bool:
    """Return `value` as a bool. Raises TypeError unless it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False: found {describe(value)}")
    return bool(value)


def check_base(base: Any) -> None:
    """Raise TypeError unless `base` is a real number, ValueError unless it is above 0."""
    if not check_real("base", base) > 0:
        raise ValueError(f"base must be above 0: found {base}")


def check_axis(name: str, shape: Shape, axis: Any) -> int:
    """Return `axis` as an int. Raises TypeError if it is no integer, ShapeError for an axis that `shape` lacks."""
    axis = check_count("axis", axis, least=None)
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"{name} must have axis {axis}: {name} {shape}")
    return axis


def as_array(name: str, x: Any) -> npt.NDArray[Any]:
    """Make an array of a list of numbers. Raises ShapeError if its rows are of unequal length."""
    try:
        return np.asarray(x)
    except ValueError:
        raise ShapeError(f"{name} must be numbers in rows of equal length: found {x!r}") from None


def describe(x: Any) -> str:
    """Say in a few words what `x` is, for an error message."""
    kind = type(x)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    shape = getattr(x, "shape", None)
    return name if shape is None else f"{name} of shape {tuple(shape)}"


def is_array(x: Any) -> bool:
    """Whether `x` is a plain array: a masked array or a matrix has rules of its own."""
    return type(x) in (np.ndarray, np.memmap)


def check_array(name: str, x: Any) -> None:
    """Raise TypeError unless `x` is a NumPy array of real floats."""
    if not is_array(x):
        advice = "np.asarray(...) makes one"
        if type(x).__module__.startswith("torch"):
            advice = "attention_lib.torch is for tensors"
        raise TypeError(f"{name} must be a NumPy array ({advice}): found {describe(x)}")
    if x.dtype not in FLOATS:
        raise TypeError(f"{name} must hold float16, float32 or float64: found {x.dtype}")


def check_shapes(q: Shape, k: Shape, v: Shape, mask: Shape | None, bias: Shape | None) -> None:
    """Raise ShapeError unless shapes q (..., Hq, T, d_k), k (..., Hk, S, d_k), v (..., Hk, S, d_v) fit.

    `mask` and `bias` must broadcast against (..., Hq, T, S); Hq must be a multiple of Hk.
    """
    for name, shape, axes in (("q", q, "T, d_k"), ("k", k, "S, d_k"), ("v", v, "S, d_v")):
        if len(shape) < 2:
            raise ShapeError(f"{name} must have at least two axes (..., {axes}): {name} {shape}")
    if q[-1] != k[-1]:
        raise ShapeError(f"q and k must share their last axis d_k: q {q}, k {k}")
    if q[-1] == 0:
        raise ShapeError(f"d_k, the last axis of q and k, must not be empty: q {q}, k {k}")
    if k[-2] != v[-2]:
        raise ShapeError(f"k and v must share axis -2, the S keys: k {k}, v {v}")
    if len(q) == len(k) == len(v) and q[:-2] == k[:-2] == v[:-2]:
        leading = q[:-2]
    else:
        heads = check_heads(q, k, v)
        try:
            leading = (*np.broadcast_shapes(q[:-3], k[:-3], v[:-3]), heads)
        except ValueError:
            raise ShapeError(f"leading axes must broadcast: q {q}, k {k}, v {v}") from None
    for name, pairs in (("mask", mask), ("bias", bias)):
        if pairs is not None:
            _check_pairs(name, pairs, (*leading, q[-2], k[-2]))


def check_heads(q: Shape, k: Shape, v: Shape) -> int:
    """Return the number of query heads Hq. Raises ShapeError unless Hk = Hv divides it."""
    heads, k_heads, v_heads = (
        (1, *shape)[-3] if len(shape) < 3 else shape[-3] for shape in (q, k, v)
    )
    if k_heads != v_heads:
        raise ShapeError(f"k and v must have the same heads (axis -3): k {k}, v {v}")
    if heads != k_heads and (k_heads == 0 or heads % k_heads):
        raise ShapeError(
            f"the heads of q (axis -3) must be a multiple of those of k and v: q {q} has {heads}, "
            f"k {k} has {k_heads}; a batch without heads is (B, 1, T, d_k)"
        )
    return heads


def _check_pairs(name: str, shape: Shape, scores: Shape) -> None:
    fits = len(shape) >= 2
    if fits:
        try:
            fits = np.broadcast_shapes(shape, scores)[-2:] == scores[-2:]
        except ValueError:
            fits = False
    if not fits:
        raise ShapeError(f"{name} must broadcast to (..., T, S) = {scores}: {name} {shape}")


class Library(NamedTuple):
    """What `check_arguments` has to know of a library: its arrays, and its words for them."""

    array: str
    is_array: Callable[[Any], bool]
    check_array: Callable[[str, Any], None]
    accumulator: Callable[[Any], Any]
    promote: Callable[[Any, Any], Any]
    name: Callable[[Any], str]
    cast: str


def check_arguments(
    library: Library, q: Any, k: Any, v: Any, mask: Any, bias: Any, causal: Any, scale: Any
) -> None:
    """Raise TypeError or ShapeError, in one sentence, unless attention in `library` can take these."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        library.check_array(name, x)
    if not q.dtype == k.dtype == v.dtype:
        found = ", ".join(library.name(x.dtype) for x in (q, k, v))
        raise TypeError(f"q, k and v must share one dtype: found {found}")
    if mask is not None:
        if not library.is_array(mask):
            raise TypeError(f"mask must be {library.array} of booleans: found {describe(mask)}")
        check_mask_dtype(library.name(mask.dtype))
    if bias is not None:
        library.check_array("bias", bias)
        wide = library.accumulator(q.dtype)
        if library.promote(bias.dtype, wide) != wide:
            wide = library.name(wide)
            raise TypeError(
                f"bias must be no wider than {wide}, in which scores are added up: "
                f"found {library.name(bias.dtype)}; use bias.{library.cast.format(wide)}"
            )
    check_options(causal, scale)
    pairs = (None if x is None else tuple(x.shape) for x in (mask, bias))
    check_shapes(tuple(q.shape), tuple(k.shape), tuple(v.shape), *pairs)


def check_attention(q: Any, k: Any, v: Any, mask: Any, bias: Any, causal: Any, scale: Any) -> None:
    """Raise TypeError or ShapeError, in one sentence, unless NumPy attention can take these."""
    check_arguments(NUMPY, q, k, v, mask, bias, causal, scale)


def scale_or_default(scale: Any, d_k: int) -> float:
    """`scale` as a float; 1/sqrt(d_k) for None."""
    return 1 / math.sqrt(d_k) if scale is None else float(scale)


def check_mask_dtype(dtype: str) -> None:
    """Raise TypeError unless `dtype` is the name of a boolean type."""
    if dtype == "bool":
        return
    advice = "compare it with 0 first"
    if "float" in dtype:
        advice = "floats that are added to the scores go to `bias`"
    raise TypeError(f"mask must be boolean, True = may look ({advice}): found {dtype}")


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which sums over `dtype` are made: float32 for float16, else its own."""
    return np.promote_types(dtype, np.float32)


def repeat_heads(x: Array, heads: int) -> Array:
    """Repeat the key or value heads of `x` (..., Hk, S, d), so that query head h reads h // (heads // Hk)."""
    if x.ndim < 3 or x.shape[-3] in (1, heads):
        return x
    return np.repeat(x, heads // x.shape[-3], axis=-3)


NUMPY = Library(
    array="a NumPy array",
    is_array=is_array,
    check_array=check_array,
    accumulator=accumulator,
    promote=np.promote_types,
    name=str,
    cast="astype(np.{})",
)
