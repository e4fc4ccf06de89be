// Layers of floats whose weights are bytes with one scale per output: weight[o, i] = bytes[o, i] * scale[o]. For
// networks whose time goes into reading weights, as that of decoders does.
#include "ops/quantized/weight_only.h"

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/rounded_rows_arguments.h"
#include "kernels/index/indices.h"
#include "kernels/product/byte_product.h"
#include "kernels/product/packed.h"
#include "ops/emit.h"
#include "ops/index/embedding_shapes.h"
#include "ops/quantized/device_bytes.h"
#include "ops/quantized/ranges.h"

namespace hybridnet::ops {

void infer_dense_of_bytes(const QuantizedDenseParams& p, InferContext& c) {
  c.set_in_dtype(0, DType::kFloat32);
  c.set_in_dtype(1, DType::kInt8);
  c.set_in_dtype(2, DType::kFloat32);
  if (!p.no_bias) c.set_in_dtype(3, DType::kFloat32);
  for (int i = 2; i < (p.no_bias ? 3 : 4); ++i) c.set_in_shape(i, Shape{p.num_hidden});
  c.set_out_dtype(0, DType::kFloat32);
  infer_dense_shapes(p, c);
}

namespace {

class WeightOnlyKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  WeightOnlyKernel(const QuantizedDenseParams& p, const LinkContext& c)
      : rows_(dense_geometry(c.in[0].shape, p.flatten, p.num_hidden).out_size()),
        depth_(c.in[1].shape[1]),
        hidden_(p.num_hidden),
        bias_(!p.no_bias) {
    if (c.frozen_weights)
      kept_ = std::make_unique<kernels::PackedWeights>(kernels::byte_packing(depth_, hidden_), packed_bytes(),
                                                       kernels::byte_unpacking(depth_, hidden_));
  }

  std::string description() const override { return "float product of bytes"; }
  bool reads_packed(size_t input) const override { return input == 1 && kept_; }
  int64_t workspace_bytes() const override { return rows_bytes() + (kept_ ? 0 : packed_bytes()); }

  void run(const KernelArgs& a) override {
    if (a.out[0].size() == 0) return;
    auto* const workspace = static_cast<char*>(a.workspace);
    const auto pack = [&](void* target) { kernels::pack_byte_weights(a.in[1].as<int8_t>(), depth_, hidden_, target); };
    const kernels::PackedForRun packed(kept_.get(), a.in[1], workspace + rows_bytes(), pack);
    kernels::float_byte_product({.packed = packed.data(),
                                 .depth = depth_,
                                 .columns = hidden_,
                                 .rows = a.in[0].as<float>(),
                                 .count = rows_,
                                 .scale = a.in[2].as<float>(),
                                 .bias = bias_ ? a.in[3].as<float>() : nullptr,
                                 .out = a.out[0].as<float>(),
                                 .workspace = workspace});
  }

 private:
  int64_t packed_bytes() const { return kernels::packed_byte_weights(depth_, hidden_); }
  int64_t rows_bytes() const { return (kernels::float_byte_product_workspace(depth_, rows_) + 63) / 64 * 64; }

  int64_t rows_, depth_, hidden_;
  bool bias_;
  std::unique_ptr<kernels::PackedWeights> kept_;  // null: packed in each run
};

// Makes floats of the weights in each run, then multiplies as FullyConnected does.
class DenseOfBytesOnDevice final : public Kernel {
 public:
  DenseOfBytesOnDevice(const DenseLayer& layer, bool rounds)
      : layer_(layer), rounds_(rounds), product_(plain_dense_kernel<float>(layer)) {}

