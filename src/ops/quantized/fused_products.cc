// Convolutions and dense layers of bytes whose sums are requantized to bytes in registers. Passes create them from
// _contrib_quantized_conv, _contrib_quantized_fully_connected, _contrib_requantize and the operators after them.
#include <limits>

#include "hybridnet/declare.h"
#include "kernels/conv/int8_convolution.h"
#include "kernels/product/packed.h"
#include "ops/nn/convolution_params.h"
#include "ops/quantized/products.h"
#include "ops/quantized/ranges.h"

namespace hybridnet::ops {
namespace {

struct FusedEnd {
  double min_calib_range, max_calib_range;
  bool is_unsigned, relu, with_addend;
  template <typename P>
  static void describe(ParamSchema<P>& schema) {
    const auto field = [&]<typename M>(const char* name, M FusedEnd::*member) {
      return schema.field(name, static_cast<M P::*>(member));
    };
    field("min_calib_range", &FusedEnd::min_calib_range).doc("Minimum value of the output.");
    field("max_calib_range", &FusedEnd::max_calib_range).doc("Maximum value of the output.");
    field("is_unsigned", &FusedEnd::is_unsigned).default_value(false).doc("Whether the output is uint8, else int8.");
    field("relu", &FusedEnd::relu).default_value(false).doc("Whether values below zero become zero.");
    field("with_addend", &FusedEnd::with_addend)
        .default_value(false)
        .doc("Whether a quantized tensor, the last three inputs, is added to the sums.");
  }
  DType out() const { return is_unsigned ? DType::kUInt8 : DType::kInt8; }
  Range range() const {
    const Range given{static_cast<float>(min_calib_range), static_cast<float>(max_calib_range)};
    return {is_unsigned ? 0.0f : -given.reach(), given.reach()};
  }
};

struct FusedConvParams : ConvolutionParams, FusedEnd {
  static void describe(ParamSchema<FusedConvParams>& schema) {
    describe_convolution_fields(schema, false, 1024);
    FusedEnd::describe(schema);
    schema.check([](const FusedConvParams& p) { check_convolution(p); });
  }
  int64_t outputs() const { return num_filter; }
  // The number of steps in the reach of the data, which defines the step of the sums: 127 for a convolution with data
  // of either dtype, in accordance with its range.
  static float data_steps(DType) { return 127.0f; }
  static float bias_factor(DType) { return 1.0f; }
};

struct FusedDenseParams : QuantizedDenseParams, FusedEnd {
  static void describe(ParamSchema<FusedDenseParams>& schema) {
    describe_fields(schema);
    FusedEnd::describe(schema);
  }
  int64_t outputs() const { return num_hidden; }
  static float data_steps(DType dtype) { return dtype == DType::kUInt8 ? 255.0f : 127.0f; }
  static float bias_factor(DType dtype) { return steps_of(dtype) / data_steps(dtype); }
};

template <typename P>
int operands(const P& p) {
  return p.no_bias ? 2 : 3;
}
template <typename P>
int first_addend(const P& p) {
  return 3 * operands(p);
}
template <typename P>
int num_inputs(const P& p) {
  return first_addend(p) + (p.with_addend ? 3 : 0);
}

kernels::ConvGeometry geometry(const FusedConvParams& p, const LinkContext& c) {
  return conv_geometry(p, c.in[0].shape, c.out[0].shape, linked_channels_last(c));
}
kernels::ConvGeometry geometry(const FusedDenseParams& p, const LinkContext& c) {
  return dense_geometry(c.in[0].shape, p.flatten, p.num_hidden);
}

template <typename P>
class FusedKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  FusedKernel(const P& p, const LinkContext& c)
      : p_(p), outputs_(p.outputs()), product_(kernels::make_int8_convolution(geometry(p, c), options(p, c))) {
    if (c.frozen_weights)
      kept_ =
          std::make_unique<kernels::PackedWeights>(product_->packing(), product_->packed_bytes(), product_->unpack());
  }

  int64_t workspace_bytes() const override {
    return product_->workspace_bytes() + 2 * vector_bytes() + (kept_ ? 0 : rounded(product_->packed_bytes()));
  }
  std::string description() const override { return product_->description(); }
  bool reads_packed(size_t input) const override { return input == 1 && kept_; }

