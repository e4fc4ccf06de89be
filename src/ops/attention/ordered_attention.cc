// Attention over caches whose rows stand in other entries of the batch, and the rows in their order. The rewrite
// ordered_caches makes both: the caches of a beam search stay where they are while the beams change places.
#include <algorithm>
#include <array>

#include "hybridnet/declare.h"
#include "kernels/index/indices.h"
#include "kernels/index/ordered_rows.h"
#include "ops/attention/flash_attention.h"
#include "ops/cost.h"
#include "ops/emit.h"
#include "ops/index/along_axis.h"

namespace hybridnet::ops {
namespace {

const OpRef kRows{"_ordered_rows"};

// ---- the rows
struct OrderedRowsParams {
  int32_t axis;
  static void describe(ParamSchema<OrderedRowsParams>& schema) {
    schema.field("axis", &OrderedRowsParams::axis).doc("The axis of the rows; not the first one.");
  }
};

kernels::OrderedLayout layout_of(const Shape& data, int axis, DType dtype) {
  return {data[0], data.size(1, axis), data[axis], data.size(axis + 1, data.ndim()) * dtype_size(dtype)};
}

void infer_rows(const OrderedRowsParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.require_dtype(1, DType::kInt32);
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  const int axis = normalize_axis(p.axis, data.ndim());
  if (axis == 0) throw ParamError({.input = "axis", .expected = "not the first axis", .given = std::to_string(p.axis)});
  c.set_in_shape(1, Shape({data[0], data[axis]}));
}

void run_rows(const OrderedRowsParams& p, const KernelArgs& a) {
  const Shape& data = *a.in[0].shape;
  kernels::gather_ordered_rows(a.in[0].data, layout_of(data, normalize_axis(p.axis, data.ndim()), a.in[0].dtype),
                               a.in[1].as<int32_t>(), a.out[0].data);
}

// The order as indices of the first axis, one for each element.
Value indices_of_elements(const Value& order, const Shape& data, int axis) {
  Shape shape = Shape::scalar();
  for (int i = 0; i < data.ndim(); ++i) shape.push_back(i == 0 || i == axis ? data[i] : 1);
  return broadcast_to(reshape(order, shape), data);
}

// The transpose of _ordered_rows.
Value add_ordered_rows(const Value& grad, const Value& order, const Shape& data, int axis) {
  if (!grad) return {};
  const kernels::RowLayout layout{1, data[0], data.size(1, data.ndim())};
  return scatter_along_axis(grad, indices_of_elements(order, data, axis), layout, data[0], kernels::IndexMode::kClip,
                            data);
}

Values rows_gradient(const OrderedRowsParams& p, const GradientContext& g) {
  const Shape& data = g.input_spec(0).shape;
  return {add_ordered_rows(g.output_grad(0), g.input(1), data, normalize_axis(p.axis, data.ndim())), Value{}};
}

// ---- attention
size_t order_of(const AttentionParams& p) { return static_cast<size_t>(p.num_inputs()); }

void infer_ordered(const AttentionParams& p, InferContext& c) {
  const auto require_zero = [](const char* name, double given) {
    if (given != 0)
      throw ParamError({.input = name,
                        .expected = "0",
                        .given = std::to_string(given),
                        .because = "an order belongs to queries, keys and values in three tensors, without dropout"});
  };
  require_zero("parts", p.parts);
  require_zero("p", p.p);
  infer_attention(p, c);
  const int order = p.num_inputs();
  c.require_dtype(order, DType::kInt32);
  const Shape &query = c.in_shape(0), &key = c.in_shape(1);
  if (!query.rank_known() || !key.rank_known()) return;
  if (query.ndim() <= p.length_axis() + (p.shared > 1 ? 1 : 0))
    throw ShapeError({.input = "query",
                      .expected = "an axis of the batch in front of the heads and the length",
                      .given = "shape " + query.str()});
  c.set_in_shape(order, Shape({query[0], key[key.ndim() - p.length_axis()]}));
}

// Brings keys and values into their order before it attends: many queries read each row many times.
class GatheredKernel final : public Kernel {
 public:
  GatheredKernel(const AttentionParams& p, const LinkContext& c) : order_(order_of(p)) {
    LinkContext plain = c;
    plain.in = c.in.first(order_);
    if (!c.in_format.empty()) plain.in_format = c.in_format.first(order_);
    attention_ = link_attention(p, plain);
    begin_ = aligned(attention_->workspace_bytes());
    for (int i = 0; i < 2; ++i) {
      const TensorSpec& cache = c.in[static_cast<size_t>(i) + 1];
      layouts_[i] = layout_of(cache.shape, cache.shape.ndim() - p.length_axis(), cache.dtype);
      bytes_[i] = aligned(cache.shape.size() * dtype_size(cache.dtype));
    }
  }
  int64_t workspace_bytes() const override { return begin_ + bytes_[0] + bytes_[1]; }
  void run(const KernelArgs& a) override {
    std::array<TensorRef, kMostInputs> in;
    std::copy_n(a.in.begin(), order_, in.begin());
    char* memory = static_cast<char*>(a.workspace) + begin_;
    for (int i = 0; i < 2; ++i) {
      TensorRef& cache = in[static_cast<size_t>(i) + 1];
      kernels::gather_ordered_rows(cache.data, layouts_[i], a.in[order_].as<int32_t>(), memory);
      cache.data = memory;
      memory += bytes_[i];
    }
    KernelArgs args = a;
    args.in = std::span(in).first(order_);
    attention_->run(args);
  }

