"""Data iterators: batches for Module.fit and training loops."""

from . import io
from ._array_iter import *
from ._batches import *
from ._file_iters import *
from ._record_iter import *
from ._wrapping_iters import *
