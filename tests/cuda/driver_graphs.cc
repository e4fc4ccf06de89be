// The driver's capture of streams, graphs, and their conditional nodes.
#include <algorithm>
#include <cstring>
#include <set>

#include "driver.h"
#include "graphs.h"
#include "schedule.h"

using namespace standin;

namespace {

// CUDA_KERNEL_NODE_PARAMS_v2, CUDA_CONDITIONAL_NODE_PARAMS and CUgraphNodeParams of the driver's binary interface.
struct KernelParams {
  Function* function;
  unsigned grid[3], block[3], dynamic_shared_bytes;
  void** arguments;
  void** extra;
  void* kernel;
  Context* context;
};
struct ConditionalParams {
  unsigned long long handle;
  int type;
  unsigned size;
  Graph** bodies;
  Context* context;
};
struct NodeParams {
  int type;
  int reserved_before[3];
  union {
    long long bytes[29];
    KernelParams kernel;
    ConditionalParams conditional;
  };
  long long reserved_after;
};
constexpr int kKernelNode = 0, kConditionalNode = 13, kOtherNode = 5;  // CUgraphNodeType; 5: empty
constexpr unsigned kAssignAtStart = 1;                                 // CU_GRAPH_COND_ASSIGN_DEFAULT
constexpr int kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalid = 2;

std::set<Graph*>& graphs() {
  static auto& all = *new std::set<Graph*>;
  return all;
}
std::set<GraphExec*>& execs() {
  static auto& all = *new std::set<GraphExec*>;
  return all;
}

// The driver owns bodies: they live as long as the graph around them.
Graph* new_body(Graph& around) {
  auto* graph = new Graph;
  add_lane(*graph, nullptr);
  graph->parent = &around;
  graphs().insert(graph);
  return graph;
}

Graph* new_graph() {
  auto* graph = new Graph;
  add_lane(*graph, nullptr);
  graphs().insert(graph);
  ++world().counters.live_graphs;
  return graph;
}

void mark_destroyed(Graph& graph) {
  graph.destroyed = true;
  for (const Step& step : graph.steps)
    if (step.body) mark_destroyed(*step.body);
}

bool is_alive(Graph* graph, const char* function) {
  if (graphs().count(graph) != 0 && !graph->destroyed) return true;
  report(std::string("stale graph: ") + function + " gets a graph that is destroyed or none");
  return false;
}
bool is_alive(GraphExec* exec, const char* function) {
  if (execs().count(exec) != 0 && !exec->destroyed) return true;
  report(std::string("stale graph: ") + function + " gets a graph that is destroyed or none");
  return false;
}

// The first lane of an empty graph, else a new one.
void begin(Graph& graph, Stream& stream) {
  if (graph.steps.empty() && !graph.lanes[0])
    graph.lanes[0] = &stream;
  else
    add_lane(graph, &stream);
  stream.capture = &graph;
}

std::pair<size_t, size_t> position_of(const GraphNode& node) {
  const auto& steps = node.graph->steps;
  const size_t lane = steps[node.index].lane;
  size_t count = 0;
  for (size_t i = 0; i <= node.index; ++i) count += steps[i].lane == lane;
  return {lane, count};
}

void wait_for_nodes(Graph& graph, Stream& stream, GraphNode* const* nodes, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const auto [lane, steps] = position_of(*nodes[i]);
    capture_wait(graph, stream, lane, steps);
  }
}

bool set_launch(Launch& launch, const KernelParams& params) {
  if (!params.function || !params.arguments || params.extra || params.dynamic_shared_bytes != 0) return false;
  launch.function = params.function;
  launch.grid = {params.grid[0], params.grid[1], params.grid[2]};
  launch.block = {params.block[0], params.block[1], params.block[2]};
  launch.copy_arguments(params.arguments);
  return check_launch(launch) == kSuccess;
}