  std::string description() const override {
    return rounds_ ? "float product of rounded rows and bytes" : "float product of bytes";
  }
  int64_t workspace_bytes() const override { return weight_bytes() + (rounds_ ? row_bytes() : 0); }
  void run(const KernelArgs& a) override {
    if (a.out[0].size() == 0) return;
    const int64_t weights = layer_.hidden * layer_.features;
    if (weights > 0)
      on_device::launch_bytes("scale_rows", "",
                              {.x = a.in[1].data,
                               .out = a.workspace,
                               .n = weights,
                               .scales = a.in[2].as<float>(),
                               .width = layer_.features});
    TensorRef in[] = {a.in[0], a.in[1], TensorRef(), TensorRef()};
    if (rounds_) in[0].data = rounded(a.in[0].data, static_cast<char*>(a.workspace) + weight_bytes());
    in[1].data = a.workspace;
    in[1].dtype = DType::kFloat32;
    size_t count = 2;
    for (size_t i = 3; i < a.in.size(); ++i) in[count++] = a.in[i];
    KernelArgs args = a;
    args.in = {in, count};
    product_->run(args);
  }

 private:
  static int64_t floats(int64_t n) { return (n * static_cast<int64_t>(sizeof(float)) + 255) / 256 * 256; }
  int64_t weight_bytes() const { return floats(layer_.hidden * layer_.features); }
  int64_t row_bytes() const { return floats(layer_.rows * layer_.features); }

  void* rounded(const void* rows, void* to) const {
    on_device::launch_rows("rounded_rows.cuh", "RoundedRowsArguments", "round_rows", layer_.rows,
                           device::RoundedRowsArguments{static_cast<const float*>(rows), static_cast<float*>(to),
                                                        layer_.rows, layer_.features},
                           "float");
    return to;
  }

  const DenseLayer layer_;
  const bool rounds_;
  const Ref<Kernel> product_;
};

Ref<Kernel> link_dense(const QuantizedDenseParams& p, const LinkContext& c) {
  if (c.device.type != DeviceType::kGPU) return Ref<Kernel>(new WeightOnlyKernel(p, c));
  return dense_of_bytes_on_device({.rows = dense_geometry(c.in[0].shape, p.flatten, p.num_hidden).out_size(),
                                   .features = c.in[1].shape[1],
                                   .hidden = p.num_hidden,
                                   .bias = !p.no_bias,
                                   .addend = false,
                                   .activation = {}},
                                  false);
}

struct WeightOnlyEmbeddingParams {
  int64_t input_dim, output_dim;
  static void describe(ParamSchema<WeightOnlyEmbeddingParams>& schema) {
    schema.field("input_dim", &WeightOnlyEmbeddingParams::input_dim).at_least(1).doc("Number of rows of weight.");
    schema.field("output_dim", &WeightOnlyEmbeddingParams::output_dim).at_least(1).doc("Length of a row of weight.");
  }
};

void infer_embedding(const WeightOnlyEmbeddingParams& p, InferContext& c) {
  c.set_in_dtype(1, DType::kInt8);
  c.set_in_dtype(2, DType::kFloat32);
  c.set_in_shape(2, Shape{p.input_dim});
  c.set_out_dtype(0, DType::kFloat32);
  infer_embedding_shapes(c, p.input_dim, p.output_dim);
}

void run_embedding(const WeightOnlyEmbeddingParams& p, const KernelArgs& a) {
  kernels::Indices ids(a.in[0]);
  ids.resolve(kernels::IndexMode::kClip, p.input_dim, {"_contrib_weight_only_embedding", "data"});
  if (device::current()) {
    if (a.out[0].size() == 0) return;
    return on_device::launch_bytes("scale_rows", "",
                                   {.x = a.in[1].data,
                                    .y = ids.data(),
                                    .out = a.out[0].data,
                                    .n = a.out[0].size(),
                                    .scales = a.in[2].as<float>(),
                                    .width = p.output_dim});
  }
  const auto* const weight = a.in[1].as<int8_t>();
  const auto* const scale = a.in[2].as<float>();
  float* const out = a.out[0].as<float>();
  const int64_t* const rows = ids.data();
  parallel_for(ids.size(), 0.3 * static_cast<double>(p.output_dim), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int8_t* const from = weight + rows[i] * p.output_dim;
      for (int64_t j = 0; j < p.output_dim; ++j)
        out[i * p.output_dim + j] = static_cast<float>(from[j]) * scale[rows[i]];
    }
  });
}

