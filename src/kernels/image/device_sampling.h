// Resampling and reading of points in memory of a device: the forms of resample.h and point_sampling.h that run on
// device::current(), which must be set. T: float or double.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError, OutOfMemoryError.
#pragma once

#include "kernels/image/point_sampling.h"
#include "kernels/image/resample.h"

namespace hybridnet::kernels::on_device {

template <typename T>
void resample(const AxisMap& rows, const AxisMap& columns, int64_t planes, const T* in, T* out, bool accumulate);
template <typename T>
void sample_points(const PointSampling& s, const T* image, const T* grid, T* out);
template <typename T>
void spread_points(const PointSampling& s, const T* values, const T* grid, T* image);

// The kinds of grids: "affine_grid", "fill_grid", "warp_grid", "fill_pixels" of kernels/device/sampling.cuh. in: the
// matrices or displacements, or null.
template <typename T>
void make_grid(const char* kind, int64_t batch, int64_t height, int64_t width, const T* in, T* out);

}  // namespace hybridnet::kernels::on_device
