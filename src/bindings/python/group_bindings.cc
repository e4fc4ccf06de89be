// The group of processes of mx.group.
#include <string>
#include <vector>

#include "casters.h"
#include "group/current.h"
#include "imperative/group_arrays.h"

namespace hybridnet::python {
namespace {

using Arrays = std::vector<NDArray>;

void join(int rank, int size, int shards, const std::string& meeting, const std::string& token_file,
          const std::string& address, const std::string& engine, const std::string& name, double timeout) {
  ReleaseGil release(false);
  group::join({.rank = rank,
               .size = size,
               .shards = shards,
               .meeting = meeting,
               .token = token_file.empty() ? std::string() : group::read_token(token_file),
               .address = address,
               .engine = engine,
               .name = name,
               .timeout_ms = static_cast<int64_t>(timeout * 1000)});
}

std::shared_ptr<group::Group> current_group() {
  if (std::shared_ptr<group::Group> joined = group::joined()) return joined;
  ReleaseGil release(false);  // the first call waits for the other processes
  return group::current();
}

// Calls with the array; the result has its class.
template <typename Call>
py::object result_like(const py::object& given, const Call& call) {
  const auto array = py::cast<NDArray>(given);
  current_group();
  NDArray result;
  {
    ReleaseGil release(true);
    result = call(array);
  }
  return wrap_like(std::move(result), given);
}

}  // namespace

void bind_groups(py::module_& m) {
  m.def("group_join", &join);
  m.def("group_is_joined", [] { return group::joined() != nullptr; });
  m.def("group_place", [] {
    const auto group = current_group();
    const group::Shards own = group->own_shards();
    return py::make_tuple(group->rank(), group->size(), group->shards(), own.begin, own.end);
  });
  m.def(
      "group_leave",
      [](const std::string& reason) {
        ReleaseGil release(false);
        group::leave(reason);
      },
      "Leaves the group; the others read the reason.");
  m.def(
      "group_counters",
      [] {
        const auto group = current_group();
        return py::make_tuple(group->calls(), group->bytes_sent());
      },
      "(finished calls, bytes of values sent).");
  m.def("group_sum_into", [](const Arrays& in, const Arrays& out, const std::string& label, int priority) {
    current_group();
    ReleaseGil release(true);
    sum_over_group({in}, out, label, priority);
  });
  m.def("group_sum_shards", [](const std::vector<Arrays>& nodes, const Arrays& out, const std::string& label) {
    current_group();
    ReleaseGil release(true);
    sum_over_group(nodes, out, label, 0, /*of_shards=*/true);
  });
  m.def(
      "group_nodes",
      [](int begin, int end, int shards) {
        std::vector<std::pair<int, int>> spans;
        for (const group::Shards& node : group::covering_nodes({begin, end}, shards))
          spans.emplace_back(node.begin, node.end);
        return spans;
      },
      "The nodes of the sum over `shards` that cover the shards from begin to end - 1.");
  m.def("group_sum", [](const py::object& given, const std::string& label) {
    return result_like(given, [&](const NDArray& array) { return summed_over_group(array, label); });
  });
  m.def("group_gather", [](const py::object& given, const std::string& label) {
    return result_like(given, [&](const NDArray& array) { return gathered_over_group(array, label); });
  });
  m.def("group_broadcast", [](const Arrays& arrays, int root, const std::string& label) {
    current_group();
    ReleaseGil release(true);
    broadcast_over_group(arrays, root, label);
  });
  m.def("group_barrier", [] {
    current_group();
    ReleaseGil release(true);
    wait_for_group();
  });
}

}  // namespace hybridnet::python