// The lane that ends with the only predecessor, else a new one.
size_t lane_after(Graph& graph, const std::vector<std::pair<size_t, size_t>>& after) {
  if (after.size() == 1 && graph.lane_steps[after[0].first] == after[0].second) return after[0].first;
  if (after.empty() && graph.steps.empty()) return 0;
  return add_lane(graph, nullptr);
}

bool has_conditions(const Graph& graph) {
  return std::any_of(graph.steps.begin(), graph.steps.end(), [](const Step& step) { return step.body != nullptr; });
}
bool has_exec(const Graph& graph) {
  return std::any_of(execs().begin(), execs().end(),
                     [&](const GraphExec* exec) { return exec->graph == &graph && !exec->destroyed; });
}

Result refuse_node(const std::string& why) {
  report("graph: cuGraphAddNode: " + why);
  return kInvalidValue;
}

// The driver asks for zeros in all bytes that a kind of node does not use.
bool has_other_bytes(const NodeParams& params) {
  const auto* const bytes = reinterpret_cast<const char*>(&params.conditional + 1);
  const auto* const end = reinterpret_cast<const char*>(&params + 1);
  return std::any_of(params.reserved_before, params.reserved_before + 3, [](int word) { return word != 0; }) ||
         std::any_of(bytes, end, [](char byte) { return byte != 0; });
}

Result fill_conditional(Graph& graph, Step& step, NodeParams& params) {
  ConditionalParams& given = params.conditional;
  if (given.size != 1 || given.type < 0 || given.type > 1) return kNotSupported;
  if (has_other_bytes(params)) return refuse_node("bytes that must be 0 are not");
  Condition* const condition = condition_of(graph, given.handle);
  if (!condition) return refuse_node("the condition belongs to another graph");
  if (condition->has_node) return refuse_node("the condition has another node");
  if (given.context && given.context != t_context) return refuse_node("the node belongs to another context");
  condition->has_node = true;
  step.name = given.type == 0 ? "an IF node" : "a WHILE node";
  step.loop = static_cast<Loop>(given.type);
  step.condition = given.handle;
  step.body = new_body(graph);
  given.bodies = new Graph* [1] { step.body };  // kept: the driver's memory
  return kSuccess;
}

Result fill_step(Graph& graph, Step& step, NodeParams& params) {
  if (params.type == kConditionalNode) return fill_conditional(graph, step, params);
  if (params.type != kKernelNode) return kNotSupported;
  step.launch = std::make_shared<Launch>();
  if (!set_launch(*step.launch, params.kernel)) return kInvalidValue;
  step.name = step.launch->function->name;
  return kSuccess;
}

Result add_node(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count, NodeParams& params) {
  if (!is_alive(graph, "cuGraphAddNode")) return kInvalidValue;
  Step step;
  if (const Result result = fill_step(*graph, step, params); result != kSuccess) return result;
  for (size_t i = 0; i < count; ++i) step.after.push_back(position_of(*before[i]));
  step.lane = lane_after(*graph, step.after);
  *node = add_step(*graph, std::move(step));
  return kSuccess;
}

}  // namespace

extern "C" {

int cuStreamBeginCapture_v2(Stream* handle, int) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamBeginCapture", &result);
    if (!stream) return result;
    if (stream->capture || !handle) return kIllegalState;
    Graph* graph = new_graph();
    graph->origin = stream;
    begin(*graph, *stream);
    return kSuccess;
  });
}

int cuStreamBeginCaptureToGraph(Stream* handle, Graph* graph, GraphNode* const* before, const void*, size_t count,
                                int) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamBeginCaptureToGraph", &result);
    if (!stream) return result;
    if (stream->capture || !handle || !is_alive(graph, "cuStreamBeginCaptureToGraph")) return kIllegalState;
    graph->origin = stream;
    begin(*graph, *stream);
    wait_for_nodes(*graph, *stream, before, count);
    return kSuccess;
  });
}

