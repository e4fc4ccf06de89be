// The group of processes of mx.group.
#include <string>
#include <vector>

#include "casters.h"
#include "group/buckets.h"
#include "group/current.h"
#include "imperative/compressed_sums.h"
#include "imperative/group_arrays.h"

namespace hybridnet::python {
namespace {

using Arrays = std::vector<NDArray>;

void join(int rank, int size, int shards, const std::string& meeting, const std::string& token_file,
          const std::string& address, const std::string& engine, const std::string& name, double timeout,
          uint64_t communicator) {
  ReleaseGil release(false);
  group::join({.rank = rank,
               .size = size,
               .shards = shards,
               .meeting = meeting,
               .token = token_file.empty() ? std::string() : group::read_token(token_file),
               .address = address,
               .engine = engine,
               .name = name,
               .timeout_ms = static_cast<int64_t>(timeout * 1000),
               .communicator = communicator});
}

// The place of this process is that of its launcher.
void join_as_launched(const std::string& engine, int shards) {
  ReleaseGil release(false);
  group::Settings settings = group::settings_from_environment();
  if (!engine.empty()) settings.engine = engine;
  if (shards != 0) settings.shards = shards;
  group::join(settings);
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
  m.def("group_join", &join, py::arg("rank"), py::arg("size"), py::arg("shards"), py::arg("meeting"),
        py::arg("token_file"), py::arg("address"), py::arg("engine"), py::arg("name"), py::arg("timeout"),
        py::arg("communicator") = 0,
        "communicator: the handle of an MPI communicator in C; 0: that of all processes of the job.");
  m.def("group_join_as_launched", &join_as_launched);
  m.def(
      "group_check_token", [](const std::string& path) { group::read_token(path); },
      "Throws FileError or ValueError unless the file holds a token that others cannot read.");
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
  m.def("group_sum_scatter", [](const std::vector<Arrays>& nodes, const std::vector<int64_t>& bounds, const Arrays& out,
                                const std::string& label, bool of_shards) {
    current_group();
    ReleaseGil release(true);
    scatter_sum_over_group(nodes, bounds, out, label, of_shards);
  });
  m.def("group_gather_parts", [](const Arrays& arrays, const std::vector<int64_t>& bounds, const std::string& label) {
    current_group();
    ReleaseGil release(true);
    gather_parts_over_group(arrays, bounds, label);
  });
  m.def("group_part_bounds", [](int64_t count, int parts) {
    std::vector<int64_t> bounds;
    for (int part = 0; part <= parts; ++part) bounds.push_back(group::Group::part_begin(count, part, parts));
    return bounds;
  });
  m.def("group_sum_compressed", [](const Arrays& gradients, const Arrays& residuals, const Arrays& out, int bits,
                                   float threshold, const std::string& label, int priority) {
    current_group();
    ReleaseGil release(true);
    sum_compressed_over_group({bits, threshold}, gradients, residuals, out, label, priority);
  });
  m.def(
      "code_values",
      [](const NDArray& gradient, const NDArray& residual, const NDArray& out, int bits, float threshold) {
        ReleaseGil release(true);
        code_values({bits, threshold}, gradient, residual, out);
      },
      "Overwrites out by the values of the codes of gradient + residual, and residual by what they leave out.");
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
  m.def(
      "group_buckets",
      [](const Arrays& arrays) {
        std::vector<group::BucketItem> items;
        for (const NDArray& array : arrays) items.push_back({array.size() * dtype_size(array.dtype()), array.dtype()});
        return group::buckets_of(items, current_group()->size());
      },
      "Returns the positions of the arrays of each message.");
  m.def("group_gradients_kind", &group::gradients_kind);
  m.def("group_label", [](const std::string& kind, const std::vector<std::string>& names) {
    return group::bucket_label(kind, names);
  });
  m.def("group_barrier", [] {
    current_group();
    ReleaseGil release(true);
    wait_for_group();
  });
}

}  // namespace hybridnet::python
