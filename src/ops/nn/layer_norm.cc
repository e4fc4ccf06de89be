// LayerNorm: normalizes along one axis.
//   Ba, Kiros, Hinton: Layer normalization, 2016.
#include "hybridnet/declare.h"
#include "ops/nn/row_norm.h"

namespace hybridnet::ops {
namespace {

const OpRef kBackward{"_layer_norm_backward"};

struct LayerNormParams {
  int32_t axis = -1;
  double eps = 1e-5;
  bool output_mean_var = false;
  static void describe(ParamSchema<LayerNormParams>& schema) {
    schema.field("axis", &LayerNormParams::axis).default_value(-1).doc("Axis to normalize along.");
    schema.field("eps", &LayerNormParams::eps).default_value(1e-5).at_least(0).doc("Added to the variance.");
    schema.field("output_mean_var", &LayerNormParams::output_mean_var)
        .default_value(false)
        .doc("Whether mean and std are outputs, too.");
  }
};

struct LayerNormRows {
  template <typename T>
  static void forward(const kernels::NormRows& rows, const T* x, T* y, double eps, const KernelArgs& a) {
    kernels::layer_norm<T>(rows, x, a.in[1].as<T>(), a.in[2].as<T>(), eps, y, a.out[1].as<T>(), a.out[2].as<T>());
  }
  template <typename T>
  static void backward(const kernels::NormRows& rows, const KernelArgs& a) {
    kernels::layer_norm_gradient<T>(rows, a.in[0].as<T>(), a.in[1].as<T>(), a.in[2].as<T>(), a.in[3].as<T>(),
                                    a.in[4].as<T>(), a.out[0].as<T>(), a.out[1].as<T>(), a.out[2].as<T>(), a.workspace);
  }
};

Values layer_norm_gradient(const LayerNormParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  Values grads = row_norm_gradient(kBackward, p.axis, g);
  const double count = static_cast<double>(shape[normalize_axis(p.axis, shape.ndim())]);
  if (const Value d = g.output_grad(1)) grads[0] = grads[0] + broadcast_to(d / count, shape);
  if (const Value d = g.output_grad(2)) grads[0] = grads[0] + (g.input(0) - g.output(1)) * (d / (g.output(2) * count));
  return grads;
}

}  // namespace

void register_layer_norm(OpRegistry& ops) {
  ops.declare<LayerNormParams>("LayerNorm")
      .alias("_npx_layer_norm")
      .doc("Normalizes each row along an axis to mean 0 and variance 1, then scales by gamma and shifts by beta.")
      .input("data", "at least one axis")
      .input("gamma", "(size of the axis,): factor after normalization")
      .input("beta", "(size of the axis,): summand after normalization")
      .output("output", "shape of data")
      .output("mean", "shape of data with 1 for the axis")
      .output("std", "shape of mean: sqrt(variance + eps)")
      .num_visible_outputs([](const LayerNormParams& p) { return p.output_mean_var ? 3 : 1; })
      .infer([](const LayerNormParams& p, InferContext& c) { infer_row_norm(p.axis, c); })
      .any_device()
      .link(RowNorm<LayerNormRows>::link<LayerNormParams>)
      .halves_through_float()
      .gradient(layer_norm_gradient, Saves::of({0, 1}, {1, 2}))
      .skips_unwanted_outputs()
      .cost([](const LayerNormParams&, auto in, auto) { return layer_norm_cost_ns(in[0]); })
      .flops([](const LayerNormParams&, auto in, auto) { return 8.0 * static_cast<double>(in[0].shape.size()); })
      .light()
      .amp(AmpType::kFloat)
      .sample({{3, 5}, Shape{5}, Shape{5}})
      .sample({{2, 4, 3}, Shape{4}, Shape{4}}, {{"axis", "1"}, {"eps", "0.01"}})
      .sample({{2, 3, 4}, Shape{4}, Shape{4}}, {{"output_mean_var", "True"}})
      .sample({{3, 2}, Shape{3}, Shape{3}}, {{"axis", "0"}, {"output_mean_var", "True"}})
      .sample({{0, 3}, Shape{3}, Shape{3}});
  ops.declare("_layer_norm_backward")
      .internal()
      .doc("Gradient of LayerNorm along the last axis, given the moments of its data.")
      .input("output_grad", "shape of data")
      .input("data", "at least one axis")
      .input("gamma", "(width,)")
      .input("mean", "mean of each row")
      .input("std", "standard deviation of each row")
      .output("data_grad", "shape of data")
      .output("gamma_grad", "(width,)")
      .output("beta_grad", "(width,)")
      .infer(infer_row_norm_backward)
      .any_device()
      .link(RowNorm<LayerNormRows>::link_backward)
      .halves_through_float()
      .gradient(row_norm_backward_gradient, Saves::all_inputs())
      .inplace(0, 0)
      .skips_unwanted_outputs()
      .cost([](const NoParams&, auto in, auto) { return 2 * layer_norm_cost_ns(in[1]); })
      .sample(Sample{.inputs = {{3, 5}, {3, 5}, Shape{5}, {3, 1}, {3, 1}}, .low = 0.5});
}

}  // namespace hybridnet::ops
