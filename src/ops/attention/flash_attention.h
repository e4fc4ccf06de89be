// The parameters and operand layouts that the operators of fused attention share.
#pragma once

#include <optional>
#include <vector>

#include "hybridnet/op.h"
#include "kernels/attention/attention.h"

namespace hybridnet::ops {

enum class MaskType : int32_t { kNone, kAdded, kKept, kLengths };

// parts == 0: queries, keys and values are three tensors (batch..., length, size), with heads_inside (batch..., length,
// heads, size), the output layout of a dense layer; the output has the same layout. parts == 3 with heads_inside: one
// such tensor that holds the heads of the queries, then of the keys, then of the values. Else they are parts of
// projection tensors (length, batch, heads * parts * size), the layout of _contrib_interleaved_matmul_*: parts == 3 is
// one tensor with queries, keys and values, parts == 2 one with queries and one with keys and values.
struct AttentionParams {
  std::optional<double> scale;
  bool causal = false;
  MaskType mask_type = MaskType::kNone;
  int32_t heads = 1, parts = 0;
  bool heads_inside = false;
  // That many consecutive matrices of queries share one of keys and one of values: grouped and multi-query heads. More
  // than 1 only for three tensors with the heads outside: those of keys and values are (batch..., heads / shared,
  // length, size).
  int32_t shared = 1;
  double p = 0;  // dropout probability of the weights
  int data_inputs() const { return parts == 0 ? 3 : 4 - parts; }
  int num_inputs() const { return data_inputs() + (mask_type == MaskType::kNone ? 0 : 1); }
  int query() const { return 0; }
  int key() const { return data_inputs() == 1 ? 0 : 1; }
  int value() const { return data_inputs() - 1; }
  // The axis of the lengths if there are three tensors, counted from the end.
  int length_axis() const { return heads_inside ? 3 : 2; }
  static void describe(ParamSchema<AttentionParams>& schema);
};

// Sizes from the known shapes of the inputs of forward.
struct AttentionGeometry {
  AttentionGeometry(const AttentionParams& p, std::span<const TensorSpec> in);
  kernels::AttentionShape shape;
  Shape weights;  // (batch..., queries, keys)
  std::vector<int64_t> mask_offsets;
  int64_t mask_row = 0, mask_column = 0;
};

// Operators whose first inputs are those of fused attention share these. One more input is the order of keys and
// values, (entries of the batch, keys): the entry in which each row stands (kernels::AttentionOrder). link_attention()
// reads it in place only where reads_order() is true.
void infer_attention(const AttentionParams& p, InferContext& c);
Ref<Kernel> link_attention(const AttentionParams& p, const LinkContext& c);
bool reads_order(const AttentionParams& p, const LinkContext& c);
bool attends_in_bfloat16(const AttentionParams& p, const LinkContext& c);
// The gradients of the inputs, with `inputs` in the place of the node's own.
Values attention_gradient(const AttentionParams& p, const GradientContext& g, Values inputs);

// The gradient rule of _backward_flash_attention. Its inputs are the inputs of forward, with dropout the key of its
// random numbers, then output, log_sums and output_grad.
Values attention_backward_gradient(const AttentionParams& p, const GradientContext& g);
// The gradient of a term added to the scores; it has the shape of the weights. rng: the key of dropout, else null.
Value attention_mask_gradient(const AttentionParams& p, const Values& inputs, const Value& rng, const Value& out,
                              const Value& log_sums, const Value& out_grad);

// The gradients of the inputs of forward that flow through log_sums.
Values attention_sums_gradient(const AttentionParams& p, const Values& inputs, const Value& log_sums,
                               const Value& sums_grad);

}  // namespace hybridnet::ops
