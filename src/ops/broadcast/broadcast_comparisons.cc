// Comparisons and logic with broadcasting: 1 or 0 in the dtype of the inputs.
#include "hybridnet/declare.h"
#include "ops/broadcast/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

template <Pointwise F>
void comparison(OpRegistry& ops, const char* name, const char* doc) {
  const char* note = "steps at equal values";
  broadcast_op<F>(ops, name, doc)
      .gradient([](const NoParams&, const GradientContext&) { return Values(2); }, Saves::nothing())
      .amp(AmpType::kWidest)
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

// The same with a bool output: NumPy's comparisons of inputs that need no promotion.
template <Pointwise F>
void predicate(OpRegistry& ops, const char* name, const char* doc) {
  auto op = ops.declare(name);
  op.doc(doc)
      .internal()
      .input("lhs", "first array")
      .input("rhs", "second array, same dtype; shapes broadcast")
      .output("out", "bool, shape by NumPy's broadcasting rule")
      .infer([](const NoParams&, InferContext& c) { infer_broadcast_predicate(c); })
      .any_device()
      .cpu([](const NoParams&, const KernelArgs& a) {
        kernels::apply_broadcast_predicate(span_loops<F>(), a.in[0].dtype, a.in[0].data, *a.in[0].shape, a.in[1].data,
                                           *a.in[1].shape, a.out[0].as<bool>(), *a.out[0].shape);
      })
      .cost([](const NoParams&, auto in, auto out) { return elementwise_cost(span_loops<F>(), in, out); })
      .gradient(kNotDifferentiable)
      .sample({.inputs = {{3, 4}, {3, 4}}, .low = -1, .high = 1, .integer_valued = true})
      .sample({.inputs = {{2, 3, 1}, {4}}, .low = -1, .high = 1, .integer_valued = true})
      .sample({.inputs = {{3, 60}, {3, 1}}, .low = -1, .high = 1, .integer_valued = true})
      .sample({.inputs = {Shape::scalar(), {3, 4}}, .low = -1, .high = 1, .integer_valued = true});
}

}  // namespace

void register_broadcast_predicates(OpRegistry& ops) {
  predicate<Pointwise::kEqual>(ops, "_is_equal", "Whether lhs == rhs, with broadcasting.");
  predicate<Pointwise::kNotEqual>(ops, "_is_not_equal", "Whether lhs != rhs, with broadcasting.");
  predicate<Pointwise::kGreater>(ops, "_is_greater", "Whether lhs > rhs, with broadcasting.");
  predicate<Pointwise::kGreaterEqual>(ops, "_is_greater_equal", "Whether lhs >= rhs, with broadcasting.");
  predicate<Pointwise::kLesser>(ops, "_is_less", "Whether lhs < rhs, with broadcasting.");
  predicate<Pointwise::kLesserEqual>(ops, "_is_less_equal", "Whether lhs <= rhs, with broadcasting.");
}

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
