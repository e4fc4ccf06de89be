// Sums, products, rectifiers and shape operators of quantized tensors with ranges.
#include <cstring>

#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/memory/strided_copy.h"
#include "ops/elementwise/activation_type.h"
#include "ops/quantized/device_bytes.h"
#include "ops/quantized/ranges.h"
#include "ops/shape/concat_params.h"

namespace hybridnet::ops {
namespace {

constexpr DType kI = DType::kInt8, kU = DType::kUInt8;
constexpr double kElementNs = 1.0;

template <typename F>
void with_bytes(DType dtype, F&& f) {
  dtype == DType::kUInt8 ? f(uint8_t{}) : f(int8_t{});
}

template <typename F>
void for_elements(int64_t n, F&& f) {
  parallel_for(n, kElementNs, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

// ---- activation

struct ActParams {
  kernels::ActivationKind act_type;
  static void describe(ParamSchema<ActParams>& schema) {
    describe_act_type(schema).doc("relu; the other activations change the range of the data and are not supported.");
    schema.check([](const ActParams& p) {
      if (p.act_type != kernels::ActivationKind::kRelu)
        throw ParamError({.input = "act_type",
                          .expected = "relu",
                          .given = "another function",
                          .because = "the result has the range of the data",
                          .fix = "dequantize the data before the activation"});
    });
  }
};

void run_act(const ActParams&, const KernelArgs& a) {
  if (device::current()) {
    on_device::launch_bytes("rectify_bytes", on_device::type_list(a.in[0].dtype),
                            {.x = a.in[0].data, .out = a.out[0].data, .n = a.in[0].size()});
    return write_range(a, range_at(a, 1));
  }
  with_bytes(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* x = a.in[0].as<T>();
    T* y = a.out[0].as<T>();
    for_elements(a.in[0].size(), [=](int64_t i) { y[i] = std::max(x[i], T(0)); });
  });
  write_range(a, range_at(a, 1));
}

// ---- sums and products

struct SumParams {
  std::optional<double> min_calib_range, max_calib_range;
  bool calibrated() const { return min_calib_range && max_calib_range; }
  Range range() const { return {static_cast<float>(*min_calib_range), static_cast<float>(*max_calib_range)}; }
  static void describe(ParamSchema<SumParams>& schema) { describe_range(schema); }
  template <typename P>
  static void describe_range(ParamSchema<P>& schema) {
    schema.field("min_calib_range", static_cast<std::optional<double> P::*>(&SumParams::min_calib_range))
        .none_by_default()
        .doc("Minimum value of the output; None: the output is int32.");
    schema.field("max_calib_range", static_cast<std::optional<double> P::*>(&SumParams::max_calib_range))
        .none_by_default()
        .doc("Maximum value of the output; None: the output is int32.");
  }
};
struct ProductParams : SumParams {
  bool enable_float_output = false;
  static void describe(ParamSchema<ProductParams>& schema) {
    describe_range(schema);
    schema.field("enable_float_output", &ProductParams::enable_float_output)
        .default_value(false)
        .doc("Whether the only output is float32, without a range.");
  }
};

// lhs, rhs and their ranges.
void infer_operands(InferContext& c) {
  for (int i = 0; i < 2; ++i) {
    c.set_in_shape(i, c.out_shape(0));
    c.set_in_shape(i, c.in_shape(1 - i));
    c.set_out_shape(0, c.in_shape(i));
  }
  c.set_in_shape(0, c.in_shape(1));
  infer_range_inputs(c, 2, 6);
}

DType sum_dtype(const SumParams& p, DType lhs, DType rhs) {
  return !p.calibrated() ? DType::kInt32 : lhs == rhs ? lhs : DType::kInt8;
}

void infer_sum(const SumParams& p, InferContext& c) {
  for (int i = 0; i < 2; ++i) c.require_dtype(i, kBytes);
  infer_operands(c);
  if (c.in_dtype(0) != DType::kUnknown && c.in_dtype(1) != DType::kUnknown)
    c.set_out_dtype(0, sum_dtype(p, c.in_dtype(0), c.in_dtype(1)));
  infer_range_outputs(c);
}

void run_sum(const SumParams& p, const KernelArgs& a) {
  const Range lhs = range_at(a, 2), rhs = range_at(a, 4);
  const DType out = a.out[0].dtype;
  Range range{-lhs.reach() - rhs.reach(), lhs.reach() + rhs.reach()};
  if (p.calibrated()) range = p.range();
  const float steps = out == DType::kInt32 ? 2147483648.0f : steps_of(out);
  const auto factor = [&](DType dtype, Range r) {
    return range.reach() != 0 ? r.reach() * steps / (range.reach() * steps_of(dtype)) : 0.0f;
  };
  const float of_lhs = factor(a.in[0].dtype, lhs), of_rhs = factor(a.in[1].dtype, rhs);
  const int64_t n = a.out[0].size();
  if (device::current()) {
    on_device::launch_bytes(
        "add_bytes", on_device::type_list(a.in[0].dtype, a.in[1].dtype, out),
        {.x = a.in[0].data, .y = a.in[1].data, .out = a.out[0].data, .n = n, .scale = of_lhs, .other = of_rhs});
    return write_range(a, range);
  }
  with_bytes(a.in[0].dtype, [&](auto l) {
    with_bytes(a.in[1].dtype, [&](auto r) {
      const auto* x = a.in[0].as<decltype(l)>();
      const auto* y = a.in[1].as<decltype(r)>();
      const auto sum = [=](int64_t i) { return static_cast<float>(x[i]) * of_lhs + static_cast<float>(y[i]) * of_rhs; };
      if (out == DType::kInt32) {
        auto* z = a.out[0].as<int32_t>();
        for_elements(n, [=](int64_t i) { z[i] = kernels::to_integer<int32_t>(std::nearbyint(sum(i))); });
      } else {
        with_bytes(out, [&](auto o) {
          auto* z = a.out[0].as<decltype(o)>();
          for_elements(n, [=](int64_t i) { z[i] = nearest_step<decltype(o)>(sum(i)); });
        });
      }
    });
  });
  write_range(a, range);
}

void infer_product(const ProductParams& p, InferContext& c) {
  for (int i = 0; i < 2; ++i) c.set_in_dtype(i, DType::kInt8);
  infer_operands(c);
  if (p.enable_float_output) return c.set_out_dtype(0, DType::kFloat32);
  c.set_out_dtype(0, p.calibrated() ? DType::kInt8 : DType::kInt32);
  infer_range_outputs(c);
}

void run_product(const ProductParams& p, const KernelArgs& a) {
  const Range lhs = range_at(a, 2), rhs = range_at(a, 4);
  const int8_t *x = a.in[0].as<int8_t>(), *y = a.in[1].as<int8_t>();
  const int64_t n = a.out[0].size();
  const float unit = lhs.reach() / steps_of(DType::kInt8) * (rhs.reach() / steps_of(DType::kInt8));
  if (device::current()) {
    const float factor =
        p.calibrated() && !p.enable_float_output ? unit * steps_per_unit(DType::kInt8, p.range()) : unit;
    on_device::launch_bytes("multiply_bytes", on_device::type_list(a.out[0].dtype),
                            {.x = x, .y = y, .out = a.out[0].data, .n = n, .scale = factor});
    if (p.enable_float_output) return;
    return write_range(a, p.calibrated() ? p.range() : range_of_products(DType::kInt8, lhs, DType::kInt8, rhs));
  }
  const auto product = [=](int64_t i) { return static_cast<int32_t>(x[i]) * y[i]; };
  if (p.enable_float_output) {
    auto* z = a.out[0].as<float>();
    return for_elements(n, [=](int64_t i) { z[i] = static_cast<float>(product(i)) * unit; });
  }
  if (p.calibrated()) {
    const float factor = unit * steps_per_unit(DType::kInt8, p.range());
    auto* z = a.out[0].as<int8_t>();
    for_elements(n, [=](int64_t i) {
      z[i] = static_cast<int8_t>(
          std::clamp(kernels::to_integer<int32_t>(static_cast<float>(product(i)) * factor), -128, 127));
    });
    return write_range(a, p.range());
  }
  auto* z = a.out[0].as<int32_t>();
  for_elements(n, [=](int64_t i) { z[i] = product(i); });
  write_range(a, range_of_products(DType::kInt8, lhs, DType::kInt8, rhs));
}

// ---- shapes

void infer_flatten(const NoParams&, InferContext& c) {
  c.require_dtype(0, kBytes);
  c.unify_dtypes({0}, {0});
  infer_range_inputs(c, 1, 3);
  infer_range_outputs(c);
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  if (data.ndim() == 0) throw ShapeError({.input = "data", .expected = "at least one axis", .given = "a scalar"});
  int64_t row = 1;
  for (int i = 1; i < data.ndim(); ++i)
    row = row == kUnknownDim || data[i] == kUnknownDim ? kUnknownDim : row * data[i];
  c.set_out_shape(0, Shape{data[0], row});
}

// Inputs: num_args operands, then the minimum and maximum of the range of each.
void infer_concat(const ConcatParams& p, InferContext& c) {
  const int operands = p.num_args;
  if (c.num_in() != 3 * operands) {
    throw ParamError({.input = "num_args",
                      .expected = "a third of the number of inputs (" + std::to_string(c.num_in()) + ")",
                      .given = std::to_string(operands),
                      .because = "each array is followed by the ends of its range, behind all arrays"});
  }
  infer_range_inputs(c, operands, 3 * operands);
  infer_range_outputs(c);
  DType dtype = DType::kUInt8;
  Shape common;
  for (int i = 0; i < operands; ++i) {
    c.require_dtype(i, kBytes);
    if (c.in_dtype(i) == DType::kUnknown) dtype = DType::kUnknown;
    if (c.in_dtype(i) == DType::kInt8 && dtype != DType::kUnknown) dtype = DType::kInt8;
    if (c.in_shape(i).rank_known() && !common.rank_known()) common = c.in_shape(i);
  }
  c.set_out_dtype(0, dtype);
  if (!common.rank_known()) return;
  const int axis = normalize_axis(p.dim, common.ndim(), "dim");
  int64_t total = 0;
  common[axis] = kUnknownDim;
  for (int i = 0; i < operands; ++i) {
    c.set_in_shape(i, common);
    const int64_t size = c.in_shape(i)[axis];
    total = total == kUnknownDim || size == kUnknownDim ? kUnknownDim : checked_plus(total, size);
  }
  common[axis] = total;
  c.set_out_shape(0, common);
}

void run_concat(const ConcatParams& p, const KernelArgs& a) {
  const auto operands = static_cast<size_t>(p.num_args);
  const DType dtype = a.out[0].dtype;
  Range range{0, 0};
  for (size_t i = 0; i < operands; ++i) {
    const Range r = range_at(a, operands + 2 * i);
    range = {std::min(range.low, r.low), std::max(range.high, r.high)};
  }
  const Shape& out = *a.out[0].shape;
  const int axis = normalize_axis(p.dim, out.ndim(), "dim");
  const int64_t outer = out.size(0, axis), inner = out.size(axis + 1, out.ndim()), row = out[axis] * inner;
  int64_t column = 0;
  for (size_t i = 0; i < operands; ++i) {
    const TensorRef& in = a.in[i];
    const int64_t width = (*in.shape)[axis] * inner;
    const float scale = steps_per_unit(dtype, range) / steps_per_unit(in.dtype, range_at(a, operands + 2 * i));
    if (device::current()) {
      on_device::launch_bytes("rescale_rows", on_device::type_list(in.dtype, dtype),
                              {.x = in.data,
                               .out = a.out[0].as<char>() + column,
                               .n = outer * width,
                               .scale = scale,
                               .width = width,
                               .row = row});
      column += width;
      continue;
    }
    with_bytes(in.dtype, [&](auto from) {
      with_bytes(dtype, [&](auto to) {
        const auto* x = in.as<decltype(from)>();
        auto* y = a.out[0].as<decltype(to)>() + column;
        const bool copies = scale == 1.0f && in.dtype == dtype;
        parallel_for(outer, kElementNs * static_cast<double>(width), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            if (copies) {
              if (width > 0) std::memcpy(y + r * row, x + r * width, static_cast<size_t>(width));
              continue;
            }
#pragma omp simd
            for (int64_t j = 0; j < width; ++j)
              y[r * row + j] = nearest_step<decltype(to)>(static_cast<float>(x[r * width + j]) * scale);
          }
        });
      });
    });
    column += width;
  }
  write_range(a, range);
}

template <typename P>
void declare_sum_inputs(OpBuilder<P>& op) {
  op.input("rhs", "shape of lhs")
      .input("lhs_min", "(1,): value of the smallest byte of lhs")
      .input("lhs_max", "(1,): value of the largest byte of lhs")
      .input("rhs_min", "(1,): value of the smallest byte of rhs")
      .input("rhs_max", "(1,): value of the largest byte of rhs");
}

template <typename P>
void declare_ranges(OpBuilder<P>& op) {
  op.output("min_output", "(1,): value of the smallest integer")
      .output("max_output", "(1,): value of the largest integer");
}

void declare_arithmetic(OpRegistry& ops) {
  auto sum = ops.declare<SumParams>("_contrib_quantized_elemwise_add");
  sum.doc("Sum of bytes that may have different ranges.").input("lhs", "int8 or uint8, any shape");
  declare_sum_inputs(sum);
  sum.output("output", "int32; with a calibrated range the dtype of the inputs, int8 if they differ");
  declare_ranges(sum);
  sum.infer(infer_sum)
      .cpu(run_sum, kBytes)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .image({0, 1}, {0})
      .sample(bytes_sample({{3, 4}, {3, 4}, {1}, {1}, {1}, {1}}, {kI, kI}))
      .sample(bytes_sample({{3, 4}, {3, 4}, {1}, {1}, {1}, {1}}, {kU, kU},
                           {{"min_calib_range", "0"}, {"max_calib_range", "120"}}, 1, 100))
      .sample(bytes_sample({{3, 4}, {3, 4}, {1}, {1}, {1}, {1}}, {kU, kI},
                           {{"min_calib_range", "-80"}, {"max_calib_range", "120"}}, 1, 100));
  auto product = ops.declare<ProductParams>("_contrib_quantized_elemwise_mul");
  product.doc("Product of bytes, element by element.").input("lhs", "int8, any shape");
  declare_sum_inputs(product);
  product.output("output", "int32; int8 with a calibrated range, rounded toward zero; or float32");
  declare_ranges(product);
  product.num_outputs([](const ProductParams& p) { return p.enable_float_output ? 1 : 3; })
      .infer(infer_product)
      .cpu(run_product, kI)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .image({0, 1}, {0})
      .sample(bytes_sample({{3, 4}, {3, 4}, {1}, {1}, {1}, {1}}, {kI, kI}))
      .sample(bytes_sample({{3, 4}, {3, 4}, {1}, {1}, {1}, {1}}, {kI, kI},
                           {{"min_calib_range", "-900"}, {"max_calib_range", "900"}}, 1, 100))
      .sample(bytes_sample({{3, 4}, {3, 4}, {1}, {1}, {1}, {1}}, {kI, kI}, {{"enable_float_output", "True"}}));
}

template <typename P>
OpBuilder<P> declare_same_range(OpRegistry& ops, const char* name, const char* doc, const char* shape) {
  auto op = ops.declare<P>(name);
  op.doc(doc)
      .input("data", "int8 or uint8")
      .input("min_data", "(1,): value of the smallest byte")
      .input("max_data", "(1,): value of the largest byte")
      .output("output", shape)
      .output("min_output", "(1,): min_data")
      .output("max_output", "(1,): max_data");
  return op;
}

}  // namespace

