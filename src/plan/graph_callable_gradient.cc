// Gradients of runs: by the backward plan, or by a function that can be differentiated again.
#include <algorithm>

#include "group/current.h"
#include "hybridnet/env.h"
#include "imperative/autograd_scope.h"
#include "imperative/invoke.h"
#include "plan/graph_callable_run.h"
#include "plan/task.h"
#include "sparse/operators.h"

namespace hybridnet {
namespace {

const OpRef kAdd{"elemwise_add"}, kZerosLike{"zeros_like"};

NDArray sum_of(const NDArray& a, const NDArray& b) {
  const NDArray terms[] = {a, b};
  return invoke_one(kAdd.op(), kAdd.op().default_params, terms);
}

// Returns the head gradient in the dtype of its output, because the plan reads the memory without a check. Throws
// ShapeError if its shape is another one.
NDArray head_for(const std::string& function, const TensorSpec& output, size_t index, const NDArray& given) {
  if (given.shape() == output.shape) return as_dtype(given, output.dtype);
  throw ShapeError({.op = function,
                    .input = "head gradient " + std::to_string(index),
                    .expected = "shape " + output.shape.str(),
                    .given = given.shape().str()});
}

// The heads in the form of CallSignature::heads. Outputs without a gradient count as outputs with a head.
std::vector<uint8_t> arriving_heads(const Compilation& compiled, std::span<const NDArray> heads) {
  std::vector<uint8_t> arriving;
  for (size_t i = 0; i < heads.size(); ++i) {
    if (heads[i] || compiled.has_gradient.empty() || compiled.has_gradient[i] == 0) continue;
    arriving.resize(heads.size(), 1);
    arriving[i] = 0;
  }
  return arriving;
}

}  // namespace

const std::vector<uint8_t>& GraphCallable::expected_heads(std::span<const uint8_t> wants) const {
  static const std::vector<uint8_t> all;
  return wants.empty() ? all : *expected_heads_.load(std::memory_order_acquire);
}

void GraphCallable::expect_heads(std::vector<uint8_t> heads) {
  const std::lock_guard lock(mutex_);
  auto known = std::find(known_heads_.begin(), known_heads_.end(), heads);
  if (known == known_heads_.end()) known = known_heads_.insert(known, std::move(heads));
  expected_heads_.store(&*known, std::memory_order_release);
}

GraphRun::Heads GraphCallable::compare_heads(const Compilation& compiled, std::span<const NDArray> heads) {
  const std::vector<uint8_t> arriving = arriving_heads(compiled, heads), &expected = compiled.signature.heads;
  if (arriving == expected) return GraphRun::Heads::kSame;
  const auto is_new = [&](size_t i) { return !expected.empty() && expected[i] == 0; };
  bool any_new = false;
  for (size_t i = 0; i < heads.size(); ++i) any_new = any_new || (is_new(i) && (arriving.empty() || arriving[i] != 0));
  expect_heads(arriving);
  return any_new ? GraphRun::Heads::kOthers : GraphRun::Heads::kFewer;
}

std::vector<NDArray> GraphCallable::run_backward(const PlanRun& run, std::span<const NDArray> heads,
                                                 std::span<const NDArray> into) {
  const Compilation& compiled = *run.compiled;
  std::vector<NDArray> gradients(compiled.gradient_of_input.size());
  if (!compiled.backward) return gradients;
  const Plan& plan = *compiled.backward;
  std::vector<NDArray> inputs;
  inputs.reserve(compiled.sources.size());
  for (size_t i = 0; i < compiled.sources.size(); ++i) {
    const BackwardInput& source = compiled.sources[i];
    const SavedArray& saved = run.sources[i];
    if (source.kind == BackwardInput::Kind::kHead) {
      const TensorSpec& spec = compiled.forward->outputs()[static_cast<size_t>(source.index)].spec;
      NDArray head = heads[static_cast<size_t>(source.index)];
      if (head) {
        head = head_for(options_.name, spec, static_cast<size_t>(source.index), to_dense(head));
      } else {
        head = NDArray::deferred(spec, compiled.signature.device);
        push_zeros(head);
      }
      inputs.push_back(std::move(head));
      continue;
    }
    if (saved.array) {
      if (saved.is_overwritten()) throw_overwritten(options_.name, value_name(source), saved, {});
      inputs.push_back(saved.array);
      continue;
    }
    const Plan::ResidualPlace& place = compiled.forward->residuals()[static_cast<size_t>(source.index)];
    if (!run.residuals) {  // all residuals are empty
      inputs.push_back(NDArray::empty(Shape{0}, DType::kUInt8, compiled.signature.device));
      continue;
    }
    inputs.push_back(run.residuals.sliced(place.offset, run.residuals.size()));
  }
  const Device device = inputs.empty() ? Device{} : inputs[0].device();
  std::vector<NDArray> fresh(plan.fresh_outputs().size());
  for (size_t i = 0; i < into.size(); ++i) {
    const int output = compiled.gradient_of_input[i];
    if (!into[i] || output < 0) continue;
    NDArray& place = fresh[static_cast<size_t>(plan.outputs()[static_cast<size_t>(output)].fresh)];
    if (!place && may_write(into[i], plan.outputs()[static_cast<size_t>(output)].spec, inputs, fresh)) place = into[i];
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (!fresh[i]) fresh[i] = NDArray::deferred(plan.fresh_outputs()[i], device);
  }
  // The gradients of the last layers are on their way to other processes while those of the first ones are computed.
  const bool early = group::has_others();
  push_plan(compiled.backward, {inputs, fresh, NDArray(), run.kept.get(), constants_.arrays(), false, early}, run.key,
            task_name_);
  const auto result = [&](int output) {
    const Plan::OutputInfo& info = plan.outputs()[static_cast<size_t>(output)];
    const NDArray& array = fresh[static_cast<size_t>(info.fresh)];
    return array.spec() == info.spec ? array : array.reshaped(info.spec.shape);
  };
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (compiled.gradient_of_input[i] >= 0) gradients[i] = result(compiled.gradient_of_input[i]);
    for (const RowsOfGradient& term : compiled.rows_of_input[i]) {
      const NDArray rows =
          row_sparse_gradient(compiled.signature.inputs[i].shape, result(term.values), result(term.rows), term.mode);
      gradients[i] = gradients[i] ? sum_of(gradients[i], rows) : rows;
    }
  }
  return gradients;
}

