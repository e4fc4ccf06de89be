// Conversions between floats and bytes: _contrib_quantize, _contrib_quantize_v2, _contrib_quantize_asym,
// _contrib_requantize, _contrib_dequantize.
// Zero is step 0; uint8 covers [0, reach], int8 [-reach, reach], reach = max(|min|, |max|).
#include <algorithm>
#include <mutex>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/conv/byte_steps.h"
#include "kernels/memory/strided_copy.h"
#include "ops/quantized/device_bytes.h"
#include "ops/quantized/ranges.h"

namespace hybridnet::ops {
namespace {

enum class ByteType : int32_t { kAuto, kInt8, kUInt8 };

struct QuantizeParams {
  ByteType out_type;
  static void describe(ParamSchema<QuantizeParams>& schema) {
    schema.field("out_type", &QuantizeParams::out_type)
        .choice("int8", ByteType::kInt8)
        .choice("uint8", ByteType::kUInt8)
        .default_value("uint8")
        .doc("dtype of the output.");
  }
};

struct CalibratedParams {
  ByteType out_type;
  std::optional<double> min_calib_range, max_calib_range;
  static void describe(ParamSchema<CalibratedParams>& schema) {
    schema.field("out_type", &CalibratedParams::out_type)
        .choice("auto", ByteType::kAuto)
        .choice("int8", ByteType::kInt8)
        .choice("uint8", ByteType::kUInt8)
        .default_value("int8")
        .doc("dtype of the output; auto: uint8 if min_calib_range is not negative.");
    schema.field("min_calib_range", &CalibratedParams::min_calib_range)
        .none_by_default()
        .doc("Minimum value; None: minimum of data.");
    schema.field("max_calib_range", &CalibratedParams::max_calib_range)
        .none_by_default()
        .doc("Maximum value; None: maximum of data.");
  }
  bool calibrated() const { return min_calib_range && max_calib_range; }
  DType dtype() const {
    const bool is_unsigned =
        out_type == ByteType::kUInt8 || (out_type == ByteType::kAuto && calibrated() && *min_calib_range >= 0);
    return is_unsigned ? DType::kUInt8 : DType::kInt8;
  }
};

struct AsymmetricParams {
  std::optional<double> min_calib_range, max_calib_range;
  static void describe(ParamSchema<AsymmetricParams>& schema) {
    schema.field("min_calib_range", &AsymmetricParams::min_calib_range)
        .none_by_default()
        .doc("Minimum value; None: minimum of data.");
    schema.field("max_calib_range", &AsymmetricParams::max_calib_range)
        .none_by_default()
        .doc("Maximum value; None: maximum of data.");
  }
};

struct DequantizeParams {
  DType out_type;
  static void describe(ParamSchema<DequantizeParams>& schema) {
    schema.field("out_type", &DequantizeParams::out_type).default_value("float32").doc("float32.");
  }
};

// Rounds to the nearest step; values outside the range become its ends, NaN becomes zero.
template <typename F>
void write_steps(const TensorRef& out, F&& steps) {
  const auto write = [&](auto* to) {
    parallel_for(out.size(), 0.5, [=](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) to[i] = nearest_step<std::remove_reference_t<decltype(*to)>>(steps(i));
    });
  };
  out.dtype == DType::kUInt8 ? write(out.as<uint8_t>()) : write(out.as<int8_t>());
}

void write_floats(const TensorRef& out, const float* data, float scale, float shift) {
  if (device::current())
    return on_device::launch_bytes("to_bytes", on_device::type_list(DType::kFloat32, out.dtype),
                                   {.x = data, .out = out.data, .n = out.size(), .scale = scale, .shift = shift});
  parallel_for(out.size(), 0.15, [&](int64_t begin, int64_t end) {
    if (out.dtype == DType::kUInt8)
      kernels::floats_to_bytes(data + begin, end - begin, scale, shift, out.as<uint8_t>() + begin);
    else
      kernels::floats_to_bytes(data + begin, end - begin, scale, shift, out.as<int8_t>() + begin);
  });
}

Range around_zero(Range r) { return {-r.reach(), r.reach()}; }

Range range_of(const float* data, int64_t n) {
  if (n == 0) return {0.0f, 0.0f};
  if (device::current()) return on_device::range_of(DType::kFloat32, data, n);
  const kernels::FloatRange r = kernels::range_of_floats(data, n);
  return {r.low, r.high};
}

// The ends are compared as integers: rounding to float32 keeps their order.
Range range_of(const int32_t* data, int64_t n) {
  if (n == 0) return {0.0f, 0.0f};
  if (device::current()) return on_device::range_of(DType::kInt32, data, n);
  std::mutex mutex;
  int32_t low = data[0], high = data[0];
  parallel_for(n, 0.15, [&](int64_t begin, int64_t end) {
    int32_t least = data[begin], largest = data[begin];
#pragma omp simd reduction(min : least) reduction(max : largest)
    for (int64_t i = begin; i < end; ++i) {
      least = std::min(least, data[i]);
      largest = std::max(largest, data[i]);
    }
    const std::lock_guard lock(mutex);
    low = std::min(low, least);
    high = std::max(high, largest);
  });
  return {static_cast<float>(low), static_cast<float>(high)};
}

void infer_ranges(InferContext& c, bool inputs, bool outputs) {
  if (inputs) infer_range_inputs(c, 1, 3);
  if (outputs) infer_range_outputs(c);
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
}

// quantize uses 255 and 127 steps, like requantize; quantize_v2 and dequantize use half a step more.
void run_quantize(const QuantizeParams&, const KernelArgs& a) {
  const float* data = a.in[0].as<float>();
  const Range range = range_at(a, 1);
  const bool is_unsigned = a.out[0].dtype == DType::kUInt8;
  const float scale = (is_unsigned ? 255.0f : 127.0f) / range.reach();
  write_floats(a.out[0], data, scale, 0.0f);
  write_range(a, is_unsigned ? range : around_zero(range));
}

void run_quantize_v2(const CalibratedParams& p, const KernelArgs& a) {
  const DType out = a.out[0].dtype;
  const bool is_unsigned = out == DType::kUInt8;
  const Range given = p.calibrated()
                          ? Range{static_cast<float>(*p.min_calib_range), static_cast<float>(*p.max_calib_range)}
                          : Range{is_unsigned ? 0.0f : -steps_of(out), steps_of(out)};
  if (a.in[0].dtype != DType::kFloat32) {  // bytes are copied unchanged
    kernels::copy_bytes(a.in[0].data, a.out[0].data, a.in[0].size());
    return write_range(a, given);
  }
  const float* data = a.in[0].as<float>();
  const Range range = p.calibrated() ? given : range_of(data, a.in[0].size());
  const float scale = steps_of(out) / range.reach();
  write_floats(a.out[0], data, scale, 0.0f);
  write_range(a, is_unsigned ? range : around_zero(range));
}

void run_quantize_asym(const AsymmetricParams& p, const KernelArgs& a) {
  const float* data = a.in[0].as<float>();
  Range range = range_of(data, a.in[0].size());
  if (p.min_calib_range && p.max_calib_range)
    range = {static_cast<float>(*p.min_calib_range), static_cast<float>(*p.max_calib_range)};
  const float scale = 255.0f / (range.high - range.low), shift = 255.0f - range.high * scale;
  write_floats(a.out[0], data, scale, shift);
  write_range(a, {scale, shift});
}

void run_requantize(const CalibratedParams& p, const KernelArgs& a) {
  const int32_t* data = a.in[0].as<int32_t>();
  const float step = range_at(a, 1).reach() / 2147483648.0f;
  float reach;
  if (p.calibrated()) {
    reach = Range{static_cast<float>(*p.min_calib_range), static_cast<float>(*p.max_calib_range)}.reach();
  } else {
    reach = range_of(data, a.in[0].size()).reach() * step;
  }
  const bool is_unsigned = a.out[0].dtype == DType::kUInt8;
  const float scale = step * ((is_unsigned ? 255.0f : 127.0f) / reach);
  write_range(a, {is_unsigned ? 0.0f : -reach, reach});
  if (device::current())
    return on_device::launch_bytes("to_bytes", on_device::type_list(DType::kInt32, a.out[0].dtype),
                                   {.x = data, .out = a.out[0].data, .n = a.out[0].size(), .scale = scale});
  write_steps(a.out[0], [=](int64_t i) { return static_cast<float>(data[i]) * scale; });
}

void run_dequantize(const DequantizeParams&, const KernelArgs& a) {
  const float step = range_at(a, 1).reach() / steps_of(a.in[0].dtype);
  float* out = a.out[0].as<float>();
  if (device::current())
    return on_device::launch_bytes("to_floats", on_device::type_list(a.in[0].dtype),
                                   {.x = a.in[0].data, .out = out, .n = a.out[0].size(), .scale = step});
  const auto run = [&](auto* data) {
    parallel_for(a.out[0].size(), 0.3, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = static_cast<float>(data[i]) * step;
    });
  };
  a.in[0].dtype == DType::kUInt8 ? run(a.in[0].as<uint8_t>()) : run(a.in[0].as<int8_t>());
}

