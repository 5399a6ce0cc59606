"""Linear attention: φ(q)·φ(k) instead of exp(q·k), so that the keys add up to a state of fixed size.

out_i = φ(q_i) Σ_j φ(k_j) v_jᵀ / φ(q_i)·Σ_j φ(k_j). The sums, a matrix (d_phi, d_v) and a vector
(d_phi,), hold all that is known of the keys; they cost the same however many there are.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from .counting import multiply
from .masks import causal_mask
from .shapes import (
    Array,
    ShapeError,
    as_generator,
    check_array,
    check_attention,
    check_count,
    describe,
    is_array,
)
from .visibility import prepare, read_values

FeatureMap = Callable[[Array], Array]
CHUNK = 128


def elu_plus_one(x: Array) -> Array:
    """x + 1 above 0, exp(x) below: positive, (..., d) to (..., d). Katharopoulos et al. 2020, eq. 7."""
    check_array("x", x)
    return np.exp(np.minimum(x, 0)) + np.maximum(x, 0)


def identity(x: Array) -> Array:
    """x itself: the weights are the dot products, which may be negative."""
    check_array("x", x)
    return x


def dpfp(x: Array, nu: int = 1) -> Array:
    """Products of neighbours in [relu(x), relu(-x)], up to `nu` apart: (..., d) to (..., 2 d nu).

    Positive and sparse, so that keys overlap less. Raises ValueError for nu below 1.
    Source: Schlag et al. 2021, equation 37.
    """
    _check_rows(x)
    nu = check_count("nu", nu, least=1)
    halves = np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], -1)
    return np.concatenate([halves * np.roll(halves, shift, -1) for shift in range(1, nu + 1)], -1)


def random_features(d: int, features: int, rng: "int | np.random.Generator") -> FeatureMap:
    """A map from (..., d) to (..., features) with φ(q)·φ(k) = exp(q·k) on average over its draws.

    φ(x) = exp(ω x - |x|²/2) / sqrt(features), the rows of ω normal. For softmax attention give it q and
    k times d^(-1/4). `rng` is a seed or a Generator. Raises ValueError for a width or number below 1;
    the map raises ShapeError for another width.
    Source: Choromanski et al. 2021, lemma 1.
    """
    shape = check_count("features", features, least=1), check_count("d", d, least=1)
    omega = as_generator(rng).standard_normal(shape)

    def positive(x: Array) -> Array:
        _check_rows(x)
        if x.shape[-1] != len(omega.T):
            raise ShapeError(f"x must be (..., {len(omega.T)}), as `d` says: x {x.shape}")
        half = (x * x).sum(-1, keepdims=True) / 2
        exponent = multiply(x, omega.T.astype(x.dtype)) - half
        return np.exp(exponent) / np.sqrt(x.dtype.type(features))

    return positive


@np.errstate(invalid="ignore", divide="ignore", under="ignore")
def linear_attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    feature_map: FeatureMap = elu_plus_one,
) -> Array:
    """Attention whose weights are φ(q)·φ(k) over their sum, with work n · d_phi · d_v.

    Shapes, dtypes and errors are those of `attention`, without mask and scale. `feature_map` turns
    (..., d_k) into (..., d_phi), each row by itself. Causal: the pairs inside chunks of CHUNK tokens,
    and one running state for all before. A query that may see nothing gets zeros; weights that add up
    to 0 give what 0 / 0 gives, NaN. Source: Katharopoulos et al. 2020, equations 5 and 9.
    """
    check_attention(q, k, v, None, None, causal, None)
    dtype, T, S = q.dtype, q.shape[-2], k.shape[-2]
    q, k, v, out, state, total = _start(q, k, v, feature_map)
    features = partial(_features, feature_map, total.shape[-1])
    seen = max(S - T, 0) if causal else S  # the keys that every query sees
    for keys in _chunks(0, seen):
        _add(state, total, features(k[..., keys, :]), v[..., keys, :])
    if not causal:
        for queries in _chunks(0, T if S else 0):
            Q = features(q[..., queries, :])
            out[..., queries, :] = multiply(Q, state) / _dot(Q, total)
        return out.astype(dtype, copy=False)
    for keys in _chunks(seen, S):
        queries = slice(keys.start - S + T, keys.stop - S + T)
        Q, K = (features(x) for x in (q[..., queries, :], k[..., keys, :]))
        V, allowed = v[..., keys, :], causal_mask(K.shape[-2])
        weights = np.where(allowed, multiply(Q, K.swapaxes(-1, -2)), 0)
        values = multiply(Q, state) + read_values(weights, V, allowed)
        out[..., queries, :] = values / (_dot(Q, total) + weights.sum(-1, keepdims=True))
        _add(state, total, K, V)
    return out.astype(dtype, copy=False)


@np.errstate(invalid="ignore", divide="ignore", under="ignore")
def linear_attention_scan(
    q: Array, k: Array, v: Array, *, feature_map: FeatureMap = elu_plus_one
) -> Array:
    """`linear_attention(..., causal=True)` as a recurrent layer: one token after another.

    Each token adds φ(k) vᵀ to the state and φ(k) to the total, then reads both with φ(q).
    Source: Katharopoulos et al. 2020, equations 16 to 20.
    """
    check_attention(q, k, v, None, None, True, None)
    dtype, T, S = q.dtype, q.shape[-2], k.shape[-2]
    q, k, v, out, state, total = _start(q, k, v, feature_map)
    features = partial(_features, feature_map, total.shape[-1])
    for j in range(S):
        key = slice(j, j + 1)
        _add(state, total, features(k[..., key, :]), v[..., key, :])
        i = j - S + T
        if i >= 0:
            query = slice(i, i + 1)
            Q = features(q[..., query, :])
            out[..., query, :] = multiply(Q, state) / _dot(Q, total)
    return out.astype(dtype, copy=False)


def recall_share(
    pairs: int, d: int, feature_map: FeatureMap, rng: "int | np.random.Generator"
) -> float:
    """Share of `pairs` random keys whose own value is the nearest to what one state returns for it.

    Keys (pairs, d) are normal, values (pairs, d) normal of length 1; the state is Σ φ(k) vᵀ,
    (d_phi, d), and is read with φ(k). The sum of the weights is left out: it changes the length alone.
    `rng` is a seed or a Generator.
    """
    rng = as_generator(rng)
    keys = rng.standard_normal((check_count("pairs", pairs, least=1), check_count("d", d, least=1)))
    values = rng.standard_normal((pairs, d))
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    features = _features(feature_map, None, keys)
    found = multiply(features, multiply(features.T, values))
    return float((multiply(found, values.T).argmax(-1) == np.arange(pairs)).mean())


def linear_multiply_adds(
    T: int, S: int, d_phi: int, d_v: int, *, causal: bool = False, scan: bool = False
) -> int:
    """Multiply-adds of one head: each key's φ(k) vᵀ, each query's φ(q) with both sums, pairs of chunks.

    The scan has no pairs of chunks; it and the causal form leave out the queries that see nothing.
    """
    readers = min(T, S) if causal or scan else T * bool(S)
    sizes = (
        [min(CHUNK, readers - i) for i in range(0, readers, CHUNK)] if causal and not scan else []
    )
    pairs = sum(size * size for size in sizes)
    return S * d_phi * d_v + readers * d_phi * (d_v + 1) + pairs * (d_phi + d_v)


def _start(
    q: Array, k: Array, v: Array, feature_map: FeatureMap
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Inputs as wide as the sums, an output of zeros, and the sums over no key.

    These are the state Σ φ(k) vᵀ, (..., d_phi, d_v), and the total Σ φ(k), (..., 1, d_phi).
    """
    q, k, v, _ = prepare(q, k, v, None, None, False)
    leading = np.broadcast_shapes(*(x.shape[:-2] for x in (q, k, v)))
    out = np.zeros((*leading, q.shape[-2], v.shape[-1]), q.dtype)
    none = _features(feature_map, None, k[..., :0, :])
    return q, k, v, out, multiply(none.swapaxes(-1, -2), v[..., :0, :]), none.sum(-2, keepdims=True)


