#include "ops/nn/row_norm.h"

namespace hybridnet::ops {

void infer_row_norm(int axis, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, c.out_shape(0));
  c.set_out_shape(0, c.in_shape(0));
  for (int i = 1; i < c.num_in(); ++i) c.set_in_shape(i, Shape::unknown(1));
  if (!c.in_shape(0).rank_known()) return;
  axis = normalize_axis(axis, c.in_shape(0).ndim());
  for (int i = 1; i < c.num_in(); ++i) {
    Shape learned = Shape::unknown(c.in_shape(0).ndim());
    learned[axis] = c.in_shape(i)[0];
    c.set_in_shape(0, learned);
    c.set_out_shape(0, learned);
  }
  const Shape width{c.in_shape(0)[axis]};
  for (int i = 1; i < c.num_in(); ++i) c.set_in_shape(i, width);
  Shape moments = c.in_shape(0);
  moments[axis] = 1;
  for (int i = 1; i < c.num_out(); ++i) c.set_out_shape(i, moments);
}

void infer_row_norm_backward(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, c.in_shape(1));
  c.set_in_shape(1, c.in_shape(0));
  c.set_out_shape(0, c.in_shape(1));
  for (int i = 1; i < c.num_out(); ++i) c.set_out_shape(i, c.in_shape(2));
}

Values row_norm_gradient(const OpRef& backward, int axis, const GradientContext& g) {
  Values grads(static_cast<size_t>(g.num_inputs()));
  if (!g.output_grad(0)) return grads;
  const int ndim = g.input_spec(0).shape.ndim();
  axis = normalize_axis(axis, ndim);
  const auto transposed = [&](const Value& v) { return exchanged_with_last(v, axis, ndim); };
  Values inputs{transposed(g.output_grad(0)), transposed(g.input(0)), g.input(1)};
  for (int i = 1; i < g.num_outputs(); ++i) inputs.push_back(transposed(g.output(i)));
  grads = call_all(backward, inputs);
  grads[0] = transposed(grads[0]);
  return grads;
}

// With h = (x - mean) / std, w = gamma dy and P(u) = (u - mean(u) - h mean(u h)) / std, the operator computes P(w),
// sum(dy h), sum(dy). P is symmetric, so the products with u, v, z are sum(w P(u)) + sum(v dy h) + sum(z dy). RMSNorm
// has no means, and no output sum(dy).
Values row_norm_second_gradient(const Values& inputs, const Values& arriving) {
  const bool centers = inputs.size() == 5;
  const Value &dy = inputs[0], &x = inputs[1], &gamma = inputs[2], &std = inputs.back();
  const Shape shape = spec_of(x).shape;
  const int last = shape.ndim() - 1;
  Values grads(inputs.size());
  if (shape.size() == 0) return grads;
  const Value inverse = 1.0 / std, h = (centers ? x - inputs[3] : x) * inverse;
  const double width = static_cast<double>(shape[last]);
  const auto row_sum = [&](const Value& v) { return sum(v, Tuple{last}, true); };
  const auto row_mean = [&](const Value& v) { return row_sum(v) / width; };
  Value of_h, of_inverse;
  if (const Value u = arriving[0]) {
    const Value w = dy * gamma, uh = row_mean(u * h);
    const Value projected = ((centers ? u - row_mean(u) : u) - h * uh) * inverse;
    grads[0] = projected * gamma;
    grads[2] = sum_to(dy * projected, spec_of(gamma).shape);
    of_h = -((u * row_mean(w * h) + w * uh) * inverse);
    of_inverse = row_sum(w * projected) * std;
  }
  if (const Value v = arriving[1]) {
    grads[0] = grads[0] + h * v;
    of_h = of_h + dy * v;
  }
  if (const Value z = centers ? arriving[2] : Value{}) {
    Shape row = shape;
    for (int i = 0; i < last; ++i) row[i] = 1;
    grads[0] = grads[0] + broadcast_to(reshape(z, row), shape);
  }
  if (!of_h) return grads;
  grads[1] = of_h * inverse;
  if (centers) grads[3] = -row_sum(grads[1]);
  of_inverse = of_inverse + row_sum(of_h * h) * std;
  grads.back() = -(of_inverse * inverse * inverse);
  return grads;
}

Values row_norm_backward_gradient(const NoParams&, const GradientContext& g) {
  Values inputs, arriving;
  for (int i = 0; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  for (int i = 0; i < g.num_outputs(); ++i) arriving.push_back(g.output_grad(i));
  return row_norm_second_gradient(inputs, arriving);
}

int64_t layer_norm_cost_ns(const TensorSpec& data) { return data.shape.size() / 2 + 300; }

}  // namespace hybridnet::ops