Sample float_sample(std::vector<DType> dtypes, std::vector<std::pair<std::string, std::string>> attrs, double low,
                    double high) {
  Sample s;
  s.inputs = {{3, 4}};
  if (dtypes.size() == 3) s.inputs = {{3, 4}, {1}, {1}};
  s.dtypes = std::move(dtypes);
  s.attrs = std::move(attrs);
  s.low = low;
  s.high = high;
  return s;
}

constexpr DType kF = DType::kFloat32;

void register_from_floats(OpRegistry& ops) {
  ops.declare<QuantizeParams>("_contrib_quantize")
      .doc("Quantizes floats: to uint8 for [min_range, max_range], or to int8 for values around zero.")
      .input("data", "float32, any shape")
      .input("min_range", "(1,): the minimum value")
      .input("max_range", "(1,): the maximum value")
      .output("output", "shape of data")
      .output("min_output", "(1,): value of the smallest byte")
      .output("max_output", "(1,): value of the largest byte")
      .infer([](const QuantizeParams& p, InferContext& c) {
        c.set_in_dtype(0, DType::kFloat32);
        c.set_out_dtype(0, p.out_type == ByteType::kInt8 ? DType::kInt8 : DType::kUInt8);
        infer_ranges(c, true, true);
      })
      .cpu(run_quantize, DType::kFloat32)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .output_names(OutputNames::kNumberedSeveral)
      .sample(float_sample({kF, kF, kF}, {{"out_type", "int8"}}, -2.0, 2.0));
  ops.declare<CalibratedParams>("_contrib_quantize_v2")
      .doc("Quantizes floats, with a given range or the range of the data.")
      .input("data", "float32, any shape; bytes are copied unchanged")
      .names_its_input()
      .output("output", "shape of data")
      .output("min_output", "(1,): value of the smallest byte")
      .output("max_output", "(1,): value of the largest byte")
      .infer([](const CalibratedParams& p, InferContext& c) {
        c.require_dtype(0, DTypeSet(DType::kFloat32) | DType::kInt8 | DType::kUInt8);
        const bool bytes = c.in_dtype(0) == DType::kInt8 || c.in_dtype(0) == DType::kUInt8;
        c.set_out_dtype(0, bytes ? c.in_dtype(0) : p.dtype());
        infer_ranges(c, false, true);
      })
      .cpu(run_quantize_v2, DTypeSet(DType::kFloat32) | DType::kInt8 | DType::kUInt8)
      .image({0}, {0})
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .output_names(OutputNames::kNumberedSeveral)
      .sample(float_sample({kF}, {}, -2.0, 2.0))
      .sample(
          float_sample({kF}, {{"out_type", "auto"}, {"min_calib_range", "0"}, {"max_calib_range", "1.5"}}, -0.5, 2.0));
}

