// Graphs of the stand-in: captured work is repeated, with checks of its order and of its pointers.
#include <cmath>

#include "device/stand_in.h"
#include "device/stand_in_kernels.h"

namespace hybridnet::test {
namespace {

constexpr const char* kCountdown = R"(
#include "kernels/device/kernel.cuh"
namespace hybridnet::device {
struct Arguments {
  unsigned long long condition;
  float* out;
  int64_t n;
};
HN_KERNEL(countdown, Arguments) {
  if (first() != 0) return;
  a.out[0] += 1.0f;
  cudaGraphSetConditional(a.condition, a.out[0] < static_cast<float>(a.n));
}
}  // namespace hybridnet::device
)";

// CUgraphNodeParams of a conditional node.
struct ConditionalParams {
  int type = 13;
  int reserved_before[3] = {};
  unsigned long long condition = 0;
  int kind = 1;
  unsigned size = 1;
  void** bodies = nullptr;
  void* context = nullptr;
  char rest[216] = {};
};
static_assert(sizeof(ConditionalParams) >= 256);

class StandInGraph : public StandIn {
 protected:
  void begin() { EXPECT_DONE(call("cuStreamBeginCapture_v2", stream_, 1)); }
  Handle end() {
    Handle graph = nullptr;
    EXPECT_DONE(call("cuStreamEndCapture", stream_, &graph));
    return graph;
  }
  Handle instantiate(Handle graph) {
    Handle exec = nullptr;
    EXPECT_DONE(call("cuGraphInstantiateWithFlags", &exec, graph, 0ull));
    return exec;
  }
  // Captures out = 2 in, and out += 1 on a second stream, which may miss its wait for the first.
  Handle capture_two_streams(Memory x, Memory y, bool waits) {
    const Handle module = module_of(kKernels), other = make_stream();
    const Handle begun = make_event(), doubled = make_event(), added = make_event();
    begin();
    EXPECT_DONE(call("cuEventRecord", begun, stream_));
    EXPECT_DONE(launch(function(module, "twice"), 1, {x, y, 256}, stream_));
    EXPECT_DONE(call("cuEventRecord", doubled, stream_));
    EXPECT_DONE(call("cuStreamWaitEvent", other, waits ? doubled : begun, 0u));
    EXPECT_DONE(launch(function(module, "add_one"), 1, {x, y, 256}, other));
    EXPECT_DONE(call("cuEventRecord", added, other));
    EXPECT_DONE(call("cuStreamWaitEvent", stream_, added, 0u));
    return instantiate(end());
  }
};

TEST_F(StandInGraph, RepeatsWhatStreamsDid) {
  const Memory x = upload(std::vector<float>(256, 3.0f)), y = allocate(1024);
  const Handle exec = capture_two_streams(x, y, true);
  EXPECT_TRUE(std::isnan(download(y, 1)[0])) << "capturing runs nothing";
  for (unsigned long long seed = 0; seed < 10; ++seed) {
    call("hnstandin_seed", seed);
    EXPECT_DONE(call("cuGraphLaunch", exec, stream_));
    EXPECT_EQ(download(y, 256)[255], 7.0f);
    EXPECT_EQ(reports(), "") << "seed " << seed;
  }
  free(x);
  free(y);
  EXPECT_DONE(call("cuGraphExecDestroy", exec));
  EXPECT_EQ(reports(), "");
}

TEST_F(StandInGraph, FindsAMissingWaitBetweenItsStreams) {
  const Memory x = upload(std::vector<float>(256, 3.0f)), y = allocate(1024);
  EXPECT_DONE(call("cuGraphLaunch", capture_two_streams(x, y, false), stream_));
  EXPECT_DONE(call("cuStreamSynchronize", stream_));
  EXPECT_NE(reports().find("race: "), std::string::npos);
}

TEST_F(StandInGraph, FindsAPointerThatWasFreed) {
  const Memory x = upload(std::vector<float>(256, 3.0f)), y = allocate(1024);
  const Handle exec = capture_two_streams(x, y, true);
  free(x);
  EXPECT_DONE(call("cuGraphLaunch", exec, stream_));
  EXPECT_EQ(call("cuStreamSynchronize", stream_), 700);
  EXPECT_NE(reports().find("bad access: kernel 'twice'"), std::string::npos);
  free(y);
}

TEST_F(StandInGraph, TakesNewParametersForItsNodes) {
  struct KernelParams {
    Handle function;
    unsigned grid[3] = {1, 1, 1}, block[3] = {256, 1, 1}, dynamic_shared_bytes = 0;
    void** arguments;
    void **extra = nullptr, *kernel = nullptr, *context = nullptr;
  };
  const Memory x = upload(std::vector<float>(256, 3.0f)), y = allocate(1024), z = upload({5.0f, 6.0f});
  const Handle twice = function(module_of(kKernels), "twice");
  begin();
  EXPECT_DONE(launch(twice, 1, {x, y, 256}, stream_));
  const Handle graph = end(), exec = instantiate(graph);
  Handle node = nullptr;
  size_t count = 1;
  EXPECT_DONE(call("cuGraphGetNodes", graph, &node, &count));
  Arguments other{z, y, 2};
  void* arguments[] = {&other};
  KernelParams params{.function = twice, .arguments = arguments};
  EXPECT_DONE(call("cuGraphExecKernelNodeSetParams_v2", exec, node, static_cast<const void*>(&params)));
  EXPECT_DONE(call("cuGraphLaunch", exec, stream_));
  EXPECT_EQ(download(y, 2), (std::vector<float>{10.0f, 12.0f}));
  for (const Memory memory : {x, y, z}) free(memory);
  EXPECT_EQ(reports(), "");
}

TEST_F(StandInGraph, RefusesWhatCannotBeCaptured) {
  begin();
  EXPECT_EQ(call("cuStreamSynchronize", stream_), 900);
  Memory memory = 0;
  EXPECT_EQ(call("cuMemAlloc_v2", &memory, size_t{16}), 900);
  Handle graph = nullptr;
  EXPECT_EQ(call("cuStreamEndCapture", stream_, &graph), 901);
  EXPECT_EQ(graph, nullptr);
  EXPECT_DONE(call("cuStreamSynchronize", stream_));
  EXPECT_NE(reports().find("graph: a wait in the capture of a stream"), std::string::npos);
}

TEST_F(StandInGraph, RepeatsTheBodyOfAWhileNode) {
  Handle graph = nullptr, node = nullptr;
  ConditionalParams params;
  EXPECT_DONE(call("cuGraphCreate", &graph, 0u));
  EXPECT_DONE(call("cuGraphConditionalHandleCreate", &params.condition, graph, Handle{}, 1u, 1u));
  EXPECT_DONE(call("cuGraphAddNode_v2", &node, graph, Handle{}, Handle{}, size_t{0}, &params));
  ASSERT_NE(params.bodies, nullptr);
  const Memory y = upload({0.0f});
  EXPECT_DONE(call("cuStreamBeginCaptureToGraph", stream_, params.bodies[0], Handle{}, Handle{}, size_t{0}, 1));
  EXPECT_DONE(launch(function(module_of(kCountdown, true), "countdown"), 1, {params.condition, y, 5}, stream_));
  EXPECT_EQ(end(), params.bodies[0]);
  EXPECT_DONE(call("cuGraphLaunch", instantiate(graph), stream_));
  EXPECT_EQ(download(y, 1)[0], 5.0f);
  free(y);
  EXPECT_EQ(reports(), "");
}

// A graph with one conditional node, whose body has the kernel that sets its condition.
class StandInConditions : public StandInGraph {
 protected:
  struct KernelParams {
    Handle function;
    unsigned grid[3] = {1, 1, 1}, block[3] = {256, 1, 1}, dynamic_shared_bytes = 0;
    void** arguments;
    void **extra = nullptr, *kernel = nullptr, *context = nullptr;
  };
  Handle countdown() { return function(module_of(kCountdown, true), "countdown"); }
  Handle make_graph() {
    Handle graph = nullptr;
    EXPECT_DONE(call("cuGraphCreate", &graph, 0u));
    return graph;
  }
  unsigned long long make_condition(Handle graph, unsigned flags) {
    unsigned long long condition = 0;
    EXPECT_DONE(call("cuGraphConditionalHandleCreate", &condition, graph, Handle{}, 1u, flags));
    return condition;
  }
  int add_while(Handle graph, unsigned long long condition, Handle* body) {
    ConditionalParams params;
    params.condition = condition;
    Handle node = nullptr;
    const int result = call("cuGraphAddNode_v2", &node, graph, Handle{}, Handle{}, size_t{0}, &params);
    *body = params.bodies ? params.bodies[0] : nullptr;
    return result;
  }
  Handle add_countdown(Handle graph, Arguments a) {
    void* arguments[] = {&a};
    const KernelParams params{.function = countdown(), .arguments = arguments};
    Handle node = nullptr;
    EXPECT_DONE(call("cuGraphAddKernelNode_v2", &node, graph, Handle{}, size_t{0}, static_cast<const void*>(&params)));
    return node;
  }
  int try_instantiate(Handle graph) {
    Handle exec = nullptr;
    return call("cuGraphInstantiateWithFlags", &exec, graph, 0ull);
  }
  void expect_report(const std::string& part) { EXPECT_NE(reports().find(part), std::string::npos) << part; }
};

TEST_F(StandInConditions, SetsParametersOfNodesInBodies) {
  const Handle graph = make_graph();
  const auto condition = make_condition(graph, 1);
  Handle body = nullptr;
  EXPECT_DONE(add_while(graph, condition, &body));
  const Memory y = upload({0.0f}), z = upload({0.0f});
  const Handle node = add_countdown(body, {condition, y, 5}), exec = instantiate(graph);
  EXPECT_DONE(call("cuGraphLaunch", exec, stream_));
  Arguments other{condition, z, 7};
  void* arguments[] = {&other};
  const KernelParams params{.function = countdown(), .arguments = arguments};
  EXPECT_DONE(call("cuGraphExecKernelNodeSetParams_v2", exec, node, static_cast<const void*>(&params)));
  EXPECT_DONE(call("cuGraphLaunch", exec, stream_));
  EXPECT_EQ(download(y, 1)[0], 5.0f);
  EXPECT_EQ(download(z, 1)[0], 7.0f);
  for (const Memory memory : {y, z}) free(memory);
  EXPECT_EQ(reports(), "");
}

TEST_F(StandInConditions, RefusesGraphsThatADriverWouldRefuse) {
  const Handle graph = make_graph(), other = make_graph();
  const auto condition = make_condition(graph, 1);
  Handle body = nullptr;
  EXPECT_EQ(add_while(other, condition, &body), 1);
  expect_report("the condition belongs to another graph");
  EXPECT_EQ(try_instantiate(graph), 1);
  expect_report("a condition has no node");
  EXPECT_DONE(add_while(graph, condition, &body));
  EXPECT_EQ(add_while(graph, condition, &body), 1);
  expect_report("the condition has another node");
}

TEST_F(StandInConditions, RefusesAnEmptyBodyAndASecondExecutableGraph) {
  const Handle graph = make_graph();
  const auto condition = make_condition(graph, 1);
  Handle body = nullptr;
  EXPECT_DONE(add_while(graph, condition, &body));
  EXPECT_EQ(try_instantiate(graph), 1);
  expect_report("the body of a WHILE node is empty");
  const Memory y = upload({0.0f});
  add_countdown(body, {condition, y, 1});
  EXPECT_DONE(try_instantiate(graph));
  EXPECT_EQ(try_instantiate(graph), 801);
  expect_report("has an executable graph");
  free(y);
}

TEST_F(StandInConditions, FindsAConditionThatNothingSets) {
  const Handle graph = make_graph();
  const auto condition = make_condition(graph, 0);
  Handle body = nullptr;
  EXPECT_DONE(add_while(graph, condition, &body));
  const Memory y = upload({0.0f});
  add_countdown(body, {condition, y, 1});
  EXPECT_DONE(call("cuGraphLaunch", instantiate(graph), stream_));
  EXPECT_EQ(call("cuStreamSynchronize", stream_), 719);
  expect_report("nothing has set its condition");
  free(y);
}

TEST_F(StandInConditions, FindsAKernelOutsideTheGraphOfItsCondition) {
  const Handle graph = make_graph();
  const auto condition = make_condition(graph, 1);
  const Memory y = upload({0.0f});
  EXPECT_DONE(launch(countdown(), 1, {condition, y, 5}, stream_));
  EXPECT_EQ(call("cuStreamSynchronize", stream_), 719);
  expect_report("the condition of a graph that it does not run in");
  free(y);
}

TEST_F(StandInConditions, LinksConditionsIntoPtxOnly) {
  std::string cubin;
  EXPECT_EQ(compile(kCountdown, &cubin), "");
  Handle module = nullptr;
  EXPECT_EQ(call("cuModuleLoadDataEx", &module, static_cast<const void*>(cubin.data()), 0u, static_cast<int*>(nullptr),
                 static_cast<void**>(nullptr)),
            200);
  expect_report("a cubin calls cudaGraphSetConditional");
}

}  // namespace
}  // namespace hybridnet::test
