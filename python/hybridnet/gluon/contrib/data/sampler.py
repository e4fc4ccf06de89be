"""IntervalSampler, under the name that MXNet gave it."""

from ...data.sampler import IntervalSampler

__all__ = ["IntervalSampler"]