void register_asymmetric(OpRegistry& ops) {
  ops.declare<AsymmetricParams>("_contrib_quantize_asym")
      .doc("Quantizes floats to uint8 over their range: data * scale + shift, rounded.")
      .input("data", "float32, any shape")
      .output("output", "uint8, shape of data")
      .output("scale", "(1,): steps per unit")
      .output("shift", "(1,): the step of zero")
      .infer([](const AsymmetricParams&, InferContext& c) {
        c.set_in_dtype(0, DType::kFloat32);
        c.set_out_dtype(0, DType::kUInt8);
        infer_ranges(c, false, true);
      })
      .cpu(run_quantize_asym, DType::kFloat32)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .sample(float_sample({kF}, {}, -2.0, 2.0))
      .sample(float_sample({kF}, {{"min_calib_range", "-0.5"}, {"max_calib_range", "1"}}, -2.0, 2.0));
}

}  // namespace

void register_quantize(OpRegistry& ops) {
  register_from_floats(ops);
  register_asymmetric(ops);
  Sample wide = float_sample({DType::kInt32, kF, kF}, {}, -2.0, 2.0);
  wide.integer_valued = true;
  ops.declare<CalibratedParams>("_contrib_requantize")
      .doc("Quantizes 32-bit integers, for example products of bytes.")
      .input("data", "int32, any shape")
      .input("min_range", "(1,): value of the smallest integer")
      .input("max_range", "(1,): value of the largest integer")
      .output("output", "shape of data")
      .output("min_output", "(1,): value of the smallest byte")
      .output("max_output", "(1,): value of the largest byte")
      .infer([](const CalibratedParams& p, InferContext& c) {
        c.set_in_dtype(0, DType::kInt32);
        c.set_out_dtype(0, p.dtype());
        infer_ranges(c, true, true);
      })
      .cpu(run_requantize, DType::kInt32)
      .image({0}, {0})
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .output_names(OutputNames::kNumberedSeveral)
      .sample(wide);
  Sample bytes = float_sample({DType::kUInt8, kF, kF}, {}, 0.0, 2.0);
  Sample signed_bytes = float_sample({DType::kInt8, kF, kF}, {}, -2.0, 2.0);
  ops.declare<DequantizeParams>("_contrib_dequantize")
      .doc("Converts quantized bytes to floats.")
      .input("data", "uint8 or int8, any shape")
      .input("min_range", "(1,): value of the smallest byte")
      .input("max_range", "(1,): value of the largest byte")
      .output("output", "float32, shape of data")
      .infer([](const DequantizeParams& p, InferContext& c) {
        if (p.out_type != DType::kFloat32)
          throw ParamError({.input = "out_type", .expected = "float32", .given = dtype_name(p.out_type)});
        c.require_dtype(0, DTypeSet(DType::kInt8) | DType::kUInt8);
        c.set_out_dtype(0, DType::kFloat32);
        infer_ranges(c, true, false);
      })
      .cpu(run_dequantize, DTypeSet(DType::kInt8) | DType::kUInt8)
      .image({0}, {0})
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .sample(bytes)
      .sample(signed_bytes);
}

}  // namespace hybridnet::ops
