#include "device/launch_batch.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "hybridnet/error.h"

namespace hybridnet::device {

namespace detail {
thread_local constinit LaunchBatch* t_batch __attribute__((tls_model("initial-exec"))) = nullptr;

void submit_batch() { t_batch->submit(); }
}  // namespace detail

LaunchBatch::LaunchBatch(LaunchGraphs& graphs) {
  if (device::current() == nullptr || detail::t_batch != nullptr || !graphs.begin_run()) return;
  graphs_ = &graphs;
  stream_ = device::current();
  detail::t_batch = this;
}

LaunchBatch::~LaunchBatch() {
  if (graphs_ == nullptr) return;
  try {
    finish();
  } catch (const std::exception&) {
    // The error that ends this run is on its way.
  }
}

void LaunchBatch::finish() {
  if (graphs_ == nullptr) return;
  struct End {
    LaunchBatch& batch;
    ~End() {
      batch.graphs_->end_run();
      batch.graphs_ = nullptr;
    }
  } const end{*this};
  std::exception_ptr failure;
  try {
    submit();
  } catch (...) {
    failure = std::current_exception();
  }
  detail::t_batch = nullptr;
  for (const Storage::Block& block : spares_) storage(block.device).free(block);
  spares_.clear();
  if (failure) std::rethrow_exception(failure);
}

namespace {

constexpr size_t kMostRecorded = 4096;  // launches in one recording

[[noreturn]] void end_recording(const std::string& reason) {
  throw UnsupportedError({.message = "a loop or branch cannot run on the device alone: " + reason});
}

}  // namespace

void LaunchBatch::add(const Backend::Launch& launch) {
  if (is_recording_ && launches_.size() == kMostRecorded) end_recording("it has too many kernels");
  launches_.add(launch);
  if (!is_recording_ && launches_.size() == LaunchGraphs::kMostLaunches) submit();
}

void LaunchBatch::submit() {
  if (is_recording_) end_recording("it asks the stream for something that is no launch");
  if (launches_.size() == 0) return;
  // Calls of the backend must not find the batch again, and a launch that fails must not come back.
  LaunchList launches;
  std::swap(launches, launches_);
  graphs_->submit(*stream_, launches);
  launches.clear();
  std::swap(launches, launches_);  // its memory is used again
}

bool LaunchBatch::run_as_graph(const std::function<void()>& launch) {
  if (is_recording_) {
    launch();
    return true;
  }
  submit();
  is_recording_ = true;
  num_conditions_ = 0;
  bool is_complete = false;
  try {
    launch();
    is_complete = true;
  } catch (const Error&) {
    // The caller goes on without a graph, and meets the error again if it is one of the program.
  } catch (...) {
    is_recording_ = false;
    launches_.clear();
    throw;
  }
  is_recording_ = false;
  LaunchList launches;
  std::swap(launches, launches_);
  return is_complete && graphs_->submit_as_graph(*stream_, launches);
}

void LaunchBatch::begin_part(Backend::Launch::Kind kind, uint64_t condition) {
  add({.kind = kind, .condition = condition});
}

void LaunchBatch::end_part() { add({.kind = Backend::Launch::Kind::kEnd}); }

Storage::Block LaunchBatch::take(int64_t bytes) {
  const auto found = std::find_if(spares_.rbegin(), spares_.rend(),
                                  [bytes](const Storage::Block& block) { return block.bytes == bytes; });
  if (found == spares_.rend()) return {};
  const Storage::Block block = *found;
  spares_.erase(std::next(found).base());
  return block;
}

bool LaunchBatch::give_back() {
  if (spares_.empty()) return false;
  submit();
  std::vector<Storage::Block> spares;
  std::swap(spares, spares_);
  LaunchBatch* const batch = std::exchange(detail::t_batch, nullptr);  // the pool must take them
  for (const Storage::Block& block : spares) storage(block.device).free(block);
  detail::t_batch = batch;
  return true;
}

}  // namespace hybridnet::device
