// _contrib_interleaved_matmul_*: multi-head attention on interleaved projections (Vaswani et al., NIPS 2017,
// section 3.2).
#include <cmath>

#include "hybridnet/declare.h"
#include "ops/attention/attention_params.h"
#include "ops/attention/attention_products.h"
#include "ops/cost.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kScores{"_attention_scores"}, kMix{"_attention_mix"};

struct HeadsParams {
  int32_t heads;
  static void describe(ParamSchema<HeadsParams>& schema) {
    schema.field("heads", &HeadsParams::heads).at_least(1).doc("Number of heads.");
  }
};

double scale_of(const Shape& projection, int64_t heads, int64_t parts) {
  return 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(projection[2] / (heads * parts), 1)));
}

int64_t times(int64_t size, int64_t factor) { return size == kUnknownDim ? kUnknownDim : size * factor; }
int64_t divided(int64_t size, int64_t by) { return size == kUnknownDim ? kUnknownDim : size / by; }

Value mix(const Value& s, const Value& v, const MixParams& p) {
  return call(kMix, {s, v}, ParamSchema<MixParams>::box(p));
}
Value scores(const Value& a, const Value& b, const ScoresParams& p) {
  return call(kScores, {a, b}, ParamSchema<ScoresParams>::box(p));
}

void infer_self_scores(const HeadsParams& p, InferContext& c) {
  c.unify_dtypes();
  require_projection(c, 0, p.heads, 3);
  const Shape& s = c.in_shape(0);
  if (s.rank_known()) c.set_out_shape(0, Shape({times(s[1], p.heads), s[0], s[0]}));
}

Values self_scores_gradient(const HeadsParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0), qkv = g.input(0);
  if (!out) return {};
  const double scale = scale_of(g.input_spec(0).shape, p.heads, 3);
  return {mix(out, qkv, {p.heads, false, 3, 1, 3, 0, scale}) + mix(out, qkv, {p.heads, true, 3, 0, 3, 1, scale})};
}

void infer_cross_scores(const HeadsParams& p, InferContext& c) {
  c.unify_dtypes();
  require_projection(c, 0, p.heads, 1);
  require_projection(c, 1, p.heads, 2);
  const Shape q = c.in_shape(0).rank_known() ? c.in_shape(0) : Shape::unknown(3);
  const Shape kv = c.in_shape(1).rank_known() ? c.in_shape(1) : Shape::unknown(3);
  c.set_in_shape(0, Shape({q[0], kv[1], divided(kv[2], 2)}));
  c.set_in_shape(1, Shape({kv[0], q[1], times(q[2], 2)}));
  c.set_out_shape(0, Shape({times(c.in_shape(0)[1], p.heads), q[0], kv[0]}));
}

Values cross_scores_gradient(const HeadsParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  const double scale = scale_of(g.input_spec(0).shape, p.heads, 1);
  Values grads(2);
  if (g.wants(0)) grads[0] = mix(out, g.input(1), {p.heads, false, 2, 0, 1, 0, scale});
  if (g.wants(1)) grads[1] = mix(out, g.input(0), {p.heads, true, 1, 0, 2, 0, scale});
  return grads;
}

// parts: 3 for self-attention, 2 for attention to an encoder; the values are the last part.
void infer_values(const HeadsParams& p, InferContext& c, int parts) {
  c.unify_dtypes();
  require_projection(c, 0, p.heads, parts);
  const Shape& kv = c.in_shape(0);
  const Shape& attention = c.in_shape(1);
  if (attention.rank_known() && attention.ndim() != 3) {
    throw ShapeError({.input = "attention",
                      .expected = "(batch * heads, length, length of values)",
                      .given = "shape " + attention.str()});
  }
  if (!kv.rank_known()) return;
  const int64_t length = parts == 3 ? kv[0] : attention.rank_known() ? attention[1] : kUnknownDim;
  c.set_in_shape(1, Shape({times(kv[1], p.heads), length, kv[0]}));
  c.set_out_shape(0, Shape({c.in_shape(1)[1], kv[1], divided(kv[2], parts)}));
}

Values values_gradient(const HeadsParams& p, const GradientContext& g, int parts) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  Values grads(2);
  if (g.wants(0)) grads[0] = mix(g.input(1), out, {p.heads, true, 1, 0, parts, parts - 1, 1.0});
  if (g.wants(1)) grads[1] = scores(out, g.input(0), {p.heads, 1, 0, parts, parts - 1, 1.0});
  return grads;
}

// Floating-point operations of one score matrix or one mix, from the shape (length, batch, width) and the attention's.
double attention_flops(const HeadsParams& p, const Shape& attention, int64_t width) {
  return 2 * elements(attention) * static_cast<double>(width / p.heads);
}
double attention_cost(const HeadsParams& p, const Shape& attention, int64_t width) {
  return 500 + attention_flops(p, attention, width) / 40;
}

