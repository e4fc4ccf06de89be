#include "imperative/group_arrays.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "group/current.h"
#include "group/lane.h"
#include "hybridnet/error.h"
#include "imperative/invoke.h"
#include "imperative/tape.h"
#include "ndarray/device_work.h"
#include "ndarray/overlap.h"

namespace hybridnet {
namespace {

using group::Call;
using group::Group;

std::vector<Var*> vars_of(std::span<const NDArray> arrays) {
  std::vector<Var*> vars;
  for (const NDArray& array : arrays) vars.push_back(&array.var());
  return vars;
}

void check_dense(std::span<const NDArray> arrays, const char* call) {
  for (const NDArray& array : arrays) {
    if (array.is_sparse())
      throw UnsupportedError({.message = std::string("group: ") + call + " of an array in sparse storage",
                              .fix = "call tostype('default') first"});
    if (array.dtype() != arrays[0].dtype())
      throw DTypeError({.expected = std::string("arrays of one dtype, ") + dtype_name(arrays[0].dtype()),
                        .given = dtype_name(array.dtype()),
                        .message = std::string("group: ") + call,
                        .fix = "make one call for each dtype"});
  }
}

Call call_of(Call::Kind kind, std::span<const NDArray> arrays, const std::string& label) {
  Call call;
  call.kind = kind;
  call.dtype = arrays.empty() ? DType::kFloat32 : arrays[0].dtype();
  for (const NDArray& array : arrays) {
    call.count += array.size();
    call.add_shape(array.shape());
  }
  call.label = label;
  if (label.empty())
    call.label = group::unnamed_label(
        arrays.size() == 1 ? arrays[0].spec().str() : std::to_string(arrays.size()) + " arrays", current_location());
  return call;
}

// The values of several arrays, one after the other.
void pack(std::span<const NDArray> arrays, char* to) {
  for (const NDArray& array : arrays) {
    const auto bytes = static_cast<size_t>(array.bytes());
    if (bytes > 0) std::memcpy(to, array.data(), bytes);
    to += bytes;
  }
}

void unpack(const char* from, std::span<const NDArray> arrays) {
  for (const NDArray& array : arrays) {
    const auto bytes = static_cast<size_t>(array.bytes());
    if (bytes > 0) std::memcpy(array.data(), from, bytes);
    from += bytes;
  }
}

int64_t bytes_of(std::span<const NDArray> arrays) {
  int64_t bytes = 0;
  for (const NDArray& array : arrays) bytes += array.bytes();
  return bytes;
}

bool any_on_gpu(std::span<const NDArray> arrays) {
  return std::any_of(arrays.begin(), arrays.end(), [](const NDArray& array) { return array.is_on_gpu(); });
}

// Copies on the CPU, which carries the values to other processes.
std::vector<NDArray> copies_on_cpu(std::span<const NDArray> arrays) {
  std::vector<NDArray> copies;
  for (const NDArray& array : arrays) copies.push_back(array.is_on_gpu() ? copy_on(array, Device{}) : array);
  return copies;
}

void copy_back(std::span<const NDArray> from, std::span<const NDArray> to) {
  for (size_t i = 0; i < to.size(); ++i)
    if (!(from[i] == to[i])) copy_between_devices(from[i], to[i]);
}

using ArrayLists = std::vector<std::vector<NDArray>>;

std::vector<NDArray> concatenated(const ArrayLists& lists) {
  std::vector<NDArray> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

void check_number_of_nodes(const ArrayLists& nodes, bool of_shards) {
  const std::shared_ptr<Group> group = group::current();
  const size_t expected = of_shards ? group::covering_nodes(group->own_shards(), group->shards()).size() : 1;
  if (nodes.size() != expected)
    throw ParamError({.expected = std::to_string(expected) + " nodes of the sum over shards",
                      .given = std::to_string(nodes.size()),
                      .message = "group: a sum"});
}

int64_t size_of(std::span<const NDArray> arrays) {
  int64_t size = 0;
  for (const NDArray& array : arrays) size += array.size();
  return size;
}

void check_total(const char* what, int64_t expected, int64_t given) {
  if (given != expected)
    throw ShapeError({.expected = std::to_string(expected) + " elements",
                      .given = std::to_string(given),
                      .message = std::string("group: ") + what});
}

// Part r of a call, of the process r, is [bounds[r], bounds[r + 1]).
void add_bounds(Call& call, const std::vector<int64_t>& bounds) {
  const auto parts = static_cast<size_t>(group::current()->size());
  if (bounds.size() != parts + 1 || bounds.front() != 0 || bounds.back() != call.count ||
      !std::is_sorted(bounds.begin(), bounds.end()))
    throw ValueError(
        {.expected = std::to_string(parts + 1) + " ascending bounds, from 0 to " + std::to_string(call.count),
         .given = std::to_string(bounds.size()) + " other ones",
         .message = "group: the parts of the processes"});
  for (const int64_t bound : bounds) call.shapes = mix_hash(call.shapes, static_cast<uint64_t>(bound));
}

int64_t own_part(const std::vector<int64_t>& bounds) {
  const auto rank = static_cast<size_t>(group::current()->rank());
  return bounds[rank + 1] - bounds[rank];
}

void push_sum(ArrayLists nodes, std::span<const NDArray> out, Call call, int priority) {
  const std::vector<NDArray> reads = concatenated(nodes);
  // Several arrays are packed into one message. A single one is sent and written where it is, unless the sum would
  // overwrite elements that have yet to be read.
  const bool pack_values = out.size() > 1 || std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
                             return overlap(node[0], out[0]) && !is_same_place(node[0], out[0]);
                           });
  push_group_call("sum over the group", reads, out, priority,
                  [call, pack_values, nodes = std::move(nodes), to = std::vector<NDArray>(out.begin(), out.end())](
                      Group& group, uint64_t number) {
                    std::vector<const void*> values;
                    if (!pack_values) {
                      for (const auto& node : nodes) values.push_back(node[0].data());
                      return group.sum(call, number, values, to[0].data());
                    }
                    const int64_t bytes = bytes_of(to);
                    char* const staged = group.staging(bytes * static_cast<int64_t>(nodes.size()));
                    for (size_t i = 0; i < nodes.size(); ++i) {
                      values.push_back(staged + static_cast<int64_t>(i) * bytes);
                      pack(nodes[i], staged + static_cast<int64_t>(i) * bytes);
                    }
                    group.sum(call, number, values, staged);
                    unpack(staged, to);
                  });
}

class GroupSumFunction final : public RecordedFunction {
 public:
  explicit GroupSumFunction(std::string label) : label_(std::move(label)) {}
  std::string name() const override { return "sum over the group"; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    // Each process must take part, even where its gradient is zero.
    if (!out_grads[0])
      throw GradientError({.message = "the sum over the group of " + label_ + " has no gradient here"});
    const std::string label = "the gradient of " + label_;
    if (create_graph) return {summed_over_group(out_grads[0], label)};
    const NDArray sum = NDArray::empty(out_grads[0].spec(), out_grads[0].device());
    sum_over_group({{out_grads[0]}}, {&sum, 1}, label, 0);
    return {sum};
  }
  bool returns_fresh_arrays() const override { return true; }

