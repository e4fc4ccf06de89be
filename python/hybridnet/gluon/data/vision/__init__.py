"""Image datasets and transforms."""

from . import transforms
from .datasets import *
