// The parts of fused attention that are composed of other operators, with the matrix of weights in memory: its second
// derivative, and the gradient of a term added to the scores.
#include <limits>

#include "ops/attention/flash_attention.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kExp{"exp"}, kArange{"_arange"}, kLesser{"broadcast_lesser"}, kLesserEqual{"broadcast_lesser_equal"},
    kKept{"_dropout_kept"};

// Converts tensors of forward to stacks of matrices (matrices, length, size), and back.
struct Layout {
  const AttentionParams& p;
  kernels::AttentionShape shape;
  Shape weights;

  Layout(const AttentionParams& params, const Values& inputs) : p(params) {
    std::vector<TensorSpec> specs;
    for (int i = 0; i < p.num_inputs(); ++i) specs.push_back(spec_of(inputs[static_cast<size_t>(i)]));
    const AttentionGeometry geometry(p, specs);
    shape = geometry.shape;
    weights = geometry.weights;
  }

  // Part `part` of `parts` if the tensor is interleaved.
  Value matrices(const Value& v, int64_t parts, int64_t part, int64_t size) const {
    if (!v) return v;
    const Shape s = spec_of(v).shape;
    if (p.heads_inside) {
      const int row = s.ndim() - 3;
      Value grouped = reshape(v, Shape({s.size(0, row), s[row], s[row + 1], size}));
      const int64_t heads = parts == 3 ? s[row + 1] / 3 : s[row + 1];
      if (parts == 3) grouped = slice_axis(grouped, 2, part * heads, (part + 1) * heads);
      return reshape(transpose(grouped, Tuple{0, 2, 1, 3}), Shape({shape.matrices, s[row], size}));
    }
    if (p.parts == 0) return reshape(v, Shape({shape.matrices, s[s.ndim() - 2], size}));
    Value split = reshape(v, Shape({s[0], shape.matrices, parts, size}));
    if (parts > 1) split = slice_axis(split, 2, part, part + 1);
    return transpose(reshape(split, Shape({s[0], shape.matrices, size})), Tuple{1, 0, 2});
  }
  Value query(const Value& v) const { return matrices(v, p.parts == 3 ? 3 : 1, 0, shape.size); }
  Value key(const Value& v) const { return matrices(v, p.parts, p.parts - 2, shape.size); }
  Value value(const Value& v) const { return matrices(v, p.parts, p.parts - 1, shape.value_size); }
  Value output(const Value& v) const { return matrices(v, 1, 0, shape.value_size); }
  Value per_query(const Value& v) const { return reshape(v, Shape({shape.matrices, shape.queries, 1})); }

  // Joins matrices into a tensor of this shape.
  Value joined(const Values& parts, const Shape& to) const {
    if (p.heads_inside) {
      const int row = to.ndim() - 3;
      const int64_t count = static_cast<int64_t>(parts.size()), heads = to[row + 1] / count;
      Values moved;
      for (const Value& m : parts) {
        const Value split = reshape(m, Shape({to.size(0, row), heads, to[row], to[row + 2]}));
        moved.push_back(transpose(split, Tuple{0, 2, 1, 3}));
      }
      return reshape(count == 1 ? moved[0] : concat(moved, 2), to);
    }
    if (p.parts == 0) return reshape(parts[0], to);
    Values rows;
    for (const Value& m : parts) {
      const Shape s = spec_of(m).shape;
      rows.push_back(reshape(transpose(m, Tuple{1, 0, 2}), Shape({s[1], s[0], 1, s[2]})));
    }
    return reshape(rows.size() == 1 ? rows[0] : concat(rows, 2), to);
  }
  // Applies dropout to the weights or to their gradient. rng: its key, or null.
  Value kept(const Value& v, const Value& rng) const {
    if (!rng || spec_of(v).shape.size() == 0) return v;
    const DType dtype = spec_of(v).dtype;
    const DType drawn = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
    const AttrValue to(Shape({shape.matrices, shape.queries, shape.keys}));
    return v * cast(call(kKept, {rng}, {{"shape", to}, {"p", p.p}, {"dtype", dtype_name(drawn)}}), dtype);
  }
  void put(const Values& inputs, const Value& dq, const Value& dk, const Value& dv, Values& grads) const {
    const auto shape_of = [&](size_t i) { return spec_of(inputs[i]).shape; };
    if (p.parts == 3) {
      grads[0] = joined({dq, dk, dv}, shape_of(0));
      return;
    }
    grads[0] = joined({dq}, shape_of(0));
    grads[1] = joined(p.parts == 2 ? Values{dk, dv} : Values{dk}, shape_of(1));
    if (p.parts == 0) grads[2] = joined({dv}, shape_of(2));
  }
};

