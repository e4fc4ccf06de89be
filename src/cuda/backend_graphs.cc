// Graphs in CudaBackend: chains of kernel nodes.
#include <utility>

#include "cuda/backend.h"
#include "cuda/driver_graph.h"
#include "cuda/errors.h"

namespace hybridnet::cuda {

namespace {

// A launch in the driver's form, which points to the launch's arguments.
class NodeParams {
 public:
  explicit NodeParams(const device::Backend::Launch& launch) : argument_(const_cast<void*>(launch.arguments)) {
    params_.function = static_cast<FunctionHandle>(launch.function);
    for (int axis = 0; axis < 3; ++axis) {
      params_.grid[axis] = launch.geometry.grid[axis];
      params_.block[axis] = launch.geometry.block[axis];
    }
    params_.arguments = &argument_;
  }
  NodeParams(const NodeParams&) = delete;
  const KernelNodeParams* get() const { return &params_; }

 private:
  void* argument_;
  KernelNodeParams params_;
};

DriverGraph& driver_graph(device::Backend::Graph graph) { return *reinterpret_cast<DriverGraph*>(graph); }

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
  GraphNodeHandle node = nullptr;
  for (const Launch& launch : launches) {
    const GraphNodeHandle before = node;
    const NodeParams params(launch);
    const Result result =
        driver_->graph_add_kernel(&node, made->graph, &before, before != nullptr ? 1 : 0, params.get());
    if (result != kSuccess)
      throw_launch_failure(result, driver_->graph_add_kernel.name, launch.function, launch.geometry);
    made->nodes.push_back(node);
  }
  call(driver_->graph_instantiate, &made->exec, made->graph, 0ull);
  const Graph handle = reinterpret_cast<Graph>(made.get());
  const std::lock_guard lock(mutex_);
  graphs_.emplace(handle, std::move(made));
  return handle;
}

void CudaBackend::set_node(Graph graph, size_t number, const Launch& launch) {
  use_some_device();
  const DriverGraph& of = driver_graph(graph);
  const NodeParams params(launch);
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
