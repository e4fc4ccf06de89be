// Graphs: what streams are asked to do while they are captured, in lanes. A lane is what one stream did; waits of lanes
// for each other are kept as they were. A launch repeats the lanes in streams of its own, so that the order of lanes is
// checked, and varied, like that of streams.
// Threads: world().mutex.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels.h"
#include "world.h"

namespace standin {

enum class Loop : int { kIf = 0, kWhile = 1 };

struct Graph;
struct GraphNode {
  Graph* graph;
  size_t index;  // in Graph::steps
};

// One thing that a lane does. What follows `after` steps of another lane, too, waits for them.
struct Step {
  size_t lane = 0;
  std::vector<std::pair<size_t, size_t>> after;  // lane, number of its steps
  std::string name;
  std::function<Result(const Work&)> run;         // a copy or a fill; null for the others
  std::shared_ptr<Launch> launch;                 // a kernel
  Graph* body = nullptr;                          // a conditional node
  std::shared_ptr<std::vector<Step>> body_steps;  // of a conditional node that can run
  Loop loop = Loop::kIf;
  unsigned long long condition = 0;
  GraphNode* node = nullptr;
};

struct Condition {
  unsigned long long handle;
  std::optional<unsigned> start;  // its value when the graph starts; none: kernels have to set it
  bool has_node = false;
};

struct Graph {
  bool destroyed = false;
  Graph* parent = nullptr;  // the graph around the body of a conditional node
  bool invalid = false;     // something that cannot be captured was asked for
  Stream* origin = nullptr;
  std::vector<Stream*> lanes;      // the streams that are captured now; null: made by cuGraphAddNode
  std::vector<size_t> lane_steps;  // the number of steps of each lane
  std::vector<Step> steps;
  std::vector<Condition> conditions;
};

struct GraphExec {
  bool destroyed = false;
  Context* context = nullptr;
  const Graph* graph = nullptr;  // its origin: names its nodes
  std::vector<Step> steps;
  std::vector<Condition> conditions;  // those of bodies, too
  std::vector<Stream*> lanes;         // the first is null: that of the launch
};

size_t add_lane(Graph& graph, Stream* stream);
size_t lane_of(const Graph& graph, const Stream& stream);
GraphNode* add_step(Graph& graph, Step step);
// Keeps pushed work as a step of the stream's lane.
void capture(Graph& graph, const Stream& stream, Work work);
// The lane's next step follows these steps of another lane.
void capture_wait(Graph& graph, const Stream& stream, size_t lane, size_t steps);
// True if the first lane follows every other one.
bool is_joined(const Graph& graph);

// The condition of a handle, which the graph or one around it made; null: there is none.
Condition* condition_of(Graph& graph, unsigned long long handle);
// The reason why a driver would refuse the graph or one of its bodies; empty: there is none.
std::string why_invalid(const Graph& graph);
// The step of an executable graph that a node became; null: the node is of another graph.
Step* step_of(GraphExec& exec, const GraphNode& node);
GraphExec* instantiate(World& w, const Graph& graph, Context* context);
void launch_graph(World& w, GraphExec& exec, Stream& stream);

}  // namespace standin
