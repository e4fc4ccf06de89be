// Symbol.bind: the plans of a GraphCallable over arrays that were bound once.
#include <algorithm>
#include <utility>

#include "hybridnet/plan.h"
#include "hybridnet/sparse.h"
#include "imperative/invoke.h"
#include "ndarray/overlap.h"
#include "plan/graph_callable.h"
#include "plan/task.h"

namespace hybridnet {
namespace {

const OpRef kAdd{"elemwise_add"}, kCopy{"_copy"}, kOnesLike{"ones_like"};

[[noreturn]] void throw_count(const char* what, size_t expected, size_t given) {
  throw ValueError(
      {.op = "bind", .input = what, .expected = std::to_string(expected) + " arrays", .given = std::to_string(given)});
}

// Throws unless gradients can be written into `gradient` without conversion.
void check_gradient(const std::string& name, const NDArray& argument, const NDArray& gradient) {
  const TensorSpec &wanted = argument.spec(), &given = gradient.spec();
  if (wanted == given) return;
  ErrorFields e{.op = "bind", .input = "args_grad of '" + name + "'", .expected = wanted.str(), .given = given.str()};
  e.because = "a gradient has the shape and dtype of its argument";
  if (wanted.shape == given.shape) throw DTypeError(std::move(e));
  throw ShapeError(std::move(e));
}

void write_zeros(const NDArray& target) {
  if (!target.is_sparse()) return push_zeros(target);
  move_into_sparse(target, sparse_zeros(target.storage_type(), target.spec(), target.device()));
}

}  // namespace

struct Executor::Impl {
  Ref<GraphCallable> function;
  std::vector<NDArray> inputs;     // in the order of list_inputs()
  std::vector<NDArray> gradients;  // parallel to inputs
  std::vector<Ref<Chunk>> held;    // their memory, so that it is not taken over meanwhile
  std::vector<Ref<Chunk>> held_outputs;
  std::vector<GradReq> requests;
  std::vector<uint8_t> wants;  // empty: no gradient is wanted
  std::vector<NDArray> outputs;
  Ref<GraphRun> run;  // the data for backward; null after a run in prediction mode
  RngKey key;         // key of the last run
  bool ran = false;

