"""Likely words that a beam search finds, against the number of beginnings that it keeps; loop in plain Python."""

from __future__ import annotations

from pathlib import Path

import hybridnet as mx
from beam_search_plain import PlainBeamSearch
from beam_search_while import BeamSearch, Model, all_words, search, train
from plot import figure

WIDTHS = [1, 2, 4, 8, 16, 24, 32, 48, 64]
WANTED = 30


def draw(folder: Path) -> None:
    mx.random.seed(3)
    model = Model()
    model.initialize(mx.init.Xavier())
    model.hybridize()
    train(model, 200)
    likeliest = {word for _, word in all_words(model)[:WANTED]}
    forms = {"plain for": PlainBeamSearch(model), "while_loop": BeamSearch(model)}
    found: dict[str, list[int]] = {}
    for name, block in forms.items():
        block.hybridize(strict=True)
        found[name] = [len(likeliest & {word for _, word in search(block, beams)}) for beams in WIDTHS]
    with figure(folder / "beam_width.svg", size=(5.5, 3.2)) as ax:
        ax.plot(WIDTHS, WIDTHS, ":", color="#90a4ae", label="as many as the search keeps")
        ax.axhline(WANTED, color="#90a4ae", linestyle="--", linewidth=1)
        for (name, numbers), marker in zip(found.items(), ("o-", "x")):
            ax.plot(WIDTHS, numbers, marker, label=name)
        ax.set(xlabel="beginnings kept", ylabel="words found", ylim=(0, WANTED + 3), xlim=(0, WIDTHS[-1] + 2))
        ax.set_title(f"of the {WANTED} likeliest words")
        ax.legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
