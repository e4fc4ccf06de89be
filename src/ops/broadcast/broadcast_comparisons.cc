// Comparisons and logic with broadcasting: 1 or 0 in the dtype of the inputs.
#include "ops/broadcast/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

template <Pointwise F>
void comparison(OpRegistry& ops, const char* name, const char* doc) {
  const char* note = "steps at equal values";
  broadcast_op<F>(ops, name, doc)
      .gradient([](const NoParams&, const GradientContext&) { return Values(2); }, Saves::nothing())
      .sample({.inputs = {{3, 4}, {3, 4}},
               .low = -1,
               .high = 1,
               .integer_valued = true,
               .check_gradient = false,
               .note = note})
      .sample({.inputs = {{2, 3, 1}, {4}},
               .low = -1,
               .high = 1,
               .integer_valued = true,
               .check_gradient = false,
               .note = note})
      .sample({Shape{0, 4}, Shape{1, 4}});
}

}  // namespace

void register_broadcast_comparisons(OpRegistry& ops) {
  comparison<Pointwise::kEqual>(ops, "broadcast_equal", "1 where lhs == rhs, else 0, with broadcasting.");
  comparison<Pointwise::kNotEqual>(ops, "broadcast_not_equal", "1 where lhs != rhs, else 0, with broadcasting.");
  comparison<Pointwise::kGreater>(ops, "broadcast_greater", "1 where lhs > rhs, else 0, with broadcasting.");
  comparison<Pointwise::kGreaterEqual>(ops, "broadcast_greater_equal",
                                       "1 where lhs >= rhs, else 0, with broadcasting.");
  comparison<Pointwise::kLesser>(ops, "broadcast_lesser", "1 where lhs < rhs, else 0, with broadcasting.");
  comparison<Pointwise::kLesserEqual>(ops, "broadcast_lesser_equal", "1 where lhs <= rhs, else 0, with broadcasting.");
  comparison<Pointwise::kLogicalAnd>(ops, "broadcast_logical_and", "1 where both are not 0, with broadcasting.");
  comparison<Pointwise::kLogicalOr>(ops, "broadcast_logical_or", "1 where either is not 0, with broadcasting.");
  comparison<Pointwise::kLogicalXor>(ops, "broadcast_logical_xor", "1 where exactly one is not 0, with broadcasting.");
}

}  // namespace hybridnet::ops