  void run(const KernelArgs& a) override {
    char* workspace = static_cast<char*>(a.workspace);
    auto* scale = reinterpret_cast<float*>(workspace);
    auto* bias = reinterpret_cast<float*>(workspace + vector_bytes());
    workspace += 2 * vector_bytes();
    kernels::Int8ConvTensors t;
    t.x = a.in[0].data;
    t.y = a.out[0].data;
    t.out_step = set_steps(a, scale, bias);
    t.scale = scale;
    if (!p_.no_bias) t.bias = bias;
    if (p_.with_addend) t.addend = a.in[static_cast<size_t>(first_addend(p_))].data;
    const auto pack = [&](void* target) { product_->pack(a.in[1].as<int8_t>(), target); };
    const kernels::PackedForRun packed(kept_.get(), a.in[1], workspace, pack);
    t.weights = packed.data();
    if (!kept_) workspace += rounded(product_->packed_bytes());
    t.workspace = workspace;
    product_->run(t);
    write_range(a, p_.range());
  }

 private:
  static kernels::Int8ConvOptions options(const P& p, const LinkContext& c) {
    kernels::Int8ConvOptions o{.data = c.in[0].dtype, .out = p.out(), .bias = !p.no_bias, .add = p.with_addend};
    if (p.with_addend) o.addend = c.in[static_cast<size_t>(first_addend(p))].dtype;
    if (p.relu) o.last_activation.kind = kernels::ActivationKind::kRelu;
    return o;
  }
  static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  int64_t vector_bytes() const { return rounded(outputs_ * static_cast<int64_t>(sizeof(float))); }

  // Sums are in steps of the addend, if there is one. Returns the number of these steps per step of the output.
  float set_steps(const KernelArgs& a, float* scale, float* bias) const {
    const auto first = static_cast<size_t>(operands(p_));
    const auto addend = static_cast<size_t>(first_addend(p_));
    float unit = 1;
    if (p_.with_addend) unit = range_at(a, addend + 1).reach() / steps_of(a.in[addend].dtype);
    if (!(unit > 0)) unit = 1;
    const float sum_step =
        range_at(a, first).reach() / P::data_steps(a.in[0].dtype) * (range_at(a, first + 2).reach() / 127.0f);
    std::fill_n(scale, outputs_, sum_step / unit);
    if (!p_.no_bias) {
      const float bias_step = range_at(a, first + 4).reach() / 127.0f * P::bias_factor(a.in[0].dtype) / unit;
      for (int64_t i = 0; i < outputs_; ++i) bias[i] = static_cast<float>(a.in[2].as<int8_t>()[i]) * bias_step;
    }
    const float step = p_.range().reach() / (p_.is_unsigned ? 255.0f : 127.0f) / unit;
    return step > 0 ? step : std::numeric_limits<float>::max();
  }

