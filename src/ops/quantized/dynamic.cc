// Layers of floats whose data is rounded to bytes in each run, each row to a grid of its own, and whose weights are
// bytes with one scale per output: products of bytes with exact sums, from which the layer's end makes floats.
#include "device/stream.h"
#include "hybridnet/declare.h"
#include "kernels/product/byte_product.h"
#include "kernels/product/dynamic_byte_product.h"
#include "kernels/product/packed.h"
#include "ops/nn/dense_ends.h"
#include "ops/quantized/ranges.h"
#include "ops/quantized/weight_only.h"

namespace hybridnet::ops {
namespace {

struct FusedDynamicParams : QuantizedDenseParams, FusedActivation {
  bool with_addend = false;
  static void describe(ParamSchema<FusedDynamicParams>& schema) {
    describe_fields(schema);
    FusedActivation::describe(schema);
    schema.field("with_addend", &FusedDynamicParams::with_addend)
        .default_value(false)
        .doc("Whether the last input is added before the activation.");
  }
};

class DynamicKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  DynamicKernel(const DenseLayer& layer, bool remember) : layer_(layer) {
    if (remember)
      kept_ =
          std::make_unique<kernels::PackedWeights>(kernels::byte_packing(layer.features, layer.hidden), packed_bytes(),
                                                   kernels::byte_unpacking(layer.features, layer.hidden));
  }

  std::string description() const override { return "byte product of rounded rows"; }
  bool reads_packed(size_t input) const override { return input == 1 && kept_; }
  int64_t workspace_bytes() const override { return product_bytes() + (kept_ ? 0 : packed_bytes()); }

  void run(const KernelArgs& a) override {
    if (a.out[0].size() == 0) return;
    auto* const workspace = static_cast<char*>(a.workspace);
    float* const out = a.out[0].as<float>();
    const auto pack = [&](void* target) {
      kernels::pack_byte_weights(a.in[1].as<int8_t>(), layer_.features, layer_.hidden, target);
    };
    const kernels::PackedForRun packed(kept_.get(), a.in[1], workspace + product_bytes(), pack);
    const DenseEnds<float> ends(nullptr, nullptr, layer_.activation, layer_.hidden, out);
    kernels::dynamic_byte_product({.packed = packed.data(),
                                   .depth = layer_.features,
                                   .columns = layer_.hidden,
                                   .rows = a.in[0].as<float>(),
                                   .count = layer_.rows,
                                   .scale = a.in[2].as<float>(),
                                   .bias = layer_.bias ? a.in[3].as<float>() : nullptr,
                                   .addend = layer_.addend ? a.in.back().as<float>() : nullptr,
                                   .out = out,
                                   .workspace = workspace,
                                   .ends = &ends});
  }

 private:
  int64_t packed_bytes() const { return kernels::packed_byte_weights(layer_.features, layer_.hidden); }
  int64_t product_bytes() const {
    return (kernels::dynamic_byte_product_workspace(layer_.features, layer_.rows) + 63) / 64 * 64;
  }

