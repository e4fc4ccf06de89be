// Predictions of many threads that share calls of a model:
//
//   const Batcher batcher(model, {.max_rows = 32, .max_wait_us = 200}, {{.shape = {1, 64}, .ndim = 2}});
//   std::vector<Array> scores = batcher.run({image});  // in each thread, as often as it likes
#pragma once

#include "hybridnet/cpp/model.h"

namespace hybridnet::cpp {

class Batcher {
 public:
  struct Options {
    int64_t max_rows = 64;       // of a shared call
    int64_t max_wait_us = 0;     // for others to come; 0: only while calls run
    int64_t max_waiting = 1024;  // requests; more throw EngineError
    int64_t calls = 1;           // at one time
  };
  // inputs: shape and dtype of what requests bring, the first size being any; empty: as the file says.
  explicit Batcher(const Model& model) : Batcher(model, Options()) {}
  Batcher(const Model& model, const Options& options, const std::vector<HnTensorSpec>& inputs = {}) {
    const HnBatcherOptions given = {sizeof(HnBatcherOptions), options.max_rows, options.max_wait_us,
                                    options.max_waiting, options.calls};
    HnBatcher handle = nullptr;
    detail::check(
        hn_batcher_create(model.get(), inputs.size(), inputs.empty() ? nullptr : inputs.data(), &given, &handle));
    handle_ = {handle, &hn_batcher_free};
    num_outputs_ = model.output_names().size();
  }
  // Returns when the outputs hold their values.
  std::vector<Array> run(const std::vector<Array>& inputs) const {
    const std::vector<HnArray> in = detail::handles(inputs);
    std::vector<HnArray> out(num_outputs_, nullptr);
    detail::check(hn_batcher_run(handle_.get(), in.size(), in.data(), out.size(), out.data()));
    std::vector<Array> result;
    for (HnArray array : out) result.emplace_back(array);
    return result;
  }
  // Takes no more requests, and returns when those that it has are answered.
  void close() const { detail::check(hn_batcher_close(handle_.get())); }

 private:
  std::shared_ptr<HnBatcher_> handle_;
  size_t num_outputs_ = 0;
};

}  // namespace hybridnet::cpp