  const P p_;
  int64_t outputs_;
  std::unique_ptr<kernels::Int8Convolution> product_;
  std::unique_ptr<kernels::PackedWeights> kept_;  // null: packed in each run
};

void infer_shapes(const FusedConvParams& p, InferContext& c) { infer_convolution_shapes(p, c); }
void infer_shapes(const FusedDenseParams& p, InferContext& c) { infer_dense_shapes(p, c); }

template <typename P>
void infer(const P& p, InferContext& c) {
  c.require_dtype(0, kBytes);
  for (int i = 1; i < operands(p); ++i) c.set_in_dtype(i, DType::kInt8);
  const int addend = first_addend(p);
  infer_range_inputs(c, operands(p), addend);
  infer_shapes(p, c);
  if (p.with_addend) {
    c.require_dtype(addend, kBytes);
    c.set_in_shape(addend, c.out_shape(0));
    c.set_out_shape(0, c.in_shape(addend));
    infer_range_inputs(c, addend + 1, addend + 3);
  }
  c.set_out_dtype(0, p.out());
  infer_range_outputs(c);
}

template <typename P>
OpBuilder<P> declare(OpRegistry& ops, const char* name, const std::string& sums) {
  return ops.declare<P>(name)
      .internal()
      .doc("relu(" + sums + "(...) + addend), requantized to a known range.")
      .input("data", "same as in " + sums)
      .input("weight", "same as in " + sums)
      .optional_input("bias", "int8 (outputs,)")
      .input("min_data", "(1,): value of the smallest byte of data")
      .input("max_data", "(1,): value of the largest byte of data")
      .input("min_weight", "(1,): value of the smallest byte of weight")
      .input("max_weight", "(1,): value of the largest byte of weight")
      .optional_input("min_bias", "(1,): value of the smallest byte of bias")
      .optional_input("max_bias", "(1,): value of the largest byte of bias")
      .optional_input("addend", "int8 or uint8, shape of the output")
      .optional_input("min_addend", "(1,): value of the smallest byte of addend")
      .optional_input("max_addend", "(1,): value of the largest byte of addend")
      .output("output", "int8 or uint8, shape of the output of " + sums)
      .output("min_output", "(1,): value of the smallest byte")
      .output("max_output", "(1,): value of the largest byte")
      .num_inputs([](const P& p) { return num_inputs(p); })
      .infer([](const P& p, InferContext& c) { infer(p, c); })
      .heavy()
      .link([](const P& p, const LinkContext& c) { return Ref<Kernel>(new FusedKernel<P>(p, c)); }, kBytes)
      .gradient(kNotDifferentiable);
}

std::vector<Shape> with_ranges(std::vector<Shape> operands, std::vector<Shape> addend) {
  const size_t count = operands.size();
  operands.resize(3 * count, Shape{1});
  operands.insert(operands.end(), addend.begin(), addend.end());
  return operands;
}

constexpr DType kI = DType::kInt8, kU = DType::kUInt8, kF = DType::kFloat32;

}  // namespace

void register_fused_quantized_products(OpRegistry& ops) {
  using Attributes = std::vector<std::pair<std::string, std::string>>;
  const Attributes plain{{"kernel", "(3, 3)"},     {"num_filter", "8"},           {"pad", "(1, 1)"},
                         {"min_calib_range", "0"}, {"max_calib_range", "200000"}, {"relu", "True"}};
  const Attributes adding{{"kernel", "(1, 1)"},         {"num_filter", "8"},        {"no_bias", "True"},
                          {"min_calib_range", "-1000"}, {"max_calib_range", "900"}, {"with_addend", "True"}};
  declare<FusedConvParams>(ops, "_fused_quantized_conv", "_contrib_quantized_conv")
      .image({0}, {0})
      .image_when([](const FusedConvParams& p) { return !is_channels_last(p.layout); })
      .cost([](const FusedConvParams& p, auto in, auto out) {
        return conv_geometry(p, in[0].shape, out[0].shape, false).flops() / 150.0 + 2000;
      })
      .sample(bytes_sample(with_ranges({{2, 4, 5, 6}, {8, 4, 3, 3}, {8}}, {}), {kI, kI, kI}, plain))
      .sample(bytes_sample(with_ranges({{2, 4, 5, 6}, {8, 4, 1, 1}}, {{2, 8, 5, 6}, {1}, {1}}),
                           {kU, kI, kF, kF, kF, kF, kI}, adding, 0, 100));
  const Attributes dense{
      {"num_hidden", "5"}, {"min_calib_range", "0"}, {"max_calib_range", "9000"}, {"is_unsigned", "True"}};
  const Attributes dense_adding{{"num_hidden", "5"},          {"no_bias", "True"},        {"flatten", "False"},
                                {"min_calib_range", "-1000"}, {"max_calib_range", "900"}, {"with_addend", "True"}};
  declare<FusedDenseParams>(ops, "_fused_quantized_fully_connected", "_contrib_quantized_fully_connected")
      .cost([](const FusedDenseParams& p, auto in, auto) {
        return dense_of_bytes_cost_ns(in[0].shape, p.flatten, p.num_hidden);
      })
      .sample(bytes_sample(with_ranges({{3, 4}, {5, 4}, {5}}, {}), {kI, kI, kI}, dense))
      .sample(bytes_sample(with_ranges({{2, 3, 4}, {5, 4}}, {{2, 3, 5}, {1}, {1}}), {kI, kI, kF, kF, kF, kF, kI},
                           dense_adding));
}

}  // namespace hybridnet::ops
