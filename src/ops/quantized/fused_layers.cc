// Quantized layers whose weights are floats in the model, fused with batch norm, activation and sum: _sg_mkldnn_conv
// and _sg_mkldnn_fully_connected of MXNet's oneDNN backend (graph/fused_form.h reads and writes these). They are
// operators and not compositions for two reasons: the weights are folded, quantized and packed in one step whose result
// is cached with the arrays, and the end of the product (scales, bias, sum, activation, rounding) is one step, too,
// from the 32-bit sums in registers to bytes in memory.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/conv/int8_convolution.h"
#include "ops/nn/activation_params.h"
#include "ops/nn/convolution_params.h"
#include "ops/nn/dense_shapes.h"
#include "ops/quantized/products.h"
#include "ops/quantized/ranges.h"
#include "storage/derived.h"

namespace hybridnet::ops {
namespace {

using kernels::ActivationKind;
using kernels::ConvGeometry;

// The operations after the product: output = last relu(activation(product) + addend).
struct LayerEnd : FusedActivation {
  bool with_sum = false, relu_of_sum = false;
  std::optional<double> min_calib_range, max_calib_range;
  bool float_output = false;

  bool calibrated() const { return min_calib_range && max_calib_range; }
  Range range() const { return {static_cast<float>(*min_calib_range), static_cast<float>(*max_calib_range)}; }
  DType dtype() const {
    if (float_output) return DType::kFloat32;
    if (!calibrated()) return DType::kInt32;
    const bool positive = act_type == ActivationKind::kRelu || act_type == ActivationKind::kSigmoid ||
                          act_type == ActivationKind::kSoftRelu ||
                          (act_type == ActivationKind::kClip && act_alpha >= 0);
    return (with_sum ? relu_of_sum : positive) ? DType::kUInt8 : DType::kInt8;
  }

  template <typename P>
  static void describe(ParamSchema<P>& schema) {
    FusedActivation::describe(schema);
    schema.field("with_sum", static_cast<bool P::*>(&LayerEnd::with_sum))
        .default_value(false)
        .doc("Whether a quantized tensor is added to the result.");
    schema.field("relu_of_sum", static_cast<bool P::*>(&LayerEnd::relu_of_sum))
        .default_value(false)
        .doc("Whether relu follows the sum.");
    schema.field("min_calib_range", static_cast<std::optional<double> P::*>(&LayerEnd::min_calib_range))
        .none_by_default()
        .doc("Minimum value of the output; None: the output is int32.");
    schema.field("max_calib_range", static_cast<std::optional<double> P::*>(&LayerEnd::max_calib_range))
        .none_by_default()
        .doc("Maximum value of the output; None: the output is int32.");
    schema.field("float_output", static_cast<bool P::*>(&LayerEnd::float_output))
        .default_value(false)
        .doc("Whether the only output is float32, without a range.");
  }
  void check() const {
    const bool linear =
        act_type == ActivationKind::kNone || act_type == ActivationKind::kRelu || act_type == ActivationKind::kLeaky;
    if (with_sum && !linear)
      throw ParamError({.input = "act_type",
                        .expected = "none, relu or leaky in front of a sum of bytes",
                        .given = "another function"});
    const bool relu = act_type == ActivationKind::kNone || act_type == ActivationKind::kRelu;
    if (dtype() == DType::kInt32 && !relu)
      throw ParamError({.input = "act_type",
                        .expected = "none or relu without a calibrated range",
                        .given = "another function",
                        .fix = "calibrate the network"});
  }
};

// The form of the layer's weights: floats, optionally with a batch norm to fold, or bytes with their range.
struct WeightForm {
  bool bias = false, norm = false, fix_gamma = false, bytes = false;
  double eps = 0;
};

struct FusedConvParams : ConvolutionParams, LayerEnd {
  bool with_bn = false, fix_gamma = true;
  double eps = 1e-3;
  static void describe(ParamSchema<FusedConvParams>& schema) {
    describe_convolution_fields(schema, false, 1024);
    LayerEnd::describe(schema);
    schema.field("with_bn", &FusedConvParams::with_bn)
        .default_value(false)
        .doc("Whether a batch norm follows the product.");
    schema.field("fix_gamma", &FusedConvParams::fix_gamma)
        .default_value(true)
        .doc("Whether gamma of the batch norm is treated as 1.");
    schema.field("eps", &FusedConvParams::eps).default_value(1e-3f).doc("Added to the variance of the batch norm.");
    schema.check([](const FusedConvParams& p) {
      check_convolution(p);
      p.check();
    });
  }
  WeightForm weights() const { return {!no_bias, with_bn, fix_gamma, false, eps}; }
};

struct FusedDenseParams : LayerEnd {
  int64_t num_hidden = 0;
  bool no_bias = false, flatten = true, byte_weights = true;
  static void describe(ParamSchema<FusedDenseParams>& schema) {
    schema.field("num_hidden", &FusedDenseParams::num_hidden).at_least(1).doc("Number of outputs per row.");
    schema.field("no_bias", &FusedDenseParams::no_bias).default_value(false).doc("Whether the bias is absent.");
    schema.field("flatten", &FusedDenseParams::flatten)
        .default_value(true)
        .doc("Whether all axes of data except the first are merged; otherwise the layer applies to the last axis.");
    schema.field("byte_weights", &FusedDenseParams::byte_weights)
        .default_value(true)
        .doc("Whether weight and bias are int8 with ranges; otherwise they are floats.");
    LayerEnd::describe(schema);
    schema.check([](const FusedDenseParams& p) { p.check(); });
  }
  WeightForm weights() const { return {!no_bias, false, false, byte_weights, 0}; }
};

// The positions of the inputs: data, weight, the range of data, optionally an addend and its range, the rest of the
// weights.
struct Places {
  static constexpr size_t kMostParameters = 10;  // weight, bias, four of a norm, two ranges of two each
  size_t addend = 4, rest, bias, norm, weight_range, bias_range, count;
  Places(const WeightForm& w, bool sum) {
    size_t at = rest = sum ? 7 : 4;
    bias = take(at, w.bias ? 1 : 0);
    norm = take(at, w.norm ? 4 : 0);
    weight_range = take(at, w.bytes ? 2 : 0);
    bias_range = take(at, w.bytes && w.bias ? 2 : 0);
    count = at;
  }

