// Resizing of images: sums of rows, then sums along the row.
#pragma once

#include "kernels/image/host_images.h"
#include "kernels/image/image_taps.h"

namespace hybridnet::kernels {

// A resizing of images, which keeps the number of channels. One object serves any number of images and threads.
struct ImageResizing {
  ImageShape from, to;
  ImageTaps rows, columns;
  ImageResizing(const ImageShape& from, int64_t height, int64_t width, Interpolation method);
  // Computes rows `begin` to `end` of the result, which starts at `out`. Integers are rounded and clipped to their
  // range.
  void run(DType dtype, const void* in, void* out, int64_t begin, int64_t end) const;
};

}  // namespace hybridnet::kernels
