// Custom: an operator whose code lives outside the library. In graphs it is one opaque instruction: it receives copies
// of the plan's values, which it may keep, and runs on the caller's thread, because its code may wait for arrays.
#include "hybridnet/custom.h"

#include <atomic>

#include "device/memory.h"
#include "graph/control/control_flow.h"
#include "hybridnet/declare.h"
#include "ndarray/device_work.h"
#include "ops/emit.h"

namespace hybridnet {
namespace {

std::atomic<CustomOperators*> installed{nullptr};

const OpRef kCustom{"Custom"}, kBackward{"_backward_Custom"};

int count_arguments(const void* params) {
  const auto& use = *static_cast<const CustomParams*>(params);
  return custom_operators(use).num_arguments(use);
}

// The roles of the outputs and inputs of a use. The visible outputs are followed by the new states and the number under
// which forward keeps the values for the gradient.
struct Layout {
  explicit Layout(const CustomParams& use)
      : outputs(custom_operators(use).num_outputs(use)),
        arguments(custom_operators(use).num_arguments(use)),
        states(use.num_args - arguments) {}
  int outputs, arguments, states;
  int kept() const { return outputs + states; }
  int num_outputs() const { return kept() + 1; }
};

std::vector<NDArray> empty_like(std::span<const TensorRef> refs) {
  const Device here = device::current() ? device::current()->device() : Device{};
  std::vector<NDArray> arrays;
  for (const TensorRef& ref : refs) arrays.push_back(NDArray::empty(*ref.shape, ref.dtype, here));
  return arrays;
}

std::vector<NDArray> copied(std::span<const TensorRef> refs) {
  std::vector<NDArray> arrays = empty_like(refs);
  const DeviceWork work({}, arrays);
  for (size_t i = 0; i < refs.size(); ++i) device::copy_memory(arrays[i].data(), refs[i].data, arrays[i].bytes());
  return arrays;
}

std::vector<NDArray> zeros_like(std::span<const TensorRef> refs) {
  std::vector<NDArray> arrays = empty_like(refs);
  const DeviceWork work({}, arrays);
  for (const NDArray& array : arrays) device::zero_memory(array.data(), array.bytes());
  return arrays;
}

void copy_out(std::span<const NDArray> arrays, std::span<const TensorRef> refs) {
  for (const NDArray& array : arrays) array.wait_to_read();
  const DeviceWork work(arrays, {});
  for (size_t i = 0; i < arrays.size(); ++i)
    if (refs[i].data) device::copy_memory(refs[i].data, arrays[i].data(), arrays[i].bytes());
}

// An output that no instruction reads has no memory. If the number has no memory, forward keeps nothing.
class CustomKernel final : public Kernel {
 public:
  CustomKernel(const CustomParams& use, std::span<const TensorSpec> inputs)
      : layout_(use), operator_(custom_operators(use).link(use, inputs)) {}

  void run(const KernelArgs& args) override {
    const UserCodeScope user_code;
    const auto arguments = static_cast<size_t>(layout_.arguments);
    const auto visible = static_cast<size_t>(layout_.outputs);
    const std::vector<NDArray> inputs = copied(args.in.first(arguments));
    const std::vector<NDArray> states = copied(args.in.subspan(arguments));
    const std::vector<NDArray> outputs = empty_like(args.out.first(visible));
    void* const number = args.out.back().data;
    const bool keep = number != nullptr && args.kept != nullptr;
    Ref<Object> kept;
    {
      const device::Scope own_device(nullptr);  // operators that the code calls choose theirs
      kept = operator_->forward(inputs, states, outputs, args.train, keep);
    }
    copy_out(outputs, args.out);
    copy_out(states, args.out.subspan(visible));
    if (keep) device::write_value<int64_t>(number, args.kept->keep(std::move(kept)));
  }

