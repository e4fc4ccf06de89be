// Floats as bytes and back: _contrib_quantize, _contrib_quantize_v2, _contrib_requantize, _contrib_dequantize.
//   Bytes without sign cover [min, max]; signed ones cover [-range, range] with zero at zero.
#include <algorithm>
#include <cmath>

#include "hybridnet/op.h"
#include "hybridnet/threads.h"

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
        .doc("Least value; None: that of data.");
    schema.field("max_calib_range", &CalibratedParams::max_calib_range)
        .none_by_default()
        .doc("Largest value; None: that of data.");
  }
  bool calibrated() const { return min_calib_range && max_calib_range; }
  DType dtype() const {
    const bool is_unsigned =
        out_type == ByteType::kUInt8 || (out_type == ByteType::kAuto && calibrated() && *min_calib_range >= 0);
    return is_unsigned ? DType::kUInt8 : DType::kInt8;
  }
};

struct DequantizeParams {
  DType out_type;
  static void describe(ParamSchema<DequantizeParams>& schema) {
    schema.field("out_type", &DequantizeParams::out_type).default_value("float32").doc("float32.");
  }
};

struct Range {
  float low, high;
  float reach() const { return std::max(std::abs(low), std::abs(high)); }
};

// Steps of 1 / scale from `zero`.
struct Steps {
  float scale, zero, least, most;
  static Steps of(DType dtype, Range r) {
    if (dtype == DType::kUInt8) return {255.0f / (r.high - r.low), r.low, 0.0f, 255.0f};
    return {(dtype == DType::kInt32 ? 2147483647.0f : 127.0f) / r.reach(), 0.0f,
            dtype == DType::kInt32 ? -2147483647.0f : -127.0f, dtype == DType::kInt32 ? 2147483647.0f : 127.0f};
  }
  // Rounded to the nearest step, halves away from zero; values outside of the range become its ends, NaN becomes
  // zero's.
  float quantized(float value) const {
    const float steps = (value - zero) * scale;
    return steps == steps ? std::clamp(std::trunc(steps + std::copysign(0.5f, steps)), least, most)
                          : std::clamp(0.0f, least, most);
  }
};

template <typename O, typename F>
void fill(const TensorRef& out, F&& value) {
  parallel_for(out.size(), 1.2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out.as<O>()[i] = static_cast<O>(value(i));
  });
}

// Writes bytes, then the range that they stand for.
template <typename F>
void write_quantized(const KernelArgs& a, Range range, F&& value) {
  const DType dtype = a.out[0].dtype;
  const Steps steps = Steps::of(dtype, range);
  const auto quantized = [&](int64_t i) { return steps.quantized(value(i)); };
  if (dtype == DType::kUInt8)
    fill<uint8_t>(a.out[0], quantized);
  else
    fill<int8_t>(a.out[0], quantized);
  *a.out[1].as<float>() = dtype == DType::kUInt8 ? range.low : -range.reach();
  *a.out[2].as<float>() = dtype == DType::kUInt8 ? range.high : range.reach();
}

template <typename F>
Range range_of(int64_t n, F&& value) {
  Range r{0.0f, 0.0f};
  for (int64_t i = 0; i < n; ++i) {
    const float v = value(i);
    r.low = i == 0 ? v : std::min(r.low, v);
    r.high = i == 0 ? v : std::max(r.high, v);
  }
  return r;
}

Range given_range(const KernelArgs& a) { return {*a.in[1].as<float>(), *a.in[2].as<float>()}; }

void infer_ranges(InferContext& c, bool inputs, bool outputs) {
  for (int i = 1; i < 3; ++i) {
    if (inputs) {
      c.set_in_shape(i, Shape({1}));
      c.set_in_dtype(i, DType::kFloat32);
    }
    if (outputs) {
      c.set_out_shape(i, Shape({1}));
      c.set_out_dtype(i, DType::kFloat32);
    }
  }
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
}

void run_quantize_v2(const CalibratedParams& p, const KernelArgs& a) {
  if (a.in[0].dtype == DType::kFloat32) {
    const float* data = a.in[0].as<float>();
    const auto value = [data](int64_t i) { return data[i]; };
    const Range range = p.calibrated()
                            ? Range{static_cast<float>(*p.min_calib_range), static_cast<float>(*p.max_calib_range)}
                            : range_of(a.in[0].size(), value);
    return write_quantized(a, range, value);
  }
  // Bytes stay what they are.
  std::copy_n(a.in[0].as<int8_t>(), a.in[0].size(), a.out[0].as<int8_t>());
  const bool is_unsigned = a.in[0].dtype == DType::kUInt8;
  *a.out[1].as<float>() = p.calibrated() ? static_cast<float>(*p.min_calib_range) : is_unsigned ? 0.0f : -127.0f;
  *a.out[2].as<float>() = p.calibrated() ? static_cast<float>(*p.max_calib_range) : is_unsigned ? 255.0f : 127.0f;
}

void run_requantize(const CalibratedParams& p, const KernelArgs& a) {
  const int32_t* data = a.in[0].as<int32_t>();
  const float step = given_range(a).reach() / 2147483647.0f;
  const auto value = [=](int64_t i) { return static_cast<float>(data[i]) * step; };
  Range range = p.calibrated() ? Range{static_cast<float>(*p.min_calib_range), static_cast<float>(*p.max_calib_range)}
                               : range_of(a.in[0].size(), value);
  if (a.out[0].dtype == DType::kInt8) range = {-range.reach(), range.reach()};
  write_quantized(a, range, value);
}

