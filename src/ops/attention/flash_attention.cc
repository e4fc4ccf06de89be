// _contrib_flash_attention: softmax(scale * Q K^T + mask) V and its gradient, tile by tile.
//   Dao, Fu, Ermon, Rudra, Re: FlashAttention, NeurIPS 2022; Milakov, Gimelshein: Online normalizer calculation for
//   softmax, 2018.
#include "ops/attention/flash_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "kernels/attention/few_queries.h"
#include "kernels/elementwise/convert.h"
#include "kernels/index/out_of_range.h"
#include "ops/cost.h"
#include "ops/emit.h"
#include "ops/float_kernel.h"

namespace hybridnet::ops {
namespace {

using kernels::AttentionMask;
using kernels::AttentionRows;
using kernels::AttentionShape;

const OpRef kBackward{"_backward_flash_attention"}, kRepeat{"repeat"};

template <typename P>
void describe_scores(ParamSchema<P>& schema) {
  const auto field = [&]<typename M>(const char* name, M AttentionParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("scale", &AttentionParams::scale)
      .none_by_default()
      .doc("Factor of the scores; None: 1 / sqrt(size of a query).");
  field("causal", &AttentionParams::causal).default_value(false).doc("Query i attends to the keys 0 to i only.");
  field("mask_type", &AttentionParams::mask_type)
      .default_value("none")
      .choice("none", MaskType::kNone)
      .choice("added", MaskType::kAdded)
      .choice("kept", MaskType::kKept)
      .choice("lengths", MaskType::kLengths)
      .doc(
          "Meaning of the input mask. added: terms added to the scaled scores; kept: 0 excludes a key; lengths: number "
          "of leading keys that take part.");
}

// Parameters of the public operator.
struct FlashAttentionParams : AttentionParams {
  static void describe(ParamSchema<FlashAttentionParams>& schema) { describe_scores(schema); }
};

// ---- shapes
int64_t divided(int64_t size, int64_t by) { return size == kUnknownDim ? kUnknownDim : size / by; }
int64_t times(int64_t size, int64_t by) { return size == kUnknownDim ? kUnknownDim : checked_times(size, by, "heads"); }

void check_mask(const AttentionParams& p, InferContext& c, const Shape& weights) {
  const int mask = p.data_inputs();
  if (p.mask_type == MaskType::kAdded) {
    c.unify_dtypes({0, mask}, {0});
  } else if (p.mask_type == MaskType::kKept) {
    c.require_dtype(mask, DTypeSet(DType::kBool) | DType::kUInt8 | DType::kInt8);
  } else {
    c.require_dtype(mask, DTypeSet(DType::kInt32) | DType::kInt64);
  }
  const Shape& given = c.in_shape(mask);
  if (!given.rank_known()) return;
  const int ndim = weights.ndim() - (p.mask_type == MaskType::kLengths ? 1 : 0);
  bool fits = given.ndim() <= ndim;
  for (int i = 1; fits && i <= given.ndim(); ++i) {
    const int64_t size = given[given.ndim() - i], wanted = weights[ndim - i];
    fits = size == 1 || size == wanted || size == kUnknownDim || wanted == kUnknownDim;
  }
  if (fits) return;
  Shape wanted = Shape::scalar();
  for (int i = 0; i < ndim; ++i) wanted.push_back(weights[i]);
  throw ShapeError({.input = "mask",
                    .expected = "a shape that can be broadcast to " + wanted.str(),
                    .given = "shape " + given.str()});
}

// Returns (batch..., queries, keys), heads before the lengths.
Shape weights_of_separate(const AttentionParams& p, const Shape& query, const Shape& key) {
  const int row = query.ndim() - p.length_axis();
  Shape weights = Shape::scalar();
  for (int i = 0; i + 1 < query.ndim(); ++i)
    if (i != row) weights.push_back(query[i]);
  weights.push_back(query[row]);
  weights.push_back(key[row]);
  return weights;
}

void infer_outputs(const AttentionParams& p, InferContext& c, const Shape& weights, const Shape& out) {
  c.set_out_shape(0, out);
  Shape rows = Shape::scalar();
  for (int i = 0; i + 1 < weights.ndim(); ++i) rows.push_back(weights[i]);
  c.set_out_shape(1, rows);
  if (p.mask_type != MaskType::kNone) check_mask(p, c, weights);
}

void infer_separate(const AttentionParams& p, InferContext& c) {
  int ndim = kUnknownNdim;
  for (int i = 0; i < 3; ++i)
    if (c.in_shape(i).rank_known()) ndim = c.in_shape(i).ndim();
  if (c.out_shape(0).rank_known()) ndim = c.out_shape(0).ndim();
  if (ndim == kUnknownNdim) return;
  if (ndim < p.length_axis() + (p.shared > 1 ? 1 : 0)) {
    throw ShapeError({.input = "query",
                      .expected = p.heads_inside ? "at least three axes: (batch..., length, heads, size)"
                                  : p.shared > 1 ? "at least three axes: (batch..., heads, length, size)"
                                                 : "at least two axes: (batch..., length, size)",
                      .given = "shape " + c.in_shape(0).str()});
  }
  for (int i = 0; i < 3; ++i) c.set_in_shape(i, Shape::unknown(ndim));
  c.set_out_shape(0, Shape::unknown(ndim));
  const int row = ndim - p.length_axis(), column = ndim - 1;
  const auto known = [](int64_t a, int64_t b) { return a != kUnknownDim ? a : b; };
  const Shape q = c.in_shape(0), k = c.in_shape(1), v = c.in_shape(2), out = c.out_shape(0);
  Shape query = q, key = k, value = v, output = out;
  for (int i = 0; i < column; ++i) {
    if (i == row) continue;
    if (p.shared > 1 && i == row - 1) {
      const int64_t narrow = known(known(k[i], v[i]), divided(known(q[i], out[i]), p.shared));
      query[i] = output[i] = times(narrow, p.shared);
      key[i] = value[i] = narrow;
      continue;
    }
    query[i] = key[i] = value[i] = output[i] = known(known(q[i], k[i]), known(v[i], out[i]));
  }
  query[row] = output[row] = known(q[row], out[row]);
  key[row] = value[row] = known(k[row], v[row]);
  query[column] = key[column] = known(q[column], k[column]);
  value[column] = output[column] = known(v[column], out[column]);
  c.set_in_shape(0, query);
  c.set_in_shape(1, key);
  c.set_in_shape(2, value);
  infer_outputs(p, c, weights_of_separate(p, query, key), output);
}

void infer_interleaved(const AttentionParams& p, InferContext& c) {
  for (int i = 0; i < p.data_inputs(); ++i) {
    const Shape& s = c.in_shape(i);
    if (!s.rank_known()) return;
    const int64_t parts = p.parts == 3 ? 3 : i + 1;
    if (s.ndim() == 3 && (s[2] == kUnknownDim || s[2] % (p.heads * parts) == 0)) continue;
    throw ShapeError({.input = c.input_name(i),
                      .expected = "(length, batch, heads * " + std::to_string(parts) + " * size)",
                      .given = "shape " + s.str()});
  }
  const Shape q = c.in_shape(0);
  if (p.parts == 2) c.set_in_shape(1, Shape({kUnknownDim, q[1], times(q[2], 2)}));
  const int64_t width = p.parts == 3 ? divided(q[2], 3) : q[2];
  infer_outputs(p, c, Shape({times(q[1], p.heads), q[0], c.in_shape(p.key())[0]}), Shape({q[0], q[1], width}));
}

// Infers shapes if queries, keys and values of the heads are adjacent in one tensor.
void infer_side_by_side(const AttentionParams& p, InferContext& c) {
  const Shape& all = c.in_shape(0);
  if (!all.rank_known()) return;
  const int head = all.ndim() - 2;
  if (head < 1 || (all[head] != kUnknownDim && all[head] % 3 != 0)) {
    throw ShapeError(
        {.input = c.input_name(0), .expected = "(batch..., length, 3 * heads, size)", .given = "shape " + all.str()});
  }
  Shape out = all;
  out[head] = divided(all[head], 3);
  infer_outputs(p, c, weights_of_separate(p, out, out), out);
}

}  // namespace

void infer_attention(const AttentionParams& p, InferContext& c) {
  for (int i = 0; i < p.data_inputs(); ++i) c.unify_dtypes({0, i}, {0});
  c.require_dtype(0, kFloating);
  const DType dtype = c.in_dtype(0);
  if (dtype != DType::kUnknown) c.set_out_dtype(1, dtype == DType::kFloat64 ? dtype : DType::kFloat32);
  p.parts == 0 ? infer_separate(p, c) : p.heads_inside ? infer_side_by_side(p, c) : infer_interleaved(p, c);
  if (c.num_out() > 2) {
    c.set_out_dtype(2, DType::kInt64);
    c.set_out_shape(2, Shape{2});
  }
}

namespace {

// ---- kernels
// int32 lengths are converted to int64 in the workspace.
class Operands {
 public:
  Operands(const AttentionParams& p, std::span<const TensorSpec> in) : geometry_(p, in) {
    if (p.mask_type == MaskType::kLengths && in[static_cast<size_t>(p.data_inputs())].dtype == DType::kInt32)
      lengths_ = in[static_cast<size_t>(p.data_inputs())].shape.size();
  }
  int64_t workspace_bytes() const { return lengths_ * int64_t{sizeof(int64_t)}; }
  const AttentionShape& shape() const { return geometry_.shape; }
  // The same with the order of keys and values, which is the input behind those of attention, if there is one.
  AttentionShape ordered_shape(const AttentionParams& p, const KernelArgs& a) const {
    AttentionShape shape = geometry_.shape;
    if (a.in.size() == static_cast<size_t>(p.num_inputs()) || shape.matrices == 0) return shape;
    const TensorRef& order = a.in.back();
    shape.order = {order.as<int32_t>(), shape.matrices / (*order.shape)[0]};
    return shape;
  }
  AttentionMask mask(const AttentionParams& p, const KernelArgs& a) const {
    if (p.mask_type == MaskType::kNone) return {};
    const TensorRef& given = a.in[static_cast<size_t>(p.data_inputs())];
    AttentionMask mask{static_cast<AttentionMask::Kind>(p.mask_type), given.data, geometry_.mask_offsets,
                       geometry_.mask_row, geometry_.mask_column};
    if (lengths_ > 0) {
      kernels::convert(DType::kInt32, given.data, DType::kInt64, a.workspace, lengths_);
      mask.data = a.workspace;
    }
    return mask;
  }
  void report_lengths(const AttentionParams& p, const KernelArgs& a, const AttentionMask& mask) const {
    if (p.mask_type != MaskType::kLengths) return;
    kernels::report_numbers({"_contrib_flash_attention", "mask"}, static_cast<const int64_t*>(mask.data),
                            a.in[static_cast<size_t>(p.data_inputs())].size(),
                            kernels::Bounds::length(0, geometry_.shape.keys));
  }

