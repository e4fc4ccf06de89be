// FullyConnected, and its fused form: out = activation(data weight^T + bias + addend).
#include <algorithm>

#include "hybridnet/declare.h"
#include "kernels/dnnl/dense_choice.h"
#include "kernels/dnnl/matmul.h"
#include "kernels/product/gemm.h"
#include "op/through_float.h"
#include "ops/emit.h"
#include "ops/nn/activation_params.h"
#include "ops/nn/dense_kernels.h"
#include "ops/nn/dense_shapes.h"

namespace hybridnet::ops {
namespace {

using onednn::DenseAlgorithm;

const OpRef kFullyConnected{"FullyConnected"};

struct FullyConnectedParams {
  int64_t num_hidden = 0;
  bool no_bias = false, flatten = true;
  static void describe(ParamSchema<FullyConnectedParams>& schema);
};
struct FusedFullyConnectedParams : FullyConnectedParams, FusedActivation {
  bool with_addend = false;
  static void describe(ParamSchema<FusedFullyConnectedParams>& schema);
};

template <typename P>
void describe_fields(ParamSchema<P>& schema) {
  schema.field("num_hidden", static_cast<int64_t P::*>(&FullyConnectedParams::num_hidden))
      .at_least(1)
      .doc("Number of outputs per row.");
  schema.field("no_bias", static_cast<bool P::*>(&FullyConnectedParams::no_bias))
      .default_value(false)
      .doc("Whether the bias input is absent.");
  schema.field("flatten", static_cast<bool P::*>(&FullyConnectedParams::flatten))
      .default_value(true)
      .doc("Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.");
}
void FullyConnectedParams::describe(ParamSchema<FullyConnectedParams>& schema) { describe_fields(schema); }
void FusedFullyConnectedParams::describe(ParamSchema<FusedFullyConnectedParams>& schema) {
  describe_fields(schema);
  FusedActivation::describe(schema);
  schema.field("with_addend", &FusedFullyConnectedParams::with_addend)
      .default_value(false)
      .doc("Whether the last input is added before the activation.");
}

// ---- shapes

// Number of axes of data that are rows; the others are the features.
int row_axes(const FullyConnectedParams& p, int ndim) { return p.flatten ? 1 : ndim - 1; }

void infer_fully_connected(const FullyConnectedParams& p, InferContext& c) {
  c.unify_dtypes();
  // The bias may be a column: the weights of an Embedding with outputs of size 1, if both layers share one parameter.
  if (!p.no_bias) c.set_in_shape(2, c.in_shape(2).ndim() == 2 ? Shape{p.num_hidden, 1} : Shape{p.num_hidden});
  c.set_in_shape(1, Shape{p.num_hidden, kUnknownDim});
  if (!c.in_shape(0).rank_known() && !p.flatten && c.out_shape(0).rank_known())
    c.set_in_shape(0, Shape::unknown(c.out_shape(0).ndim()));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) {
    if (p.flatten) c.set_out_shape(0, Shape{kUnknownDim, p.num_hidden});
    return;
  }
  if (data.ndim() == 0) {
    throw ShapeError({.input = "data", .expected = "at least one axis", .given = "a scalar"});
  }
  const int rows = row_axes(p, data.ndim());
  const int64_t features = known_product(data, rows, data.ndim());
  if (features != kUnknownDim && c.in_shape(1)[1] != kUnknownDim && c.in_shape(1)[1] != features) {
    throw ShapeError(
        {.input = "weight",
         .expected = "shape " + Shape{p.num_hidden, features}.str(),
         .given = c.in_shape(1).str(),
         .because = "data has shape " + data.str() + ", so there are " + std::to_string(features) + " input features",
         .fix = p.flatten && data.ndim() > 2
                    ? "pass flatten=False to apply the layer to the last axis only"
                    : "build the layer with in_units=" + std::to_string(features) + ", or pass data with " +
                          std::to_string(c.in_shape(1)[1]) + " features"});
  }
  infer_dense_rows(c, rows, p.num_hidden);
}

struct Sizes {
  int64_t rows, features, hidden;
  Sizes(const FullyConnectedParams& p, const Shape& data)
      : rows(data.size(0, row_axes(p, data.ndim()))),
        features(data.size(row_axes(p, data.ndim()), data.ndim())),
        hidden(p.num_hidden) {}
  bool empty() const { return rows * features * hidden == 0; }
};

// ---- kernels

class DnnlKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  explicit DnnlKernel(const onednn::Matmul::Options& o) : bias_(o.bias), addend_(o.add), matmul_(o) {}
  int64_t workspace_bytes() const override { return matmul_.workspace_bytes(); }
  std::string description() const override { return matmul_.description(); }
  bool reads_packed(size_t input) const override { return input == 1 && matmul_.packs(); }
  void run(const KernelArgs& args) override {
    matmul_.run(args.in[0].data, args.in[1], bias_ ? args.in[2].data : nullptr, args.out[0].data, args.workspace,
                addend_ ? args.in.back().data : nullptr);
  }