def _check_rows(x: Array) -> None:
    check_array("x", x)
    if not x.ndim:
        raise ShapeError("x must have an axis (..., d): x ()")


def _features(feature_map: FeatureMap, width: int | None, x: Array) -> Array:
    if not callable(feature_map):
        raise TypeError(
            f"feature_map must be a function of an array: found {describe(feature_map)}"
        )
    phi = feature_map(x.copy())  # which it may change
    if not is_array(phi):
        raise TypeError(f"feature_map must return a NumPy array: found {describe(phi)}")
    if phi.dtype.kind == "c":
        raise TypeError(f"feature_map must return real numbers: found {phi.dtype}")
    if phi.ndim != x.ndim or phi.shape[:-1] != x.shape[:-1]:
        raise ShapeError(
            f"feature_map must keep all axes but the last: {x.shape} became {phi.shape}"
        )
    if width not in (None, phi.shape[-1]):
        raise ShapeError(
            f"feature_map must give equally many features each time: {width}, then {phi.shape[-1]}"
        )
    return phi.astype(x.dtype, copy=False)


def _add(state: Array, total: Array, K: Array, V: Array) -> None:
    """Add the keys with features K and the values V to both sums, in place."""
    state += multiply(K.swapaxes(-1, -2), V)
    total += K.sum(-2, keepdims=True)


def _dot(Q: Array, total: Array) -> Array:
    """φ(q)·total for each query, (..., T, 1)."""
    return multiply(Q, total.swapaxes(-1, -2))


def _chunks(start: int, stop: int) -> Iterator[slice]:
    return (slice(i, min(i + CHUNK, stop)) for i in range(start, stop, CHUNK))