 private:
  AttentionGeometry geometry_;
  int64_t lengths_ = 0;
};

template <typename T>
class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(const AttentionParams& p, const LinkContext& c) : p_(p), operands_(p, c.in) {}
  int64_t workspace_bytes() const override { return operands_.workspace_bytes(); }
  void run(const KernelArgs& a) override {
    const AttentionParams& p = p_;
    AttentionShape shape = operands_.ordered_shape(p, a);
    if (p.p > 0 && a.train) {
      shape.keep = 1 - p.p;
      shape.rng = a.rng;
    }
    if (a.out.size() > 2) std::memcpy(a.out[2].data, &a.rng, sizeof(a.rng));
    const auto in = [&](int i) { return a.in[static_cast<size_t>(i)].as<T>(); };
    const AttentionMask mask = operands_.mask(p, a);
    operands_.report_lengths(p, a, mask);
    kernels::attention<T>(shape, in(p.query()), in(p.key()), in(p.value()), mask, a.out[0].as<T>(), a.out[1].as<T>());
  }

 private:
  AttentionParams p_;
  Operands operands_;
};

// True for the uses that read keys and values of bfloat16 in place: converting a whole cache for one query would take
// longer than the attention.
bool reads_bfloat16(const AttentionParams& p, const LinkContext& c) {
  return c.in[0].dtype == DType::kBFloat16 && p.parts == 0 && p.p == 0 &&
         kernels::has_few_queries<float>(AttentionGeometry(p, c.in).shape.queries);
}

// Converts queries, the added mask and the output through the workspace; these are small.
class BFloat16Kernel final : public Kernel {
 public:
  BFloat16Kernel(const AttentionParams& p, const LinkContext& c) : p_(p), operands_(p, c.in) {
    query_ = take(operands_.workspace_bytes());
    mask_ = take(c.in[0].shape.size() * kBytes);
    if (p.mask_type == MaskType::kAdded) mask_size_ = c.in[3].shape.size();
    out_ = take(mask_size_ * kBytes);
    take(c.out[0].shape.size() * kBytes);
  }
  int64_t workspace_bytes() const override { return end_; }
  void run(const KernelArgs& a) override {
    AttentionMask mask = operands_.mask(p_, a);
    operands_.report_lengths(p_, a, mask);
    if (mask_size_ > 0) mask.data = widened(a, mask_, a.in[3].data, mask_size_);
    const float* const query = widened(a, query_, a.in[0].data, a.in[0].size());
    float* const out = at(a, out_);
    kernels::few_queries_attention(operands_.ordered_shape(p_, a), query, a.in[1].as<bfloat16>(),
                                   a.in[2].as<bfloat16>(), mask, out, a.out[1].as<float>());
    kernels::convert(DType::kFloat32, out, DType::kBFloat16, a.out[0].data, a.out[0].size());
  }