 private:
  static constexpr size_t kMostInputs = 4;  // queries, keys, values and mask
  static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  const size_t order_;
  Ref<Kernel> attention_;
  kernels::OrderedLayout layouts_[2];
  int64_t begin_ = 0, bytes_[2] = {};
};

Ref<Kernel> link_ordered(const AttentionParams& p, const LinkContext& c) {
  if (reads_order(p, c)) return link_attention(p, c);
  return Ref<Kernel>(new GatheredKernel(p, c));
}

Values ordered_gradient(const AttentionParams& p, const GradientContext& g) {
  Values inputs;
  for (int i = 0; i < p.num_inputs(); ++i) inputs.push_back(g.input(i));
  const Value order = g.input(p.num_inputs());
  const std::string axis = std::to_string(-p.length_axis());
  for (const size_t i : {1u, 2u}) inputs[i] = call(kRows, {inputs[i], order}, {{"axis", axis}});
  Values grads = attention_gradient(p, g, inputs);
  for (const int i : {1, 2}) {
    const Shape& cache = g.input_spec(i).shape;
    Value& grad = grads[static_cast<size_t>(i)];
    grad = add_ordered_rows(grad, order, cache, cache.ndim() - p.length_axis());
  }
  grads.emplace_back();
  return grads;
}

Sample sample_of(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs, DType mask) {
  Sample sample{.inputs = std::move(inputs), .attrs = std::move(attrs), .low = -1, .high = 3};
  sample.dtypes.assign(sample.inputs.size(), DType::kUnknown);
  sample.dtypes.back() = DType::kInt32;
  if (mask != DType::kUnknown) sample.dtypes[3] = mask;
  return sample;
}

}  // namespace

void register_ordered_attention(OpRegistry& ops) {
  ops.declare<OrderedRowsParams>("_ordered_rows")
      .internal()
      .doc("Slices along an axis, each from the entry of the first axis that order gives: a batch of caches in order.")
      .input("data", "(entries, ..., rows, ...), any dtype")
      .input("order", "(entries, rows), int32; entries out of range are the nearest one")
      .output("output", "shape and dtype of data: output[e, ..., r, ...] = data[order[e, r], ..., r, ...]")
      .infer(infer_rows)
      .cpu(run_rows)
      .inplace(0, 0)
      .gradient(rows_gradient, Saves::of({1}))
      .sample(sample_of({{3, 2, 4, 5}, {3, 4}}, {{"axis", "2"}}, DType::kUnknown))
      .sample(sample_of({{3, 4, 5}, {3, 4}}, {{"axis", "1"}}, DType::kUnknown))
      .sample(sample_of({{0, 4, 5}, {0, 4}}, {{"axis", "1"}}, DType::kUnknown));
  ops.declare<AttentionParams>("_ordered_attention")
      .internal()
      .amp(AmpType::kProduct)
      .doc(
          "_flash_attention of three tensors; row c of the keys and values of entry b of the batch stands in entry "
          "order[b, c].")
      .variadic_input("inputs", "",
                      "the inputs of _flash_attention, then order: (entries of the batch, length of keys), int32; "
                      "entries out of range are the nearest one")
      .num_inputs([](const AttentionParams& p) { return p.num_inputs() + 1; })
      .output("output", "shape of the queries, with the size of the values")
      .output("log_sums", "logarithm of the sum of e^scores for each query; infinity if there is no key")
      .visible_outputs(1)
      .infer(infer_ordered)
      .link([](const AttentionParams& p, const LinkContext& c) { return link_ordered(p, c); })
      .halves_through_float_when(
          [](const AttentionParams& p, const LinkContext& c) { return !attends_in_bfloat16(p, c); })
      .heavy()
      .gradient(ordered_gradient)
      .cost([](const AttentionParams& p, auto in, auto) {
        return 500 + kernels::attention_ns(AttentionGeometry(p, in).shape);
      })
      .sample(sample_of({{3, 2, 1, 4}, {3, 2, 5, 4}, {3, 2, 5, 2}, {3, 5}}, {}, DType::kUnknown))
      .sample(sample_of({{3, 2, 4}, {3, 5, 4}, {3, 5, 2}, {3, 1}, {3, 5}}, {{"mask_type", "lengths"}}, DType::kInt32))
      .sample(
          sample_of({{3, 9, 2, 4}, {3, 5, 2, 4}, {3, 5, 2, 3}, {3, 5}}, {{"heads_inside", "True"}}, DType::kUnknown))
      .sample(sample_of({{3, 4, 1, 4}, {3, 2, 5, 4}, {3, 2, 5, 4}, {3, 5}}, {{"shared", "2"}}, DType::kUnknown))
      .sample(sample_of({{2, 3, 2, 4}, {2, 3, 5, 4}, {2, 3, 5, 4}, {2, 5}, {2, 5}}, {{"mask_type", "added"}},
                        DType::kUnknown));
}

}  // namespace hybridnet::ops