 private:
  static size_t take(size_t& at, size_t n) {
    const size_t first = at;
    at += n;
    return first;
  }
};

// The weights in the form that the product reads.
struct Prepared {
  std::unique_ptr<OwnedBlock> packed;
  std::vector<float> steps;  // per unit, for each output channel
  std::vector<float> bias;   // in units; empty: no bias
};

class LayerKernel final : public Kernel {
 public:
  LayerKernel(const ConvGeometry& g, DType data, std::optional<DType> addend, const LayerEnd& end, const WeightForm& w)
      : g_(g), end_(end), weights_(w), places_(w, end.with_sum), data_(data), out_(end.dtype()) {
    kernels::Int8ConvOptions options{.data = data, .out = out_, .bias = w.bias || w.norm};
    if (out_ != DType::kInt32) {
      options.add = end.with_sum;
      options.addend = addend.value_or(DType::kInt8);
      options.activation = end.kernel();
      if (end.relu_of_sum) options.last_activation = {ActivationKind::kRelu};
      if (out_ == DType::kUInt8) {  // the saturation of uint8 implements their relu
        if (options.activation.kind == ActivationKind::kRelu && !options.add) options.activation = {};
        options.last_activation = {};
      }
    }
    product_ = kernels::make_int8_convolution(g, options);
    std::string recipe = "bytes of layer " + product_->packing() + (w.bias ? " bias" : "") + (w.bytes ? " bytes" : "") +
                         (end.calibrated() || end.float_output ? " by channel" : "");
    if (w.norm) recipe += (w.fix_gamma ? " norm " : " norm gamma ") + std::to_string(w.eps * 1e9);
    prepared_ = std::make_unique<DerivedUser<Prepared>>(recipe);
  }

  int64_t workspace_bytes() const override {
    return product_->workspace_bytes() + 2 * rounded(g_.o * static_cast<int64_t>(sizeof(float)));
  }
  std::string description() const override { return product_->description(); }

