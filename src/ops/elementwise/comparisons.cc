// Comparisons and logic of two arrays of equal shape and dtype: 1 or 0 in that dtype.
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

template <Pointwise F>
void comparison(OpRegistry& ops, const char* name, const char* alias, const char* doc) {
  auto op = ops.declare(name);
  op.doc(doc).alias(alias).input("lhs", "first array").input("rhs", "second array, shape and dtype of lhs");
  elementwise<F>(op, kAllDTypes)
      .gradient([](const NoParams&, const GradientContext&) { return Values(2); }, Saves::nothing())
      .amp(AmpType::kWidest)
      .sample({.inputs = {{3, 4}, {3, 4}},
               .low = -1,
               .high = 1,
               .integer_valued = true,
               .check_gradient = false,
               .note = "steps at equal values"});
}

}  // namespace

void register_comparisons(OpRegistry& ops) {
  comparison<Pointwise::kEqual>(ops, "_equal", "_Equal", "1 where lhs == rhs, else 0.");
  comparison<Pointwise::kNotEqual>(ops, "_not_equal", "_Not_Equal", "1 where lhs != rhs, else 0.");
  comparison<Pointwise::kGreater>(ops, "_greater", "_Greater", "1 where lhs > rhs, else 0.");
  comparison<Pointwise::kGreaterEqual>(ops, "_greater_equal", "_Greater_Equal", "1 where lhs >= rhs, else 0.");
  comparison<Pointwise::kLesser>(ops, "_lesser", "_Lesser", "1 where lhs < rhs, else 0.");
  comparison<Pointwise::kLesserEqual>(ops, "_lesser_equal", "_Lesser_Equal", "1 where lhs <= rhs, else 0.");
  comparison<Pointwise::kLogicalAnd>(ops, "_logical_and", "_Logical_And", "1 where both are not 0.");
  comparison<Pointwise::kLogicalOr>(ops, "_logical_or", "_Logical_Or", "1 where either is not 0.");
  comparison<Pointwise::kLogicalXor>(ops, "_logical_xor", "_Logical_Xor", "1 where exactly one is not 0.");
}

}  // namespace hybridnet::ops