// e^(scores - log_sums): the weights before dropout.
Value weights_of(const Layout& l, const Values& inputs, const Value& log_sums) {
  const auto at = [&](int i) { return inputs[static_cast<size_t>(i)]; };
  const Shape full_shape({l.shape.matrices, l.shape.queries, l.shape.keys});
  Value scores = batch_dot(l.query(at(l.p.query())), l.key(at(l.p.key())), false, true) * l.shape.scale;
  const DType dtype = spec_of(scores).dtype;
  const auto leave_out = [&](const Value& keep) {  // keep: shape of the weights or (queries, keys)
    Shape all = l.weights;
    const Value whole = reshape(broadcast_to(cast(keep, dtype), all), full_shape);
    scores = where(whole, scores, full(full_shape, dtype, -std::numeric_limits<double>::infinity()));
  };
  const auto numbers = [&](int64_t count, const Shape& shape) {
    return reshape(call(kArange, Values{}, {{"start", 0}, {"stop", count}, {"dtype", dtype_name(DType::kInt64)}}),
                   shape);
  };
  Shape row = l.weights;
  for (int i = 0; i < row.ndim(); ++i) row[i] = 1;
  if (full_shape.size() == 0) return scores;
  Shape keys = row, queries = row;
  keys[row.ndim() - 1] = l.shape.keys;
  queries[row.ndim() - 2] = l.shape.queries;
  if (l.p.mask_type != MaskType::kNone) {
    Value mask = at(l.p.data_inputs());
    const Shape given = spec_of(mask).shape;
    Shape wide = row;
    const int last = row.ndim() - (l.p.mask_type == MaskType::kLengths ? 2 : 1);
    for (int i = 0; i < given.ndim(); ++i) wide[last - i] = given[given.ndim() - 1 - i];
    mask = reshape(mask, wide);
    if (l.p.mask_type == MaskType::kAdded) scores = scores + reshape(broadcast_to(mask, l.weights), full_shape);
    if (l.p.mask_type == MaskType::kKept) leave_out(mask);
    if (l.p.mask_type == MaskType::kLengths)
      leave_out(call(kLesser, {numbers(l.shape.keys, keys), cast(mask, DType::kInt64)}));
  }
  if (l.p.causal) leave_out(call(kLesserEqual, {numbers(l.shape.keys, keys), numbers(l.shape.queries, queries)}));
  return call(kExp, {scores - l.per_query(cast(log_sums, dtype))});
}

Value row_sum(const Value& v) { return sum(v, Tuple{2}, true); }

}  // namespace

Value attention_mask_gradient(const AttentionParams& p, const Values& inputs, const Value& rng, const Value& out,
                              const Value& log_sums, const Value& out_grad) {
  const Layout l(p, inputs);
  const Value dy = l.output(out_grad);
  const Value weights = weights_of(l, inputs, log_sums);
  const Value of_weights = l.kept(batch_dot(dy, l.value(inputs[static_cast<size_t>(p.value())]), false, true), rng);
  const Value of_scores = weights * (of_weights - row_sum(dy * l.output(out)));
  return sum_to(reshape(of_scores, l.weights), spec_of(inputs.back()).shape);
}

