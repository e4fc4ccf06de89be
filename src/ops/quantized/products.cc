// Convolution and FullyConnected of quantized tensors, with 32-bit sums.
#include "ops/quantized/products.h"

#include <algorithm>
#include <optional>

#include "hybridnet/declare.h"
#include "kernels/conv/int8_convolution.h"
#include "kernels/product/packed.h"
#include "ops/nn/convolution_params.h"
#include "ops/nn/dense_shapes.h"
#include "ops/quantized/ranges.h"

namespace hybridnet::ops {

void infer_dense_shapes(const QuantizedDenseParams& p, InferContext& c) {
  c.set_in_shape(1, Shape{p.num_hidden, kUnknownDim});
  if (!p.no_bias) c.set_in_shape(2, Shape{p.num_hidden});
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  if (data.ndim() == 0) throw ShapeError({.input = "data", .expected = "at least one axis", .given = "a scalar"});
  infer_dense_rows(c, p.flatten ? 1 : data.ndim() - 1, p.num_hidden);
}

kernels::ConvGeometry dense_geometry(const Shape& data, bool flatten, int64_t hidden) {
  const int rows = flatten ? 1 : data.ndim() - 1;
  kernels::ConvGeometry g;
  g.spatial = 1;
  g.n = 1;
  g.c = data.size(rows, data.ndim());
  g.o = hidden;
  g.in[2] = g.out[2] = data.size(0, rows);
  g.channels_last = true;
  return g;
}

double dense_of_bytes_cost_ns(const Shape& data, bool flatten, int64_t hidden, double flops_per_ns) {
  const kernels::ConvGeometry g = dense_geometry(data, flatten, hidden);
  return std::max(g.flops() / flops_per_ns, 0.05 * static_cast<double>(g.c * hidden)) + 2000;
}

namespace {

using kernels::ConvGeometry;

struct Ranges {
  Range data, weight;
  std::optional<Range> bias;
};

// The number of steps of the sums in a step of the bias.
using BiasFactor = float (*)(DType data, const Ranges& ranges);

class ProductKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  // ranges_as: the dtype that defines the range of the result.
  ProductKernel(const ConvGeometry& g, DType data, DType ranges_as, bool bias, BiasFactor factor, bool remember)
      : product_(kernels::make_int8_convolution(g, {.data = data, .bias = bias})),
        outputs_(g.o),
        data_(data),
        ranges_as_(ranges_as),
        bias_(bias),
        factor_(factor) {
    if (remember)
      kept_ =
          std::make_unique<kernels::PackedWeights>(product_->packing(), product_->packed_bytes(), product_->unpack());
  }

  int64_t workspace_bytes() const override {
    return product_->workspace_bytes() + rounded(bias_bytes()) + (kept_ ? 0 : rounded(product_->packed_bytes()));
  }
  std::string description() const override { return product_->description(); }
  bool reads_packed(size_t input) const override { return input == 1 && kept_; }

  void run(const KernelArgs& a) override {
    const size_t first = bias_ ? 3 : 2;
    const Ranges ranges{range_at(a, first), range_at(a, first + 2),
                        bias_ ? std::optional(range_at(a, first + 4)) : std::nullopt};
    kernels::Int8ConvTensors t;
    char* workspace = static_cast<char*>(a.workspace);
    t.x = a.in[0].data;
    t.y = a.out[0].data;
    if (bias_) {
      auto* bias = reinterpret_cast<int32_t*>(workspace);
      const float factor = factor_(data_, ranges);
      for (int64_t i = 0; i < outputs_; ++i)
        bias[i] = kernels::to_integer<int32_t>(static_cast<float>(a.in[2].as<int8_t>()[i]) * factor);
      t.bias = bias;
      workspace += rounded(bias_bytes());
    }
    const auto pack = [&](void* target) { product_->pack(a.in[1].as<int8_t>(), target); };
    const kernels::PackedForRun packed(kept_.get(), a.in[1], workspace, pack);
    t.weights = packed.data();
    if (!kept_) workspace += rounded(product_->packed_bytes());
    t.workspace = workspace;
    product_->run(t);
    write_range(a, range_of_products(ranges_as_, ranges.data, DType::kInt8, ranges.weight));
  }

 private:
  static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  int64_t bias_bytes() const { return bias_ ? outputs_ * static_cast<int64_t>(sizeof(int32_t)) : 0; }

