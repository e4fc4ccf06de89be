"""Words that the beam search finds in Java: bars show their probabilities, as the program prints them."""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path

import hybridnet as mx
from plot import COLORS, figure
from programs import ROOT, java_classes, run_java

FOLDER = "examples/export_to_java"


def draw(folder: Path) -> None:
    sys.path.append(str(ROOT / FOLDER))
    import export

    with tempfile.TemporaryDirectory() as made:
        models = Path(made)
        classes = java_classes(FOLDER, models)
        mx.random.seed(3)
        export.export_digits(models)
        export.export_search(models)
        verdict = run_java(classes, "Classify", models / "digits", models / "digits.params").strip()
        lines = run_java(classes, "Decode", models / "search", models / "search.params").splitlines()
    words = [line.split() for line in lines[:-1]]
    with figure(folder / "java_words.svg", size=(5.0, 3.0)) as ax:
        chances = [100 * math.exp(float(chance)) for _, chance in words]
        bars = ax.barh([word for word, _ in words], chances, color=COLORS[0])
        ax.bar_label(bars, [f"{chance:.1f} %" for chance in chances], padding=3)
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        ax.set(xlabel="probability, %", xlim=(0, 1.2 * max(chances)))
        ax.set_title(f"{lines[-1]}\n{verdict}", fontsize=10)


if __name__ == "__main__":
    draw(Path())