 private:
  static constexpr int64_t kBytes = sizeof(float), kAlignment = 64;
  // Returns the place behind the bytes.
  int64_t take(int64_t bytes) { return end_ += (bytes + kAlignment - 1) / kAlignment * kAlignment; }
  static float* at(const KernelArgs& a, int64_t offset) {
    return reinterpret_cast<float*>(static_cast<char*>(a.workspace) + offset);
  }
  static const float* widened(const KernelArgs& a, int64_t offset, const void* halves, int64_t count) {
    kernels::convert(DType::kBFloat16, halves, DType::kFloat32, at(a, offset), count);
    return at(a, offset);
  }

  AttentionParams p_;
  Operands operands_;
  int64_t end_ = 0, query_ = 0, mask_ = 0, mask_size_ = 0, out_ = 0;
};

// Converts the added mask through the workspace.
class HalfKernel final : public Kernel {
 public:
  HalfKernel(const AttentionParams& p, const LinkContext& c) : p_(p), operands_(p, c.in) {
    if (p.mask_type == MaskType::kAdded) mask_size_ = c.in[static_cast<size_t>(p.data_inputs())].shape.size();
  }
  int64_t workspace_bytes() const override {
    return std::max(operands_.workspace_bytes(), mask_size_ * int64_t{sizeof(float)});
  }
  std::string description() const override { return "tiles of bfloat16"; }
  void run(const KernelArgs& a) override {
    AttentionShape shape = operands_.shape();
    if (p_.p > 0 && a.train) {
      shape.keep = 1 - p_.p;
      shape.rng = a.rng;
    }
    if (a.out.size() > 2) std::memcpy(a.out[2].data, &a.rng, sizeof(a.rng));
    AttentionMask mask = operands_.mask(p_, a);
    operands_.report_lengths(p_, a, mask);
    if (mask_size_ > 0) {
      kernels::convert(DType::kBFloat16, mask.data, DType::kFloat32, a.workspace, mask_size_);
      mask.data = a.workspace;
    }
    const auto in = [&](int i) { return a.in[static_cast<size_t>(i)].as<bfloat16>(); };
    kernels::half_attention(shape, in(p_.query()), in(p_.key()), in(p_.value()), mask, a.out[0].as<bfloat16>(),
                            a.out[1].as<float>());
  }