 private:
  const std::string label_;
};

void check_not_recorded(const NDArray& array, const char* call) {
  if (!autograd_state().recording || !needs_gradient(array)) return;
  throw GradientError({.message = std::string("group: ") + call + " has no gradient",
                       .fix = "use array.detach(), or mx.group.sum, which has one"});
}

}  // namespace

void push_group_call(const char* name, std::span<const NDArray> reads, std::span<const NDArray> writes, int priority,
                     group::CallBody body) {
  std::vector<NDArray> keep(reads.begin(), reads.end());
  keep.insert(keep.end(), writes.begin(), writes.end());
  group::push_call(
      name, vars_of(reads), vars_of(writes), priority,
      [keep = std::move(keep), body = std::move(body)](Group& group, uint64_t number) { body(group, number); });
}

void scatter_sum_over_group(const ArrayLists& nodes, const std::vector<int64_t>& bounds, std::span<const NDArray> out,
                            const std::string& label, bool of_shards) {
  check_number_of_nodes(nodes, of_shards);
  ArrayLists sent;
  for (const auto& node : nodes) {
    check_dense(node, "a sum");
    sent.push_back(copies_on_cpu(node));
  }
  Call call = call_of(Call::Kind::kSumScatter, nodes[0], label);
  call.shards = of_shards ? group::current()->shards() : 0;
  add_bounds(call, bounds);
  const int64_t own = own_part(bounds), bytes = bytes_of(nodes[0]);
  for (const auto& node : nodes) check_total("a sum by parts", call.count, size_of(node));
  check_total("the results of a sum by parts", own, size_of(out));
  const std::vector<NDArray> received = copies_on_cpu(out);
  push_group_call("sum over the group, by parts", concatenated(sent), received, 0,
                  [call, bounds, bytes, sent, received](Group& group, uint64_t number) {
                    const auto count = static_cast<int64_t>(sent.size());
                    char* const staged = group.staging(bytes * count + bytes_of(received));
                    std::vector<const void*> values;
                    for (int64_t i = 0; i < count; ++i) {
                      values.push_back(staged + i * bytes);
                      pack(sent[static_cast<size_t>(i)], staged + i * bytes);
                    }
                    group.sum_scatter(call, number, values, bounds, staged + bytes * count);
                    unpack(staged + bytes * count, received);
                  });
  copy_back(received, out);
}