  const DenseLayer layer_;
  std::unique_ptr<kernels::PackedWeights> kept_;  // null: packed in each run
};

Ref<Kernel> link_dynamic(const QuantizedDenseParams& p, const onednn::Activation& activation, bool addend,
                         const LinkContext& c) {
  const DenseLayer layer{.rows = dense_geometry(c.in[0].shape, p.flatten, p.num_hidden).out_size(),
                         .features = c.in[1].shape[1],
                         .hidden = p.num_hidden,
                         .bias = !p.no_bias,
                         .addend = addend,
                         .activation = activation};
  if (c.device.type == DeviceType::kGPU) return dense_of_bytes_on_device(layer, true);
  return Ref<Kernel>(new DynamicKernel(layer, c.frozen_weights));
}

int num_inputs(const QuantizedDenseParams& p) { return p.no_bias ? 3 : 4; }
int num_inputs(const FusedDynamicParams& p) { return (p.no_bias ? 3 : 4) + (p.with_addend ? 1 : 0); }

void infer(const QuantizedDenseParams& p, InferContext& c) {
  infer_dense_of_bytes(p, c);
  if (c.in_shape(1)[1] <= kernels::kMaxDynamicDepth) return;
  throw ShapeError({.input = "weight",
                    .expected = "at most " + std::to_string(kernels::kMaxDynamicDepth) + " features",
                    .given = c.in_shape(1).str(),
                    .because = "sums of more products of bytes may exceed 32 bits",
                    .fix = "use contrib.weight_only_fully_connected, or quantize_net(mode='weights')"});
}
void infer(const FusedDynamicParams& p, InferContext& c) {
  infer(static_cast<const QuantizedDenseParams&>(p), c);
  if (!p.with_addend) return;
  const int addend = num_inputs(p) - 1;
  c.set_in_dtype(addend, DType::kFloat32);
  c.set_in_shape(addend, c.out_shape(0));
  c.set_out_shape(0, c.in_shape(addend));
}

template <typename P>
OpBuilder<P> declare(OpRegistry& ops, const char* name) {
  return ops.declare<P>(name)
      .input("data", "float32 (batch, ...), or (..., features) with flatten=False")
      .input("weight", "int8 (num_hidden, features)")
      .input("scale", "(num_hidden,): value of a step of each row of weight")
      .optional_input("bias", "float32 (num_hidden,)")
      .output("output", "float32 (batch, num_hidden), or (..., num_hidden) with flatten=False")
      .num_inputs([](const P& p) { return num_inputs(p); })
      .infer([](const P& p, InferContext& c) { infer(p, c); })
      .any_device()
      .cost([](const P& p, auto in, auto) { return dense_of_bytes_cost_ns(in[0].shape, p.flatten, p.num_hidden); });
}

constexpr DType kF = DType::kFloat32, kI = DType::kInt8;
using Attributes = std::vector<std::pair<std::string, std::string>>;

Sample sample(std::vector<Shape> shapes, Attributes attrs) {
  return without_gradient_check(bytes_sample(std::move(shapes), {kF, kI}, attrs));
}

}  // namespace

void register_dynamic_products(OpRegistry& ops) {
  declare<QuantizedDenseParams>(ops, "_contrib_dynamic_quantized_fully_connected")
      .doc(
          "FullyConnected with data that is rounded to bytes, and weights of bytes that have one scale per output: "
          "(rounded(data) weight^T) * scale + bias, with exact sums. Each row of data is rounded to the nearest of 256 "
          "values with equal distances, from the smaller of its least value and 0 to the larger of its largest value "
          "and 0. A row with NaN or infinities gives NaN.")
      .heavy()
      .link([](const QuantizedDenseParams& p, const LinkContext& c) { return link_dynamic(p, {}, false, c); }, kF)
      .gradient(dense_of_bytes_gradient, Saves::of({0, 1, 2}))
      .fused_layer("_fused_dynamic_quantized_fully_connected")
      .sample(sample({{3, 4}, {5, 4}, {5}, {5}}, {{"num_hidden", "5"}}))
      .sample(sample({{2, 3, 33}, {20, 33}, {20}}, {{"num_hidden", "20"}, {"no_bias", "True"}, {"flatten", "False"}}));
  declare<FusedDynamicParams>(ops, "_fused_dynamic_quantized_fully_connected")
      .internal()
      .optional_input("addend", "shape of the output; behind the scale if there is no bias")
      .doc("activation(_contrib_dynamic_quantized_fully_connected(data, weight, scale, bias) + addend).")
      .link([](const FusedDynamicParams& p,
               const LinkContext& c) { return link_dynamic(p, p.kernel(), p.with_addend, c); },
            kF)
      .gradient(kNotDifferentiable)  // layers are fused after differentiation
      .sample(sample({{3, 4}, {5, 4}, {5}, {5}}, {{"num_hidden", "5"}, {"act_type", "relu"}}))
      .sample(
          sample({{3, 4}, {5, 4}, {5}, {3, 5}}, {{"num_hidden", "5"}, {"no_bias", "True"}, {"with_addend", "True"}}))
      .sample(sample({{7, 70}, {70, 70}, {70}, {70}, {7, 70}},
                     {{"num_hidden", "70"}, {"act_type", "gelu_tanh"}, {"with_addend", "True"}}));
}

}  // namespace hybridnet::ops