  void run(const KernelArgs& a) override {
    const DerivedUser<Prepared>::Use w = prepared(a);
    const float data_steps = steps_per_unit(data_, range_at(a, 2));
    char* workspace = static_cast<char*>(a.workspace);
    auto* scale = reinterpret_cast<float*>(workspace);
    workspace += rounded(g_.o * static_cast<int64_t>(sizeof(float)));
    auto* bias = reinterpret_cast<float*>(workspace);
    workspace += rounded(g_.o * static_cast<int64_t>(sizeof(float)));
    kernels::Int8ConvTensors t;
    t.x = a.in[0].data;
    t.weights = w->packed->data();
    t.scale = scale;
    t.bias = bias;
    t.y = a.out[0].data;
    t.workspace = workspace;
    if (out_ == DType::kInt32) {
      auto* whole = reinterpret_cast<int32_t*>(bias);
      for (size_t o = 0; o < w->bias.size(); ++o)
        whole[o] =
            kernels::to_integer<int32_t>(std::nearbyint(static_cast<double>(w->bias[o]) * data_steps * w->steps[o]));
      product_->run(t);
      return finish_sums(a, *w, data_steps);
    }
    // Sums are in quantization steps of the addend, if there is one; else in real units.
    float per_unit = 1.0f;
    if (end_.with_sum) {
      t.addend = a.in[places_.addend].data;
      per_unit = steps_per_unit(a.in[places_.addend].dtype, range_at(a, places_.addend + 1));
    }
    for (size_t o = 0; o < w->steps.size(); ++o) scale[o] = per_unit / (data_steps * w->steps[o]);
    for (size_t o = 0; o < w->bias.size(); ++o)  // an integer number of steps of the sums, which follows MXNet
      bias[o] = std::nearbyint(w->bias[o] * (w->steps[o] * data_steps)) * scale[o];
    if (out_ != DType::kFloat32) {
      t.out_step = per_unit / steps_per_unit(out_, end_.range());
      write_range(a, end_.range());
    }
    product_->run(t);
  }

 private:
  static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  // Without a calibrated range: relu and sum of 32-bit integers.
  void finish_sums(const KernelArgs& a, const Prepared& w, float data_steps) const {
    int32_t* y = a.out[0].as<int32_t>();
    const int64_t n = a.out[0].size();
    const bool relu = end_.act_type == ActivationKind::kRelu;
    float factor = 0;
    if (end_.with_sum)
      factor = data_steps * w.steps[0] / steps_per_unit(a.in[places_.addend].dtype, range_at(a, places_.addend + 1));
    const auto addend = [&](int64_t i) {
      const TensorRef& t = a.in[places_.addend];
      return t.dtype == DType::kUInt8 ? static_cast<float>(t.as<uint8_t>()[i]) : static_cast<float>(t.as<int8_t>()[i]);
    };
    for (int64_t i = 0; i < n && (relu || end_.with_sum); ++i) {
      if (relu) y[i] = std::max(y[i], 0);
      if (end_.with_sum)
        y[i] = kernels::to_integer<int32_t>(std::nearbyint(static_cast<double>(y[i]) + addend(i) * factor));
      if (end_.relu_of_sum) y[i] = std::max(y[i], 0);
    }
    const float reach = steps_of(DType::kInt8) / w.steps[0];
    write_range(a, range_of_products(data_, range_at(a, 2), DType::kInt8, {-reach, reach}));
  }

  DerivedUser<Prepared>::Use prepared(const KernelArgs& a) {
    std::array<DerivedSource, Places::kMostParameters> sources{source(a.in[1])};
    size_t count = 1;
    for (size_t i = places_.rest; i < places_.count; ++i) sources[count++] = source(a.in[i]);
    return prepared_->get(a.in[1].last_copy, {sources.data(), count}, product_->packed_bytes(),
                          [&] { return weights_.bytes ? prepare_bytes(a) : prepare_floats(a); });
  }
  static DerivedSource source(const TensorRef& t) { return {t.data, t.derived}; }

