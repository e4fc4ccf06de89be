"""Words that the beam search keeps after each of its steps, with their log probabilities.

The loop of the example is stopped after one, two, three steps and so on. A dot ends a word.
"""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import beam_search_while
import hybridnet as mx
from beam_search_while import LETTERS, NEVER, WIDTH, BeamSearch, Model, train
from plot import COLORS, figure

BEAMS, STEPS = 6, 5


def kept(search: BeamSearch, steps: int) -> list[tuple[str, float]]:
    """Returns the words after these steps, best first; END shows as a dot."""
    start = mx.nd.array([0.0] + [NEVER] * (BEAMS - 1))
    with patch.object(beam_search_while, "LENGTH", steps):
        words, chances = search(start, mx.nd.zeros((BEAMS, WIDTH)))
    texts = ["".join(LETTERS[int(i)] for i in word) for word in words.asnumpy()]
    texts = [text.rstrip(".") + "." * text.endswith(".") for text in texts]
    return [(text, chance) for text, chance in zip(texts, chances.asnumpy().tolist()) if chance > NEVER / 2]


def draw(folder: Path) -> None:
    mx.random.seed(3)
    model = Model()
    model.initialize(mx.init.Xavier())
    model.hybridize()
    train(model, 200)
    columns = [kept(BeamSearch(model), steps) for steps in range(1, STEPS + 1)]
    with figure(folder / "beam_words.svg", size=(5.6, 3.6)) as ax:
        for x, column in enumerate(columns):
            earlier = {text: y for y, (text, _) in enumerate(columns[x - 1])} if x else {}
            for y, (text, chance) in enumerate(column):
                ended = text.endswith(".")
                ax.text(x, y, text, ha="center", va="center", color=COLORS[2] if ended else COLORS[0], fontsize=13)
                ax.text(x, y + 0.33, f"{chance:.2f}", ha="center", va="center", color="#607d8b", fontsize=9)
                parent = earlier.get(text, earlier.get(text[:-1]))
                if parent is not None:
                    ax.plot([x - 0.66, x - 0.36], [parent, y], color="#b0bec5", linewidth=1)
        ax.set(
            xlim=(-0.5, STEPS - 0.5),
            ylim=(BEAMS - 0.4, -0.6),
            title=f"the {BEAMS} best after each step; a dot ends a word",
        )
        ax.set_xticks(range(STEPS), [f"step {number}" for number in range(1, STEPS + 1)])
        ax.tick_params(length=0, pad=2)
        ax.set_yticks([])
        ax.grid(False)
        ax.spines[:].set_visible(False)


if __name__ == "__main__":
    draw(Path())
