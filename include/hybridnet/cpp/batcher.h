// Shares calls of a model between the predictions of many threads:
//
//   const Batcher batcher(model, {.max_rows = 32, .max_wait_us = 200}, {{.shape = {1, 64}, .ndim = 2}});
//   std::vector<Array> scores = batcher.run({image});  // in each thread, any number of times
#pragma once

#include "hybridnet/cpp/model.h"

namespace hybridnet::cpp {

class Batcher {
 public:
  struct Options {
    int64_t max_rows = 64;       // rows of a shared call
    int64_t max_wait_us = 0;     // how long a request waits for others; 0: only while calls run
    int64_t max_waiting = 1024;  // waiting requests; more throw EngineError
    int64_t calls = 1;           // calls at one time
  };
  // inputs: shapes and dtypes of the inputs of requests, with any first size; empty: those of the file.
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
  // Takes and returns arrays on the CPU, also if the model is on a GPU. Returns when the outputs hold their values.
  std::vector<Array> run(const std::vector<Array>& inputs) const {
    const std::vector<HnArray> in = detail::handles(inputs);
    std::vector<HnArray> out(num_outputs_, nullptr);
    detail::check(hn_batcher_run(handle_.get(), in.size(), in.data(), out.size(), out.data()));
    std::vector<Array> result;
    for (HnArray array : out) result.emplace_back(array);
    return result;
  }
  // Accepts no more requests, and returns when all waiting requests are answered.
  void close() const { detail::check(hn_batcher_close(handle_.get())); }

 private:
  std::shared_ptr<HnBatcher_> handle_;
  size_t num_outputs_ = 0;
};

}  // namespace hybridnet::cpp
