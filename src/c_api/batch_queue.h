// Gathers predictions of many threads into calls of the model, by the rules of RequestQueue. The queue has no threads
// of its own: the caller with the oldest request makes the call for the requests after it, too.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "plan/graph_callable.h"
#include "plan/request_queue.h"

namespace hybridnet::c_api {

class BatchQueue {
 public:
  struct Request;
  using Options = RequestQueue<Request*>::Options;
  struct Input {
    std::string name;
    size_t position;  // index in the values
    TensorSpec spec;  // the first size is arbitrary
  };

  // values: one per input of the graph, on the device, null for `inputs`. Throws ShapeError if outputs of the graph do
  // not have the rows of the inputs, ValueError if rows influence each other, and the errors of BoundRun.
  BatchQueue(Ref<GraphCallable> function, std::vector<NDArray> values, Device device, std::vector<Input> inputs,
             std::vector<std::string> output_names, Options options);

  // Returns the computed outputs for these inputs, all on the CPU. Any number of threads may call it. Throws errors in
  // these inputs, or EngineError if too many requests wait or the queue was closed.
  std::vector<NDArray> run(std::span<const NDArray> inputs);
  // Accepts no more requests, and returns when the accepted ones are done.
  void close();

  struct Request {
    std::span<const NDArray> inputs;
    int64_t rows = 0;
    std::condition_variable wake;  // notified when the request is done or may be the next to lead
    bool done = false;
    std::vector<NDArray> outputs;
    std::exception_ptr error;
    Request* next = nullptr;  // in the list of its batch
  };

 private:
  template <typename F>
  static void each(Request* batch, const F& f) {
    for (Request* request = batch; request; request = request->next) f(*request);
  }

  int64_t checked_rows(std::span<const NDArray> inputs) const;
  void check_rows_are_apart();
  // True if the request is the oldest and another call may start.
  bool may_lead(const Request& request) const { return queue_.next_start() && *queue_.front() == &request; }
  void wake_next();
  void lead(Request& request, std::unique_lock<std::mutex>& lock);
  Request* take() noexcept;
  void run_batch(Request* batch) noexcept;
  void tell_failure(Request* batch, const std::string& what);
  void run_together(Request* batch);
  std::vector<NDArray> call(std::span<const NDArray> inputs);

  const Ref<GraphCallable> function_;
  const std::vector<NDArray> values_;
  const Device device_;  // the device of the values
  const std::vector<Input> inputs_;
  const std::vector<std::string> output_names_;
  std::atomic<bool> has_told_{false};  // true after the warning about a failed shared call

  std::mutex mutex_;  // protects the members below; never held while the model runs
  RequestQueue<Request*> queue_;
  bool closed_ = false;
  std::condition_variable idle_;
};

}  // namespace hybridnet::c_api
