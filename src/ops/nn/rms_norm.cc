// RMSNorm: divides by the root mean square along one axis.
//   Zhang, Sennrich: Root mean square layer normalization, 2019.
#include "hybridnet/op.h"
#include "kernels/norm/layer_norm.h"
#include "ops/nn/axis_as_rows.h"

namespace hybridnet::ops {
namespace {

using kernels::NormRows;
using kernels::RowShape;

const OpRef kBackward{"_rms_norm_backward"};

struct RmsNormParams {
  int32_t axis = -1;
  double eps = 1e-5;
  static void describe(ParamSchema<RmsNormParams>& schema) {
    schema.field("axis", &RmsNormParams::axis).default_value(-1).doc("Axis to normalize along.");
    schema.field("eps", &RmsNormParams::eps).default_value(1e-5).at_least(0).doc("Added to the mean square.");
  }
};

void infer_rms_norm(const RmsNormParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, c.out_shape(0));
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(1, Shape::unknown(1));
  if (!c.in_shape(0).rank_known()) return;
  const int axis = normalize_axis(p.axis, c.in_shape(0).ndim());
  Shape learned = Shape::unknown(c.in_shape(0).ndim());
  learned[axis] = c.in_shape(1)[0];
  c.set_in_shape(0, learned);
  c.set_out_shape(0, learned);
  c.set_in_shape(1, Shape{c.in_shape(0)[axis]});
  Shape of_rows = c.in_shape(0);
  of_rows[axis] = 1;
  c.set_out_shape(1, of_rows);
}

template <typename T>
class RmsNormKernel final : public Kernel {
 public:
  RmsNormKernel(const RmsNormParams& p, const Shape& data)
      : eps_(p.eps), memory_(RowShape::along(data, normalize_axis(p.axis, data.ndim()))) {}
  int64_t workspace_bytes() const override { return axis_as_rows_workspace<T>(memory_); }
  void run(const KernelArgs& a) override {
    const T* gamma = a.in[1].as<T>();
    T* rms = a.out[1].as<T>();
    axis_as_rows(memory_, a.in[0].as<T>(), a.out[0].as<T>(), a.workspace, [&](const T* x, T* y) {
      kernels::rms_norm<T>({memory_.rows(), memory_.length}, x, gamma, eps_, y, rms);
    });
  }

 private:
  double eps_;
  RowShape memory_;
};

Ref<Kernel> link_rms_norm(const RmsNormParams& p, const LinkContext& c) {
  if (c.in[0].dtype == DType::kFloat64) return Ref<Kernel>(new RmsNormKernel<double>(p, c.in[0].shape));
  return Ref<Kernel>(new RmsNormKernel<float>(p, c.in[0].shape));
}

// ---- backward along the last axis: (dy, data, gamma, rms) -> (dx, dgamma)
template <typename T>
class BackwardKernel final : public Kernel {
 public:
  explicit BackwardKernel(const Shape& data) : rows_{data.size(0, data.ndim() - 1), data[data.ndim() - 1]} {}
  int64_t workspace_bytes() const override { return kernels::layer_norm_gradient_workspace(rows_, sizeof(T)); }
  void run(const KernelArgs& a) override {
    kernels::rms_norm_gradient<T>(rows_, a.in[0].as<T>(), a.in[1].as<T>(), a.in[2].as<T>(), a.in[3].as<T>(),
                                  a.out[0].as<T>(), a.out[1].as<T>(), a.workspace);
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
  c.set_out_shape(1, c.in_shape(2));
}

Values rms_norm_gradient(const RmsNormParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const int ndim = shape.ndim(), axis = normalize_axis(p.axis, ndim);
  const auto turned = [&](const Value& v) { return exchanged_with_last(v, axis, ndim); };
  Values grads(2);
  if (g.output_grad(0)) {
    grads = call_all(kBackward, {turned(g.output_grad(0)), turned(g.input(0)), g.input(1), turned(g.output(1))});
    grads[0] = turned(grads[0]);
  }
  if (const Value d = g.output_grad(1))
    grads[0] = grads[0] + g.input(0) * (d / (g.output(1) * static_cast<double>(shape[axis])));
  return grads;
}

// With h = x / rms, w = gamma dy and P(u) = (u - h mean(u h)) / rms, the operator computes P(w) and sum(dy h). P is
// symmetric, so the products with u and v are sum(w P(u)) + sum(v dy h).
Values backward_gradient(const NoParams&, const GradientContext& g) {
  const Shape& shape = g.input_spec(1).shape;
  const int last = shape.ndim() - 1;
  Values grads(4);
  if (shape.size() == 0) return grads;
  const Value dy = g.input(0), gamma = g.input(2), rms = g.input(3), inverse = 1.0 / rms, h = g.input(1) * inverse;
  const auto row_sum = [&](const Value& v) { return sum(v, Tuple{last}, true); };
  const auto row_mean = [&](const Value& v) { return row_sum(v) / static_cast<double>(shape[last]); };
  Value of_h, of_inverse;
  if (const Value u = g.output_grad(0)) {
    const Value w = dy * gamma, uh = row_mean(u * h), projected = (u - h * uh) * inverse;
    grads[0] = projected * gamma;
    grads[2] = sum_to(dy * projected, g.input_spec(2).shape);
    of_h = -((u * row_mean(w * h) + w * uh) * inverse);
    of_inverse = row_sum(w * projected) * rms;
  }
  if (const Value v = g.output_grad(1)) {
    grads[0] = grads[0] + h * v;
    of_h = of_h + dy * v;
  }
  if (!of_h) return grads;
  grads[1] = of_h * inverse;
  of_inverse = of_inverse + row_sum(of_h * h) * rms;
  grads[3] = -(of_inverse * inverse * inverse);
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
      .infer(infer_rms_norm)
      .link(link_rms_norm)
      .halves_through_float()
      .gradient(rms_norm_gradient, Saves::of({0, 1}, {1}))
      .skips_unwanted_outputs()
      .cost([](const RmsNormParams&, auto in, auto) { return cost_ns(in[0]); })
      .flops([](const RmsNormParams&, auto in, auto) { return 5.0 * static_cast<double>(in[0].shape.size()); })
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
      .infer(infer_backward)
      .link(link_backward)
      .halves_through_float()
      .gradient(backward_gradient, Saves::all_inputs())
      .inplace(0, 0)
      .skips_unwanted_outputs()
      .cost([](const NoParams&, auto in, auto) { return 2 * cost_ns(in[1]); })
      .sample(Sample{.inputs = {{3, 5}, {3, 5}, Shape{5}, {3, 1}}, .low = 0.5});
}

}  // namespace hybridnet::ops
