// One run of a plan: the arrays for its results, and the values that its gradient needs.
#include "plan/graph_callable_run.h"

#include <algorithm>

#include "imperative/autograd_scope.h"
#include "imperative/out_arrays.h"
#include "imperative/tape.h"
#include "plan/task.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

// True if results may be written into the memory of a donated array: no other array shares it, and the library owns it.
// Executors and sessions also hold the memory of their arrays. A gradient buffer may be held by its leaf alone, a saved
// value by the tape or a graph alone, and an array by two objects of the front end: all are marked.
bool may_take_over(const NDArray& given, std::span<const NDArray> inputs) {
  if (given.is_sparse() || given.is_pending()) return false;
  Chunk& chunk = *given.impl()->chunk;
  if (chunk.ref_count() != 1 || !chunk.owns_block() || was_saved(chunk) || is_gradient_buffer(given)) return false;
  return std::count_if(inputs.begin(), inputs.end(),
                       [&](const NDArray& other) { return other.shares_memory(given); }) == 1;
}

// Returns the array of a result over the memory of a donated array. It is the array itself where that has the spec of
// the result: queued tasks that hold it do not look like other users of the memory, else a program that runs ahead
// would copy. The caller's handle has lost it when the call begins.
NDArray taken_over(const NDArray& given, const TensorSpec& spec) {
  note_overwrite(given);
  const bool is_plain = !given.impl()->tape && given.impl()->chunk->history.load(std::memory_order_acquire) == nullptr;
  if (is_plain && given.spec() == spec) return given;
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = spec;
  impl->chunk = given.impl()->chunk;
  impl->offset = given.impl()->offset;
  return NDArray(std::move(impl));
}

// Puts results into the memory of donated arrays. Returns the inputs for the task, which holds the result in the place
// of a donated array, as a queued task must hold the memory by one array only. Empty: no memory was taken over.
std::vector<NDArray> take_over_donated(const Plan& plan, std::span<const NDArray> inputs, std::vector<NDArray>& fresh) {
  std::vector<NDArray> bound;
  for (const Plan::Donation& donation : plan.donations()) {
    const auto input = static_cast<size_t>(donation.input), result = static_cast<size_t>(donation.fresh);
    if (!may_take_over(inputs[input], inputs)) continue;
    fresh[result] = taken_over(inputs[input], plan.fresh_outputs()[result]);
    if (bound.empty()) bound.assign(inputs.begin(), inputs.end());
    bound[input] = fresh[result];
  }
  return bound;
}

// Returns, for each source of the gradient that is an input which the run writes, a copy of its value before the run.
// Empty: none.
std::vector<NDArray> values_before(std::span<const BackwardInput> sources, std::span<const int> written,
                                   std::span<const NDArray> inputs) {
  std::vector<NDArray> before;
  for (size_t i = 0; i < sources.size() && !written.empty(); ++i) {
    if (sources[i].kind != BackwardInput::Kind::kForwardInput) continue;
    if (std::find(written.begin(), written.end(), sources[i].index) == written.end()) continue;
    if (before.empty()) before.resize(sources.size());
    const AutogradScope unrecorded({.recording = false, .training = autograd_state().training});
    const NDArray& input = inputs[static_cast<size_t>(sources[i].index)];
    before[i] = invoke_one(kCopy.op(), kCopy.op().default_params, {&input, 1});
  }
  return before;
}

void check_out(const Plan& plan, const std::string& function, std::span<const NDArray> out) {
  std::vector<TensorSpec> specs;
  for (const Plan::OutputInfo& info : plan.outputs()) specs.push_back(info.spec);
  require_specs(function, out, specs);
}

}  // namespace

