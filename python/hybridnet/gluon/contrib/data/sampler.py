"""IntervalSampler, under MXNet's module name."""

from ...._public_names import dir_of
from ...data.sampler import IntervalSampler

__all__ = ["IntervalSampler"]

__dir__ = dir_of(__name__)
