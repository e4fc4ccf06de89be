"""Learning-rate schedules."""

from __future__ import annotations

import math

import pytest
from hybridnet import lr_scheduler, optimizer


def test_factor_shrinks_every_step_down_to_a_floor():
    schedule = lr_scheduler.FactorScheduler(step=10, factor=0.1, stop_factor_lr=1e-2, base_lr=1.0)
    assert schedule(10) == 1.0
    assert schedule(11) == pytest.approx(0.1)
    assert schedule(1000) == pytest.approx(1e-2)


def test_multifactor_shrinks_after_each_milestone():
    schedule = lr_scheduler.MultiFactorScheduler(step=[5, 8], factor=0.5, base_lr=1.0)
    assert [schedule(n) for n in (5, 6, 8, 9, 100)] == pytest.approx([1.0, 0.5, 0.5, 0.25, 0.25])


@pytest.mark.parametrize("mode", ["linear", "constant"])
def test_warmup_ends_at_the_base_rate(mode):
    schedule = lr_scheduler.CosineScheduler(100, base_lr=1.0, warmup_steps=10, warmup_begin_lr=0.1, warmup_mode=mode)
    assert schedule(0) == pytest.approx(0.1)
    assert schedule(5) == pytest.approx(0.55 if mode == "linear" else 0.1)
    assert schedule(10) == pytest.approx(1.0)


def test_poly_and_cosine_follow_their_formulas():
    poly = lr_scheduler.PolyScheduler(1000, base_lr=3.0, pwr=2, final_lr=0.5)
    cosine = lr_scheduler.CosineScheduler(1000, base_lr=3.0, final_lr=0.1)
    assert poly(500) == pytest.approx(0.5 + 2.5 * 0.25)
    assert cosine(500) == pytest.approx(0.1 + 2.9 * (1 + math.cos(math.pi / 2)) / 2)
    assert poly(1000) == 0.5
    assert cosine(1000) == pytest.approx(0.1)
    assert cosine(2000) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: lr_scheduler.FactorScheduler(step=0), "greater or equal than 1"),
        (lambda: lr_scheduler.FactorScheduler(step=1, factor=2), "no more than 1"),
        (lambda: lr_scheduler.MultiFactorScheduler(step=[3, 2]), "increasing"),
        (lambda: lr_scheduler.MultiFactorScheduler(step=[]), "non-empty"),
        (lambda: lr_scheduler.CosineScheduler(0), "strictly positive"),
        (lambda: lr_scheduler.LRScheduler(base_lr=0.1, warmup_begin_lr=0.2), "higher"),
        (lambda: lr_scheduler.LRScheduler(warmup_mode="square"), "linear and constant"),
    ],
)
def test_errors_of_bad_arguments_name_the_expected_values(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_an_optimizer_follows_its_scheduler():
    with pytest.warns(UserWarning, match="has been overwritten by ``learning_rate``"):
        sgd = optimizer.SGD(lr_scheduler=lr_scheduler.FactorScheduler(step=1, factor=0.5), learning_rate=0.4)
    assert sgd.learning_rate == 0.4
    sgd._update_count([0])
    sgd._update_count([0])
    assert sgd.learning_rate == pytest.approx(0.2)
    with pytest.raises(UserWarning, match="LRScheduler"):
        sgd.set_learning_rate(1.0)
