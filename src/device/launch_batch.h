// The launches of one run of a plan, collected and submitted in parts: as graphs if the run repeats earlier ones
// (launch_graphs.h), else one by one. Everything that a thread asks of a stream meanwhile submits them first, so the
// order of the stream is that of the calls.
//
// A loop or a branch that the device decides is recorded: run_as_graph() collects its launches with the begins and ends
// of conditional parts, which the host visits once each, however often the device will run them.
// Owner:   the block that runs the plan; batches of a thread end in reverse order.
// Threads: the thread that made it.
// Throws:  what launches throw. When an exception ends the run, the destructor submits the collected launches and
// ignores
//          their errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "device/launch_graphs.h"
#include "device/stream.h"
#include "hybridnet/storage.h"

namespace hybridnet::device {

class LaunchBatch {
 public:
  // The launches of this thread from now on, until finish(). Collects nothing if current() is null, if another run uses
  // the graphs, or if the backend makes none.
  explicit LaunchBatch(LaunchGraphs& graphs);
  ~LaunchBatch();
  LaunchBatch(const LaunchBatch&) = delete;
  void finish();

  static LaunchBatch* current() { return detail::t_batch; }
  void add(const Backend::Launch& launch);
  void submit();

  // Whether run_as_graph() has a chance.
  bool makes_conditions() const { return graphs_->makes_conditions(); }
  bool is_recording() const { return is_recording_; }
  // Submits what `launch` launches as one graph, in which begin_part() and end_part() mark conditional parts. False,
  // and nothing of it was submitted: `launch` failed, asked the stream for anything that is no launch, launched too
  // much, or the driver made no such graph. Inside of another recording the launches join it, and errors are thrown.
  bool run_as_graph(const std::function<void()>& launch);
  uint64_t new_condition() { return num_conditions_++; }
  void begin_part(Backend::Launch::Kind kind, uint64_t condition);
  void end_part();
  bool part_is_empty() const { return launches_.ends_with_begin(); }

  // Temporary memory that a kernel of the batch used: later kernels of the batch may use it, others when the batch
  // ends.
  void keep(const Storage::Block& block) { spares_.push_back(block); }
  // Returns a kept block of this size; without data: there is none.
  Storage::Block take(int64_t bytes);
  // Submits, and gives all kept blocks back. False: there were none.
  bool give_back();

 private:
  friend class Scope;

  LaunchGraphs* graphs_ = nullptr;  // null: launches are not collected
  Stream* stream_ = nullptr;
  LaunchList launches_;
  bool is_recording_ = false;
  uint64_t num_conditions_ = 0;  // made in this recording
  std::vector<Storage::Block> spares_;
};

}  // namespace hybridnet::device
