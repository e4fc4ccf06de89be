// Operators by name: look-up, preparation with attributes as text, and calls on arrays.
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "c_api/arrays.h"
#include "c_api/status.h"
#include "hybridnet/imperative.h"

namespace hybridnet::c_api {
namespace {

using Attributes = std::vector<std::pair<std::string, std::string>>;

// An operator with its attributes. For a variadic operator the number of inputs is known only at the call.
class PreparedOp final : public Handled {
 public:
  static constexpr HandleKind kKind = HandleKind::kOp;

  PreparedOp(const Op& op, Attributes attributes) : op_(op), attributes_(std::move(attributes)) {
    counts_ = !op_.count_param.empty();
    for (const auto& [name, text] : attributes_) counts_ = counts_ && name != op_.count_param;
    if (!counts_) params_ = parse(attributes_);
  }

  const Op& op() const { return op_; }

  ParamsPtr params(size_t num_inputs) {
    if (!counts_) return params_;
    {
      const std::shared_lock lock(mutex_);
      if (params_ && counted_ == num_inputs) return params_;
    }
    Attributes attributes = attributes_;
    attributes.emplace_back(op_.count_param, std::to_string(num_inputs));
    const ParamsPtr made = parse(attributes);
    const std::unique_lock lock(mutex_);
    counted_ = num_inputs;
    return params_ = made;
  }

 private:
  ParamsPtr parse(const Attributes& attributes) const {
    if (attributes.empty() && op_.default_params) return op_.default_params;
    return op_.schema->parse(attributes, op_.name, false);
  }

  const Op& op_;
  const Attributes attributes_;
  bool counts_;
  std::shared_mutex mutex_;  // protects the members below; used only if counts_
  ParamsPtr params_;
  size_t counted_ = 0;
};

std::unique_ptr<PreparedOp> prepare(const char* name, size_t num_attributes, const char* const* keys,
                                    const char* const* values, const char* function) {
  require(name, function, "name");
  if (num_attributes > 0) {
    require(keys, function, "keys");
    require(values, function, "values");
  }
  const Op& op = Runtime::get().ops().at(name);
  if (!op.subgraph_names.empty())
    throw UnsupportedError({.op = op.name,
                            .message = "loops and branches have bodies, which are no attributes",
                            .fix = "load a model that contains the loop (hn_model_load)"});
  if (op.hidden)
    throw UnsupportedError({.op = op.name,
                            .message = "it is a step of a gradient or of a rewritten graph, which trusts its arguments",
                            .fix = "hn_op_name lists the operators that programs call"});
  Attributes attributes;
  for (size_t i = 0; i < num_attributes; ++i) {
    require(keys[i], function, "keys");
    require(values[i], function, "values");
    attributes.emplace_back(keys[i], values[i]);
  }
  return std::make_unique<PreparedOp>(op, std::move(attributes));
}

// Returns the number of inputs that the attributes require; -1: any number.
int64_t wanted_inputs(const Op& op, const void* params) {
  if (!op.variadic || op.num_inputs_) return op.num_inputs(params);
  if (op.count_param.empty()) return -1;
  const AttrValue count = op.schema->get(params, op.schema->find(op.count_param));
  const int64_t* number = std::get_if<int64_t>(&count.value);
  return number != nullptr ? *number : -1;
}

void check_inputs(const Op& op, const void* params, size_t given) {
  const int64_t wanted = wanted_inputs(op, params);
  if (wanted < 0 || given == static_cast<size_t>(wanted)) return;
  std::string names;
  for (const InputInfo& input : op.inputs) names += (names.empty() ? "" : ", ") + input.name;
  throw ValueError({.op = op.name,
                    .input = "num_inputs",
                    .expected = std::to_string(wanted),
                    .given = std::to_string(given),
                    .because = "its inputs are (" + names + ")"});
}

// Returns the number of results of a call with this many inputs. Throws ValueError for a wrong number of inputs.
size_t num_results(PreparedOp& prepared, size_t num_inputs) {
  const ParamsPtr params = prepared.params(num_inputs);
  check_inputs(prepared.op(), params->data(), num_inputs);
  return static_cast<size_t>(prepared.op().num_visible_outputs(params->data()));
}

// *num_outputs: capacity of `outputs` on entry, number of results on return, also if the capacity is too small.
void call(PreparedOp& prepared, size_t num_inputs, const HnArray* inputs, size_t* num_outputs, HnArray* outputs,
          const char* function) {
  const std::vector<NDArray> in = arrays_of(num_inputs, inputs, function, "inputs");
  require(num_outputs, function, "num_outputs");
  const Op& op = prepared.op();
  const ParamsPtr params = prepared.params(num_inputs);
  check_inputs(op, params->data(), num_inputs);
  const auto visible = static_cast<size_t>(op.num_visible_outputs(params->data()));
  if (const size_t room = std::exchange(*num_outputs, visible); room < visible)
    throw ValueError({.op = op.name,
                      .input = "num_outputs",
                      .expected = "room for " + std::to_string(visible) + " arrays",
                      .given = std::to_string(room),
                      .fix = "call again with room for as many arrays as *num_outputs now says"});
  if (visible > 0) require(outputs, function, "outputs");
  const std::vector<NDArray> results = invoke(op, params, in);
  give_arrays(std::span(results).first(visible), outputs);
}

void call_into(PreparedOp& prepared, size_t num_inputs, const HnArray* inputs, size_t num_outputs,
               const HnArray* outputs, const char* function) {
  const std::vector<NDArray> in = arrays_of(num_inputs, inputs, function, "inputs");
  const std::vector<NDArray> out = arrays_of(num_outputs, outputs, function, "outputs");
  const ParamsPtr params = prepared.params(num_inputs);
  check_inputs(prepared.op(), params->data(), num_inputs);
  const int visible = prepared.op().num_visible_outputs(params->data());
  if (num_outputs != static_cast<size_t>(visible))
    throw ValueError({.op = prepared.op().name,
                      .input = "num_outputs",
                      .expected = std::to_string(visible),
                      .given = std::to_string(num_outputs)});
  invoke(prepared.op(), params, in, out);
}

// Returns the operators that programs may call: all but the internal ones of gradients and rewritten graphs.
std::vector<const Op*> callable_ops() {
  std::vector<const Op*> ops = Runtime::get().ops().all();
  std::erase_if(ops, [](const Op* op) { return op->hidden && op->subgraph_names.empty(); });
  return ops;
}

}  // namespace
}  // namespace hybridnet::c_api

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::guarded;
using c_api::Pinned;
using c_api::PreparedOp;
using c_api::require;

