"""Images: files, cropping, resizing, augmentation, iterators. Images are NDArrays (height, width, channels)."""

from .augment import *
from .image import *
from .image_iter import *