void run_dequantize(const DequantizeParams&, const KernelArgs& a) {
  const Range r = given_range(a);
  if (a.in[0].dtype == DType::kUInt8) {
    const float step = (r.high - r.low) / 255.0f;
    return fill<float>(a.out[0],
                       [&](int64_t i) { return static_cast<float>(a.in[0].as<uint8_t>()[i]) * step + r.low; });
  }
  const float step = r.reach() / 127.0f;
  fill<float>(a.out[0], [&](int64_t i) { return static_cast<float>(a.in[0].as<int8_t>()[i]) * step; });
}

Sample bytes_sample(std::vector<DType> dtypes, std::vector<std::pair<std::string, std::string>> attrs, double low,
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
      .doc("Floats as bytes: uint8 for [min_range, max_range], or int8 for values around zero.")
      .input("data", "float32, any shape")
      .input("min_range", "(1,): the least value")
      .input("max_range", "(1,): the largest value")
      .output("output", "shape of data")
      .output("min_output", "(1,): what the least byte stands for")
      .output("max_output", "(1,): what the largest byte stands for")
      .infer([](const QuantizeParams& p, InferContext& c) {
        c.set_in_dtype(0, DType::kFloat32);
        c.set_out_dtype(0, p.out_type == ByteType::kInt8 ? DType::kInt8 : DType::kUInt8);
        infer_ranges(c, true, true);
      })
      .cpu(
          [](const QuantizeParams&, const KernelArgs& a) {
            const float* data = a.in[0].as<float>();
            write_quantized(a, given_range(a), [data](int64_t i) { return data[i]; });
          },
          DType::kFloat32)
      .gradient(kNotDifferentiable)
      .sample(bytes_sample({kF, kF, kF}, {{"out_type", "int8"}}, -2.0, 2.0));
  ops.declare<CalibratedParams>("_contrib_quantize_v2")
      .doc("Floats as bytes, for a given range or that of the data.")
      .input("data", "float32, any shape; bytes stay as they are")
      .output("output", "shape of data")
      .output("min_output", "(1,): what the least byte stands for")
      .output("max_output", "(1,): what the largest byte stands for")
      .infer([](const CalibratedParams& p, InferContext& c) {
        c.require_dtype(0, DTypeSet(DType::kFloat32) | DType::kInt8 | DType::kUInt8);
        const bool bytes = c.in_dtype(0) == DType::kInt8 || c.in_dtype(0) == DType::kUInt8;
        c.set_out_dtype(0, bytes ? c.in_dtype(0) : p.dtype());
        infer_ranges(c, false, true);
      })
      .cpu(run_quantize_v2, DTypeSet(DType::kFloat32) | DType::kInt8 | DType::kUInt8)
      .gradient(kNotDifferentiable)
      .sample(bytes_sample({kF}, {}, -2.0, 2.0))
      .sample(
          bytes_sample({kF}, {{"out_type", "auto"}, {"min_calib_range", "0"}, {"max_calib_range", "1.5"}}, -0.5, 2.0));
}

}  // namespace

void register_quantize(OpRegistry& ops) {
  register_from_floats(ops);
  Sample wide = bytes_sample({DType::kInt32, kF, kF}, {}, -2.0, 2.0);
  wide.integer_valued = true;
  ops.declare<CalibratedParams>("_contrib_requantize")
      .doc("32-bit integers, such as products of bytes give, as bytes.")
      .input("data", "int32, any shape")
      .input("min_range", "(1,): what the least integer stands for")
      .input("max_range", "(1,): what the largest integer stands for")
      .output("output", "shape of data")
      .output("min_output", "(1,): what the least byte stands for")
      .output("max_output", "(1,): what the largest byte stands for")
      .infer([](const CalibratedParams& p, InferContext& c) {
        c.set_in_dtype(0, DType::kInt32);
        c.set_out_dtype(0, p.dtype());
        infer_ranges(c, true, true);
      })
      .cpu(run_requantize, DType::kInt32)
      .gradient(kNotDifferentiable)
      .sample(wide);
  Sample bytes = bytes_sample({DType::kUInt8, kF, kF}, {}, 0.0, 2.0);
  Sample signed_bytes = bytes_sample({DType::kInt8, kF, kF}, {}, -2.0, 2.0);
  ops.declare<DequantizeParams>("_contrib_dequantize")
      .doc("Bytes as the floats that they stand for.")
      .input("data", "uint8 or int8, any shape")
      .input("min_range", "(1,): what the least byte stands for")
      .input("max_range", "(1,): what the largest byte stands for")
      .output("output", "float32, shape of data")
      .infer([](const DequantizeParams& p, InferContext& c) {
        if (p.out_type != DType::kFloat32)
          throw ParamError({.input = "out_type", .expected = "float32", .given = dtype_name(p.out_type)});
        c.require_dtype(0, DTypeSet(DType::kInt8) | DType::kUInt8);
        c.set_out_dtype(0, DType::kFloat32);
        infer_ranges(c, true, false);
      })
      .cpu(run_dequantize, DTypeSet(DType::kInt8) | DType::kUInt8)
      .gradient(kNotDifferentiable)
      .sample(bytes)
      .sample(signed_bytes);
}

}  // namespace hybridnet::ops
