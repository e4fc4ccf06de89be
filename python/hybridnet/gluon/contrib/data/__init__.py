"""Further datasets and samplers."""

from ...._public_names import dir_of
from . import sampler, text
from .sampler import IntervalSampler

__all__ = ["IntervalSampler", "sampler", "text"]

__dir__ = dir_of(__name__)
