// Predictions of many threads gathered into calls of the model, by the rules of RequestQueue. There are no threads of
// its own: the caller whose request is the oldest makes the call for those behind it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "plan/graph_function.h"
#include "plan/request_queue.h"

namespace hybridnet::c_api {

class BatchQueue {
 public:
  struct Request;
  using Options = RequestQueue<Request*>::Options;
  struct Input {
    std::string name;
    size_t position;  // among the values
    TensorSpec spec;  // the first size is any
  };

  // values: one per input of the graph, null for `inputs`. Throws ShapeError for graphs whose outputs do not have the
  // rows of the inputs, ValueError for those whose rows influence each other, and what BoundCall throws.
  BatchQueue(Ref<GraphFunction> function, std::vector<NDArray> values, std::vector<Input> inputs,
             std::vector<std::string> output_names, Options options);

  // The outputs for these inputs, done. Any number of threads. Throws what is wrong with these inputs, or EngineError
  // where too many wait or the queue was closed.
  std::vector<NDArray> run(std::span<const NDArray> inputs);
  // Takes no more requests, and returns when those that it has are done.
  void close();

  struct Request {
    std::span<const NDArray> inputs;
    int64_t rows = 0;
    std::condition_variable wake;  // is done, or may look whether it is its turn
    bool done = false;
    std::vector<NDArray> outputs;
    std::exception_ptr error;
    Request* next = nullptr;  // of its batch
  };

 private:
  template <typename F>
  static void each(Request* batch, const F& f) {
    for (Request* request = batch; request; request = request->next) f(*request);
  }

  int64_t checked_rows(std::span<const NDArray> inputs) const;
  void check_rows_are_apart();
  // Is it the oldest, with a call to spare?
  bool may_lead(const Request& request) const { return queue_.next_start() && *queue_.front() == &request; }
  void wake_next();
  void lead(Request& request, std::unique_lock<std::mutex>& lock);
  Request* take() noexcept;
  void run_batch(Request* batch) noexcept;
  void tell_failure(Request* batch, const std::string& what);
  void run_together(Request* batch);
  std::vector<NDArray> call(std::span<const NDArray> inputs);

  const Ref<GraphFunction> function_;
  const std::vector<NDArray> values_;
  const std::vector<Input> inputs_;
  const std::vector<std::string> output_names_;
  std::atomic<bool> has_told_{false};  // of a shared call that failed

  std::mutex mutex_;  // of what follows; never held while the model runs
  RequestQueue<Request*> queue_;
  bool closed_ = false;
  std::condition_variable idle_;
};

}  // namespace hybridnet::c_api
