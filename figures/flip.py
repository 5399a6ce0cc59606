"""The picture of the README: `python -m figures.flip` draws it anew from the shipped weights."""

from pathlib import Path

from matplotlib.axes import Axes

from attention_lib.models.encoder import Encoder

from .draw_lines import draw_lines
from .look import panels
from .show import to_svg

PATH = Path(__file__).parents[1] / "book" / "_static" / "flip.svg"
SENTENCE = "the animal did not cross the street because it was too"
ALT = (
    "The same sentence twice, with lines from the word it. Where the last word is tired, the "
    "thickest line goes to animal; where it is wide, to street."
)


def draw_flip() -> Axes:
    """The two sentences and where the pointing head of the model "pronoun-0" looks from "it"."""
    encoder = Encoder.load("pronoun-0")
    if encoder.pointing_head is None:
        raise ValueError("the weights name no pointing head")
    layer, head = encoder.pointing_head
    pair: tuple[Axes, Axes] = panels(2, 1, width=7.4, height=3.9)
    for ax, last in zip(pair, ("tired", "wide"), strict=True):
        run = encoder(f"{SENTENCE} {last}")
        it = run.words.index("it")
        draw_lines(run.words, run.weights[layer][head, it], query=it, ax=ax)
    return pair[0]


if __name__ == "__main__":
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(to_svg(draw_flip(), alt=ALT), encoding="utf-8")
    print(f"drawn: {PATH.name}")