void declare_values(OpRegistry& ops, const char* name, int parts, const char* first_input, const char* doc) {
  auto builder = ops.declare<HeadsParams>(name);
  builder.doc(doc)
      .input(first_input,
             parts == 3 ? "(length, batch, heads * 3 * size)" : "(length of values, batch, heads * 2 * size)")
      .input("attention", "weights (batch * heads, length, length of values)")
      .output("output", "(length, batch, heads * size)")
      .infer([parts](const HeadsParams& p, InferContext& c) { infer_values(p, c, parts); })
      .gradient([parts](const HeadsParams& p, const GradientContext& g) { return values_gradient(p, g, parts); },
                Saves::all_inputs())
      .cost([parts](const HeadsParams& p, auto in, auto out) {
        (void)out;
        return attention_cost(p, in[1].shape, in[0].shape[2] / parts);
      })
      .flops([parts](const HeadsParams& p, auto in, auto) {
        return attention_flops(p, in[1].shape, in[0].shape[2] / parts);
      })
      .amp(AmpType::kProduct);
  if (parts == 3) {
    builder.any_device()
        .cpu(
            [](const HeadsParams& p, const KernelArgs& a) {
              attention_mix(a.in[1], false, a.in[0], {3, 2}, p.heads, 1.0, a.out[0], {1, 0});
            },
            kFloating)
        .halves_through_float();
    builder.sample({{3, 2, 12}, {4, 3, 3}}, {{"heads", "2"}});
  } else {
    builder.any_device()
        .cpu(
            [](const HeadsParams& p, const KernelArgs& a) {
              attention_mix(a.in[1], false, a.in[0], {2, 1}, p.heads, 1.0, a.out[0], {1, 0});
            },
            kFloating)
        .halves_through_float();
    builder.sample({{3, 2, 8}, {4, 2, 3}}, {{"heads", "2"}});
  }
}

}  // namespace

void register_interleaved_attention(OpRegistry& ops) {
  ops.declare<HeadsParams>("_contrib_interleaved_matmul_selfatt_qk")
      .doc("Scores of self-attention: queries times keys, divided by the root of the head size.")
      .input("queries_keys_values", "(length, batch, heads * 3 * size): per head query, key, value")
      .output("output", "(batch * heads, length, length)")
      .infer(infer_self_scores)
      .any_device()
      .cpu(
          [](const HeadsParams& p, const KernelArgs& a) {
            attention_scores(a.in[0], {3, 0}, a.in[0], {3, 1}, p.heads, scale_of(*a.in[0].shape, p.heads, 3), a.out[0]);
          },
          kFloating)
      .halves_through_float()
      .cost([](const HeadsParams& p, auto in, auto out) { return attention_cost(p, out[0].shape, in[0].shape[2] / 3); })
      .flops(
          [](const HeadsParams& p, auto in, auto out) { return attention_flops(p, out[0].shape, in[0].shape[2] / 3); })
      .gradient(self_scores_gradient, Saves::all_inputs())
      .amp(AmpType::kProduct)
      .sample({{3, 2, 12}}, {{"heads", "2"}})
      .sample({{2, 1, 6}}, {{"heads", "1"}});
  ops.declare<HeadsParams>("_contrib_interleaved_matmul_encdec_qk")
      .doc("Scores of attention to an encoder: queries times keys, divided by the root of the head size.")
      .input("queries", "(length, batch, heads * size)")
      .input("keys_values", "(length of keys, batch, heads * 2 * size): per head key, value")
      .output("output", "(batch * heads, length, length of keys)")
      .infer(infer_cross_scores)
      .any_device()
      .cpu(
          [](const HeadsParams& p, const KernelArgs& a) {
            attention_scores(a.in[0], {1, 0}, a.in[1], {2, 0}, p.heads, scale_of(*a.in[0].shape, p.heads, 1), a.out[0]);
          },
          kFloating)
      .halves_through_float()
      .cost([](const HeadsParams& p, auto in, auto out) { return attention_cost(p, out[0].shape, in[0].shape[2]); })
      .flops([](const HeadsParams& p, auto in, auto out) { return attention_flops(p, out[0].shape, in[0].shape[2]); })
      .gradient(cross_scores_gradient, Saves::all_inputs())
      .amp(AmpType::kProduct)
      .sample({{3, 2, 4}, {2, 2, 8}}, {{"heads", "2"}});
  declare_values(ops, "_contrib_interleaved_matmul_selfatt_valatt", 3, "queries_keys_values",
                 "Values of self-attention, mixed by attention weights.");
  declare_values(ops, "_contrib_interleaved_matmul_encdec_valatt", 2, "keys_values",
                 "Values of an encoder, mixed by attention weights.");
}

}  // namespace hybridnet::ops