 private:
  bool bias_, addend_;
  onednn::Matmul matmul_;
};

Ref<Kernel> link_fully_connected(const FullyConnectedParams& p, const onednn::Activation& activation, bool addend,
                                 const LinkContext& c) {
  const DType dtype = c.in[0].dtype;
  const Sizes s(p, c.in[0].shape);
  const bool on_gpu = c.device.type == DeviceType::kGPU;  // neither oneDNN nor packed weights
  const bool native_half = !on_gpu && dtype == DType::kBFloat16 && onednn::has_bfloat16() && !s.empty();
  if (is_half(dtype) && !native_half)
    return link_through_float(
        c, [&](const LinkContext& inner) { return link_fully_connected(p, activation, addend, inner); });
  const DenseLayer layer{s.rows, s.features, s.hidden, !p.no_bias, addend, activation};
  if (dtype == DType::kFloat64) return plain_dense_kernel<double>(layer);
  if (on_gpu) return plain_dense_kernel<float>(layer);
  const onednn::DenseShape shape{.rows = s.rows,
                                 .features = s.features,
                                 .hidden = s.hidden,
                                 .activation = activation.kind != kernels::ActivationKind::kNone,
                                 .frozen = c.frozen_weights};
  const DenseAlgorithm algorithm = native_half ? onednn::choose_half_dense(shape) : onednn::choose_dense(shape);
  if (algorithm == DenseAlgorithm::kProduct) return plain_dense_kernel<float>(layer);
  if (algorithm == DenseAlgorithm::kPackedProduct) return packed_dense_kernel(layer);
  if (algorithm == DenseAlgorithm::kTileProduct) return tile_dense_kernel(layer);
  return Ref<Kernel>(new DnnlKernel({.m = s.rows,
                                     .n = s.hidden,
                                     .k = s.features,
                                     .transpose_b = true,
                                     .dtype = dtype,
                                     .bias = !p.no_bias,
                                     .packs = algorithm == DenseAlgorithm::kPackedMatmul,
                                     .add = addend,
                                     .activation = activation}));
}

int bias_inputs(const FullyConnectedParams& p) { return p.no_bias ? 2 : 3; }

// ---- gradients

// `d`: gradient of data weight^T + bias. The gradient of the data is computed last, so that data that is recomputed for
// the weight gradient can be freed first.
Values product_gradient(const FullyConnectedParams& p, const GradientContext& g, Value d) {
  Values grads(static_cast<size_t>(g.num_inputs()));
  const Shape& data = g.input_spec(0).shape;
  const Sizes s(p, data);
  d = reshape(d, Shape{s.rows, s.hidden});
  if (g.wants(1)) grads[1] = dot(d, reshape(g.input(0), Shape{s.rows, s.features}), true, false);
  if (!p.no_bias && g.wants(2)) {
    grads[2] = sum(d, Tuple{0}, false);
    if (g.input_spec(2).shape.ndim() == 2) grads[2] = reshape(grads[2], g.input_spec(2).shape);
  }
  if (g.wants(0)) grads[0] = reshape(dot(d, g.input(1), false, false), data);
  return grads;
}

Values fully_connected_gradient(const FullyConnectedParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  return d ? product_gradient(p, g, d) : Values();
}

Values fused_gradient(const FusedFullyConnectedParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  if (!d) return {};
  const int addend = p.with_addend ? g.num_inputs() - 1 : -1;
  auto finish = [&](const Value& through) {
    Values grads = product_gradient(p, g, through);
    if (addend >= 0 && g.wants(addend)) grads[static_cast<size_t>(addend)] = through;
    return grads;
  };
  if (has_gradient_through_output(p.act_type)) return finish(gradient_through_output(p, g.output(0), d));
  Values inputs;
  for (int i = 0; i < bias_inputs(p); ++i) inputs.push_back(g.input(i));
  Value x = call_all(kFullyConnected, inputs, ParamSchema<FullyConnectedParams>::box(p))[0];
  if (addend >= 0) x = add_all({x, g.input(addend)});
  return finish(gradient_through_input(p, x, d));
}

double cost_ns(const FullyConnectedParams& p, std::span<const TensorSpec> in) {
  const Sizes s(p, in[0].shape);
  return kernels::gemm_cost_ns(s.rows, s.hidden, s.features, in[0].dtype);
}

int num_inputs(const FullyConnectedParams& p) { return bias_inputs(p); }
int num_inputs(const FusedFullyConnectedParams& p) { return bias_inputs(p) + (p.with_addend ? 1 : 0); }

void infer(const FullyConnectedParams& p, InferContext& c) { infer_fully_connected(p, c); }
void infer(const FusedFullyConnectedParams& p, InferContext& c) {
  infer_fully_connected(p, c);
  if (!p.with_addend) return;
  c.set_in_shape(num_inputs(p) - 1, c.out_shape(0));
  c.set_out_shape(0, c.in_shape(num_inputs(p) - 1));
}

