// _npx_constraint_check: raises an error if an element of a condition is false.
#include <algorithm>

#include "hybridnet/declare.h"

namespace hybridnet::ops {
namespace {

struct ConstraintParams {
  std::string msg;
  static void describe(ParamSchema<ConstraintParams>& schema) {
    schema.field("msg", &ConstraintParams::msg)
        .default_value("Constraint violated.")
        .doc("Message of the error if an element is false.");
  }
};

void run_check(const ConstraintParams& p, const KernelArgs& a) {
  const bool* begin = a.in[0].as<bool>();
  const auto violated = a.in[0].size() - std::count(begin, begin + a.in[0].size(), true);
  if (violated > 0)
    throw ValueError({.input = "input",
                      .expected = "True everywhere",
                      .given = std::to_string(violated) + " of " + std::to_string(a.in[0].size()) + " elements False",
                      .because = p.msg});
  *a.out[0].as<bool>() = true;
}

}  // namespace

void register_constraint_check(OpRegistry& ops) {
  ops.declare<ConstraintParams>("_npx_constraint_check")
      .doc(
          "True if all elements are true. Otherwise raises ValueError with the given message, when the result is "
          "waited for.")
      .input("input", "bool, any shape")
      .output("out", "bool, ()")
      .infer([](const ConstraintParams&, InferContext& c) {
        c.require_dtype(0, DTypeSet(DType::kBool));
        c.set_out_dtype(0, DType::kBool);
        c.set_out_shape(0, Shape::scalar());
      })
      .cpu(run_check, DTypeSet(DType::kBool))
      .may_raise()
      .gradient(kNotDifferentiable)
      .sample({{0, 3}});
}

}  // namespace hybridnet::ops