int hn_op_count(size_t* out) {
  return guarded([&] {
    require(out, "hn_op_count", "out");
    *out = c_api::callable_ops().size();
  });
}

int hn_op_name(size_t index, const char** out) {
  return guarded([&] {
    require(out, "hn_op_name", "out");
    const std::vector<const Op*> all = c_api::callable_ops();
    if (index >= all.size())
      throw IndexError({.op = "hn_op_name",
                        .input = "index",
                        .expected = "below " + std::to_string(all.size()),
                        .given = std::to_string(index)});
    *out = all[index]->name.c_str();
  });
}

int hn_op_prepare(const char* name, size_t num_attributes, const char* const* keys, const char* const* values,
                  HnOp* out) {
  return guarded([&] {
    require(out, "hn_op_prepare", "out");
    *out = static_cast<HnOp>(c_api::make_handle(c_api::prepare(name, num_attributes, keys, values, "hn_op_prepare")));
  });
}

int hn_op_free(HnOp op) {
  return guarded([&] { c_api::free_handle<PreparedOp>(op, "hn_op_free"); });
}

int hn_op_num_outputs(HnOp op, size_t num_inputs, size_t* out) {
  return guarded([&] {
    const Pinned<PreparedOp> prepared(op, "hn_op_num_outputs", "op");
    require(out, "hn_op_num_outputs", "out");
    *out = c_api::num_results(*prepared, num_inputs);
  });
}

int hn_op_call(HnOp op, size_t num_inputs, const HnArray* inputs, size_t* num_outputs, HnArray* outputs) {
  return guarded([&] {
    const Pinned<PreparedOp> prepared(op, "hn_op_call", "op");
    c_api::call(*prepared, num_inputs, inputs, num_outputs, outputs, "hn_op_call");
  });
}

int hn_op_call_into(HnOp op, size_t num_inputs, const HnArray* inputs, size_t num_outputs, const HnArray* outputs) {
  return guarded([&] {
    const Pinned<PreparedOp> prepared(op, "hn_op_call_into", "op");
    c_api::call_into(*prepared, num_inputs, inputs, num_outputs, outputs, "hn_op_call_into");
  });
}

int hn_invoke(const char* name, size_t num_attributes, const char* const* keys, const char* const* values,
              size_t num_inputs, const HnArray* inputs, size_t* num_outputs, HnArray* outputs) {
  return guarded([&] {
    const auto prepared = c_api::prepare(name, num_attributes, keys, values, "hn_invoke");
    c_api::call(*prepared, num_inputs, inputs, num_outputs, outputs, "hn_invoke");
  });
}

int hn_invoke_into(const char* name, size_t num_attributes, const char* const* keys, const char* const* values,
                   size_t num_inputs, const HnArray* inputs, size_t num_outputs, const HnArray* outputs) {
  return guarded([&] {
    const auto prepared = c_api::prepare(name, num_attributes, keys, values, "hn_invoke_into");
    c_api::call_into(*prepared, num_inputs, inputs, num_outputs, outputs, "hn_invoke_into");
  });
}