 private:
  AttentionParams p_;
  Operands operands_;
  int64_t mask_size_ = 0;
};

bool pays_half(const AttentionParams& p, const LinkContext& c) {
  return c.in[0].dtype == DType::kBFloat16 && c.device.type == DeviceType::kCPU &&
         kernels::half_attention_pays(AttentionGeometry(p, c.in).shape);
}

template <typename T>
class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const AttentionParams& p, const LinkContext& c) : p_(p), operands_(p, c.in) {}
  int64_t workspace_bytes() const override { return operands_.workspace_bytes(); }
  void run(const KernelArgs& a) override {
    const AttentionParams& p = p_;
    AttentionShape shape = operands_.shape();
    size_t next = static_cast<size_t>(p.num_inputs());
    if (p.p > 0) {
      shape.keep = 1 - p.p;
      std::memcpy(&shape.rng, a.in[next++].data, sizeof(shape.rng));
    }
    const auto in = [&](int i) { return a.in[static_cast<size_t>(i)].as<T>(); };
    const auto out = [&](int i) { return a.out[static_cast<size_t>(i)].as<T>(); };
    kernels::attention_gradient<T>(shape, a.in[next + 2].as<T>(), in(p.query()), in(p.key()), in(p.value()),
                                   operands_.mask(p, a), a.in[next].as<T>(), a.in[next + 1].as<T>(), out(p.query()),
                                   out(p.key()), out(p.value()));
  }

