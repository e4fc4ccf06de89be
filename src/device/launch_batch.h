// The launches of one run of a plan, collected and submitted in parts: as graphs if the run repeats earlier ones
// (launch_graphs.h), else one by one. Everything that a thread asks of a stream meanwhile submits them first, so the
// order of the stream is that of the calls.
// Owner:   the block that runs the plan; batches of a thread end in reverse order.
// Threads: the thread that made it.
// Throws:  what launches throw. When an exception ends the run, the destructor submits the collected launches and
// ignores
//          their errors.
#pragma once

#include <cstddef>
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
  void add(Backend::Function function, const Geometry& geometry, const void* arguments, size_t bytes);
  void submit();

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
  std::vector<Storage::Block> spares_;
};

}  // namespace hybridnet::device
