// Bytes and the ranges of floats that they represent. A range is passed with its bytes as two arrays of shape (1,);
// zero is always a step of it, step 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "device/memory.h"
#include "hybridnet/op.h"
#include "kernels/elementwise/integers.h"
#include "kernels/functors/byte_steps.h"

namespace hybridnet::ops {

inline const DTypeSet kBytes = DTypeSet(DType::kInt8) | DType::kUInt8;

struct Range {
  float low, high;
  float reach() const { return std::max(std::abs(low), std::abs(high)); }
};

// The ends of ranges are numbers of the host: on a device, reading them waits for it.
inline Range range_at(const KernelArgs& a, size_t first) {
  return {device::read_value<float>(a.in[first].data), device::read_value<float>(a.in[first + 1].data)};
}
inline void write_range(const KernelArgs& a, Range range) {
  device::write_value(a.out[1].data, range.low);
  device::write_value(a.out[2].data, range.high);
}

// The number of steps from zero to the end of a range. The half leaves room for values that round to the last step.
inline float steps_of(DType dtype) { return dtype == DType::kUInt8 ? 255.5f : 127.5f; }

// Steps per unit. Finite even for a range of zeros.
inline float steps_per_unit(DType dtype, Range range) {
  const float reach = range.reach();
  return reach != 0 ? steps_of(dtype) / reach : static_cast<float>(std::numeric_limits<int32_t>::max());
}

// The range of 32-bit sums of products of bytes. Ranges of products have whole steps: 127 and 255.
inline Range range_of_products(DType a_dtype, Range a, DType b_dtype, Range b) {
  const auto step = [](DType dtype, Range r) { return r.reach() / (dtype == DType::kUInt8 ? 255.0f : 127.0f); };
  const float reach = step(a_dtype, a) * step(b_dtype, b) * 2147483648.0f;
  return {-reach, reach};
}

using kernels::nearest_step;

inline void infer_range_inputs(InferContext& c, int first, int last) {
  for (int i = first; i < last; ++i) {
    c.set_in_shape(i, Shape({1}));
    c.set_in_dtype(i, DType::kFloat32);
  }
}
inline void infer_range_outputs(InferContext& c) {
  for (int i = 1; i < 3; ++i) {
    c.set_out_shape(i, Shape({1}));
    c.set_out_dtype(i, DType::kFloat32);
  }
}

// Inputs data, min and max; outputs bytes of the shape and dtype of data, min and max.
inline void infer_bytewise(InferContext& c) {
  c.require_dtype(0, kBytes);
  c.unify_dtypes({0}, {0});
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  infer_range_inputs(c, 1, 3);
  infer_range_outputs(c);
}

// A sample of integers in [low, high) for all inputs; `dtypes` for the first inputs, float32 for the others.
inline Sample bytes_sample(std::vector<Shape> inputs, std::vector<DType> dtypes,
                           std::vector<std::pair<std::string, std::string>> attrs = {}, double low = -100,
                           double high = 100) {
  Sample s;
  dtypes.resize(inputs.size(), DType::kFloat32);
  s.inputs = std::move(inputs);
  s.dtypes = std::move(dtypes);
  s.attrs = std::move(attrs);
  s.low = low;
  s.high = high;
  s.integer_valued = true;
  return s;
}

// For gradients of float32 alone, which tests/python/quantization compares with those of FullyConnected.
inline Sample without_gradient_check(Sample s) {
  s.check_gradient = false;
  s.note = "its sums of large integers in float32 are too coarse for differences";
  return s;
}

}  // namespace hybridnet::ops