 private:
  AttentionParams p_;
  Operands operands_;
};

template <template <typename> class K, typename P>
Ref<Kernel> link(const P& p, const LinkContext& c) {
  return make_float_kernel<K>(c.in[0].dtype, p, c);
}

}  // namespace

Ref<Kernel> link_attention(const AttentionParams& p, const LinkContext& c) {
  if (reads_bfloat16(p, c)) return Ref<Kernel>(new BFloat16Kernel(p, c));
  if (pays_half(p, c)) return Ref<Kernel>(new HalfKernel(p, c));
  return make_float_kernel<ForwardKernel>(c.in[0].dtype, p, c);
}

bool reads_order(const AttentionParams& p, const LinkContext& c) {
  const int64_t queries = AttentionGeometry(p, c.in).shape.queries;
  return c.in[0].dtype == DType::kFloat64 ? kernels::has_few_queries<double>(queries)
                                          : kernels::has_few_queries<float>(queries);
}

bool attends_in_bfloat16(const AttentionParams& p, const LinkContext& c) {
  return reads_bfloat16(p, c) || pays_half(p, c);
}

namespace {

// ---- gradient
// The gradient of shared keys or values is the sum over the heads that share them. grad: of the repeated array.
Value summed_over_sharing(const Value& grad, int64_t shared, const Shape& shape) {
  if (!grad) return {};
  Shape split = Shape::scalar();
  const int head = shape.ndim() - 3;
  for (int i = 0; i < shape.ndim(); ++i) {
    split.push_back(shape[i]);
    if (i == head) split.push_back(shared);
  }
  return reshape(sum(reshape(grad, split), Tuple({head + 1}), false), shape);
}

Values gradient_of_own_keys(const AttentionParams& p, const GradientContext& g, const Values& inputs);

}  // namespace

Values attention_gradient(const AttentionParams& p, const GradientContext& g, Values inputs) {
  if (p.shared == 1) return gradient_of_own_keys(p, g, inputs);
  AttentionParams own = p;
  own.shared = 1;
  for (const size_t i : {1u, 2u})
    inputs[i] = call(kRepeat, {inputs[i]}, {{"repeats", int64_t{p.shared}}, {"axis", int64_t{-3}}});
  Values grads = gradient_of_own_keys(own, g, inputs);
  for (const int i : {1, 2})
    grads[static_cast<size_t>(i)] = summed_over_sharing(grads[static_cast<size_t>(i)], p.shared, g.input_spec(i).shape);
  return grads;
}