template <typename P>
OpBuilder<P> declare(OpRegistry& ops, const char* name) {
  return ops.declare<P>(name)
      .input("data", "(batch, ...), or (..., features) with flatten=False")
      .input("weight", "(num_hidden, features)")
      .optional_input("bias", "(num_hidden,) or (num_hidden, 1)")
      .output("output", "(batch, num_hidden), or (..., num_hidden) with flatten=False")
      .num_inputs([](const P& p) { return num_inputs(p); })
      .any_device()
      .infer([](const P& p, InferContext& c) { infer(p, c); })
      .cost([](const P& p, auto in, auto out) {
        (void)out;
        return cost_ns(p, in);
      })
      .flops([](const P& p, auto in, auto) {
        const Sizes s(p, in[0].shape);
        return kernels::gemm_flops(s.rows, s.hidden, s.features);
      });
}

}  // namespace

void register_fully_connected(OpRegistry& ops) {
  declare<FullyConnectedParams>(ops, "FullyConnected")
      .heavy()
      .row_wise_when([](const FullyConnectedParams&, int rank) { return rank >= 2; })
      .alias("_npx_fully_connected")
      .alias("_sparse_FullyConnected")
      .doc("Affine map of each row: data weight^T + bias.")
      .link([](const FullyConnectedParams& p, const LinkContext& c) { return link_fully_connected(p, {}, false, c); })
      .gradient(fully_connected_gradient, Saves::of({0, 1}))
      .quantized({.op = "_contrib_quantized_fully_connected", .leads = true, .gives_sums = true})
      .fused_layer("_fused_fully_connected")
      .amp(AmpType::kHalf)
      .sample({{3, 4}, {5, 4}, {5}}, {{"num_hidden", "5"}})
      .sample({{2, 3, 2}, {5, 6}}, {{"num_hidden", "5"}, {"no_bias", "True"}})
      .sample({{3, 4}, {5, 4}, {5, 1}}, {{"num_hidden", "5"}})
      .sample({{2, 3, 4}, {5, 4}, {5}}, {{"num_hidden", "5"}, {"flatten", "False"}})
      .sample({{20, 17}, {33, 17}, {33}}, {{"num_hidden", "33"}});
  declare<FusedFullyConnectedParams>(ops, "_fused_fully_connected")
      .internal()
      .optional_input("addend", "shape of the output; the third input if there is no bias")
      .doc("activation(FullyConnected(data, weight, bias) + addend).")
      .link([](const FusedFullyConnectedParams& p, const LinkContext& c) {
        return link_fully_connected(p, p.kernel(), p.with_addend, c);
      })
      .gradient(fused_gradient)
      .sample({{3, 4}, {5, 4}, {5}}, {{"num_hidden", "5"}, {"act_type", "relu"}})
      .sample({{3, 4}, {5, 4}, {5}}, {{"num_hidden", "5"}, {"act_type", "tanh"}})
      .sample({{3, 4}, {5, 4}, {5}, {3, 5}}, {{"num_hidden", "5"}, {"act_type", "tanh"}, {"with_addend", "True"}})
      .sample({{3, 4}, {5, 4}, {3, 5}},
              {{"num_hidden", "5"}, {"act_type", "gelu"}, {"no_bias", "True"}, {"with_addend", "True"}})
      .sample({{40, 17}, {33, 17}, {33}, {40, 33}}, {{"num_hidden", "33"}, {"with_addend", "True"}})
      .sample({{2, 20, 17}, {33, 17}, {2, 20, 33}},
              {{"num_hidden", "33"}, {"flatten", "False"}, {"no_bias", "True"}, {"with_addend", "True"}})
      .sample({{20, 17}, {33, 17}, {33}}, {{"num_hidden", "33"}, {"act_type", "sigmoid"}})
      .sample({{3, 4}, {5, 4}}, {{"num_hidden", "5"}, {"act_type", "gelu"}, {"no_bias", "True"}})
      .sample({{3, 4}, {5, 4}}, {{"num_hidden", "5"}, {"act_type", "gelu_tanh"}, {"no_bias", "True"}})
      .sample({{3, 4}, {5, 4}}, {{"num_hidden", "5"}, {"act_type", "silu"}, {"no_bias", "True"}})
      .sample({{3, 4}, {5, 4}}, {{"num_hidden", "5"}, {"act_type", "softrelu"}, {"no_bias", "True"}})
      .sample({{3, 4}, {5, 4}}, {{"num_hidden", "5"}, {"act_type", "elu"}, {"act_alpha", "0.7"}, {"no_bias", "True"}})
      .sample({{3, 4}, {5, 4}}, {{"num_hidden", "5"}, {"act_type", "leaky"}, {"act_alpha", "0.2"}, {"no_bias", "True"}})
      .sample({{3, 4}, {5, 4}},
              {{"num_hidden", "5"}, {"act_type", "clip"}, {"act_alpha", "-1"}, {"act_beta", "3"}, {"no_bias", "True"}});
}

}  // namespace hybridnet::ops