void register_quantized_elementwise(OpRegistry& ops) {
  declare_arithmetic(ops);
  declare_same_range<ActParams>(ops, "_contrib_quantized_act", "relu of bytes.", "shape of data")
      .infer([](const ActParams&, InferContext& c) { infer_bytewise(c); })
      .cpu(run_act, kBytes)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .clamps(Interval::not_negative())
      .image({0}, {0})
      .sample(bytes_sample({{3, 4}, {1}, {1}}, {kI}, {{"act_type", "relu"}}));
  declare_same_range<NoParams>(ops, "_contrib_quantized_flatten", "Flatten of bytes.", "(batch, the other axes)")
      .infer(infer_flatten)
      .cpu(
          [](const NoParams&, const KernelArgs& a) {
            kernels::copy_bytes(a.in[0].data, a.out[0].data, a.in[0].size());
            write_range(a, range_at(a, 1));
          },
          kBytes)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .sample(bytes_sample({{2, 3, 4}, {1}, {1}}, {kI}))
      .sample(bytes_sample({{2, 3, 2, 2}, {1}, {1}}, {kU}, {}, 0, 200));
  ops.declare<ConcatParams>("_contrib_quantized_concat")
      .doc("Joins quantized tensors along an axis, in one range that contains all ranges. int8 if any input is.")
      .variadic_input("data", "", "num_args arrays of int8 or uint8; then min and max of the first, of the second, ...")
      .output("output", "sizes of the arrays; their sum in the joined axis")
      .output("min_output", "(1,): value of the smallest byte")
      .output("max_output", "(1,): value of the largest byte")
      .num_inputs([](const ConcatParams& p) { return 3 * p.num_args; })
      .infer(infer_concat)
      .renumbered_params([](ConcatParams p, std::span<const int> moved_to) {
        p.dim = moved_to[static_cast<size_t>(normalize_axis(p.dim, static_cast<int>(moved_to.size()), "dim"))];
        return std::optional(p);
      })
      .cpu(run_concat, kBytes)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .sample(bytes_sample({{2, 3}, {2, 2}, {1}, {1}, {1}, {1}}, {kI, kI}, {{"num_args", "2"}}))
      .sample(bytes_sample({{2, 3}, {4, 3}, {1}, {1}, {1}, {1}}, {kU, kI}, {{"num_args", "2"}, {"dim", "0"}}, 1, 100))
      .sample(bytes_sample({{2, 3, 2}, {2, 1, 2}, {1}, {1}, {1}, {1}}, {kU, kU}, {{"num_args", "2"}, {"dim", "-2"}}, 1,
                           100));
}

}  // namespace hybridnet::ops
