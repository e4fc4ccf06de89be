// Graphs in CudaBackend: chains of kernel nodes and of conditional nodes, in whose bodies there are such chains again.
#include <cstring>
#include <utility>
#include <vector>

#include "cuda/backend.h"
#include "cuda/driver_graph.h"
#include "cuda/errors.h"

namespace hybridnet::cuda {

namespace {

// A launch in the driver's form. It points to the launch's arguments, or to a copy with handles of conditions.
class NodeParams {
 public:
  NodeParams(const device::Backend::Launch& launch, const std::vector<DriverGraph::Condition>& conditions)
      : argument_(const_cast<void*>(launch.arguments)) {
    params_.function = static_cast<FunctionHandle>(launch.function);
    for (int axis = 0; axis < 3; ++axis) {
      params_.grid[axis] = launch.geometry.grid[axis];
      params_.block[axis] = launch.geometry.block[axis];
    }
    params_.arguments = &argument_;
    if (launch.set_conditions > 0) put_handles(launch, conditions);
  }
  NodeParams(const NodeParams&) = delete;
  const KernelNodeParams* get() const { return &params_; }

 private:
  void put_handles(const device::Backend::Launch& launch, const std::vector<DriverGraph::Condition>& conditions) {
    own_.resize((launch.bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    std::memcpy(own_.data(), launch.arguments, launch.bytes);
    for (uint32_t i = 0; i < launch.set_conditions; ++i) own_[i] = conditions[own_[i]].handle;
    argument_ = own_.data();
  }

  std::vector<uint64_t> own_;
  void* argument_;
  KernelNodeParams params_;
};

DriverGraph& driver_graph(device::Backend::Graph graph) { return *reinterpret_cast<DriverGraph*>(graph); }

// Adds launches to a graph: one chain of nodes, and one in the body of each conditional node.
class GraphWriter {
 public:
  GraphWriter(DriverGraph& made, Context context) : made_(made), context_(context), chains_{{made.graph, nullptr}} {}

  // Returns what failed, or null; *result has the driver's reason.
  const char* add(const device::Backend::Launch& launch, Result* result) {
    using Kind = device::Backend::Launch::Kind;
    if (launch.kind == Kind::kKernel) return add_kernel(launch, result);
    if (launch.kind != Kind::kEnd) return add_part(launch, result);
    chains_.pop_back();
    made_.nodes.push_back(nullptr);
    return nullptr;
  }

 private:
  struct Chain {
    GraphHandle graph;
    GraphNodeHandle last;
  };
  const GraphNodeHandle* before() { return chains_.back().last != nullptr ? &chains_.back().last : nullptr; }
  size_t num_before() { return chains_.back().last != nullptr ? 1 : 0; }

  const char* add_kernel(const device::Backend::Launch& launch, Result* result) {
    const auto* const numbers = static_cast<const uint64_t*>(launch.arguments);
    for (uint32_t i = 0; i < launch.set_conditions; ++i)
      if (const char* const failed = make_condition(numbers[i], result)) return failed;
    const Driver& driver = made_.driver;
    const NodeParams params(launch, made_.conditions);
    GraphNodeHandle node = nullptr;
    *result = driver.graph_add_kernel(&node, chains_.back().graph, before(), num_before(), params.get());
    if (*result != kSuccess) return driver.graph_add_kernel.name;
    append(node);
    return nullptr;
  }

  // The kernel in front of a part names its condition first: it stands in the graph that gets the conditional node. It
  // sets the condition in each run, so that the condition needs no value at the start.
  const char* make_condition(uint64_t number, Result* result) {
    if (made_.conditions.size() <= number) made_.conditions.resize(number + 1);
    DriverGraph::Condition& condition = made_.conditions[number];
    if (condition.graph != nullptr) return nullptr;
    condition.graph = chains_.back().graph;
    *result = made_.driver.condition_create(&condition.handle, condition.graph, context_, 0u, 0u);
    return *result == kSuccess ? nullptr : made_.driver.condition_create.name;
  }

  const char* add_part(const device::Backend::Launch& launch, Result* result) {
    ConditionalNodeParams params;
    params.condition = made_.conditions.at(launch.condition).handle;
    params.kind = launch.kind == device::Backend::Launch::Kind::kIf ? kIfNode : kWhileNode;
    params.context = context_;
    const Driver& driver = made_.driver;
    GraphNodeHandle node = nullptr;
    *result = driver.graph_add_node(&node, chains_.back().graph, before(), nullptr, num_before(), &params);
    if (*result != kSuccess) return driver.graph_add_node.name;
    append(node);
    chains_.push_back({params.bodies[0], nullptr});
    return nullptr;
  }

  void append(GraphNodeHandle node) {
    chains_.back().last = node;
    made_.nodes.push_back(node);
  }

  DriverGraph& made_;
  const Context context_;
  std::vector<Chain> chains_;  // the innermost comes last
};

}  // namespace

bool CudaBackend::makes_graphs() const {
  return options_.graphs && !options_.synchronous && driver_->graph_create && driver_->graph_destroy &&
         driver_->graph_add_kernel && driver_->graph_instantiate && driver_->exec_set_kernel && driver_->graph_launch &&
         driver_->exec_destroy;
}

device::Backend::Graph CudaBackend::make_graph(std::span<const Launch> launches) {
  use_some_device();
  auto made = std::make_unique<DriverGraph>(*driver_);
  made->device = current_device();
  call(driver_->graph_create, &made->graph, 0u);
  GraphWriter writer(*made, context_of(made->device));
  for (const Launch& launch : launches) {
    Result result = kSuccess;
    if (const char* const failed = writer.add(launch, &result))
      throw_launch_failure(result, failed, launch.function, launch.geometry);
  }
  call(driver_->graph_instantiate, &made->exec, made->graph, 0ull);
  const Graph handle = reinterpret_cast<Graph>(made.get());
  const std::lock_guard lock(mutex_);
  graphs_.emplace(handle, std::move(made));
  return handle;
}

// The driver documents the update of a kernel node in the body of a conditional node by the executable graph that the
// whole graph became (cuGraphExecUpdate: the rules are those of other nodes).
void CudaBackend::set_node(Graph graph, size_t number, const Launch& launch) {
  use_some_device();
  const DriverGraph& of = driver_graph(graph);
  const NodeParams params(launch, of.conditions);
  const Result result = driver_->exec_set_kernel(of.exec, of.nodes[number], params.get());
  if (result != kSuccess) throw_launch_failure(result, driver_->exec_set_kernel.name, launch.function, launch.geometry);
}

void CudaBackend::launch(Graph graph, Stream stream) {
  use_some_device();
  call(driver_->graph_launch, driver_graph(graph).exec, reinterpret_cast<StreamHandle>(stream));
}

// Destructors of plans call this, so it does nothing at exit and in a forked child, where the lock may be held for
// good.
void CudaBackend::free_graph(Graph graph) noexcept {
  if (process_is_forked() || process_is_ending()) return;
  std::unique_ptr<DriverGraph> freed;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) return;
  freed = std::move(found->second);
  graphs_.erase(found);
}

void CudaBackend::free_graphs_of(int device) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(graphs_, [device](const auto& graph) { return graph.second->device == device; });
}

}  // namespace hybridnet::cuda
