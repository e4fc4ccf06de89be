// Predictions of many threads gathered into calls of the model: what waits at one time and has at most so many rows
// together runs as one. There are no threads of its own: the caller whose request is the oldest makes the call for
// those behind it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "plan/graph_function.h"

namespace hybridnet::c_api {

class BatchQueue {
 public:
  struct Options {
    int64_t max_rows = 64;                  // of a shared call
    std::chrono::microseconds max_wait{0};  // for others to come; 0: only while calls run
    size_t max_waiting = 1024;              // requests
    int calls = 1;                          // at one time
  };
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

 private:
  struct Request {
    std::span<const NDArray> inputs;
    int64_t rows = 0;
    std::chrono::steady_clock::time_point arrived;
    std::condition_variable wake;  // is done, or may look whether it is its turn
    bool done = false;
    std::vector<NDArray> outputs;
    std::exception_ptr error;
    Request* next = nullptr;  // of its batch
  };
  template <typename F>
  static void each(Request* batch, const F& f) {
    for (Request* request = batch; request; request = request->next) f(*request);
  }

  int64_t checked_rows(std::span<const NDArray> inputs) const;
  void check_rows_are_apart();
  bool may_lead(const Request& request) const { return waiting_.front() == &request && running_ < options_.calls; }
  void wake_next();
  void lead(Request& request, std::unique_lock<std::mutex>& lock);
  Request* take() noexcept;
  void run_batch(Request* batch) noexcept;
  void run_together(Request* batch);
  std::vector<NDArray> call(std::span<const NDArray> inputs);

  const Ref<GraphFunction> function_;
  const std::vector<NDArray> values_;
  const std::vector<Input> inputs_;
  const std::vector<std::string> output_names_;
  const Options options_;

  std::mutex mutex_;  // of what follows; never held while the model runs
  std::deque<Request*> waiting_;
  int64_t waiting_rows_ = 0;
  int running_ = 0;
  bool closed_ = false;
  std::condition_variable idle_;
};

}  // namespace hybridnet::c_api
