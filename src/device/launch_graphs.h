// Graphs of the launches of a plan. A run computes the arguments of all its launches each time, which is cheap; what a
// graph saves is the driver's work for each of them. So a graph is never wrong: nodes whose arguments have changed are
// set anew, and a run with other kernels, or kernels of other sizes, gets another graph.
//
// The launches of a run come in parts: a part ends where the host waits for the device or asks the stream for anything
// that is no launch, and after kMostLaunches launches. A part that comes a second time in a row becomes a graph. Loops
// and branches whose conditions the device evaluates are graphs from the first time.
// Owner:   the plan.
// Threads: one run at a time, from begin_run() to end_run(); a run beside it launches by itself.
// Throws:  what launches throw. A graph that cannot be made or used is given up, and its launches are made one by one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/backend.h"

namespace hybridnet::device {

class Stream;

// Launches in order, with copies of their arguments.
class LaunchList {
 public:
  void add(const Backend::Launch& launch);
  void clear();
  size_t size() const { return launches_.size(); }
  bool ends_with_begin() const;  // the last one begins a part
  Backend::Launch operator[](size_t i) const;
  bool has_arguments_of(size_t i, const LaunchList& other) const;
  void copy_arguments(size_t i, const LaunchList& from);
  // Equal for lists of the same kernels with the same sizes.
  uint64_t hash_of_kernels() const;
  bool has_kernels_of(const LaunchList& other) const;
  uint64_t hash_of_arguments() const;

 private:
  static constexpr size_t kAlignment = 16;
  std::vector<Backend::Launch> launches_;  // without arguments
  std::vector<size_t> offsets_;            // of their arguments
  std::vector<std::byte> arguments_;
};

class LaunchGraphs {
 public:
  static constexpr size_t kMostLaunches = 256, kLeastLaunches = 4;  // in one graph
  static constexpr size_t kMostNodes = 8192;                        // in all graphs together
  static constexpr size_t kMostGraphs = 8;                          // for one part
  static constexpr size_t kMostRecorded = 64;                       // of loops and branches

  LaunchGraphs();
  ~LaunchGraphs();
  LaunchGraphs(const LaunchGraphs&) = delete;

  // False: this run launches by itself.
  bool begin_run();
  void end_run() { busy_.clear(std::memory_order_release); }
  void submit(Stream& stream, const LaunchList& launches);
  // Pushes launches that need not come twice, as one graph, which may have conditional parts. False: there is no graph
  // for them, and nothing was pushed.
  bool submit_as_graph(Stream& stream, const LaunchList& launches);
  bool makes_conditions() const { return !gave_up_ && !gave_up_conditions_ && backend()->makes_conditions(); }

 private:
  struct Graph;
  struct Part {
    std::vector<std::unique_ptr<Graph>> graphs;
    uint64_t last_kernels = 0;    // hash of the run before
    uint64_t last_arguments = 0;  // hash of the last run that changed most nodes
  };
  static constexpr size_t kRecorded = 0;  // number of the part of loops and branches
  Part& part_number(size_t number);
  Graph* prepare_recorded(const LaunchList& launches);
  Graph* find(Part& part, const LaunchList& launches, uint64_t kernels);
  Graph* make(Part& part, const LaunchList& launches, uint64_t kernels);
  void make_room(Part& part, size_t nodes);
  bool update(Part& part, Graph& graph, const LaunchList& launches);
  void set_nodes(Graph& graph, const LaunchList& launches, const std::vector<size_t>& changed);
  bool run_as_graph(Part& part, Stream& stream, const LaunchList& launches);

  std::atomic_flag busy_;
  bool gave_up_ = false, gave_up_conditions_ = false;
  int runs_ = 0;          // counted up to the first that is collected
  size_t next_part_ = 0;  // of the run at work, behind that of loops
  uint64_t clock_ = 0;    // counts uses of graphs
  size_t nodes_ = 0;
  std::vector<Part> parts_;
};

}  // namespace hybridnet::device
