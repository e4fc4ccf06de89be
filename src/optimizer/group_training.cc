#include "optimizer/group_training.h"

#include <algorithm>
#include <string>
#include <vector>

#include "group/buckets.h"
#include "group/current.h"
#include "hybridnet/imperative.h"
#include "imperative/group_arrays.h"
#include "imperative/invoke.h"

namespace hybridnet::optimizer {
namespace {

const OpRef kZerosLike{"zeros_like"};

// Arrays of one message, and its name in errors.
struct Message {
  std::vector<NDArray> arrays;
  std::string label;
};

struct NamedArray {
  std::string name;
  NDArray array;
};

std::vector<Message> messages_of(const std::string& kind, std::span<const NamedArray> named) {
  std::vector<group::BucketItem> items;
  for (const NamedArray& each : named)
    items.push_back({each.array.size() * dtype_size(each.array.dtype()), each.array.dtype()});
  std::vector<Message> messages;
  for (const std::vector<size_t>& members : group::buckets_of(items, group::current()->size())) {
    Message message;
    std::vector<std::string> names;
    for (const size_t i : members) {
      message.arrays.push_back(named[i].array);
      names.push_back(named[i].name);
    }
    message.label = group::bucket_label(kind, names);
    messages.push_back(std::move(message));
  }
  return messages;
}

bool is_trained(const TrainedParameter& parameter) { return static_cast<bool>(grad_of(parameter.weight)); }

void set_to_zero(const NDArray& array) {
  std::vector<NDArray> results;
  const Op& op = kZerosLike.op();
  invoke_into(op, op.schema->parse({}, kZerosLike.name()), {&array, 1}, {.out = {&array, 1}}, &results);
}

// The number of processes whose backward has reached each trained parameter.
std::vector<int32_t> numbers_of_processes(std::span<const TrainedParameter* const> trained) {
  std::vector<int32_t> counts;
  for (const TrainedParameter* parameter : trained) counts.push_back(gradient_is_fresh(parameter->weight) ? 1 : 0);
  const NDArray sums = NDArray::empty(Shape{static_cast<int64_t>(counts.size())}, DType::kInt32);
  sums.copy_from(counts.data());
  sum_over_group({{sums}}, {&sums, 1}, "numbers of processes that reached parameters", 0);
  sums.copy_to(counts.data());
  return counts;
}

}  // namespace

void take_values_of_first_process(std::span<const TrainedParameter> parameters) {
  if (group::current()->size() == 1) return;
  std::vector<NamedArray> values;
  for (const TrainedParameter& each : parameters) values.push_back({each.name, each.weight});
  for (const Message& message : messages_of("parameters", values))
    broadcast_over_group(message.arrays, 0, message.label);
}

void sum_gradients(std::span<const TrainedParameter> parameters, double batch_size) {
  const std::shared_ptr<group::Group> group = group::current();
  const group::Shards own = group->own_shards();
  if (own.end - own.begin > 1)
    throw ParamError(
        {.expected = "one virtual shard for each process",
         .given = std::to_string(group->shards()) + " shards for " + std::to_string(group->size()) + " processes",
         .message = "a trainer that sums over the group",
         .fix = "start the program without --virtual-shards, or train by gluon.Trainer in Python"});
  if (group->size() == 1) return;
  std::vector<NamedArray> gradients;
  for (const TrainedParameter& each : parameters)
    if (is_trained(each)) gradients.push_back({each.name, grad_of(each.weight)});
  std::reverse(gradients.begin(), gradients.end());
  for (const Message& message : messages_of(group::gradients_kind(batch_size), gradients))
    sum_over_group({message.arrays}, message.arrays, message.label, 0);
}

void agree_on_stale_gradients(std::span<const TrainedParameter> parameters) {
  if (group::current()->size() == 1) return;
  std::vector<const TrainedParameter*> trained;
  for (const TrainedParameter& each : parameters)
    if (is_trained(each)) trained.push_back(&each);
  const std::vector<int32_t> counts = numbers_of_processes(trained);
  for (size_t i = 0; i < trained.size(); ++i) {
    if (counts[i] == 0 || gradient_is_fresh(trained[i]->weight)) continue;
    set_to_zero(grad_of(trained[i]->weight));
    set_gradient_fresh(trained[i]->weight, true);
  }
}

}  // namespace hybridnet::optimizer
