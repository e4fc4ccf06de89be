// The columns of deformable convolution: image values at the kernel points of each output pixel, moved by offsets.
//   Dai et al.: Deformable Convolutional Networks, ICCV 2017; Zhu et al.: Deformable ConvNets v2, CVPR 2019.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

struct DeformableSampling {
  int64_t batch = 0, channels = 0, height = 0, width = 0;  // the image
  int64_t out_height = 0, out_width = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilate_h = 1, dilate_w = 1, pad_h = 0, pad_w = 0;
  int64_t groups = 1;        // channels / groups share offsets
  bool zero_border = false;  // true: zeros around the image; false: its last row and column extend to the edge
  bool along_y = false, along_x = false;  // differentiate by this coordinate of the point

  int64_t taps() const { return kernel_h * kernel_w; }
  int64_t points() const { return out_height * out_width; }
};

// Memory orders: image (batch, channels, height, width), offset (batch, groups, taps, 2, points) with y before x,
// columns (channels, taps, batch, points).
template <typename T>
void deformable_columns(const DeformableSampling& s, const T* image, const T* offset, T* columns);

// The adjoint for the image: adds every column value to the pixels that it was read from. Overwrites image.
template <typename T>
void deformable_spread(const DeformableSampling& s, const T* columns, const T* offset, T* image);

}  // namespace hybridnet::kernels