namespace {

// inputs: those of the attention, each matrix of queries with keys and values of its own.
Values gradient_of_own_keys(const AttentionParams& p, const GradientContext& g, const Values& inputs) {
  Values grads(static_cast<size_t>(p.num_inputs()));
  const Value dy = g.output_grad(0);
  if (const Value of_sums = g.output_grad(1)) grads = attention_sums_gradient(p, inputs, g.output(1), of_sums);
  if (!dy) return grads;
  AttentionParams params = p;
  if (!g.train()) params.p = 0;
  Values all = inputs;
  if (params.p > 0) all.push_back(g.output(2));
  for (const Value& v : {g.output(0), g.output(1), dy}) all.push_back(v);
  const Values results = call_all(kBackward, all, ParamSchema<AttentionParams>::box(params));
  for (size_t i = 0; i < results.size(); ++i) grads[i] = grads[i] + results[i];
  if (p.mask_type == MaskType::kAdded && g.wants(p.data_inputs()))
    grads.back() = grads.back() + attention_mask_gradient(params, inputs, params.p > 0 ? g.output(2) : Value{},
                                                          g.output(0), g.output(1), dy);
  return grads;
}

void infer_backward(const AttentionParams& p, InferContext& c) {
  if (p.shared > 1)
    throw ParamError({.input = "shared",
                      .expected = "1",
                      .given = std::to_string(p.shared),
                      .because = "gradients of shared keys are sums over the heads that share them"});
  for (int i = 0; i < p.data_inputs(); ++i) {
    c.set_out_dtype(i, c.in_dtype(i));
    c.set_out_shape(i, c.in_shape(i));
  }
}

template <typename P>
OpBuilder<P> declare(OpRegistry& ops, const char* name) {
  return ops.declare<P>(name)
      .amp(AmpType::kProduct)
      .input("query", "(batch..., length of queries, size)")
      .input("key", "(batch..., length of keys, size)")
      .input("value", "(batch..., length of keys, size of values)")
      .optional_input("mask",
                      "by mask_type; can be broadcast to (batch..., length of queries, length of keys), lengths to "
                      "(batch..., length of queries)")
      .num_inputs([](const P& p) { return p.num_inputs(); })
      .output("output", "(batch..., length of queries, size of values)")
      .output("log_sums",
              "(batch..., length of queries): logarithm of the sum of e^scores; infinity if there is no key")
      .visible_outputs(1)
      .infer([](const P& p, InferContext& c) { infer_attention(p, c); })
      .link([](const P& p, const LinkContext& c) { return link_attention(p, c); })
      .halves_through_float_when([](const P& p, const LinkContext& c) { return !attends_in_bfloat16(p, c); })
      .heavy()
      .gradient([](const P& p, const GradientContext& g) {
        Values inputs;
        for (int i = 0; i < p.num_inputs(); ++i) inputs.push_back(g.input(i));
        return attention_gradient(p, g, std::move(inputs));
      })
      .cost([](const P& p, auto in, auto) { return 500 + kernels::attention_ns(AttentionGeometry(p, in).shape); })
      .flops([](const P& p, auto in, auto) {  // two products and a softmax; masked weights count
        const kernels::AttentionShape s = AttentionGeometry(p, in).shape;
        return static_cast<double>(s.matrices * s.queries) * static_cast<double>(s.keys) *
               static_cast<double>(2 * (s.size + s.value_size) + 5);
      });
}

Sample masked(const char* type, Shape mask, DType dtype, const char* causal = "False") {
  return {.inputs = {{2, 3, 4}, {2, 5, 4}, {2, 5, 2}, std::move(mask)},
          .attrs = {{"mask_type", type}, {"causal", causal}},
          .low = -1,
          .high = dtype == DType::kUnknown ? 1.0 : 3.0,
          .dtypes = {DType::kUnknown, DType::kUnknown, DType::kUnknown, dtype}};
}

}  // namespace

void AttentionParams::describe(ParamSchema<AttentionParams>& schema) {
  describe_scores(schema);
  schema.field("heads", &AttentionParams::heads).default_value(1).at_least(1).doc("Number of heads, if parts > 0.");
  schema.field("parts", &AttentionParams::parts)
      .default_value(0)
      .range(0, 3)
      .doc("Vectors per head in the last tensor; 0: queries, keys and values are three tensors.");
  schema.field("heads_inside", &AttentionParams::heads_inside)
      .default_value(false)
      .doc(
          "Whether the tensors are (batch..., length, heads, size); with parts = 3 one of (batch..., length, 3 * "
          "heads, "
          "size).");
  schema.field("shared", &AttentionParams::shared)
      .default_value(1)
      .at_least(1)
      .doc("Consecutive matrices of queries that share one of keys and one of values.");
  schema.field("p", &AttentionParams::p).default_value(0.0).range(0, 1).doc("Probability that a weight becomes 0.");
  schema.check([](const AttentionParams& p) {
    if (p.parts == 1) throw ParamError({.input = "parts", .expected = "0, 2 or 3", .given = "1"});
    if (p.parts == 2 && p.heads_inside)
      throw ParamError({.input = "heads_inside", .expected = "False where parts = 2", .given = "True"});
    if (p.shared > 1 && (p.parts != 0 || p.heads_inside))
      throw ParamError({.input = "shared",
                        .expected = "1 unless parts = 0 and heads_inside = False",
                        .given = std::to_string(p.shared)});
  });
}