  std::shared_ptr<Prepared> prepare_bytes(const KernelArgs& a) const {
    auto w = std::make_shared<Prepared>();
    w->packed = std::make_unique<OwnedBlock>(product_->packed_bytes());
    product_->pack(a.in[1].as<int8_t>(), w->packed->data());
    w->steps.assign(static_cast<size_t>(g_.o), steps_per_unit(DType::kInt8, range_at(a, places_.weight_range)));
    if (weights_.bias) {
      const float steps = steps_per_unit(DType::kInt8, range_at(a, places_.bias_range));
      for (int64_t o = 0; o < g_.o; ++o)
        w->bias.push_back(static_cast<float>(a.in[places_.bias].as<int8_t>()[o]) / steps);
    }
    return w;
  }

  std::shared_ptr<Prepared> prepare_floats(const KernelArgs& a) const {
    auto w = std::make_shared<Prepared>();
    w->packed = std::make_unique<OwnedBlock>(product_->packed_bytes());
    const float* weight = a.in[1].as<float>();
    const int64_t row = g_.c / g_.groups * g_.kernel_size();
    std::vector<float> factor(static_cast<size_t>(g_.o), 1.0f), reach(factor.size());
    if (weights_.bias) w->bias.assign(a.in[places_.bias].as<float>(), a.in[places_.bias].as<float>() + g_.o);
    if (weights_.norm) fold_norm(a, factor, w->bias);
    parallel_for(g_.o, 1.0 * static_cast<double>(row), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        float most = 0;
        for (int64_t i = o * row; i < (o + 1) * row; ++i)
          most = std::max(most, std::abs(weight[i] * factor[static_cast<size_t>(o)]));
        reach[static_cast<size_t>(o)] = most;
      }
    });
    if (!end_.calibrated() && !end_.float_output)  // one range for all channels, so that the sums have one range, too
      std::fill(reach.begin(), reach.end(), *std::max_element(reach.begin(), reach.end()));
    for (const float r : reach) w->steps.push_back(steps_per_unit(DType::kInt8, {-r, r}));
    const OwnedBlock bytes(std::max<int64_t>(g_.o * row, 1));
    auto* plain = static_cast<int8_t*>(bytes.data());
    parallel_for(g_.o, 1.5 * static_cast<double>(row), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const float f = factor[static_cast<size_t>(o)], steps = w->steps[static_cast<size_t>(o)];
        for (int64_t i = o * row; i < (o + 1) * row; ++i) plain[i] = nearest_step<int8_t>(weight[i] * f * steps);
      }
    });
    product_->pack(plain, w->packed->data());
    return w;
  }

  // Rewrites gamma (x - mean) / sqrt(variance + eps) + beta as factors of the weights and a new bias.
  void fold_norm(const KernelArgs& a, std::vector<float>& factor, std::vector<float>& bias) const {
    const auto values = [&](size_t i) { return a.in[places_.norm + i].as<float>(); };
    const float *gamma = values(0), *beta = values(1), *mean = values(2), *variance = values(3);
    bias.resize(factor.size(), 0.0f);
    for (size_t o = 0; o < factor.size(); ++o) {
      const double deviation = std::sqrt(static_cast<double>(variance[o]) + weights_.eps);
      factor[o] = static_cast<float>((weights_.fix_gamma ? 1.0f : gamma[o]) / deviation);
      bias[o] = beta[o] + factor[o] * (bias[o] - mean[o]);
    }
  }

  ConvGeometry g_;
  LayerEnd end_;
  WeightForm weights_;
  Places places_;
  DType data_, out_;
  std::unique_ptr<kernels::Int8Convolution> product_;
  std::unique_ptr<DerivedUser<Prepared>> prepared_;
};

// ---- shapes and dtypes