  // One gradient per output whose head is read; ones when none are given.
  std::vector<NDArray> heads_from(std::span<const NDArray> out_grads) const {
    std::vector<NDArray> heads(outputs.size());
    for (size_t i = 0; i < heads.size(); ++i) {
      if (!run->reads_head(i)) continue;
      if (out_grads.empty()) {
        const NDArray like = NDArray::deferred(outputs[i].spec(), outputs[i].device());
        heads[i] = invoke_one(kOnesLike.op(), kOnesLike.op().default_params, {&like, 1});
        continue;
      }
      if (i >= out_grads.size()) throw_count("out_grads", outputs.size(), out_grads.size());
      heads[i] = out_grads[i];
      if (!heads[i]) continue;
      if (!(heads[i].shape() == outputs[i].shape())) {
        throw ShapeError({.op = function->options().name,
                          .input = "out_grads[" + std::to_string(i) + "]",
                          .expected = "shape " + outputs[i].shape().str(),
                          .given = heads[i].shape().str()});
      }
      heads[i] = as_dtype(heads[i], outputs[i].dtype());
    }
    return heads;
  }
};

Executor::Executor(Symbol symbol, std::vector<NDArray> arguments, std::vector<NDArray> gradients,
                   std::vector<GradReq> requests, std::vector<NDArray> auxiliaries, const CallOptions& options)
    : impl_(std::make_unique<Impl>()) {
  const std::vector<std::string> argument_names = symbol.list_arguments();
  const std::vector<std::string> auxiliary_names = symbol.list_auxiliary_states();
  if (arguments.size() != argument_names.size()) throw_count("args", argument_names.size(), arguments.size());
  if (auxiliaries.size() != auxiliary_names.size())
    throw_count("aux_states", auxiliary_names.size(), auxiliaries.size());
  if (!gradients.empty() && gradients.size() != arguments.size())
    throw_count("args_grad", arguments.size(), gradients.size());
  if (!requests.empty() && requests.size() != arguments.size())
    throw_count("grad_req", arguments.size(), requests.size());

  GraphDefinition definition;
  definition.inputs = symbol.list_inputs();
  definition.outputs = symbol.outputs;
  Impl& m = *impl_;
  size_t argument = 0, auxiliary = 0;
  for (const NodePtr& variable : definition.inputs) {
    if (auxiliary < auxiliary_names.size() && auxiliary_names[auxiliary] == variable->name) {
      m.inputs.push_back(auxiliaries[auxiliary++]);
      m.gradients.emplace_back();
      m.requests.push_back(GradReq::kNull);
    } else {
      m.inputs.push_back(arguments.at(argument));
      m.gradients.push_back(gradients.empty() ? NDArray() : gradients[argument]);
      m.requests.push_back(requests.empty() ? GradReq::kWrite : requests[argument]);
      ++argument;
    }
    if (!m.gradients.back()) m.requests.back() = GradReq::kNull;
    m.wants.push_back(m.requests.back() == GradReq::kNull                            ? kNoGradient
                      : m.gradients.back().storage_type() == StorageType::kRowSparse ? kGradientByRows
                                                                                     : kGradient);
    if (!m.inputs.back())
      throw ValueError({.op = "bind", .input = variable->name, .expected = "an array", .given = "none"});
    if (m.gradients.back()) check_gradient(variable->name, m.inputs.back(), m.gradients.back());
    for (const NDArray& array : {m.inputs.back(), m.gradients.back()})
      if (array) m.held.push_back(array.impl()->chunk);
  }
  if (std::all_of(m.wants.begin(), m.wants.end(), [](uint8_t want) { return want == kNoGradient; })) m.wants.clear();
  CallOptions bound = options;
  if (bound.name.empty()) bound.name = "Executor";
  bound.static_alloc = true;  // bound arrays: the next call looks like this one
  m.function = make_ref<GraphCallable>(std::move(definition), bound);
}

Executor::~Executor() = default;

const std::vector<NDArray>& Executor::forward(bool train) {
  Impl& m = *impl_;
  m.run = {};
  // Results stay in the arrays that the caller may hold, unless their specs change.
  m.outputs = m.function->forward({.inputs = m.inputs,
                                   .wants = train ? std::span<const uint8_t>(m.wants) : std::span<const uint8_t>(),
                                   .train = train,
                                   .out = m.outputs,
                                   .out_may_differ = true,
                                   .used_key = &m.key},
                                  &m.run);
  m.held_outputs.clear();
  for (const NDArray& output : m.outputs) m.held_outputs.push_back(output.impl()->chunk);
  m.ran = true;
  return m.outputs;
}

void Executor::backward(std::span<const NDArray> out_grads) {
  Impl& m = *impl_;
  if (!m.ran) {
    throw GradientError({.op = m.function->options().name,
                         .message = "backward needs a forward run before it",
                         .fix = "call forward(is_train=True) first"});
  }
  if (m.wants.empty()) return;
  // After a run in prediction mode: runs once more and keeps the values for backward.
  if (!m.run) m.function->forward({.inputs = m.inputs, .wants = m.wants, .key = m.key}, &m.run);
  const std::vector<NDArray> heads = m.heads_from(out_grads);
  std::vector<NDArray> into(m.inputs.size());
  for (size_t i = 0; i < into.size(); ++i) {
    if (m.requests[i] == GradReq::kWrite) into[i] = m.gradients[i];
    if (m.requests[i] != GradReq::kNull) note_overwrite(m.gradients[i]);
  }
  const std::vector<NDArray> found = m.run->backward(heads, into);
  for (size_t i = 0; i < found.size(); ++i) {
    if (m.requests[i] == GradReq::kNull) continue;
    const NDArray& target = m.gradients[i];
    if (!found[i]) {
      if (m.requests[i] == GradReq::kWrite) write_zeros(target);
    } else if (m.requests[i] == GradReq::kAdd) {
      const NDArray terms[] = {target, found[i]};
      invoke(kAdd.op(), kAdd.op().default_params, terms, {&target, 1});
    } else if (!is_same_place(found[i], target)) {
      invoke(kCopy.op(), kCopy.op().default_params, {&found[i], 1}, {&target, 1});
    }
  }
}

const std::vector<NDArray>& Executor::outputs() const { return impl_->outputs; }

int64_t Executor::memory_bytes() { return impl_->function->memory_bytes(impl_->inputs, impl_->wants); }

std::string Executor::plan_text() const { return impl_->function->plan_text(); }

}  // namespace hybridnet