AttentionGeometry::AttentionGeometry(const AttentionParams& p, std::span<const TensorSpec> in) {
  const Shape &q = in[0].shape, &k = in[static_cast<size_t>(p.key())].shape;
  const Shape& v = in[static_cast<size_t>(p.value())].shape;
  if (p.parts == 0) {
    const int row = q.ndim() - p.length_axis(), column = q.ndim() - 1;
    const int64_t heads = q.size(row + 1, column), groups = q.size(0, row);
    const auto rows = [&](int64_t length, int64_t size) -> AttentionRows {
      if (!p.heads_inside) return {0, length * size, size};
      return {0, size, heads * size, heads, length * heads * size};
    };
    const auto keys = [&](int64_t length, int64_t size) -> AttentionRows {
      if (p.shared == 1) return rows(length, size);
      return {0, 0, size, p.shared, length * size};
    };
    shape = {.matrices = groups * heads,
             .queries = q[row],
             .keys = k[row],
             .size = q[column],
             .value_size = v[column],
             .q = rows(q[row], q[column]),
             .k = keys(k[row], k[column]),
             .v = keys(v[row], v[column]),
             .out = rows(q[row], v[column])};
    weights = weights_of_separate(p, q, k);
  } else if (p.heads_inside) {
    const int row = q.ndim() - 3;
    const int64_t heads = q[row + 1] / 3, groups = q.size(0, row), length = q[row], size = q[row + 2];
    const auto rows = [&](int64_t first, int64_t all) -> AttentionRows {
      return {first * size, size, all * size, heads, length * all * size};
    };
    shape = {.matrices = groups * heads,
             .queries = length,
             .keys = length,
             .size = size,
             .value_size = size,
             .q = rows(0, 3 * heads),
             .k = rows(heads, 3 * heads),
             .v = rows(2 * heads, 3 * heads),
             .out = rows(0, heads)};
    Shape query = q;
    query[row + 1] = heads;
    weights = weights_of_separate(p, query, query);
  } else {
    const int64_t matrices = q[1] * p.heads, parts = p.parts, of_q = parts == 3 ? 3 : 1;
    const int64_t size = q[2] / (p.heads * of_q);
    shape = {.matrices = matrices,
             .queries = q[0],
             .keys = k[0],
             .size = size,
             .value_size = size,
             .q = {0, of_q * size, matrices * of_q * size},
             .k = {(parts - 2) * size, parts * size, matrices * parts * size},
             .v = {(parts - 1) * size, parts * size, matrices * parts * size},
             .out = {0, size, matrices * size}};
    weights = Shape({matrices, q[0], k[0]});
  }
  shape.scale = p.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(shape.size, 1))));
  shape.causal = p.causal;
  if (p.mask_type == MaskType::kNone) return;
  // Strides of the mask along the axes of the weights, 0 along broadcast axes.
  const Shape& mask = in[static_cast<size_t>(p.data_inputs())].shape;
  const int ndim = weights.ndim(), last = ndim - (p.mask_type == MaskType::kLengths ? 2 : 1);
  std::vector<int64_t> strides(static_cast<size_t>(ndim), 0);
  int64_t stride = 1;
  for (int i = 0; i < mask.ndim(); ++i) {
    const int64_t size = mask[mask.ndim() - 1 - i];
    if (size != 1) strides[static_cast<size_t>(last - i)] = stride;
    stride *= size;
  }
  mask_row = strides[static_cast<size_t>(ndim - 2)];
  mask_column = strides[static_cast<size_t>(ndim - 1)];
  mask_offsets.resize(static_cast<size_t>(shape.matrices));
  for (int64_t m = 0; m < shape.matrices; ++m) {
    int64_t rest = m, offset = 0;
    for (int i = ndim - 3; i >= 0; --i) {
      offset += rest % weights[i] * strides[static_cast<size_t>(i)];
      rest /= weights[i];
    }
    mask_offsets[static_cast<size_t>(m)] = offset;
  }
}