std::vector<NDArray> GraphCallable::run_plan(const Ref<Compilation>& compiled, const Request& request, RngKey key,
                                             Ref<GraphRun>* run) {
  const Plan& plan = *compiled->forward;
  const std::span<const NDArray> inputs = request.inputs;
  std::span<const NDArray> out = request.out;
  if (request.out_may_differ &&
      !std::equal(out.begin(), out.end(), plan.outputs().begin(), plan.outputs().end(),
                  [](const NDArray& array, const Plan::OutputInfo& info) { return array.spec() == info.spec; }))
    out = {};
  if (!out.empty()) check_out(plan, options_.name, out);
  const Device device = inputs.empty() ? Device{} : inputs[0].device();
  std::vector<NDArray> fresh(plan.fresh_outputs().size());
  for (size_t i = 0; i < out.size(); ++i) {
    const Plan::OutputInfo& info = plan.outputs()[i];
    NDArray& place = fresh[static_cast<size_t>(info.fresh)];
    note_overwrite(out[i]);
    if (!place && plan.fresh_outputs()[static_cast<size_t>(info.fresh)] == info.spec &&
        may_write(out[i], info.spec, inputs, fresh)) {
      place = out[i];
    }
  }
  std::vector<NDArray> bound;  // the inputs of the task; empty: those of the call
  if (request.wants.empty() && out.empty()) {
    bound = take_over_donated(plan, inputs, fresh);
    if (!definition_.borrowed.empty()) lend_borrowed(compiled, device, fresh);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (!fresh[i]) fresh[i] = NDArray::deferred(plan.fresh_outputs()[i], device);
  }
  NDArray residuals;
  if (plan.residual_bytes() > 0) residuals = NDArray::deferred({Shape{plan.residual_bytes()}, DType::kUInt8}, device);
  std::vector<NDArray> read_before;
  if (run && !request.wants.empty()) read_before = values_before(compiled->sources, plan.written_inputs(), inputs);
  for (const int input : plan.written_inputs()) note_overwrite(inputs[static_cast<size_t>(input)]);
  std::shared_ptr<KeptObjects> kept;
  if (plan.is_opaque()) kept = std::make_shared<KeptObjects>();
  const bool stay_sound = definition_.atomic && !fresh.empty() && !plan.written_inputs().empty();
  push_plan(compiled->forward,
            {bound.empty() ? inputs : std::span<const NDArray>(bound), fresh, residuals, kept.get(),
             constants_.arrays(), stay_sound, options_.early_outputs},
            key, task_name_);

  std::vector<NDArray> results;
  results.reserve(plan.outputs().size());
  std::vector<bool> given(fresh.size());
  for (const Plan::OutputInfo& info : plan.outputs()) {
    const NDArray& array = fresh[static_cast<size_t>(info.fresh)];
    const bool first = !given[static_cast<size_t>(info.fresh)];
    given[static_cast<size_t>(info.fresh)] = true;
    results.push_back(first && array.spec() == info.spec ? array : array.reshaped(info.spec.shape));
  }
  if (run && !request.wants.empty()) {
    auto made = make_ref<PlanRun>(Ref<GraphCallable>(this), compiled);
    made->key = key;
    made->residuals = residuals;
    made->kept = std::move(kept);
    for (size_t i = 0; i < compiled->sources.size(); ++i) {
      const BackwardInput& source = compiled->sources[i];
      NDArray array;
      if (source.kind == BackwardInput::Kind::kForwardInput) {
        const bool is_kept = !read_before.empty() && read_before[i];
        array = is_kept ? read_before[i] : inputs[static_cast<size_t>(source.index)];
      }
      if (source.kind == BackwardInput::Kind::kForwardOutput)
        array = results[static_cast<size_t>(source.index)].detached();
      if (source.kind == BackwardInput::Kind::kResidual) {
        const Plan::ResidualPlace& place = plan.residuals()[static_cast<size_t>(source.index)];
        if (place.in_output) array = fresh[static_cast<size_t>(place.fresh)].detached();
      }
      made->sources.push_back(array ? SavedArray::of(array) : SavedArray());
    }
    *run = Ref<GraphRun>(made.get());
  }
  return copied_to(out, std::move(results));
}

// Writes results that the caller only borrows into the arrays of the previous call.
void GraphCallable::lend_borrowed(const Ref<Compilation>& compiled, Device device, std::vector<NDArray>& fresh) {
  const Plan& plan = *compiled->forward;
  std::vector<bool> may_lend(fresh.size(), true);
  for (size_t i = 0; i < plan.outputs().size(); ++i)
    if (definition_.borrowed[i] == 0) may_lend[static_cast<size_t>(plan.outputs()[i].fresh)] = false;
  const std::lock_guard lock(mutex_);
  compiled->borrowed.resize(fresh.size());
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (fresh[i] || !may_lend[i]) continue;
    NDArray& kept = compiled->borrowed[i];
    if (!kept) kept = NDArray::deferred(plan.fresh_outputs()[i], device);
    note_overwrite(kept);
    fresh[i] = kept.detached();
  }
}

}  // namespace hybridnet
