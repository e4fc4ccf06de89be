// RMSNorm: divides by the root mean square along one axis.
//   Zhang, Sennrich: Root mean square layer normalization, 2019.
#include "hybridnet/declare.h"
#include "ops/nn/row_norm.h"

namespace hybridnet::ops {
namespace {

const OpRef kBackward{"_rms_norm_backward"};

struct RmsNormParams {
  int32_t axis = -1;
  double eps = 1e-5;
  static void describe(ParamSchema<RmsNormParams>& schema) {
    schema.field("axis", &RmsNormParams::axis).default_value(-1).doc("Axis to normalize along.");
    schema.field("eps", &RmsNormParams::eps).default_value(1e-5).at_least(0).doc("Added to the mean square.");
  }
};

struct RmsNormRows {
  template <typename T>
  static void forward(const kernels::NormRows& rows, const T* x, T* y, double eps, const KernelArgs& a) {
    kernels::rms_norm<T>(rows, x, a.in[1].as<T>(), eps, y, a.out[1].as<T>());
  }
  template <typename T>
  static void backward(const kernels::NormRows& rows, const KernelArgs& a) {
    kernels::rms_norm_gradient<T>(rows, a.in[0].as<T>(), a.in[1].as<T>(), a.in[2].as<T>(), a.in[3].as<T>(),
                                  a.out[0].as<T>(), a.out[1].as<T>(), a.workspace);
  }
};

Values rms_norm_gradient(const RmsNormParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const double count = static_cast<double>(shape[normalize_axis(p.axis, shape.ndim())]);
  Values grads = row_norm_gradient(kBackward, p.axis, g);
  if (const Value d = g.output_grad(1)) grads[0] = grads[0] + g.input(0) * (d / (g.output(1) * count));
  return grads;
}

int64_t cost_ns(const TensorSpec& data) { return data.shape.size() / 3 + 300; }

}  // namespace

void register_rms_norm(OpRegistry& ops) {
  ops.declare<RmsNormParams>("_contrib_rms_norm")
      .doc(
          "data / sqrt(mean(data^2) + eps) * gamma, with the mean along an axis: LayerNorm without the subtraction of "
          "the mean. Statistics of 16-bit floats are kept in 32 bits.\n\nZhang, Sennrich: Root mean square layer "
          "normalization, NeurIPS 2019.")
      .input("data", "floating tensor of at least one axis")
      .input("gamma", "(size of the axis,): factor after normalization")
      .output("output", "shape of data")
      .output("rms", "shape of data with 1 for the axis: sqrt(mean(data^2) + eps)")
      .visible_outputs(1)
      .infer([](const RmsNormParams& p, InferContext& c) { infer_row_norm(p.axis, c); })
      .any_device()
      .link(RowNorm<RmsNormRows>::link<RmsNormParams>)
      .halves_through_float()
      .gradient(rms_norm_gradient, Saves::of({0, 1}, {1}))
      .skips_unwanted_outputs()
      .cost([](const RmsNormParams&, auto in, auto) { return cost_ns(in[0]); })
      .flops([](const RmsNormParams&, auto in, auto) { return 5.0 * static_cast<double>(in[0].shape.size()); })
      .light()
      .amp(AmpType::kFloat)
      .sample({{3, 5}, Shape{5}})
      .sample({{2, 4, 3}, Shape{4}}, {{"axis", "1"}, {"eps", "0.01"}})
      .sample({{3, 2}, Shape{3}}, {{"axis", "0"}})
      .sample({{0, 3}, Shape{3}});
  ops.declare("_rms_norm_backward")
      .internal()
      .doc("Gradient of _contrib_rms_norm along the last axis, given the root mean squares of its data.")
      .input("output_grad", "as data")
      .input("data", "at least one axis")
      .input("gamma", "(width,)")
      .input("rms", "of each row")
      .output("data_grad", "as data")
      .output("gamma_grad", "(width,)")
      .infer(infer_row_norm_backward)
      .any_device()
      .link(RowNorm<RmsNormRows>::link_backward)
      .halves_through_float()
      .gradient(row_norm_backward_gradient, Saves::all_inputs())
      .inplace(0, 0)
      .skips_unwanted_outputs()
      .cost([](const NoParams&, auto in, auto) { return 2 * cost_ns(in[1]); })
      .sample(Sample{.inputs = {{3, 5}, {3, 5}, Shape{5}, {3, 1}}, .low = 0.5});
}

}  // namespace hybridnet::ops
