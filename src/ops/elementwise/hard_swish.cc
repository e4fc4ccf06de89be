// x * clip(x / 6 + 1 / 2, 0, 1), in floats and in quantized graphs: the example of docs/adding-an-operator.md for an
// operator with everything in one file, except the formula, which devices compile, too.
//   Howard et al.: Searching for MobileNetV3, ICCV 2019, section 5.2.
#include "kernels/functors/formulas.h"
#include "ops/elementwise/formula.h"
#include "ops/quantized/byte_table.h"

namespace hybridnet::ops {
namespace {

const OpRef kClip{"clip"};
using kernels::HardSwish;
constexpr double kEnd = HardSwish::kEnd;

// Between -3 and 3 the slope is x / 3 + 1 / 2; the slope at the two ends is 0 and 1.
Values hard_swish_gradient(const HardSwish&, const GradientContext& g) {
  const Value x = g.input(0), inside = greater(x, -kEnd) * lesser(x, kEnd);
  const Value bounded = call(kClip, {x}, {{"a_min", -kEnd}, {"a_max", kEnd}});  // 0 * inf would be NaN
  return {g.output_grad(0) * (inside * (bounded / kEnd + 0.5) + (1.0 - lesser(x, kEnd)))};
}

// The range of the results for bytes whose range reaches to +-reach. The least value of the function is f(-1.5).
Range range_of_results(DType dtype, float reach) {
  const HardSwish f;
  return {dtype == DType::kUInt8 ? 0.0f : f(std::max(-reach, -1.5f)), f(reach)};
}

void declare_quantized(OpRegistry& ops) {
  ops.declare("_contrib_quantized_hard_swish")
      .doc("hard_swish of bytes, rounded to the nearest step of the range of the results.")
      .input("data", "int8 or uint8, any shape")
      .input("min_data", "(1,): value of the smallest byte")
      .input("max_data", "(1,): value of the largest byte")
      .output("output", "shape and dtype of data")
      .output("min_output", "(1,): value of the smallest byte")
      .output("max_output", "(1,): value of the largest byte")
      .infer([](const NoParams&, InferContext& c) { infer_bytewise(c); })
      .cpu(
          [](const NoParams&, const KernelArgs& a) {
            run_by_table(a, range_of_results(a.in[0].dtype, range_at(a, 1).reach()), HardSwish{});
          },
          kBytes)
      .any_device()
      .waits_on_gpu()
      .gradient(kNotDifferentiable)
      .image({0}, {0})
      .sample(bytes_sample({{3, 4}, {1}, {1}}, {DType::kInt8}))
      .sample(bytes_sample({{2, 0}, {1}, {1}}, {DType::kUInt8}, {}, 0, 100));
}

}  // namespace

void register_hard_swish(OpRegistry& ops) {
  auto op = ops.declare<HardSwish>("_contrib_hard_swish");
  op.doc("0 for x <= -3, x for x >= 3, x * (x + 3) / 6 between: a swish of three pieces, exact in few instructions.")
      .input("data", "floating array of any shape");
  formula(op, 1, kFloating)
      .gradient(hard_swish_gradient, Saves::all_inputs())
      .amp(AmpType::kAny)
      .quantized({.op = "_contrib_quantized_hard_swish"})
      .sample({{3, 4}}, {}, -5, 5)
      .sample({{2, 0}});
  declare_quantized(ops);
}

}  // namespace hybridnet::ops
