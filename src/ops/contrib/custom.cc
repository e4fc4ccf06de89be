// Custom: an operator whose code lives outside the library. It runs on the thread of the caller, node by node in
// graphs, because that code may wait for arrays, which tasks of the engine must not.
#include "hybridnet/custom.h"

#include <atomic>

#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

std::atomic<CustomOperators*> installed{nullptr};

const OpRef kCustom{"Custom"};

int count_arguments(const void* params) {
  const auto& use = *static_cast<const CustomParams*>(params);
  return custom_operators(use).num_arguments(use);
}

}  // namespace

void CustomParams::describe(ParamSchema<CustomParams>& schema) {
  schema.field("op_type", &CustomParams::op_type).doc("Name that the operator was registered with.");
  schema.field("open_attributes", &CustomParams::open_attributes)
      .default_value("{}")
      .doc("Arguments of the operator: a JSON object of texts.");
  schema.field("num_args", &CustomParams::num_args).default_value(0).hidden().doc("Number of inputs.");
}

void install_custom_operators(CustomOperators* operators) { installed.store(operators, std::memory_order_release); }

CustomOperators& custom_operators(const CustomParams& use) {
  CustomOperators* operators = installed.load(std::memory_order_acquire);
  if (operators != nullptr) return *operators;
  throw UnsupportedError({.op = "Custom",
                          .message = "operator '" + use.op_type + "' is written in Python, and no Python runs here",
                          .fix = "run the model from Python, or replace the operator before exporting it"});
}

namespace ops {

void register_custom(OpRegistry& ops) {
  count_arguments_by(kCustom, count_arguments);
  ops.declare<CustomParams>("Custom")
      .alias("_npi_Custom")
      .doc("An operator written in Python: a subclass of mx.operator.CustomOp, registered under the name op_type.")
      .variadic_input("data", "num_args", "what the operator's list_arguments() names, then its auxiliary states")
      .output("output", "as the operator's infer_shape() and infer_type() say")
      .num_outputs([](const CustomParams& p) { return custom_operators(p).num_outputs(p); })
      .infer([](const CustomParams& p, InferContext& c) { custom_operators(p).infer(p, c); })
      .dynamic([](const CustomParams& p, const KernelArgs&, const Op::Allocate&) {
        throw UnsupportedError({.op = "Custom", .message = "operator '" + p.op_type + "' was run on bare memory"});
      })
      // Never asked: call() records the gradient that the operator brings along.
      .gradient(
          [](const CustomParams&, const GradientContext& g) { return Values(static_cast<size_t>(g.num_inputs())); },
          Saves::nothing())
      .opaque()
      .sample(Sample{.inputs = {{2, 3}},
                     .attrs = {{"op_type", "sample"}},
                     .check_gradient = false,
                     .note = "its code is outside the library: tests/python/operator"});
}

}  // namespace ops
}  // namespace hybridnet