void register_flash_attention(OpRegistry& ops) {
  declare<FlashAttentionParams>(ops, "_contrib_flash_attention")
      .doc(
          "softmax(scale * query key^T + mask) value, in memory linear in the lengths, not in their product. The "
          "output of a query that attends to no key is zero.\n\nDao, Fu, Ermon, Rudra, Re: FlashAttention: fast and "
          "memory-efficient exact attention with IO-awareness, NeurIPS 2022; Milakov, Gimelshein: Online normalizer "
          "calculation for softmax, 2018.")
      .sample({{2, 3, 4}, {2, 5, 4}, {2, 5, 2}}, {}, -1, 1)
      .sample({{2, 2, 5, 3}, {2, 2, 5, 3}, {2, 2, 5, 3}}, {{"causal", "True"}, {"scale", "0.5"}}, -1, 1)
      .sample({{3, 0, 4}, {3, 2, 4}, {3, 2, 4}})
      .sample({{3, 2, 4}, {3, 0, 4}, {3, 0, 4}})
      .sample(masked("added", {3, 5}, DType::kUnknown))
      .sample(masked("added", {2, 1, 5}, DType::kUnknown, "True"))
      .sample(masked("kept", {2, 3, 5}, DType::kUInt8))
      .sample(masked("lengths", {2, 1}, DType::kInt32));
  declare<AttentionParams>(ops, "_flash_attention")
      .internal()
      .doc("_contrib_flash_attention, also for the interleaved projections of _contrib_interleaved_matmul_*.")
      .sample({{3, 2, 12}}, {{"heads", "2"}, {"parts", "3"}}, -1, 1)
      .sample({{3, 2, 4}, {5, 2, 8}}, {{"heads", "2"}, {"parts", "2"}, {"causal", "True"}}, -1, 1)
      .sample({{2, 3, 2, 4}, {2, 5, 2, 4}, {2, 5, 2, 3}}, {{"heads_inside", "True"}}, -1, 1)
      .sample({{3, 2, 4}, {5, 2, 4}, {5, 2, 4}, {2, 3, 5}}, {{"heads_inside", "True"}, {"mask_type", "added"}}, -1, 1)
      .sample({{2, 0, 3, 4}, {2, 2, 3, 4}, {2, 2, 3, 4}}, {{"heads_inside", "True"}})
      .sample({{2, 4, 3, 5}, {2, 2, 6, 5}, {2, 2, 6, 3}}, {{"shared", "2"}}, -1, 1)
      .sample({{6, 1, 4}, {2, 5, 4}, {2, 5, 4}, {6, 1, 5}}, {{"shared", "3"}, {"mask_type", "added"}}, -1, 1)
      .sample({{2, 3, 6, 4}}, {{"heads_inside", "True"}, {"parts", "3"}}, -1, 1)
      .sample({{3, 6, 4}, {2, 1, 3}}, {{"heads_inside", "True"}, {"parts", "3"}, {"mask_type", "added"}}, -1, 1)
      .sample({{3, 2, 12}, {3, 3}}, {{"heads", "2"}, {"parts", "3"}, {"mask_type", "added"}}, -1, 1);
  Sample dropped;
  dropped.inputs = {{3, 2, 12}};
  dropped.attrs = {{"heads", "2"}, {"parts", "3"}, {"p", "0.25"}};
  dropped.check_gradient = false;
  dropped.note = "every run drops other weights";
  declare<AttentionParams>(ops, "_flash_attention_dropout")
      .internal()
      .doc("_flash_attention with dropout of the weights in training.")
      .output("rng", "(2,): key of the random numbers")
      .random()
      .train_sensitive()
      .prediction_params([](AttentionParams p) {
        p.p = 0;
        return p;
      })
      .sample(dropped);
  ops.declare<AttentionParams>("_backward_flash_attention")
      .internal()
      .doc("Gradients of the inputs of fused attention.")
      .variadic_input("inputs", "",
                      "the inputs of forward, with dropout its rng, then output, log_sums and output_grad")
      .output("first_grad", "shape and dtype of the first input")
      .output("second_grad", "shape and dtype of the second input")
      .output("third_grad", "shape and dtype of the third input")
      .num_outputs([](const AttentionParams& p) { return p.data_inputs(); })
      .infer(infer_backward)
      .link([](const AttentionParams& p, const LinkContext& c) { return link<BackwardKernel>(p, c); })
      .halves_through_float()
      .heavy()
      .gradient(attention_backward_gradient)
      .cost([](const AttentionParams& p, auto in, auto) {
        return 500 + 3 * kernels::attention_ns(AttentionGeometry(p, in).shape);
      })
      .sample(Sample{.inputs = {{2, 3, 4}, {2, 5, 4}, {2, 5, 2}, {2, 3, 2}, {2, 3}, {2, 3, 2}},
                     .low = -1,
                     .high = 1,
                     .check_gradient = false,
                     .note = "its gradient holds for the output and log_sums of the other inputs only"});
}

}  // namespace hybridnet::ops
