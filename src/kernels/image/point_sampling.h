// Reads images at arbitrary points by bilinear interpolation; outside of the image there are zeros. All functions can
// also be differentiated by the point's coordinates, so that every derivative is one of these functions again.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

struct PointSampling {
  int64_t batch = 0, channels = 0;
  int64_t height = 0, width = 0;          // the image
  int64_t out_height = 0, out_width = 0;  // the grid
  bool along_x = false, along_y = false;  // differentiate by x, by y

  int64_t image() const { return height * width; }
  int64_t points() const { return out_height * out_width; }
};

// out (batch, channels, out_height, out_width) = image (batch, channels, height, width) at grid (batch, 2, out_height,
// out_width), whose first plane is x and whose second is y: -1 is the center of the first pixel, 1 of the last.
template <typename T>
void sample_points(const PointSampling& s, const T* image, const T* grid, T* out);

// The adjoint for the image: adds each value to the pixels from which its point is read. Overwrites image.
template <typename T>
void spread_points(const PointSampling& s, const T* values, const T* grid, T* image);

}  // namespace hybridnet::kernels
