// Comparisons and logic of NumPy's interface: arrays of different dtypes, results of bool.
#include "hybridnet/declare.h"
#include "ops/elementwise/scalar.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

constexpr const char* kNote = "steps at equal values";

void declare_pair(OpRegistry& ops, const std::string& what, const std::string& sign) {
  const auto same = std::make_shared<const OpRef>(intern_file("_is_" + what));
  auto op = ops.declare("_npi_" + what);
  op.doc("Whether lhs " + sign + " rhs, with broadcasting.")
      .input("lhs", "first array")
      .input("rhs", "second array; shapes broadcast")
      .output("out", "bool")
      .compose([same](const NoParams&, const Values& in) -> Values { return {call(*same, in_common_dtype(in))}; })
      .same_as(same->name(), [](const NoParams&, std::span<const DType> in) { return all_equal(in); });
  for (const std::vector<Shape>& shapes : {std::vector<Shape>{{3, 4}, {3, 4}}, std::vector<Shape>{{2, 3, 1}, {4}}})
    op.sample({.inputs = shapes, .low = -1, .high = 1, .integer_valued = true, .check_gradient = false, .note = kNote});
  const auto with_scalar = std::make_shared<const OpRef>(intern_file("_is_" + what + "_scalar"));
  ops.declare<ScalarParams>("_npi_" + what + "_scalar")
      .doc("Whether data " + sign + " scalar.")
      .input("data", "array of any shape")
      .names_its_input()
      .output("out", "bool, shape of data")
      .compose([with_scalar](const ScalarParams& p, const Values& in) -> Values {
        return {call(*with_scalar, {in[0]}, ParamSchema<ScalarParams>::box(p))};
      })
      .same_as(with_scalar->name(), [](const ScalarParams&, std::span<const DType>) { return true; })
      .sample({.inputs = {{3, 4}},
               .attrs = {{"scalar", "1"}},
               .integer_valued = true,
               .check_gradient = false,
               .note = kNote})
      .sample({.inputs = {{3, 4}},
               .attrs = {{"scalar", "0.5"}, {"is_int", "False"}},
               .check_gradient = false,
               .note = kNote});
}

}  // namespace

void register_numpy_comparisons(OpRegistry& ops) {
  declare_pair(ops, "equal", "==");
  declare_pair(ops, "not_equal", "!=");
  declare_pair(ops, "greater", ">");
  declare_pair(ops, "greater_equal", ">=");
  declare_pair(ops, "less", "<");
  declare_pair(ops, "less_equal", "<=");
}

}  // namespace hybridnet::ops
