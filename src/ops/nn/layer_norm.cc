// LayerNorm: normalizes along one axis.
//   Ba, Kiros, Hinton: Layer normalization, 2016.
#include "ops/nn/layer_norm.h"

#include "kernels/norm/layer_norm.h"
#include "ops/nn/axis_as_rows.h"

namespace hybridnet::ops {
namespace {

using kernels::NormRows;
using kernels::RowShape;

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

// ---- shapes
void infer_layer_norm(const LayerNormParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, c.out_shape(0));
  c.set_out_shape(0, c.in_shape(0));
  for (int i = 1; i < 3; ++i) c.set_in_shape(i, Shape::unknown(1));
  if (!c.in_shape(0).rank_known()) return;
  const int axis = normalize_axis(p.axis, c.in_shape(0).ndim());
  for (int i = 1; i < 3; ++i) {
    Shape learned = Shape::unknown(c.in_shape(0).ndim());
    learned[axis] = c.in_shape(i)[0];
    c.set_in_shape(0, learned);
    c.set_out_shape(0, learned);
  }
  const Shape width{c.in_shape(0)[axis]};
  for (int i = 1; i < 3; ++i) c.set_in_shape(i, width);
  Shape moments = c.in_shape(0);
  moments[axis] = 1;
  for (int i = 1; i < 3; ++i) c.set_out_shape(i, moments);
}

// ---- forward
template <typename T>
class LayerNormKernel final : public Kernel {
 public:
  LayerNormKernel(const LayerNormParams& p, const Shape& data)
      : eps_(p.eps), memory_(RowShape::along(data, normalize_axis(p.axis, data.ndim()))) {}

  int64_t workspace_bytes() const override { return axis_as_rows_workspace<T>(memory_); }

  void run(const KernelArgs& a) override {
    const T *gamma = a.in[1].as<T>(), *beta = a.in[2].as<T>();
    T *mean = a.out[1].as<T>(), *std = a.out[2].as<T>();
    axis_as_rows(memory_, a.in[0].as<T>(), a.out[0].as<T>(), a.workspace, [&](const T* x, T* y) {
      kernels::layer_norm<T>({memory_.rows(), memory_.length}, x, gamma, beta, eps_, y, mean, std);
    });
  }

 private:
  double eps_;
  RowShape memory_;
};

Ref<Kernel> link_layer_norm(const LayerNormParams& p, const LinkContext& c) {
  if (c.in[0].dtype == DType::kFloat64) return Ref<Kernel>(new LayerNormKernel<double>(p, c.in[0].shape));
  return Ref<Kernel>(new LayerNormKernel<float>(p, c.in[0].shape));
}

// ---- backward along the last axis: (dy, data, gamma, mean, std) -> (dx, dgamma, dbeta)
template <typename T>
class BackwardKernel final : public Kernel {
 public:
  explicit BackwardKernel(const Shape& data) : rows_{data.size(0, data.ndim() - 1), data[data.ndim() - 1]} {}
  int64_t workspace_bytes() const override { return kernels::layer_norm_gradient_workspace(rows_, sizeof(T)); }
  void run(const KernelArgs& a) override {
    kernels::layer_norm_gradient<T>(rows_, a.in[0].as<T>(), a.in[1].as<T>(), a.in[2].as<T>(), a.in[3].as<T>(),
                                    a.in[4].as<T>(), a.out[0].as<T>(), a.out[1].as<T>(), a.out[2].as<T>(), a.workspace);
  }

 private:
  NormRows rows_;
};

Ref<Kernel> link_backward(const NoParams&, const LinkContext& c) {
  if (c.in[0].dtype == DType::kFloat64) return Ref<Kernel>(new BackwardKernel<double>(c.in[1].shape));
  return Ref<Kernel>(new BackwardKernel<float>(c.in[1].shape));
}

void infer_backward(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, c.in_shape(1));
  c.set_in_shape(1, c.in_shape(0));
  c.set_out_shape(0, c.in_shape(1));
  for (int i = 1; i < 3; ++i) c.set_out_shape(i, c.in_shape(2));
}