int cuStreamEndCapture(Stream* handle, Graph** graph) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamEndCapture", &result);
    if (!stream) return result;
    *graph = nullptr;
    Graph* captured = stream->capture;
    if (!captured) return kIllegalState;
    if (captured->origin != stream) return kCaptureUnmatched;
    for (Stream*& lane : captured->lanes) {
      if (lane) lane->capture = nullptr;
      lane = nullptr;
    }
    captured->origin = nullptr;
    if (captured->invalid) return kCaptureInvalidated;
    if (!is_joined(*captured)) {
      report("graph: a stream that was forked in a capture was not joined");
      return kCaptureUnjoined;
    }
    *graph = captured;
    return kSuccess;
  });
}

int cuStreamIsCapturing(Stream* handle, int* status) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamIsCapturing", &result);
    if (!stream) return result;
    *status = !stream->capture ? kCaptureNone : stream->capture->invalid ? kCaptureInvalid : kCaptureActive;
    return kSuccess;
  });
}

// The dependencies are the last node of the stream.
int cuStreamGetCaptureInfo_v2(Stream* handle, int* status, unsigned long long* id, Graph** graph, GraphNode*** nodes,
                              size_t* count) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamGetCaptureInfo", &result);
    if (!stream) return result;
    Graph* captured = stream->capture;
    *status = !captured ? kCaptureNone : captured->invalid ? kCaptureInvalid : kCaptureActive;
    if (!captured) return kSuccess;
    static thread_local GraphNode* last;
    last = nullptr;
    const size_t lane = lane_of(*captured, *stream);
    for (const Step& step : captured->steps)
      if (step.lane == lane) last = step.node;
    if (id) *id = reinterpret_cast<uintptr_t>(captured);
    if (graph) *graph = captured;
    if (nodes) *nodes = &last;
    if (count) *count = last ? 1 : 0;
    return kSuccess;
  });
}

int cuStreamUpdateCaptureDependencies(Stream* handle, GraphNode** nodes, size_t count, unsigned) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamUpdateCaptureDependencies", &result);
    if (!stream) return result;
    if (!stream->capture) return kIllegalState;
    wait_for_nodes(*stream->capture, *stream, nodes, count);
    return kSuccess;
  });
}

int cuGraphCreate(Graph** graph, unsigned) {
  return call(__func__, [&](World&) {
    *graph = new_graph();
    return kSuccess;
  });
}

int cuGraphDestroy(Graph* graph) {
  return call(__func__, [&](World&) {
    if (!is_alive(graph, "cuGraphDestroy")) return kInvalidValue;
    if (graph->parent) {
      report("graph: cuGraphDestroy gets the body of a conditional node, which the driver owns");
      return kInvalidValue;
    }
    mark_destroyed(*graph);
    --world().counters.live_graphs;
    return kSuccess;
  });
}

int cuGraphGetNodes(Graph* graph, GraphNode** nodes, size_t* count) {
  return call(__func__, [&](World&) {
    if (!is_alive(graph, "cuGraphGetNodes")) return kInvalidValue;
    const size_t all = graph->steps.size(), kept = nodes ? std::min(all, *count) : 0;
    for (size_t i = 0; i < kept; ++i) nodes[i] = graph->steps[i].node;
    *count = nodes ? kept : all;
    return kSuccess;
  });
}

int cuGraphNodeGetType(GraphNode* node, int* type) {
  return call(__func__, [&](World&) {
    const Step& step = node->graph->steps[node->index];
    *type = step.launch ? kKernelNode : step.body ? kConditionalNode : step.run ? 1 : kOtherNode;
    return kSuccess;
  });
}

