"""Steps that the plain solver tries on Van der Pol's oscillator: those whose error is too large are tried again.

Without hybridize() the loop runs line by line, so a method of Python can write down each step.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ode_plain import PlainSolver
from ode_while import array
from plot import COLORS, figure

STIFFNESS, END = 3.0, 12.0


def van_der_pol(F, y, stiffness):
    position, speed = y[0:1], y[1:2]
    return F.concat(speed, stiffness * (1 - position**2) * speed - position, dim=0)


class RecordingSolver(PlainSolver):
    """Keeps length, error and result of each step that is tried."""

    def step(self, F, y, h, parameters):
        new, error = super().step(F, y, h, parameters)
        self.tried.append((float(h.asscalar()), float(error.asscalar()), float(new[0].asscalar())))
        return new, error


def draw(folder: Path) -> None:
    solver = RecordingSolver(van_der_pol, 1e-5)
    solver.tried = []
    _, left, _ = solver(array([2.0, 0.0]), array(END), array(STIFFNESS))
    assert float(left.asscalar()) == 0
    length, error, position = np.array(solver.tried).T
    taken = error <= 1
    begin = np.concatenate([[0], np.cumsum(np.where(taken, length, 0))[:-1]])
    with figure(folder / "ode_tries.svg", columns=2, size=(3.3, 2.7)) as (one, two):
        one.plot((begin + length)[taken], position[taken], "-o", markersize=3.5, linewidth=1)
        one.set(xlabel="time", ylabel="position", title=f"{taken.sum()} steps of the plain while")
        two.plot(begin[taken], length[taken], "o", markersize=3.5, label="taken")
        two.plot(begin[~taken], length[~taken], "x", color=COLORS[1], label="error too large: again")
        two.set(xlabel="time", ylabel="length of the step", title=f"{len(taken)} steps tried")
        two.legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