// ---- gradients
Values layer_norm_gradient(const LayerNormParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const int ndim = shape.ndim(), axis = normalize_axis(p.axis, ndim);
  const auto turned = [&](const Value& v) { return exchanged_with_last(v, axis, ndim); };
  Values grads(3);
  if (g.output_grad(0)) {
    grads = call_all(kBackward, {turned(g.output_grad(0)), turned(g.input(0)), g.input(1), turned(g.output(1)),
                                 turned(g.output(2))});
    grads[0] = turned(grads[0]);
  }
  const double count = static_cast<double>(shape[axis]);
  if (const Value d = g.output_grad(1)) grads[0] = grads[0] + broadcast_to(d / count, shape);
  if (const Value d = g.output_grad(2)) grads[0] = grads[0] + (g.input(0) - g.output(1)) * (d / (g.output(2) * count));
  return grads;
}

}  // namespace

// With h = (x - mean) / std, w = gamma dy and P(u) = (u - mean(u) - h mean(u h)) / std, the helper computes P(w),
// sum(dy h), sum(dy). P is symmetric, so the products with u, v, z are sum(w P(u)) + sum(v dy h) + sum(z dy).
Values layer_norm_second_gradient(const Values& inputs, const Values& arriving) {
  const Value &dy = inputs[0], &x = inputs[1], &gamma = inputs[2], &mean = inputs[3], &std = inputs[4];
  const Shape shape = spec_of(x).shape;
  const int last = shape.ndim() - 1;
  Values grads(5);
  if (shape.size() == 0) return grads;
  const Value inverse = 1.0 / std, h = (x - mean) * inverse;
  const double width = static_cast<double>(shape[last]);
  const auto row_sum = [&](const Value& v) { return sum(v, Tuple{last}, true); };
  const auto row_mean = [&](const Value& v) { return row_sum(v) / width; };
  Value of_h, of_inverse;
  if (const Value u = arriving[0]) {
    const Value w = dy * gamma, uh = row_mean(u * h), projected = (u - row_mean(u) - h * uh) * inverse;
    grads[0] = projected * gamma;
    grads[2] = sum_to(dy * projected, spec_of(gamma).shape);
    of_h = -((u * row_mean(w * h) + w * uh) * inverse);
    of_inverse = row_sum(w * projected) * std;
  }
  if (const Value v = arriving[1]) {
    grads[0] = grads[0] + h * v;
    of_h = of_h + dy * v;
  }
  if (const Value z = arriving[2]) {
    Shape row = shape;
    for (int i = 0; i < last; ++i) row[i] = 1;
    grads[0] = grads[0] + broadcast_to(reshape(z, row), shape);
  }
  if (!of_h) return grads;
  grads[1] = of_h * inverse;
  grads[3] = -row_sum(grads[1]);
  of_inverse = of_inverse + row_sum(of_h * h) * std;
  grads[4] = -(of_inverse * inverse * inverse);
  return grads;
}

int64_t layer_norm_cost_ns(const TensorSpec& data) { return data.shape.size() / 2 + 300; }

namespace {

Values backward_gradient(const NoParams&, const GradientContext& g) {
  Values inputs, arriving;
  for (int i = 0; i < 5; ++i) inputs.push_back(g.input(i));
  for (int i = 0; i < 3; ++i) arriving.push_back(g.output_grad(i));
  return layer_norm_second_gradient(inputs, arriving);
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
      .infer(infer_layer_norm)
      .link(link_layer_norm)
      .halves_through_float()
      .gradient(layer_norm_gradient, Saves::of({0, 1}, {1, 2}))
      .skips_unwanted_outputs()
      .cost([](const LayerNormParams&, auto in, auto) { return layer_norm_cost_ns(in[0]); })
      .flops([](const LayerNormParams&, auto in, auto) { return 8.0 * static_cast<double>(in[0].shape.size()); })
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
      .infer(infer_backward)
      .link(link_backward)
      .halves_through_float()
      .gradient(backward_gradient, Saves::all_inputs())
      .inplace(0, 0)
      .skips_unwanted_outputs()
      .cost([](const NoParams&, auto in, auto) { return 2 * layer_norm_cost_ns(in[1]); })
      .sample(Sample{.inputs = {{3, 5}, {3, 5}, Shape{5}, {3, 1}, {3, 1}}, .low = 0.5});
}

}  // namespace hybridnet::ops
