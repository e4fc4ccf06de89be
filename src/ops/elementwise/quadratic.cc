// a x^2 + b x + c: one operator in one file, the example of docs/adding-an-operator.md.
#include "ops/elementwise/formula.h"

namespace hybridnet::ops {
namespace {

struct QuadraticParams {
  double a, b, c;
  static void describe(ParamSchema<QuadraticParams>& schema) {
    schema.field("a", &QuadraticParams::a).default_value(0.0).doc("Factor of data squared.");
    schema.field("b", &QuadraticParams::b).default_value(0.0).doc("Factor of data.");
    schema.field("c", &QuadraticParams::c).default_value(0.0).doc("Constant.");
  }
  template <typename T>
  T operator()(T x) const {
    return (T(a) * x + T(b)) * x + T(c);
  }
};

Values quadratic_gradient(const QuadraticParams& p, const GradientContext& g) {
  return {g.output_grad(0) * (g.input(0) * (2 * p.a) + p.b)};
}

}  // namespace

void register_quadratic(OpRegistry& ops) {
  auto op = ops.declare<QuadraticParams>("_contrib_quadratic");
  op.doc("a * data^2 + b * data + c, element by element.").input("data", "array of any shape").names_its_input();
  formula(op)
      .gradient(quadratic_gradient, Saves::all_inputs())
      .sample({{3, 4}}, {{"a", "1.5"}, {"b", "-2"}, {"c", "0.5"}})
      .sample({{2, 0}}, {{"a", "1"}});
}

}  // namespace hybridnet::ops