void gather_parts_over_group(std::span<const NDArray> arrays, const std::vector<int64_t>& bounds,
                             const std::string& label) {
  if (arrays.empty()) return;
  check_dense(arrays, "gathering");
  for (const NDArray& array : arrays) {
    check_recorded_write(array);
    note_overwrite(array);
  }
  Call call = call_of(Call::Kind::kGatherParts, arrays, label);
  add_bounds(call, bounds);
  check_total("gathering of parts", bounds.back(), call.count);
  const std::vector<NDArray> on_host = copies_on_cpu(arrays);
  push_group_call("gather parts over the group", on_host, on_host, 0,
                  [call, bounds, on_host](Group& group, uint64_t number) {
                    if (on_host.size() == 1) return group.gather_parts(call, number, bounds, on_host[0].data());
                    char* const staged = group.staging(bytes_of(on_host));
                    pack(on_host, staged);
                    group.gather_parts(call, number, bounds, staged);
                    unpack(staged, on_host);
                  });
  copy_back(on_host, arrays);
}

void sum_over_group(const ArrayLists& nodes, std::span<const NDArray> out, const std::string& label, int priority,
                    bool of_shards) {
  if (out.empty()) return;
  check_dense(out, "a sum");
  bool on_gpu = any_on_gpu(out);
  for (const auto& node : nodes) {
    if (node.size() != out.size())
      throw ShapeError({.expected = std::to_string(out.size()) + " arrays, as many as results",
                        .given = std::to_string(node.size()),
                        .message = "group: a sum"});
    check_dense(node, "a sum");
    for (size_t i = 0; i < out.size(); ++i) {
      if (node[i].spec() != out[i].spec())
        throw ShapeError({.expected = node[i].spec().str(), .given = out[i].spec().str(), .message = "group: a sum"});
    }
    on_gpu = on_gpu || any_on_gpu(node);
  }
  const std::shared_ptr<Group> group = group::current();
  check_number_of_nodes(nodes, of_shards);
  for (const NDArray& array : out) {
    check_recorded_write(array);
    note_overwrite(array);
  }
  Call call = call_of(Call::Kind::kSum, out, label);
  call.shards = of_shards ? group->shards() : 0;
  if (!on_gpu) return push_sum(nodes, out, call, priority);
  ArrayLists copies;
  for (const auto& node : nodes) copies.push_back(copies_on_cpu(node));
  std::vector<NDArray> sums;
  for (const NDArray& array : out) sums.push_back(NDArray::deferred(array.spec()));
  push_sum(std::move(copies), sums, call, priority);
  copy_back(sums, out);
}

NDArray summed_over_group(const NDArray& array, const std::string& label) {
  check_dense({&array, 1}, "a sum");
  const NDArray sum = NDArray::deferred(array.spec(), array.device());
  sum_over_group({{array}}, {&sum, 1}, label, 0);
  if (autograd_state().recording) {
    const Call call = call_of(Call::Kind::kSum, {&array, 1}, label);
    record(Ref<RecordedFunction>(new GroupSumFunction(call.label)), {&array, 1}, {&sum, 1});
  }
  return sum;
}

NDArray gathered_over_group(const NDArray& array, const std::string& label) {
  check_dense({&array, 1}, "gathering");
  check_not_recorded(array, "gathering");
  const int64_t processes = group::current()->size();
  TensorSpec spec = array.spec();
  Shape shape{processes};
  for (const int64_t dim : spec.shape) shape.push_back(dim);
  spec.shape = shape;
  const NDArray own = array.is_on_gpu() ? copy_on(array, Device{}) : array;
  const NDArray all = NDArray::deferred(spec);
  const Call call = call_of(Call::Kind::kGather, {&array, 1}, label);
  push_group_call("gather over the group", {&own, 1}, {&all, 1}, 0, [call, own, all](Group& group, uint64_t number) {
    group.gather(call, number, own.data(), all.data());
  });
  return array.is_on_gpu() ? copy_on(all, array.device()) : all;
}

void broadcast_over_group(std::span<const NDArray> arrays, int root, const std::string& label) {
  if (arrays.empty()) return;
  check_dense(arrays, "a broadcast");
  const std::shared_ptr<Group> group = group::current();
  if (root < 0 || root >= group->size())
    throw ValueError({.expected = "a rank from 0 to " + std::to_string(group->size() - 1),
                      .given = std::to_string(root),
                      .message = "group: the root of a broadcast"});
  for (const NDArray& array : arrays) {
    check_recorded_write(array);
    note_overwrite(array);
  }
  Call call = call_of(Call::Kind::kBroadcast, arrays, label);
  call.root = root;
  const std::vector<NDArray> on_host = copies_on_cpu(arrays);
  push_group_call("broadcast over the group", {}, on_host, 0, [call, on_host](Group& members, uint64_t number) {
    if (on_host.size() == 1) return members.broadcast(call, number, on_host[0].data());
    char* const staged = members.staging(bytes_of(on_host));
    if (members.rank() == call.root) pack(on_host, staged);
    members.broadcast(call, number, staged);
    if (members.rank() != call.root) unpack(staged, on_host);
  });
  copy_back(on_host, arrays);
}

void wait_for_group() {
  push_group_call("barrier of the group", {}, {}, 0, [](Group& group, uint64_t number) { group.barrier(number); });
  group::wait_for_calls();
}

}  // namespace hybridnet
