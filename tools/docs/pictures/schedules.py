"""Learning-rate schedules: functions from the number of updates to a learning rate, with and without a warm-up.

A schedule is given to the optimizer (`{"lr_scheduler": schedule}` for `gluon.Trainer`) and read at each update.
"""

from __future__ import annotations

from pathlib import Path

from hybridnet import lr_scheduler
from plot import figure

STEPS = 1000


def schedules(**warmup: float) -> dict[str, lr_scheduler.LRScheduler]:
    return {
        "FactorScheduler": lr_scheduler.FactorScheduler(step=150, factor=0.6, base_lr=0.1, **warmup),
        "MultiFactorScheduler": lr_scheduler.MultiFactorScheduler([400, 800], factor=0.2, base_lr=0.1, **warmup),
        "PolyScheduler": lr_scheduler.PolyScheduler(max_update=STEPS, base_lr=0.1, pwr=2, **warmup),
        "CosineScheduler": lr_scheduler.CosineScheduler(max_update=STEPS, base_lr=0.1, final_lr=0.005, **warmup),
    }


def draw(folder: Path) -> None:
    with figure(folder / "schedules.svg", columns=2) as axes:
        for ax, (title, warmup) in zip(axes, {"plain": {}, "warm-up of 100 updates": {"warmup_steps": 100}}.items()):
            for name, schedule in schedules(**warmup).items():
                ax.plot([schedule(update) for update in range(1, STEPS + 1)], label=name)
            ax.set(title=title, xlabel="update", ylabel="learning rate")
        axes[0].legend(frameon=False, fontsize=9)


if __name__ == "__main__":
    draw(Path())
