// BatchNorm and Embedding of quantized tensors.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "ops/device_table.h"
#include "ops/index/embedding_shapes.h"
#include "ops/quantized/device_bytes.h"
#include "ops/quantized/ranges.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

constexpr DType kI = DType::kInt8, kF = DType::kFloat32;

struct QuantizedBatchNormParams {
  double eps;
  float momentum;
  bool fix_gamma, use_global_stats, output_mean_var, cudnn_off;
  int32_t axis;
  std::optional<double> min_calib_range, max_calib_range;
  static void describe(ParamSchema<QuantizedBatchNormParams>& schema) {
    using P = QuantizedBatchNormParams;
    schema.field("eps", &P::eps).default_value(1e-3f).at_least(0.0).doc("Added to the variance.");
    schema.field("momentum", &P::momentum).default_value(0.9f).hidden();
    schema.field("fix_gamma", &P::fix_gamma).default_value(true).doc("Whether gamma is treated as 1.");
    schema.field("use_global_stats", &P::use_global_stats).default_value(false).hidden();
    schema.field("output_mean_var", &P::output_mean_var).default_value(false).hidden();
    schema.field("axis", &P::axis).default_value(1).doc("The axis of the channels.");
    schema.field("cudnn_off", &P::cudnn_off).default_value(false).hidden();
    schema.field("min_calib_range", &P::min_calib_range)
        .none_by_default()
        .doc("Minimum value of the output. Required.");
    schema.field("max_calib_range", &P::max_calib_range)
        .none_by_default()
        .doc("Maximum value of the output. Required.");
    schema.check([](const P& p) {
      if (p.min_calib_range && p.max_calib_range) return;
      throw ParamError({.input = p.min_calib_range ? "max_calib_range" : "min_calib_range",
                        .expected = "a number",
                        .given = "None",
                        .because = "the range of the output cannot be found while it is computed",
                        .fix = "calibrate the network"});
    });
  }
};

void infer_batch_norm(const QuantizedBatchNormParams& p, InferContext& c) {
  c.require_dtype(0, kBytes);
  for (int i = 1; i < 5; ++i) c.set_in_dtype(i, kF);
  infer_range_inputs(c, 5, 7);
  c.set_out_dtype(0, kI);
  infer_range_outputs(c);
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  const int64_t channels = data[normalize_axis(p.axis, data.ndim())];
  for (int i = 1; i < 5; ++i) c.set_in_shape(i, Shape({channels}));
}

// uint8 data is rounded to steps of int8 first.
template <typename T>
int8_t normalized(T x, float scale, float shift) {
  constexpr bool kSigned = std::is_same_v<T, int8_t>;
  const auto value = static_cast<float>(x);
  if constexpr (kSigned) return nearest_step<int8_t>(value * scale + shift);
  const float to_signed = steps_of(kI) / steps_of(DType::kUInt8);
  return nearest_step<int8_t>(static_cast<float>(nearest_step<int8_t>(value * to_signed)) * scale + shift);
}

// Processes rows of `inner` elements of one channel; for channels-last data, rows with one element of each channel.
template <typename T>
void normalize(const TensorRef& in, const float* scale, const float* shift, int64_t channels, int64_t inner,
               int8_t* out) {
  const T* x = in.as<T>();
  const int64_t width = inner == 1 ? channels : inner, rows = width == 0 ? 0 : in.size() / width;
  parallel_for(rows, static_cast<double>(width), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = x + r * width;
      int8_t* to = out + r * width;
      if (inner == 1) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) to[i] = normalized(from[i], scale[i], shift[i]);
        continue;
      }
      const float a = scale[r % channels], b = shift[r % channels];
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) to[i] = normalized(from[i], a, b);
    }
  });
}

// The statistics of the channels, of which the host computes factors.
Temporary<float> on_host(const TensorRef& from) {
  Temporary<float> values(static_cast<size_t>(from.size()));
  device::copy_to_host(values.data(), from.data, from.size() * static_cast<int64_t>(sizeof(float)));
  return values;
}

void run_batch_norm(const QuantizedBatchNormParams& p, const KernelArgs& a) {
  const Shape& data = *a.in[0].shape;
  const int axis = normalize_axis(p.axis, data.ndim());
  const int64_t channels = data[axis];
  const int64_t inner = a.in[0].format == Format::kChannelsLast ? 1 : data.size(axis + 1, data.ndim());
  const Range in = range_at(a, 5), out{static_cast<float>(*p.min_calib_range), static_cast<float>(*p.max_calib_range)};
  const Temporary<float> gamma = on_host(a.in[1]), beta = on_host(a.in[2]), mean = on_host(a.in[3]),
                         variance = on_host(a.in[4]);
  Temporary<float> scale(static_cast<size_t>(channels)), shift(scale.size());
  for (size_t i = 0; i < scale.size(); ++i) {
    const float factor =
        (p.fix_gamma ? 1.0f : gamma[i]) * static_cast<float>(1.0 / std::sqrt(static_cast<double>(variance[i]) + p.eps));
    scale[i] = factor * in.reach() / out.reach();
    shift[i] = (beta[i] - mean[i] * factor) * steps_of(kI) / out.reach();
  }
  write_range(a, out);
  if (device::current()) {
    const DeviceTable<float> scales(scale), shifts(shift);
    return on_device::launch_bytes("normalize_bytes", on_device::type_list(a.in[0].dtype),
                                   {.x = a.in[0].data,
                                    .out = a.out[0].data,
                                    .n = a.out[0].size(),
                                    .scale = steps_of(kI) / steps_of(DType::kUInt8),
                                    .scales = scales.data(),
                                    .shifts = shifts.data(),
                                    .channels = channels,
                                    .inner = inner});
  }
  const auto run = a.in[0].dtype == DType::kUInt8 ? normalize<uint8_t> : normalize<int8_t>;
  run(a.in[0], scale.data(), shift.data(), channels, inner, a.out[0].as<int8_t>());
}

