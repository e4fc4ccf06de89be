// Images at another size: sums of rows, then sums along the row.
#pragma once

#include "hybridnet/host_images.h"
#include "kernels/image_taps.h"

namespace hybridnet::kernels {

// How an image becomes another of the same number of channels. One object serves any number of images and threads.
struct ImageResizing {
  ImageShape from, to;
  ImageTaps rows, columns;
  ImageResizing(const ImageShape& from, int64_t height, int64_t width, Interpolation method);
  // Rows `begin` to `end` of the result, which starts at `out`. Integers are rounded and kept in range.
  void run(DType dtype, const void* in, void* out, int64_t begin, int64_t end) const;
};

}  // namespace hybridnet::kernels