 private:
  const Layout layout_;
  const Ref<LinkedCustom> operator_;
};

void infer_custom(const CustomParams& use, InferContext& c) {
  custom_operators(use).infer(use, c);
  const Layout layout(use);
  for (int s = 0; s < layout.states; ++s) {
    c.set_out_shape(layout.outputs + s, c.in_shape(layout.arguments + s));
    c.set_out_dtype(layout.outputs + s, c.in_dtype(layout.arguments + s));
  }
  c.set_out_shape(layout.kept(), Shape{1});
  c.set_out_dtype(layout.kept(), DType::kInt64);
}

// ------------------------------------------------------------------------------------------------------------ gradient
// Inputs: the number of the values that forward kept, a gradient per output, the arguments, the outputs. Outputs: a
// gradient per argument.
struct BackwardCustomParams {
  std::string op_type;
  int32_t num_args = 0, num_results = 0, num_arguments = 0;
  static void describe(ParamSchema<BackwardCustomParams>& schema) {
    schema.field("op_type", &BackwardCustomParams::op_type).doc("Registered name of the operator.");
    schema.field("num_args", &BackwardCustomParams::num_args).default_value(0).hidden().doc("Number of inputs.");
    schema.field("num_results", &BackwardCustomParams::num_results).doc("Number of outputs of the operator.");
    schema.field("num_arguments", &BackwardCustomParams::num_arguments).doc("Number of inputs of the operator.");
  }
};

Values custom_gradient(const CustomParams& use, const GradientContext& g) {
  const Layout layout(use);
  Values inputs{g.output(layout.kept())};
  for (int i = 0; i < layout.outputs; ++i)
    inputs.push_back(g.output_grad(i) ? g.output_grad(i) : ops::zeros_like(g.output(i)));
  for (int i = 0; i < layout.arguments; ++i) inputs.push_back(g.input(i));
  for (int i = 0; i < layout.outputs; ++i) inputs.push_back(g.output(i));
  BackwardCustomParams params{use.op_type, static_cast<int32_t>(inputs.size()), layout.outputs, layout.arguments};
  Values grads = ops::call_all(kBackward, inputs, ParamSchema<BackwardCustomParams>::box(std::move(params)));
  grads.resize(static_cast<size_t>(g.num_inputs()));
  return grads;
}

void infer_backward(const BackwardCustomParams& p, InferContext& c) {
  for (int i = 0; i < p.num_arguments; ++i) {
    c.set_out_shape(i, c.in_shape(1 + p.num_results + i));
    c.set_out_dtype(i, c.in_dtype(1 + p.num_results + i));
  }
}

void run_backward(const BackwardCustomParams& p, const KernelArgs& args) {
  if (args.kept == nullptr)
    throw Error(ErrorKind::kError, {.op = p.op_type, .message = "its gradient was run without its forward run"});
  const UserCodeScope user_code;
  const auto results = static_cast<size_t>(p.num_results), arguments = static_cast<size_t>(p.num_arguments);
  const std::vector<NDArray> output_grads = copied(args.in.subspan(1, results));
  const std::vector<NDArray> inputs = copied(args.in.subspan(1 + results, arguments));
  const std::vector<NDArray> outputs = copied(args.in.subspan(1 + results + arguments));
  const std::vector<NDArray> grads = zeros_like(args.in.subspan(1 + results, arguments));
  Object& kept = args.kept->at(device::read_value<int64_t>(args.in[0].data));
  {
    const device::Scope own_device(nullptr);
    custom_operators({.op_type = p.op_type}).backward({kept, output_grads, inputs, outputs, grads});
  }
  copy_out(grads, args.out);
}

Values no_second_gradient(const BackwardCustomParams& p, const GradientContext&) {
  throw GradientError({.op = p.op_type,
                       .message = "a custom operator has no gradient of its gradient",
                       .fix = "write it as mx.autograd.Function, whose backward() may be made of operators"});
}

}  // namespace

void CustomParams::describe(ParamSchema<CustomParams>& schema) {
  schema.field("op_type", &CustomParams::op_type).doc("Registered name of the operator.");
  schema.field("open_attributes", &CustomParams::open_attributes)
      .default_value("{}")
      .doc("Arguments of the operator: a JSON object of strings.");
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
      .variadic_input("data", "num_args",
                      "the inputs that the operator's list_arguments() names, then its auxiliary states")
      .output("output", "shape and dtype by the operator's infer_shape() and infer_type()")
      .num_outputs([](const CustomParams& p) { return Layout(p).num_outputs(); })
      .num_visible_outputs([](const CustomParams& p) { return custom_operators(p).num_outputs(p); })
      .infer(infer_custom)
      .link([](const CustomParams& p, const LinkContext& c) { return Ref<Kernel>(new CustomKernel(p, c.in)); },
            kAllDTypes)
      .any_device()
      .waits_on_gpu()
      .variadic_writeback([](const CustomParams& p, int output) {
        const Layout layout(p);
        return output < layout.outputs || output >= layout.kept() ? -1 : layout.arguments + output - layout.outputs;
      })
      .writeback_active([](const CustomParams& p, bool) { return Layout(p).states > 0; })
      .gradient(custom_gradient, Saves::all())
      .skips_unwanted_outputs()
      .opaque()
      .amp(AmpType::kFloat)
      .lazy_when([](const CustomParams& p) { return custom_operators(p).is_lazy(p); })
      .sample(Sample{.inputs = {{2, 3}},
                     .attrs = {{"op_type", "sample"}},
                     .check_gradient = false,
                     .note = "its code is outside the library: tests/python/operator"});
  ops.declare<BackwardCustomParams>("_backward_Custom")
      .doc("Gradient of an operator written in Python.")
      .internal()
      .variadic_input("data", "num_args", "values that forward kept, gradients of the outputs, inputs, outputs")
      .output("input_grad", "one per input of the operator")
      .num_outputs([](const BackwardCustomParams& p) { return p.num_arguments; })
      .infer(infer_backward)
      .cpu(run_backward)
      .any_device()
      .waits_on_gpu()
      .gradient(no_second_gradient, Saves::nothing())
      .skips_unwanted_outputs()
      .opaque()
      .sample(Sample{.inputs = {{1}, {2, 3}, {2, 3}, {2, 3}},
                     .attrs = {{"op_type", "sample"}, {"num_results", "1"}, {"num_arguments", "1"}},
                     .check_gradient = false,
                     .note = "its code is outside the library: tests/python/operator"});
}

}  // namespace ops
}  // namespace hybridnet
