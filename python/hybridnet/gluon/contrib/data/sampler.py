"""IntervalSampler, under MXNet's module name."""

from ...data.sampler import IntervalSampler

__all__ = ["IntervalSampler"]