constexpr DType kF = DType::kFloat32, kI = DType::kInt8;

void declare_embedding(OpRegistry& ops) {
  ops.declare<WeightOnlyEmbeddingParams>("_contrib_weight_only_embedding")
      .doc(
          "Embedding with a matrix of bytes that have one scale per row: weight[data] * scale[data]; indices out of "
          "range select the nearest row.")
      .input("data", "any shape; integers of any dtype")
      .input("weight", "int8 (input_dim, output_dim)")
      .input("scale", "(input_dim,): value of a step of each row")
      .output("output", "float32, shape of data with output_dim appended")
      .infer(infer_embedding)
      .any_device()
      .cpu(run_embedding)
      .gradient(kNotDifferentiable)
      .sample(bytes_sample({{2, 3}, {5, 4}, {5}}, {kF, kI, kF}, {{"input_dim", "5"}, {"output_dim", "4"}}, -3, 7));
}

}  // namespace

Values dense_of_bytes_gradient(const QuantizedDenseParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  const TensorSpec data = g.input_spec(0);
  const int64_t hidden = p.num_hidden, features = g.input_spec(1).shape[1];
  const int64_t rows = dense_geometry(data.shape, p.flatten, hidden).out_size();
  const Value dy = reshape(g.output_grad(0), Shape({rows, hidden}));
  const Value bytes = cast(g.input(1), DType::kFloat32);
  Values grads(p.no_bias ? 3 : 4);
  if (g.wants(0)) {
    const Value scaled = dy * reshape(g.input(2), Shape({1, hidden}));
    grads[0] = reshape(dot(scaled, bytes, false, false), data.shape);
  }
  if (g.wants(2)) {
    const Value products = dot(reshape(g.input(0), Shape({rows, features})), bytes, false, true);
    grads[2] = sum(dy * products, Tuple({0}), false);
  }
  if (!p.no_bias && g.wants(3)) grads[3] = sum(dy, Tuple({0}), false);
  return grads;
}

Ref<Kernel> dense_of_bytes_on_device(const DenseLayer& layer, bool rounds) {
  return Ref<Kernel>(new DenseOfBytesOnDevice(layer, rounds));
}

void register_weight_only(OpRegistry& ops) {
  ops.declare<QuantizedDenseParams>("_contrib_weight_only_fully_connected")
      .doc(
          "FullyConnected with weights of bytes that have one scale per output: (data weight^T) * scale + bias, summed "
          "in float32.")
      .input("data", "float32 (batch, ...), or (..., features) with flatten=False")
      .input("weight", "int8 (num_hidden, features)")
      .input("scale", "(num_hidden,): value of a step of each row of weight")
      .optional_input("bias", "float32 (num_hidden,)")
      .output("output", "float32 (batch, num_hidden), or (..., num_hidden) with flatten=False")
      .num_inputs([](const QuantizedDenseParams& p) { return p.no_bias ? 3 : 4; })
      .infer(infer_dense_of_bytes)
      .heavy()
      .any_device()
      .link(link_dense, DType::kFloat32)
      .gradient(dense_of_bytes_gradient, Saves::of({0, 1, 2}))
      .cost([](const QuantizedDenseParams& p, auto in, auto) {
        return dense_of_bytes_cost_ns(in[0].shape, p.flatten, p.num_hidden, 80);
      })
      .sample(without_gradient_check(bytes_sample({{3, 4}, {5, 4}, {5}, {5}}, {kF, kI, kF, kF}, {{"num_hidden", "5"}})))
      .sample(without_gradient_check(bytes_sample({{2, 3, 33}, {20, 33}, {20}}, {kF, kI, kF},
                                                  {{"num_hidden", "20"}, {"no_bias", "True"}, {"flatten", "False"}})));
  declare_embedding(ops);
}

}  // namespace hybridnet::ops