Values attention_sums_gradient(const AttentionParams& p, const Values& inputs, const Value& log_sums,
                               const Value& sums_grad) {
  const Layout l(p, inputs);
  Values grads(static_cast<size_t>(p.num_inputs()));
  const Value q = l.query(inputs[static_cast<size_t>(p.query())]), k = l.key(inputs[static_cast<size_t>(p.key())]);
  const Value of_scores = weights_of(l, inputs, log_sums) * l.per_query(cast(sums_grad, spec_of(q).dtype));
  const Value dq = batch_dot(of_scores, k, false, false) * l.shape.scale;
  const Value dk = batch_dot(of_scores, q, true, false) * l.shape.scale;
  l.put(inputs, dq, dk, zeros_like(l.value(inputs[static_cast<size_t>(p.value())])), grads);
  if (p.mask_type == MaskType::kAdded)
    grads.back() = sum_to(reshape(of_scores, l.weights), spec_of(inputs.back()).shape);
  return grads;
}

// Notation: weights P, scores S, G = dy V^T, and T = scale (u K^T + Q w^T), the change of S, for the gradients u, w, x
// that arrive at the gradients of Q, K, V. The sum of their products with those gradients is
//   L = <G, P (T - rowsum(P T))> + <dy x^T, P>
// (dropout multiplies G, dy x^T, and the weights that are multiplied by V or x). The code computes the derivatives of
// L.
Values attention_backward_gradient(const AttentionParams& p, const GradientContext& g) {
  Values inputs;
  const int count = p.num_inputs(), data = p.data_inputs();
  Values grads(static_cast<size_t>(g.num_inputs()));
  bool any = false;
  for (int i = 0; i < data; ++i) any = any || g.output_grad(i);
  if (!any) return grads;
  for (int i = 0; i < count; ++i) inputs.push_back(g.input(i));
  const Layout l(p, inputs);
  const auto input = [&](int i) { return inputs[static_cast<size_t>(i)]; };
  const Value rng = p.p > 0 ? g.input(count) : Value{};
  const int last = g.num_inputs() - 1;  // output_grad, after log_sums
  const Value log_sums = g.input(last - 1);
  const Value q = l.query(input(p.query())), k = l.key(input(p.key())), v = l.value(input(p.value()));
  const Value dy = l.output(g.input(last));
  const auto arriving = [&](int i) {
    return g.output_grad(i) ? g.output_grad(i) : zeros(g.input_spec(i).shape, g.input_spec(i).dtype);
  };
  const Value u = l.query(arriving(p.query())), w = l.key(arriving(p.key())), x = l.value(arriving(p.value()));
  const double scale = l.shape.scale;
  const Value weights = weights_of(l, inputs, log_sums);
  const Value change = (batch_dot(u, k, false, true) + batch_dot(q, w, false, true)) * scale;
  const Value of_weights = l.kept(batch_dot(dy, v, false, true), rng);
  const Value mean_change = row_sum(weights * change), mean = row_sum(weights * of_weights);
  const Value moved = weights * (change - mean_change);
  const Value of_change = weights * (of_weights - mean);
  const Value slope = of_weights * (change - mean_change) - mean * change + l.kept(batch_dot(dy, x, false, true), rng);
  const Value of_scores = weights * (slope - row_sum(weights * slope));
  const Value dq = (batch_dot(of_scores, k, false, false) + batch_dot(of_change, w, false, false)) * scale;
  const Value dk = (batch_dot(of_scores, q, true, false) + batch_dot(of_change, u, true, false)) * scale;
  const Value kept_move = l.kept(moved, rng);
  const Value dv = batch_dot(kept_move, dy, true, false);
  const Value of_dy = batch_dot(kept_move, v, false, false) + batch_dot(l.kept(weights, rng), x, false, false);
  l.put(inputs, dq, dk, dv, grads);
  if (p.mask_type == MaskType::kAdded && g.wants(data))
    grads[static_cast<size_t>(data)] = sum_to(reshape(of_scores, l.weights), g.input_spec(data).shape);
  grads[static_cast<size_t>(last)] = l.joined({of_dy}, g.input_spec(last).shape);
  return grads;
}

}  // namespace hybridnet::ops
