// Functions of one array in NumPy's interface: functions of real numbers return floats for integers.
#include <algorithm>

#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

struct Function {
  const char* name;
  const char* classic;
  const char* doc;
  double low, high;
};

constexpr Function kRealFunctions[] = {
    {"_npi_exp", "exp", "e to the power x.", -2, 2},
    {"_npi_expm1", "expm1", "e to the power x, minus 1.", -2, 2},
    {"_npi_log", "log", "Natural logarithm.", 0.5, 2},
    {"_npi_log2", "log2", "Logarithm to base 2.", 0.5, 2},
    {"_npi_log10", "log10", "Logarithm to base 10.", 0.5, 2},
    {"_npi_log1p", "log1p", "Natural logarithm of 1 + x.", -0.5, 2},
    {"_npi_sqrt", "sqrt", "Square root.", 0.5, 2},
    {"_npi_cbrt", "cbrt", "Cube root.", 0.5, 2},
    {"_npi_sin", "sin", "Sine of x in radians.", -2, 2},
    {"_npi_cos", "cos", "Cosine of x in radians.", -2, 2},
    {"_npi_tan", "tan", "Tangent of x in radians.", -1, 1},
    {"_npi_arcsin", "arcsin", "Inverse sine, in radians.", -0.8, 0.8},
    {"_npi_arccos", "arccos", "Inverse cosine, in radians.", -0.8, 0.8},
    {"_npi_arctan", "arctan", "Inverse tangent, in radians.", -2, 2},
    {"_npi_sinh", "sinh", "Hyperbolic sine.", -2, 2},
    {"_npi_cosh", "cosh", "Hyperbolic cosine.", -2, 2},
    {"_npi_tanh", "tanh", "Hyperbolic tangent.", -2, 2},
    {"_npi_arcsinh", "arcsinh", "Inverse hyperbolic sine.", -2, 2},
    {"_npi_arccosh", "arccosh", "Inverse hyperbolic cosine.", 1.2, 3},
    {"_npi_arctanh", "arctanh", "Inverse hyperbolic tangent.", -0.8, 0.8},
    {"_npi_degrees", "degrees", "Converts radians to degrees.", -2, 2},
    {"_npi_radians", "radians", "Converts degrees to radians.", -2, 2},
};

void declare_real_function(OpRegistry& ops, const Function& f) {
  const auto classic = std::make_shared<const OpRef>(f.classic);
  auto op = ops.declare(f.name);
  op.doc(f.doc)
      .input("x", "array of any shape")
      .output("out", "shape and dtype of x; float32 for integers")
      .compose([classic](const NoParams&, const Values& in) -> Values {
        return {call(*classic, {cast(in[0], floating(dtype_of(in[0])))})};
      })
      .same_as(f.classic, [](const NoParams&, std::span<const DType> in) { return is_floating(in[0]); })
      .sample({{3, 4}}, {}, f.low, f.high)
      .sample({Shape{0, 4}}, {}, f.low, f.high)
      .sample({Shape::scalar()}, {}, f.low, f.high);
  if (f.low <= 1 && f.high >= 1) return;
  op.sample({.inputs = {{3}},  // 1 is a value of bool
             .low = 1,
             .high = std::max(f.high, 1.0),
             .integer_valued = true,
             .check_gradient = false,
             .note = "infinite at 1"});
}

}  // namespace

void register_numpy_real_functions(OpRegistry& ops) {
  for (const Function& f : kRealFunctions) declare_real_function(ops, f);
}

}  // namespace hybridnet::ops
