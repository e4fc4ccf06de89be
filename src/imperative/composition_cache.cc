#include "imperative/composition_cache.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/hash.h"

namespace hybridnet {
namespace {

struct Entry {
  const Op* op = nullptr;
  ParamsPtr params;
  std::vector<TensorSpec> specs;
  bool train = false, np_shape = false;
  uint64_t hash = 0;
  Ref<const Composition> composition;
};

// One table per thread, so that no lock is needed: a call costs less than a contended mutex. A new entry replaces the
// entry with the same place_of().
constexpr size_t kEntries = 512;
std::vector<Entry>& entries() {
  static thread_local std::vector<Entry> table;
  return table;
}

size_t place_of(uint64_t hash) { return (hash ^ hash >> 32) % kEntries; }

// Shapes have few axes: a loop takes less time than the memcmp call in their operator==.
bool is_same(const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype != b.dtype || a.shape.ndim() != b.shape.ndim()) return false;
  for (int axis = 0; axis < a.shape.ndim(); ++axis)
    if (a.shape[axis] != b.shape[axis]) return false;
  return true;
}

}  // namespace

// If an array is passed twice, it is unknown which input the rule used.
NotingEmitter::NotingEmitter(std::span<const Value> inputs)
    : ArrayEmitter(true), values_(inputs.begin(), inputs.end()) {
  for (size_t i = 1; i < values_.size(); ++i)
    for (size_t k = 0; k < i; ++k) repeatable_ = repeatable_ && values_[i].object.get() != values_[k].object.get();
}

bool NotingEmitter::number_of(const Value& value, std::vector<uint32_t>* numbers) const {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const Value& known) { return known.object.get() == value.object.get(); });
  if (found == values_.end() || !value) return false;
  numbers->push_back(static_cast<uint32_t>(found - values_.begin()));
  return true;
}

Values NotingEmitter::emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) {
  Composition::Step step{&op, params, {}};
  for (const Value& input : inputs) repeatable_ = number_of(input, &step.inputs) && repeatable_;
  // After these operators the rule may depend on the shape of the result.
  if (op.data_dependent_shape || op.opaque) repeatable_ = false;
  Values results = ArrayEmitter::emit(op, std::move(params), inputs);
  values_.insert(values_.end(), results.begin(), results.end());
  steps_.push_back(std::move(step));
  return results;
}

Ref<const Composition> NotingEmitter::composition(size_t num_inputs, std::span<const Value> results) const {
  if (!repeatable_) return nullptr;
  auto made = make_ref<Composition>();
  for (const Value& result : results)
    if (!number_of(result, &made->results)) return nullptr;
  made->steps = steps_;
  std::vector<uint32_t> all(num_inputs + results.size());
  std::iota(all.begin(), all.end(), 0u);
  const auto behind_inputs = all.begin() + static_cast<std::ptrdiff_t>(num_inputs);
  made->is_one_call = steps_.size() == 1 &&
                      std::ranges::equal(steps_[0].inputs, std::span(all.begin(), behind_inputs)) &&
                      std::ranges::equal(made->results, std::span(behind_inputs, all.end()));
  return Ref<const Composition>(made.get());
}

ComposedCall::ComposedCall(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs)
    : op_(op), params_(params), inputs_(inputs), train_(autograd_state().training), np_shape_(is_np_shape()) {
  // The hash only has to differ for calls that are likely to follow each other; find() compares everything.
  hash_ =
      mix_hash(params.get() == op.default_params.get() ? 0 : op.schema->hash(params->data()),
               static_cast<uint64_t>(op.id) * 4 + static_cast<uint64_t>(train_) * 2 + static_cast<uint64_t>(np_shape_));
  if (inputs.empty()) return;
  const TensorSpec& spec = inputs[0].spec();
  hash_ = mix_hash(hash_, static_cast<uint64_t>(spec.dtype) * 31 + static_cast<uint64_t>(spec.shape.ndim()));
  for (const int64_t size : spec.shape) hash_ = mix_hash(hash_, static_cast<uint64_t>(size));
}

const Composition* ComposedCall::find() const {
  const std::vector<Entry>& table = entries();
  if (table.empty()) return nullptr;
  const Entry& entry = table[place_of(hash_)];
  const auto same_spec = [](const TensorSpec& spec, const NDArray& input) { return is_same(spec, input.spec()); };
  const bool same = entry.hash == hash_ && entry.op == &op_ && entry.train == train_ && entry.np_shape == np_shape_ &&
                    std::equal(entry.specs.begin(), entry.specs.end(), inputs_.begin(), inputs_.end(), same_spec) &&
                    (entry.params.get() == params_.get() || op_.schema->equal(entry.params->data(), params_->data()));
  return same ? entry.composition.get() : nullptr;
}

void ComposedCall::keep(Ref<const Composition> composition) const {
  std::vector<Entry>& table = entries();
  if (table.empty()) table.resize(kEntries);
  std::vector<TensorSpec> specs;
  for (const NDArray& input : inputs_) specs.push_back(input.spec());
  table[place_of(hash_)] = {&op_, params_, std::move(specs), train_, np_shape_, hash_, std::move(composition)};
}

}  // namespace hybridnet
