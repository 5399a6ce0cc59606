"""Live figure "why divide by sqrt(d_k)": what softmax and its gradients become as the keys grow."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import traitlets

from attention_lib import attention, attention_gradient
from attention_lib.models import stored_files
from attention_lib.models.saturation.measure import entropy, measure_saturation

from .live import COLOURS, LiveFigure, bundle
from .rest import Axis, Frame, text

MEDIANS = stored_files()["saturation.json"]
KEYS, VALUE_WIDTH, DRAWS = 16, 16, 1000
WIDTHS = tuple(2**i for i in range(13))
# What is measured, by the names of the page and of `attention_lib.models.saturation.measure`.
KINDS = {"largest": "largest", "entropy": "entropy", "q": "d_q", "k": "d_k", "v": "d_v"}

Floats = npt.NDArray[np.float64]


def normals(seed: int, count: int) -> Floats:
    """`count` standard normal numbers (count,), the same as js/random.js draws in the page.

    Box and Muller's method from a counter hashed by the finaliser of MurmurHash3 (Appleby 2011).
    """
    counter = np.arange(count + count % 2, dtype=np.uint32)
    start = _mix(np.array([seed], dtype=np.uint32))
    uniform = (_mix(counter * np.uint32(0x9E3779B9) + start) + 0.5) / 2.0**32
    radius = np.sqrt(-2 * np.log(uniform[::2]))
    angle = 2 * np.pi * uniform[1::2]
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return np.asarray(pairs.ravel()[:count])


def _mix(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> np.uint32(16))


@dataclass(frozen=True)
class Vectors:
    """One draw: q (1, d), keys (16, d), values (16, 16), and the gradient on the output (1, 16).

    All entries are normal with variance 1; d_out has a random direction and length 1.
    """

    q: Floats
    keys: Floats
    values: Floats
    d_out: Floats


@dataclass(frozen=True)
class Measured:
    """What attention makes of a draw at one d_k.

    scores and weights (16,). largest weight, entropy in nats; q, k, v: the lengths of the gradients.
    """

    scores: Floats
    weights: Floats
    largest: float
    entropy: float
    q: float
    k: float
    v: float


def draw_vectors(seed: int) -> Vectors:
    """The draw of that number, at the largest d_k; a smaller one takes the first entries."""
    rows = KEYS + 1
    numbers = normals(seed, rows * (VALUE_WIDTH + WIDTHS[-1]))
    heads = numbers[: rows * VALUE_WIDTH].reshape(rows, VALUE_WIDTH)
    q_and_keys = np.ascontiguousarray(numbers[rows * VALUE_WIDTH :].reshape(-1, rows).T)
    d_out = heads[:1] / np.linalg.norm(heads[:1])
    return Vectors(q_and_keys[:1], q_and_keys[1:], heads[1:], d_out)


def measure(vectors: Vectors, d_k: int, scaled: bool) -> Measured:
    """Attention and its gradients with the first `d_k` entries of q and of the keys."""
    q, k, v = vectors.q[:, :d_k], vectors.keys[:, :d_k], vectors.values
    scale = 1 / math.sqrt(d_k) if scaled else 1.0
    weights = attention(q, k, v, scale=scale, return_weights=True)[1][0]
    gradients = attention_gradient(q, k, v, vectors.d_out, scale=scale)
    return Measured(
        (scale * q @ k.T)[0],
        weights,
        float(weights.max()),
        float(entropy(weights)),
        *(float(np.linalg.norm(gradient)) for gradient in gradients),
    )


def measure_medians(widths: Sequence[int] = WIDTHS, draws: int = DRAWS) -> dict[str, Any]:
    """For each of KINDS the medians over `draws` random draws, one for each of `widths`.

    {"draws": …, "widths": […], "scaled" and "unscaled": {kind: numbers of three digits}}.
    """
    result: dict[str, Any] = {"draws": draws, "widths": list(widths)}
    for name, scaled in (("scaled", True), ("unscaled", False)):
        found = [
            measure_saturation(
                d_k, scaled=scaled, rng=np.random.default_rng(d_k), keys=KEYS, draws=draws
            ).reduce()
            for d_k in widths
        ]
        result[name] = {
            kind: [float(f"{seen[column]:.3g}") for seen in found] for kind, column in KINDS.items()
        }
    return result


def stored_medians() -> dict[str, Any]:
    """What `measure_medians` gave; `python -m figures.explore_scaling` measures it again, in 20 s."""
    return json.loads(MEDIANS.read_text(encoding="utf-8"))


class ExploreScaling(LiveFigure):
    """Scores, weights, entropy and gradients of one query and 16 keys against d_k.

    d_k: a power of two from 1 to 4,096. scaled: whether scores are divided by sqrt(d_k). draw: which
    draw is on show, from 0 to 999. Raises ValueError for anything else. Behind the draw stand the
    medians of 1,000 others.
    """

    name: ClassVar[str] = "scaling"
    _esm = bundle("scaling")

    d_k = traitlets.Int().tag(sync=True)
    scaled = traitlets.Bool().tag(sync=True)
    draw = traitlets.Int().tag(sync=True)
    medians = traitlets.Dict().tag(sync=True)

    def __init__(self, d_k: int = 128, *, scaled: bool = False, draw: int = 66) -> None:
        super().__init__(d_k=d_k, scaled=scaled, draw=draw, medians=stored_medians())

    @traitlets.validate("d_k")
    def _known_width(self, proposal: dict[str, Any]) -> int:
        if proposal["value"] not in WIDTHS:
            raise ValueError(
                f"d_k must be a power of two from 1 to {WIDTHS[-1]}: found {proposal['value']}"
            )
        return int(proposal["value"])

    @traitlets.validate("draw")
    def _known_draw(self, proposal: dict[str, Any]) -> int:
        if not 0 <= proposal["value"] < 1000:
            raise ValueError(f"draw must be from 0 to 999: found {proposal['value']}")
        return int(proposal["value"])

    def state(self) -> dict[str, Any]:
        """The traits; the medians have three digits."""
        return {name: getattr(self, name) for name in ("d_k", "scaled", "draw", "medians")}

    def measured(self) -> tuple[Measured, Measured]:
        """What the library computes for the draw on show, with the scale and without."""
        vectors = draw_vectors(self.draw)
        return measure(vectors, self.d_k, True), measure(vectors, self.d_k, False)

    def summary(self) -> str:
        """The largest weight and the gradient at q, with the scale and without."""
        on, off = self.measured()
        return (
            f"One query and {KEYS} keys at d_k {self.d_k}. Without the scale the largest weight is "
            f"{off.largest:.2f}, the entropy {off.entropy:.2f} nats; divided by √d_k, "
            f"{on.largest:.2f} and {on.entropy:.2f} nats. "
            f"The gradient that reaches q has length {_number(off.q)} without and {_number(on.q)} with it."
        )

    def resting_svg(self) -> str:
        """The weights of the draw on show; the medians of entropy and of q's gradient against d_k."""
        seen = self.measured()[0 if self.scaled else 1]
        manner = "divided by √d_k" if self.scaled else "not scaled"
        bars = Frame(
            50, 40, 280, 160, Axis(0, KEYS), Axis(0, 1, ((0, "0"), (0.5, "0.5"), (1, "1")))
        )
        parts = [bars.paper(f"Weights of {KEYS} keys, d_k {self.d_k}, {manner}")]
        for i, weight in enumerate(seen.weights):
            x, y = bars.at(i + 0.15, float(weight))
            top = weight == seen.largest
            parts.append(
                f'<rect x="{x:g}" y="{y:g}" width="12" height="{max(1, 200 - y):.1f}" rx="2" '
                f'fill="{COLOURS[1] if top else "#7b869c"}"/>'
            )
            if top:
                parts.append(text(x + 6, y - 5, f"{weight:.2f}", style='font-weight="600"'))
        ticks = tuple((d, f"{d:,}") for d in (1, 8, 64, 512, 4096))
        powers = ((1.0, "1"), *((10.0**p, f"10{_raised(p)}") for p in (-9, -6, -3)))
        frame = Frame(
            420, 40, 240, 160, Axis(1, WIDTHS[-1], ticks, True), Axis(1e-9, 10, powers, True)
        )
        parts += [
            frame.paper("Gradient at q against d_k, median of 1,000 draws"),
            frame.mark(self.d_k),
        ]
        names = (("scaled", "with √d_k", COLOURS[2]), ("unscaled", "without", COLOURS[1]))
        for name, words, colour in names:
            points = list(zip(WIDTHS, self.medians[name]["q"], strict=True))
            parts.append(frame.curve(points, f'stroke="{colour}" stroke-width="2.5"'))
            parts.append(
                text(666, frame.at(*points[-1])[1] + 4, words, "start", f'fill="{colour}"')
            )
        return self.svg(236, "Why divide by √d_k", *parts)


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _number(x: float) -> str:
    """Two or three digits, and a power of ten where it is small."""
    if x >= 0.1 or x == 0:
        return f"{x:.2f}"
    if x >= 0.001:
        return f"{x:.2g}"
    digits, power = f"{x:.1e}".split("e")
    return f"{digits}·10{_raised(int(power))}"


if __name__ == "__main__":
    MEDIANS.write_text(json.dumps(measure_medians()) + "\n", encoding="utf-8")
