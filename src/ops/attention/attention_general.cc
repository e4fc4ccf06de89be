// The two matrix products of attention in their general form; the gradients of each are calls of the other.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "ops/attention/attention_params.h"
#include "ops/attention/attention_products.h"
#include "ops/cost.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kScores{"_attention_scores"}, kMix{"_attention_mix"};

Value scores(const Value& a, const Value& b, const ScoresParams& p) {
  return call(kScores, {a, b}, ParamSchema<ScoresParams>::box(p));
}
Value mix(const Value& s, const Value& v, const MixParams& p) {
  return call(kMix, {s, v}, ParamSchema<MixParams>::box(p));
}

void infer_scores(const ScoresParams& p, InferContext& c) {
  c.unify_dtypes();
  require_projection(c, 0, p.heads, p.parts_a);
  require_projection(c, 1, p.heads, p.parts_b);
  const Shape &a = c.in_shape(0), &b = c.in_shape(1);
  if (!a.rank_known() || !b.rank_known()) return;
  c.set_out_shape(0, Shape({a[1] == kUnknownDim ? kUnknownDim : checked_times(a[1], p.heads, "heads"), a[0], b[0]}));
}

void infer_mix(const MixParams& p, InferContext& c) {
  c.unify_dtypes();
  require_projection(c, 1, p.heads, p.parts_values);
  const Shape &s = c.in_shape(0), &v = c.in_shape(1);
  if (!s.rank_known() || !v.rank_known()) return;
  if (s.ndim() != 3) {
    throw ShapeError(
        {.input = "scores", .expected = "(batch * heads, length, length of values)", .given = "shape " + s.str()});
  }
  const int64_t out_length = p.transpose ? s[2] : s[1];
  Shape known = s;
  known[0] = v[1] == kUnknownDim ? kUnknownDim : checked_times(v[1], p.heads, "heads");
  known[p.transpose ? 1 : 2] = v[0];
  c.set_in_shape(0, known);
  c.set_out_shape(0,
                  Shape({out_length, v[1], v[2] == kUnknownDim ? kUnknownDim : v[2] / p.parts_values * p.parts_out}));
}

Values scores_gradient(const ScoresParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  Values grads(2);
  if (g.wants(0)) grads[0] = mix(out, g.input(1), {p.heads, false, p.parts_b, p.part_b, p.parts_a, p.part_a, p.scale});
  if (g.wants(1)) grads[1] = mix(out, g.input(0), {p.heads, true, p.parts_a, p.part_a, p.parts_b, p.part_b, p.scale});
  return grads;
}

Values mix_gradient(const MixParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  Values grads(2);
  if (g.wants(0)) {
    grads[0] =
        p.transpose
            ? scores(g.input(1), out, {p.heads, p.parts_values, p.part_values, p.parts_out, p.part_out, p.scale})
            : scores(out, g.input(1), {p.heads, p.parts_out, p.part_out, p.parts_values, p.part_values, p.scale});
  }
  if (g.wants(1))
    grads[1] =
        mix(g.input(0), out, {p.heads, !p.transpose, p.parts_out, p.part_out, p.parts_values, p.part_values, p.scale});
  return grads;
}

}  // namespace

void register_attention_general(OpRegistry& ops) {
  ops.declare<ScoresParams>("_attention_scores")
      .doc("scale * a b^T for one part of each of two projection tensors, per batch and head.")
      .input("a", "(length, batch, heads * parts_a * size)")
      .input("b", "(other length, batch, heads * parts_b * size)")
      .output("output", "(batch * heads, length, other length)")
      .infer(infer_scores)
      .cpu(
          [](const ScoresParams& p, const KernelArgs& a) {
            attention_scores(a.in[0], {p.parts_a, p.part_a}, a.in[1], {p.parts_b, p.part_b}, p.heads, p.scale,
                             a.out[0]);
          },
          kFloating)
      .halves_through_float()
      .cost([](const ScoresParams& p, auto in, auto out) {
        return 500 + elements(out[0]) * length(in[0], 2) / p.heads / 20;
      })
      .gradient(scores_gradient, Saves::all_inputs())
      .internal()
      .sample({{3, 2, 4}, {2, 2, 12}}, {{"heads", "2"}, {"parts_b", "3"}, {"part_b", "1"}, {"scale", "0.5"}});
  ops.declare<MixParams>("_attention_mix")
      .doc("One part of a projection tensor: scale * op(scores) values per batch and head; its other parts are zero.")
      .input("scores", "(batch * heads, length, length of values), the lengths exchanged when transpose")
      .input("values", "(length of values, batch, heads * parts_values * size)")
      .output("output", "(length, batch, heads * parts_out * size)")
      .infer(infer_mix)
      .cpu(
          [](const MixParams& p, const KernelArgs& a) {
            attention_mix(a.in[0], p.transpose, a.in[1], {p.parts_values, p.part_values}, p.heads, p.scale, a.out[0],
                          {p.parts_out, p.part_out});
          },
          kFloating)
      .halves_through_float()
      .cost([](const MixParams& p, auto in, auto out) {
        (void)out;
        return 500 + elements(in[0]) * length(in[1], 2) / p.heads / 20;
      })
      .gradient(mix_gradient, Saves::all_inputs())
      .internal()
      .sample({{4, 3, 2}, {2, 2, 8}}, {{"heads", "2"}, {"parts_values", "2"}, {"part_values", "1"}})
      .sample({{4, 3, 2}, {3, 2, 4}},
              {{"heads", "2"}, {"transpose", "True"}, {"parts_out", "3"}, {"part_out", "2"}, {"scale", "2"}});
}

}  // namespace hybridnet::ops
