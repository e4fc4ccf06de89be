#include "graphs.h"

#include <algorithm>
#include <set>

#include "memory.h"
#include "reports.h"
#include "schedule.h"

namespace standin {
namespace {

// Copies of steps whose parameters may be changed without changing the graph.
std::vector<Step> own_steps(const std::vector<Step>& steps) {
  std::vector<Step> own = steps;
  for (Step& step : own) {
    if (step.launch) step.launch = std::make_shared<Launch>(*step.launch);
    if (step.body)
      step.body_steps =
          std::make_shared<std::vector<Step>>(own_steps(step.body_steps ? *step.body_steps : step.body->steps));
  }
  return own;
}

void collect_conditions(const Graph& graph, std::vector<Condition>& all) {
  all.insert(all.end(), graph.conditions.begin(), graph.conditions.end());
  for (const Step& step : graph.steps)
    if (step.body) collect_conditions(*step.body, all);
}

Result run_body(World& w, const std::vector<Step>& steps, const Work& self);

Result run_step(World& w, const Step& step, const Work& self) {
  constexpr int kMostRounds = 1000000;
  if (step.launch) return run_launch(w, *step.launch);
  if (step.run) return step.run(self);
  if (!step.body) return kSuccess;
  const std::optional<unsigned>& value = w.conditions[step.condition];
  if (!value) {
    report("graph: " + step.name + " runs, and nothing has set its condition since the graph was launched");
    return kLaunchFailed;
  }
  for (int round = 0; *value != 0; ++round) {
    ++w.counters.rounds;
    if (const Result result = run_body(w, *step.body_steps, self); result != kSuccess) return result;
    if (step.loop == Loop::kIf) return kSuccess;
    if (round == kMostRounds) {
      report("graph: a WHILE node did not end after " + std::to_string(kMostRounds) + " rounds");
      return kLaunchFailed;
    }
  }
  return kSuccess;
}

// The steps of a body run in the order of their capture, which each order of its lanes allows.
Result run_body(World& w, const std::vector<Step>& steps, const Work& self) {
  for (const Step& step : steps) {
    Work inner = self;
    inner.name = step.name;
    const Result result = run_step(w, step, inner);
    close_opened(inner);
    if (result != kSuccess) return result;
  }
  return kSuccess;
}

using Handles = std::shared_ptr<const std::set<unsigned long long>>;

// handles: the conditions that its kernels may set.
Work work_of(World& w, const Step& step, const Handles& handles) {
  Work work;
  work.name = step.name;
  auto own = std::make_shared<Step>(own_steps({step}).front());
  work.run = [&w, own, handles](const Work& self) {
    w.settable = handles.get();
    const Result result = run_step(w, *own, self);
    w.settable = nullptr;
    return result;
  };
  return work;
}

Stream* new_stream(World& w, Context* context) {
  auto made = std::make_unique<Stream>();
  made->number = static_cast<int>(w.streams.size());
  made->context = context;
  w.streams.push_back(std::move(made));
  return w.streams.back().get();
}

struct Mark {
  uint64_t ticket;
  Clock clock;
};

void follow(World& w, Stream& stream, Stream& other, const Mark& mark) {
  if (&stream == &other) return;
  join(stream.clock, mark.clock);
  Work work;
  work.name = "an edge of a graph";
  work.waits_for = &other;
  work.waits_ticket = mark.ticket;
  push(w, stream, std::move(work));
}

void push_start(World& w, const GraphExec& exec, Stream& stream) {
  Work start;
  start.name = "the start of a graph";
  start.run = [&w, conditions = exec.conditions](const Work&) {
    for (const Condition& condition : conditions) w.conditions[condition.handle] = condition.start;
    return kSuccess;
  };
  push(w, stream, std::move(start));
}

}  // namespace

size_t add_lane(Graph& graph, Stream* stream) {
  graph.lanes.push_back(stream);
  graph.lane_steps.push_back(0);
  return graph.lanes.size() - 1;
}

size_t lane_of(const Graph& graph, const Stream& stream) {
  const auto found = std::find(graph.lanes.begin(), graph.lanes.end(), &stream);
  return static_cast<size_t>(found - graph.lanes.begin());
}

GraphNode* add_step(Graph& graph, Step step) {
  ++graph.lane_steps[step.lane];
  step.node = new GraphNode{&graph, graph.steps.size()};
  graph.steps.push_back(std::move(step));
  return graph.steps.back().node;
}

void capture(Graph& graph, const Stream& stream, Work work) {
  Step step;
  step.lane = lane_of(graph, stream);
  step.name = work.name;
  step.launch = std::move(work.launch);
  step.run = std::move(work.run);
  add_step(graph, std::move(step));
}

void capture_wait(Graph& graph, const Stream& stream, size_t lane, size_t steps) {
  Step step;
  step.lane = lane_of(graph, stream);
  if (step.lane == lane || steps == 0) return;
  step.name = "a wait in a graph";
  step.after.emplace_back(lane, steps);
  add_step(graph, std::move(step));
}

bool is_joined(const Graph& graph) {
  std::vector<std::vector<Clock>> clocks(graph.lanes.size());  // after each step of each lane
  for (const Step& step : graph.steps) {
    auto& lane = clocks[step.lane];
    Clock clock = lane.empty() ? Clock() : lane.back();
    for (const auto& [other, steps] : step.after) join(clock, clocks[other][steps - 1]);
    if (clock.size() <= step.lane) clock.resize(step.lane + 1, 0);
    clock[step.lane] = lane.size() + 1;
    lane.push_back(std::move(clock));
  }
  const Clock end = clocks.empty() || clocks[0].empty() ? Clock() : clocks[0].back();
  for (size_t lane = 0; lane < clocks.size(); ++lane)
    if (at(end, lane) < clocks[lane].size()) return false;
  return true;
}

Condition* condition_of(Graph& graph, unsigned long long handle) {
  for (Graph* around = &graph; around; around = around->parent)
    for (Condition& condition : around->conditions)
      if (condition.handle == handle) return &condition;
  return nullptr;
}

std::string why_invalid(const Graph& graph) {
  for (const Condition& condition : graph.conditions)
    if (!condition.has_node) return "a condition has no node";
  for (const Step& step : graph.steps) {
    if (!step.body) continue;
    if (step.body->steps.empty()) return "the body of " + step.name + " is empty";
    if (std::string why = why_invalid(*step.body); !why.empty()) return why;
  }
  return {};
}

namespace {

Step* step_in(std::vector<Step>& steps, const Graph* of, const GraphNode& node) {
  if (node.graph == of) return node.index < steps.size() ? &steps[node.index] : nullptr;
  for (Step& step : steps)
    if (step.body)
      if (Step* const found = step_in(*step.body_steps, step.body, node)) return found;
  return nullptr;
}

}  // namespace

Step* step_of(GraphExec& exec, const GraphNode& node) { return step_in(exec.steps, exec.graph, node); }

GraphExec* instantiate(World& w, const Graph& graph, Context* context) {
  auto* exec = new GraphExec;
  exec->context = context;
  exec->graph = &graph;
  exec->steps = own_steps(graph.steps);
  collect_conditions(graph, exec->conditions);
  exec->lanes.assign(std::max<size_t>(1, graph.lanes.size()), nullptr);
  for (size_t lane = 1; lane < exec->lanes.size(); ++lane) exec->lanes[lane] = new_stream(w, context);
  return exec;
}

void launch_graph(World& w, GraphExec& exec, Stream& stream) {
  push_start(w, exec, stream);
  auto handles = std::make_shared<std::set<unsigned long long>>();
  for (const Condition& condition : exec.conditions) handles->insert(condition.handle);
  exec.lanes[0] = &stream;
  const Mark start{stream.pushed, stream.clock};
  std::vector<std::vector<Mark>> done(exec.lanes.size());
  for (Stream* lane : exec.lanes) follow(w, *lane, stream, start);
  for (const Step& step : exec.steps) {
    Stream& lane = *exec.lanes[step.lane];
    for (const auto& [other, steps] : step.after) follow(w, lane, *exec.lanes[other], done[other][steps - 1]);
    if (step.run || step.launch || step.body) push(w, lane, work_of(w, step, handles));
    done[step.lane].push_back({lane.pushed, lane.clock});
  }
  for (size_t lane = 1; lane < exec.lanes.size(); ++lane)
    follow(w, stream, *exec.lanes[lane], {exec.lanes[lane]->pushed, exec.lanes[lane]->clock});
  exec.lanes[0] = nullptr;
}

}  // namespace standin