void infer_layer(InferContext& c, const LayerEnd& end, const WeightForm& w, int64_t outputs) {
  const Places places(w, end.with_sum);
  const auto at = [](size_t i) { return static_cast<int>(i); };
  c.require_dtype(0, kBytes);
  const DType weights = w.bytes ? DType::kInt8 : DType::kFloat32;
  c.set_in_dtype(1, weights);
  infer_range_inputs(c, 2, 4);
  if (end.with_sum) {
    c.require_dtype(at(places.addend), kBytes);
    c.set_in_shape(at(places.addend), c.out_shape(0));
    c.set_out_shape(0, c.in_shape(at(places.addend)));
    infer_range_inputs(c, 5, 7);
  }
  if (w.bias) {
    c.set_in_dtype(at(places.bias), weights);
    c.set_in_shape(at(places.bias), Shape({outputs}));
  }
  for (size_t i = 0; w.norm && i < 4; ++i) {
    c.set_in_dtype(at(places.norm + i), DType::kFloat32);
    c.set_in_shape(at(places.norm + i), Shape({outputs}));
  }
  if (w.bytes) infer_range_inputs(c, at(places.weight_range), at(places.count));
  c.set_out_dtype(0, end.dtype());
  if (!end.float_output) infer_range_outputs(c);
}

void infer_conv(const FusedConvParams& p, InferContext& c) {
  FusedConvParams product = p;
  product.no_bias = true;
  infer_convolution_shapes(product, c);
  infer_layer(c, p, p.weights(), p.num_filter);
}

void infer_dense(const FusedDenseParams& p, InferContext& c) {
  c.set_in_shape(1, Shape{p.num_hidden, kUnknownDim});
  infer_layer(c, p, p.weights(), p.num_hidden);
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  if (data.ndim() == 0) throw ShapeError({.input = "data", .expected = "at least one axis", .given = "a scalar"});
  const int rows = p.flatten ? 1 : data.ndim() - 1;
  c.set_in_shape(1, Shape{p.num_hidden, known_product(data, rows, data.ndim())});
  Shape out = Shape::unknown(rows + 1);
  for (int i = 0; i < rows; ++i) out[i] = data[i];
  out[rows] = p.num_hidden;
  c.set_out_shape(0, out);
}

double cost_ns(const ConvGeometry& g) { return g.flops() / 150.0 + 2000; }

template <typename P>
int input_count(const P& p) {
  return static_cast<int>(Places(p.weights(), p.with_sum).count);
}

template <typename P>
OpBuilder<P> declare_layer(OpRegistry& ops, const char* name, const char* doc, const char* least, const char* largest) {
  auto op = ops.declare<P>(name);
  op.internal()
      .doc(doc)
      .input("data", "int8 or uint8")
      .input("weight", "float32; or int8 with byte_weights")
      .input("min_data", "(1,): value of the smallest byte of data")
      .input("max_data", "(1,): value of the largest byte of data");
  for (int i = 4; i < 12; ++i)
    op.optional_input("argument" + std::to_string(i),
                      "with_sum: addend and its range; bias; gamma, beta, mean and variance, or the ranges of weight "
                      "and bias");
  op.output("output", "uint8 after a relu, else int8; int32 without a calibrated range; or float32")
      .output(least, "(1,): value of the smallest integer")
      .output(largest, "(1,): value of the largest integer")
      .num_inputs([](const P& p) { return input_count(p); })
      .num_outputs([](const P& p) { return p.float_output ? 1 : 3; })
      .heavy()
      .gradient(kNotDifferentiable);
  return op;
}

constexpr DType kI = DType::kInt8, kU = DType::kUInt8, kF = DType::kFloat32;

OpBuilder<FusedConvParams> declare_conv(OpRegistry& ops, const char* name, const char* doc) {
  auto op = declare_layer<FusedConvParams>(ops, name, doc, "output_min", "output_max");
  op.auxiliary_from([](const FusedConvParams& p) { return input_count(p) - (p.with_bn ? 2 : 0); })
      .infer(infer_conv)
      .link(
          [](const FusedConvParams& p, const LinkContext& c) {
            std::optional<DType> addend;
            if (p.with_sum) addend = c.in[4].dtype;
            return Ref<Kernel>(new LayerKernel(conv_geometry(p, c.in[0].shape, c.out[0].shape, linked_channels_last(c)),
                                               c.in[0].dtype, addend, p, p.weights()));
          },
          kBytes)
      .image_when([](const FusedConvParams& p) { return !is_channels_last(p.layout); })
      .cost([](const FusedConvParams& p, auto in, auto out) {
        return cost_ns(conv_geometry(p, in[0].shape, out[0].shape, false));
      });
  return op;
}

