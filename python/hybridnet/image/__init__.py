"""Images: files, cropping, resizing, augmentation, iterators. Images are NDArrays (height, width, channels)."""

from . import detection
from . import detection as det
from .augment import *
from .detection import *
from .image import *
from .image_iter import *