struct QuantizedEmbeddingParams {
  int64_t input_dim, output_dim;
  DType dtype;
  bool sparse_grad;
  static void describe(ParamSchema<QuantizedEmbeddingParams>& schema) {
    schema.field("input_dim", &QuantizedEmbeddingParams::input_dim).at_least(1).doc("Number of rows of weight.");
    schema.field("output_dim", &QuantizedEmbeddingParams::output_dim).at_least(1).doc("Length of a row of weight.");
    schema.field("dtype", &QuantizedEmbeddingParams::dtype).default_value("float32").hidden();
    schema.field("sparse_grad", &QuantizedEmbeddingParams::sparse_grad).default_value(false).hidden();
  }
};

void infer_embedding(const QuantizedEmbeddingParams& p, InferContext& c) {
  c.set_in_dtype(1, kI);
  c.set_out_dtype(0, kI);
  infer_range_inputs(c, 2, 4);
  infer_range_outputs(c);
  infer_embedding_shapes(c, p.input_dim, p.output_dim);
}

void run_embedding(const QuantizedEmbeddingParams& p, const KernelArgs& a) {
  kernels::Indices ids(a.in[0]);
  ids.resolve(kernels::IndexMode::kClip, p.input_dim, {"_contrib_quantized_embedding", "data"});
  kernels::gather_rows(a.in[1].data, {1, p.input_dim, p.output_dim}, ids.data(), ids.size(), a.out[0].data, 1);
  write_range(a, range_at(a, 2));
}

void declare_batch_norm(OpRegistry& ops) {
  const auto sample = [](std::vector<Shape> inputs, DType dtype,
                         std::vector<std::pair<std::string, std::string>> attrs) {
    return bytes_sample(std::move(inputs), {dtype}, std::move(attrs), 1, 100);
  };
  ops.declare<QuantizedBatchNormParams>("_contrib_quantized_batch_norm")
      .doc("BatchNorm of quantized data by the moving statistics.")
      .input("data", "int8 or uint8, any shape with the axis")
      .input("gamma", "(channels,)")
      .input("beta", "(channels,)")
      .auxiliary("moving_mean", "(channels,)")
      .auxiliary("moving_var", "(channels,)")
      .input("min_data", "(1,): value of the smallest byte")
      .input("max_data", "(1,): value of the largest byte")
      .output("output", "int8, shape of data")
      .output("min_output", "(1,): min_calib_range")
      .output("max_output", "(1,): max_calib_range")
      .infer(infer_batch_norm)
      .cpu(run_batch_norm, kBytes)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .image({0}, {0})
      .image_when([](const QuantizedBatchNormParams& p) { return p.axis == 1; })
      .sample(sample({{2, 3, 4}, {3}, {3}, {3}, {3}, {1}, {1}}, kI,
                     {{"min_calib_range", "-300"}, {"max_calib_range", "200"}, {"fix_gamma", "False"}}))
      .sample(sample({{2, 3}, {3}, {3}, {3}, {3}, {1}, {1}}, DType::kUInt8,
                     {{"min_calib_range", "-100"}, {"max_calib_range", "200"}, {"axis", "-1"}}));
}

}  // namespace

void register_quantized_layers(OpRegistry& ops) {
  declare_batch_norm(ops);
  Sample rows = bytes_sample({{2, 3}, {5, 4}, {1}, {1}}, {kF, kI}, {{"input_dim", "5"}, {"output_dim", "4"}}, -3, 7);
  ops.declare<QuantizedEmbeddingParams>("_contrib_quantized_embedding")
      .doc("Rows of a quantized matrix, selected by data; indices out of range select the nearest row.")
      .input("data", "any shape; integers of any dtype")
      .input("weight", "int8 (input_dim, output_dim)")
      .input("min_weight", "(1,): value of the smallest byte")
      .input("max_weight", "(1,): value of the largest byte")
      .output("output", "int8, shape of data with output_dim appended")
      .output("min_output", "(1,): min_weight")
      .output("max_output", "(1,): max_weight")
      .infer(infer_embedding)
      .cpu(run_embedding)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .sample(rows);
}

}  // namespace hybridnet::ops