  std::unique_ptr<kernels::Int8Convolution> product_;
  std::unique_ptr<kernels::PackedWeights> kept_;  // null: packed in each run
  int64_t outputs_;
  DType data_, ranges_as_;
  bool bias_;
  BiasFactor factor_;
};

// Inputs: data, weight and optionally bias; then the ranges of each.
void infer_dtypes(InferContext& c, bool no_bias) {
  c.require_dtype(0, kBytes);
  const int operands = no_bias ? 2 : 3;
  for (int i = 1; i < operands; ++i) c.set_in_dtype(i, DType::kInt8);
  infer_range_inputs(c, operands, 3 * operands);
  c.set_out_dtype(0, DType::kInt32);
  infer_range_outputs(c);
}

// The range of the result assumes 127 steps for data of either dtype, and so does the bias.
float convolution_bias_factor(DType, const Ranges& r) {
  const float sums = r.data.reach() / 127.0f * (r.weight.reach() / 127.0f);
  return r.bias->reach() / 127.0f / sums;
}

float dense_bias_factor(DType data, const Ranges& r) {
  const float data_scale = steps_of(data) / r.data.reach(), weight_scale = steps_of(DType::kInt8) / r.weight.reach();
  return data_scale * weight_scale * r.bias->reach() / steps_of(DType::kInt8);
}

void infer_dense(const QuantizedDenseParams& p, InferContext& c) {
  infer_dtypes(c, p.no_bias);
  infer_dense_shapes(p, c);
}

double cost_ns(const ConvGeometry& g) { return g.flops() / 150.0 + 2000; }

template <typename P>
void declare_inputs(OpBuilder<P>& op) {
  op.optional_input("bias", "int8 (outputs,)")
      .input("min_data", "(1,): value of the smallest byte of data")
      .input("max_data", "(1,): value of the largest byte of data")
      .input("min_weight", "(1,): value of the smallest byte of weight")
      .input("max_weight", "(1,): value of the largest byte of weight")
      .optional_input("min_bias", "(1,): value of the smallest byte of bias")
      .optional_input("max_bias", "(1,): value of the largest byte of bias")
      .num_inputs([](const P& p) { return p.no_bias ? 6 : 9; });
}

template <typename P>
void declare_outputs(OpBuilder<P>& op, const char* shape) {
  op.output("output", shape)
      .output("min_output", "(1,): value of the smallest 32-bit integer")
      .output("max_output", "(1,): value of the largest 32-bit integer");
}

constexpr DType kI = DType::kInt8, kU = DType::kUInt8;

void declare_convolution(OpRegistry& ops) {
  auto op = ops.declare<ConvolutionParams>("_contrib_quantized_conv");
  op.doc(
        "Convolution of quantized tensors, with 32-bit sums. All ranges have 127 steps, for uint8 data, too: the value "
        "of a byte is byte * max(|min|, |max|) / 127.")
      .input("data", "int8 or uint8 (batch, channels, spatial...)")
      .input("weight", "int8 (num_filter, channels / num_group, kernel...)");
  declare_inputs(op);
  declare_outputs(op, "int32 (batch, num_filter, out...)");
  const std::vector<Shape> ones{{1}, {1}, {1}, {1}};
  const auto with_ranges = [](std::vector<Shape> shapes) {
    const size_t operands = shapes.size();
    for (size_t i = 0; i < 2 * operands; ++i) shapes.push_back({1});
    return shapes;
  };
  op.infer([](const ConvolutionParams& p, InferContext& c) {
      infer_dtypes(c, p.no_bias);
      infer_convolution_shapes(p, c);
    })
      .heavy()
      .link(
          [](const ConvolutionParams& p, const LinkContext& c) {
            return Ref<Kernel>(
                new ProductKernel(conv_geometry(p, c.in[0].shape, c.out[0].shape, linked_channels_last(c)),
                                  c.in[0].dtype, DType::kInt8, !p.no_bias, convolution_bias_factor, c.frozen_weights));
          },
          kBytes)
      .gradient(kNotDifferentiable)
      .image({0}, {0})
      .image_when([](const ConvolutionParams& p) { return !is_channels_last(p.layout); })
      .cost([](const ConvolutionParams& p, auto in, auto out) {
        return cost_ns(conv_geometry(p, in[0].shape, out[0].shape, false));
      })
      .sample(bytes_sample(with_ranges({{2, 4, 5, 6}, {8, 4, 3, 3}, {8}}), {kI, kI, kI},
                           {{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"pad", "(1, 1)"}}))
      .sample(bytes_sample(with_ranges({{2, 6, 7, 6}, {18, 2, 3, 2}}), {kU, kI},
                           {{"kernel", "(3, 2)"},
                            {"num_filter", "18"},
                            {"num_group", "3"},
                            {"stride", "(2, 1)"},
                            {"dilate", "(1, 2)"},
                            {"no_bias", "True"}},
                           0, 100))
      .sample(bytes_sample(
          with_ranges({{1, 4, 6, 6}, {4, 1, 3, 3}}), {kI, kI},
          {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"num_group", "4"}, {"pad", "(1, 1)"}, {"no_bias", "True"}}));
}

void declare_dense(OpRegistry& ops) {
  auto op = ops.declare<QuantizedDenseParams>("_contrib_quantized_fully_connected");
  op.doc("FullyConnected of quantized tensors, with 32-bit sums.")
      .input("data", "int8 or uint8 (batch, ...), or (..., features) with flatten=False")
      .input("weight", "int8 (num_hidden, features)");
  declare_inputs(op);
  declare_outputs(op, "int32 (batch, num_hidden), or (..., num_hidden) with flatten=False");
  op.infer(infer_dense)
      .link(
          [](const QuantizedDenseParams& p, const LinkContext& c) {
            const DType dtype = c.in[0].dtype;
            return Ref<Kernel>(new ProductKernel(dense_geometry(c.in[0].shape, p.flatten, p.num_hidden), dtype, dtype,
                                                 !p.no_bias, dense_bias_factor, c.frozen_weights));
          },
          kBytes)
      .gradient(kNotDifferentiable)
      .cost([](const QuantizedDenseParams& p, auto in, auto) {
        return dense_of_bytes_cost_ns(in[0].shape, p.flatten, p.num_hidden);
      })
      .sample(bytes_sample({{3, 4}, {5, 4}, {5}, {1}, {1}, {1}, {1}, {1}, {1}}, {kI, kI, kI}, {{"num_hidden", "5"}}))
      .sample(bytes_sample({{2, 3, 33}, {20, 33}, {1}, {1}, {1}, {1}}, {kU, kI},
                           {{"num_hidden", "20"}, {"no_bias", "True"}, {"flatten", "False"}}, 0, 100))
      .sample(bytes_sample({{2, 3, 4}, {5, 12}, {5}, {1}, {1}, {1}, {1}, {1}, {1}}, {kU, kI, kI}, {{"num_hidden", "5"}},
                           0, 100));
}

}  // namespace

void register_quantized_products(OpRegistry& ops) {
  declare_convolution(ops);
  declare_dense(ops);
}

}  // namespace hybridnet::ops
