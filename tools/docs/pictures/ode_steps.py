"""The adaptive solver beside the closed form: values at several times, and the steps that a tolerance costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ode_while import AdaptiveSolver, array, exact, logistic
from plot import figure

RATE, LIMIT = 1.3, 2.0


def draw(folder: Path) -> None:
    start = np.array([0.05, 0.3, 1.9, 3.0])
    solve = AdaptiveSolver(logistic, 1e-6)
    solve.hybridize()
    times = np.linspace(0.4, 8, 20)
    values = np.array([solve(array(start), array(t), array(RATE), array(LIMIT))[0].asnumpy() for t in times])
    fine = np.linspace(0, 8, 200)
    with figure(folder / "ode_steps.svg", columns=2) as (left, right):
        left.plot(fine, [exact(start, t, RATE, LIMIT) for t in fine], color="#90a4ae", linewidth=1)
        left.plot(times, values, "o", markersize=3.5, color="#3f51b5")
        left.set(xlabel="time", ylabel="population", title="solver (dots), closed form (lines)")
        tolerances = [10.0**-k for k in range(3, 12)]
        tried = []
        for tolerance in tolerances:
            solver = AdaptiveSolver(logistic, tolerance)
            tried.append(int(solver(array(start), array(8.0), array(RATE), array(LIMIT))[2].asscalar()))
        right.semilogx(tolerances, tried, marker="o")
        right.invert_xaxis()
        right.set(xlabel="tolerance of a step", ylabel="steps", title="steps of the while_loop to time 8")


if __name__ == "__main__":
    draw(Path())