std::string GraphCallable::value_name(const BackwardInput& source) const {
  if (source.kind != BackwardInput::Kind::kForwardInput) return "an output";
  return definition_.inputs[static_cast<size_t>(source.index)]->name;
}

std::shared_ptr<GraphCallable::GradientFunction> GraphCallable::gradient_function(const CallSignature& signature) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, function] : gradients_) {
    if (known == signature) return function;
  }
  auto made = std::make_shared<GradientFunction>();
  made->definition = make_gradient_definition(definition_, signature, options_);
  CompileOptions options = options_;
  options.name += "_backward";
  made->function = make_ref<GraphCallable>(made->definition.graph, options);
  if (gradients_.size() >= static_cast<size_t>(environment().plan_limit)) gradients_.erase(gradients_.begin());
  gradients_.emplace_back(signature, made);
  return made;
}

std::vector<NDArray> GraphCallable::run_differentiable_backward(const PlanRun& run, std::span<const NDArray> inputs,
                                                                std::span<const NDArray> heads) {
  CallSignature signature = run.compiled->signature;
  signature.heads = arriving_heads(*run.compiled, heads);
  const std::shared_ptr<GradientFunction> gradient = gradient_function(signature);
  std::vector<NDArray> all(inputs.begin(), inputs.end());
  for (const int output : gradient->definition.heads) {
    NDArray head = heads[static_cast<size_t>(output)];
    const TensorSpec& spec = run.compiled->forward->outputs()[static_cast<size_t>(output)].spec;
    if (head) {
      head = head_for(options_.name, spec, static_cast<size_t>(output), head);
    } else {
      const NDArray like = NDArray::empty(spec);
      head = invoke_one(kZerosLike.op(), kZerosLike.op().default_params, {&like, 1});
    }
    all.push_back(std::move(head));
  }
  std::vector<NDArray> gradients(inputs.size());
  if (gradient->definition.of_inputs.empty()) return gradients;
  std::vector<NDArray> results;
  {
    // Uses the mode of the forward run, which is repeated here.
    const AutogradState state{.recording = autograd_state().recording, .training = run.compiled->signature.train};
    const AutogradScope scope(state);
    results = gradient->function->call(all, {}, run.key);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    gradients[static_cast<size_t>(gradient->definition.of_inputs[i])] = results[i];
  }
  return gradients;
}

}  // namespace hybridnet