Sample layer_sample(std::vector<Shape> inputs, std::vector<DType> dtypes,
                    std::vector<std::pair<std::string, std::string>> attrs) {
  return bytes_sample(std::move(inputs), std::move(dtypes), std::move(attrs), 1, 40);
}

void register_convolutions(OpRegistry& ops) {
  declare_conv(ops, "_quantized_layer_conv", "activation(BatchNorm(Convolution of bytes)), as bytes.")
      .image({0}, {0})
      .sample(layer_sample({{2, 4, 5, 6}, {8, 4, 3, 3}, {1}, {1}, {8}}, {kU},
                           {{"kernel", "(3, 3)"},
                            {"num_filter", "8"},
                            {"pad", "(1, 1)"},
                            {"act_type", "relu"},
                            {"min_calib_range", "0"},
                            {"max_calib_range", "90000"}}))
      .sample(layer_sample({{2, 4, 5, 6}, {8, 2, 3, 3}, {1}, {1}, {8}, {8}, {8}, {8}}, {kI},
                           {{"kernel", "(3, 3)"},
                            {"num_filter", "8"},
                            {"num_group", "2"},
                            {"no_bias", "True"},
                            {"with_bn", "True"},
                            {"fix_gamma", "False"},
                            {"min_calib_range", "-20000"},
                            {"max_calib_range", "900000"}}))
      .sample(layer_sample({{2, 4, 5, 6}, {8, 4, 3, 3}, {1}, {1}, {8}}, {kI},
                           {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"act_type", "relu"}}));
  declare_conv(ops, "_quantized_layer_conv_add", "relu(activation(BatchNorm(Convolution of bytes)) + bytes), as bytes.")
      .image({0, 4}, {0})
      .inplace(4, 0)
      .sample(layer_sample({{2, 4, 5, 6}, {8, 4, 1, 1}, {1}, {1}, {2, 8, 5, 6}, {1}, {1}, {8}}, {kI, kF, kF, kF, kU},
                           {{"kernel", "(1, 1)"},
                            {"num_filter", "8"},
                            {"with_sum", "True"},
                            {"relu_of_sum", "True"},
                            {"min_calib_range", "0"},
                            {"max_calib_range", "6000"}}));
}

}  // namespace

void register_quantized_fused_layers(OpRegistry& ops) {
  register_convolutions(ops);
  declare_layer<FusedDenseParams>(ops, "_quantized_layer_dense", "activation(FullyConnected of bytes).", "min_output",
                                  "max_output")
      .infer(infer_dense)
      .link(
          [](const FusedDenseParams& p, const LinkContext& c) {
            std::optional<DType> addend;
            if (p.with_sum) addend = c.in[4].dtype;
            return Ref<Kernel>(new LayerKernel(dense_geometry(c.in[0].shape, p.flatten, p.num_hidden), c.in[0].dtype,
                                               addend, p, p.weights()));
          },
          kBytes)
      .cost([](const FusedDenseParams& p, auto in, auto) {
        return dense_of_bytes_cost_ns(in[0].shape, p.flatten, p.num_hidden);
      })
      .sample(layer_sample({{3, 4}, {5, 4}, {1}, {1}, {5}, {1}, {1}, {1}, {1}}, {kU, kI, kF, kF, kI},
                           {{"num_hidden", "5"}, {"act_type", "relu"}, {"float_output", "True"}}))
      .sample(layer_sample({{3, 4}, {5, 4}, {1}, {1}, {1}, {1}}, {kI, kI}, {{"num_hidden", "5"}, {"no_bias", "True"}}))
      .sample(layer_sample(
          {{3, 4}, {5, 4}, {1}, {1}, {5}}, {kI},
          {{"num_hidden", "5"}, {"byte_weights", "False"}, {"min_calib_range", "-2000"}, {"max_calib_range", "3000"}}));
}

}  // namespace hybridnet::ops