int cuGraphKernelNodeGetParams_v2(GraphNode* node, KernelParams* params) {
  return call(__func__, [&](World&) {
    const Step& step = node->graph->steps[node->index];
    if (!step.launch) return kInvalidValue;
    const Launch& launch = *step.launch;
    auto** arguments = new void* [1] { launch.arguments.empty() ? nullptr : step.launch->arguments.data() };
    *params = {launch.function,
               {launch.grid.x, launch.grid.y, launch.grid.z},
               {launch.block.x, launch.block.y, launch.block.z},
               0,
               arguments,
               nullptr,
               nullptr,
               launch.function->module->context};
    return kSuccess;
  });
}

int cuGraphAddNode_v2(GraphNode** node, Graph* graph, GraphNode* const* before, const void*, size_t count,
                      NodeParams* params) {
  return call(__func__, [&](World&) { return add_node(node, graph, before, count, *params); });
}
int cuGraphAddNode(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count, NodeParams* params) {
  return call(__func__, [&](World&) { return add_node(node, graph, before, count, *params); });
}

int cuGraphAddKernelNode_v2(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count,
                            const KernelParams* params) {
  return call(__func__, [&](World&) {
    NodeParams of_kernel{};
    of_kernel.type = kKernelNode;
    of_kernel.kernel = *params;
    return add_node(node, graph, before, count, of_kernel);
  });
}

int cuGraphConditionalHandleCreate(unsigned long long* handle, Graph* graph, Context*, unsigned start, unsigned flags) {
  return call(__func__, [&](World& w) {
    if (!is_alive(graph, "cuGraphConditionalHandleCreate")) return kInvalidValue;
    static unsigned long long next = 0;
    *handle = ++next;
    w.conditions[*handle] = std::nullopt;
    const bool assigned = (flags & kAssignAtStart) != 0;
    graph->conditions.push_back({*handle, assigned ? std::optional<unsigned>(start) : std::nullopt});
    return kSuccess;
  });
}

int cuGraphInstantiateWithFlags(GraphExec** exec, Graph* graph, unsigned long long) {
  return call(__func__, [&](World& w) {
    if (!is_alive(graph, "cuGraphInstantiate")) return kInvalidValue;
    if (!t_context) return kInvalidContext;
    if (const std::string why = why_invalid(*graph); !why.empty()) {
      report("graph: cuGraphInstantiate: " + why);
      return kInvalidValue;
    }
    if (graph->parent || (has_conditions(*graph) && has_exec(*graph))) {
      report("graph: cuGraphInstantiate: a graph with conditional nodes has an executable graph, or it is a body");
      return kNotSupported;
    }
    *exec = instantiate(w, *graph, t_context);
    execs().insert(*exec);
    ++w.counters.live_graphs;
    return kSuccess;
  });
}

int cuGraphExecDestroy(GraphExec* exec) {
  return call(__func__, [&](World& w) {
    if (!is_alive(exec, "cuGraphExecDestroy")) return kInvalidValue;
    exec->destroyed = true;
    --w.counters.live_graphs;
    exec->steps.clear();
    return kSuccess;
  });
}

int cuGraphLaunch(GraphExec* exec, Stream* handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuGraphLaunch", &result);
    if (!stream) return result;
    if (!is_alive(exec, "cuGraphLaunch")) return kInvalidValue;
    if (stream->context != exec->context) return kInvalidHandle;
    if (stream->capture) return kNotSupported;
    ++w.counters.graph_launches;
    launch_graph(w, *exec, *stream);
    return kSuccess;
  });
}

int cuGraphExecKernelNodeSetParams_v2(GraphExec* exec, GraphNode* node, const KernelParams* params) {
  return call(__func__, [&](World& w) {
    ++w.counters.nodes_set;
    if (!is_alive(exec, "cuGraphExecKernelNodeSetParams")) return kInvalidValue;
    Step* const step = step_of(*exec, *node);
    if (!step || !step->launch || step->launch->function->module != params->function->module) return kInvalidValue;
    return set_launch(*step->launch, *params) ? kSuccess : kInvalidValue;
  });
}

}  // extern "C"
