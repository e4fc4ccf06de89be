// Decides which requests share a call of a model, and when the call begins: the rules that hn_batcher and
// hybridnet.serving have in common. It has no lock, no threads and no clock: batchers guard it by their own lock and
// block, servers query it between events.
//
// Requests are taken in the order of their arrival. Waiting requests share a call as long as they have at most max_rows
// rows together; a request with more rows has a call of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace hybridnet {

template <typename Request>
class RequestQueue {
 public:
  struct Options {
    int64_t max_rows = 64;      // rows of a shared call
    int64_t max_wait_ns = 0;    // wait for further requests; 0: they wait only while calls run
    size_t max_waiting = 1024;  // waiting requests
    int calls = 1;              // calls at one time
  };
  explicit RequestQueue(const Options& options) : options_(options) {}

  bool is_full() const { return waiting_.size() >= options_.max_waiting; }
  // now: the time of a clock that does not go back, the same clock in all calls.
  void push(Request request, int64_t rows, int64_t now) {
    waiting_.push_back({std::move(request), rows, now});
    waiting_rows_ += rows;
  }
  // The oldest waiting request, or nullptr.
  const Request* front() const { return waiting_.empty() ? nullptr : &waiting_.front().request; }
  // Returns when the next call may begin, which may be in the past; nullopt: not before a request comes or a call ends.
  std::optional<int64_t> next_start() const {
    if (waiting_.empty() || running_ >= options_.calls) return std::nullopt;
    const Waiting& oldest = waiting_.front();
    return is_closed_ || waiting_rows_ >= options_.max_rows ? oldest.arrived : oldest.arrived + options_.max_wait_ns;
  }
  // Begins a call: calls f(request) for each request that shares it, at least one.
  template <typename F>
  void take(const F& f) {
    int64_t rows = 0;
    do {
      rows += waiting_.front().rows;
      f(std::move(waiting_.front().request));
      waiting_.pop_front();
    } while (!waiting_.empty() && rows + waiting_.front().rows <= options_.max_rows);
    waiting_rows_ -= rows;
    ++running_;
  }
  void end_call() { --running_; }
  // From now on calls begin without waiting for further requests.
  void close() { is_closed_ = true; }

  bool has_full_call() const { return waiting_rows_ >= options_.max_rows; }
  bool is_idle() const { return waiting_.empty() && running_ == 0; }
  size_t num_waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    Request request;
    int64_t rows, arrived;
  };
  const Options options_;
  std::deque<Waiting> waiting_;
  int64_t waiting_rows_ = 0;
  int running_ = 0;
  bool is_closed_ = false;
};

}  // namespace hybridnet
