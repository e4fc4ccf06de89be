// Models behind handles.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/thread_slots.h"
#include "c_api/arrays.h"
#include "hybridnet/plan.h"
#include "plan/graph_function.h"

namespace hybridnet::c_api {

struct ModelHandle final : Handled {
  static constexpr HandleKind kKind = HandleKind::kModel;
  // All inputs of the graph: the caller's in place of the null values.
  std::vector<NDArray> with_inputs(size_t num_inputs, const HnArray* inputs, const char* function) const;
  // The graph as sessions run it; made for the first of them.
  Ref<GraphFunction> prediction() const;

  // What runs it outside of sessions.
  Ref<CachedOp> op() const {
    const std::lock_guard lock(mutex_);
    return op_;
  }
  // Throws ParamError (RematPolicy).
  void make_op(const std::string& remat);
  // Runs it. Throws what `function` says of wrong inputs.
  std::vector<NDArray> run(size_t num_inputs, const HnArray* inputs, std::span<const NDArray> out,
                           const char* function) const;

  Symbol symbol;
  std::vector<NDArray> values;                               // one per graph input; null where the caller provides it
  std::vector<size_t> input_positions, parameter_positions;  // in `values`
  std::vector<std::string> input_names, parameter_names, output_names;
  std::vector<TensorSpec> input_specs;  // what the file says of the inputs
  std::vector<bool> parameter_is_state;

 private:
  // What a run passes on: kept between runs, so that threads do not count references to every parameter in each.
  struct Arguments {
    uint64_t op_version;
    Ref<CachedOp> op;
    std::vector<NDArray> values;
  };
  std::unique_ptr<Arguments> take_arguments() const;
  void check_inputs(size_t num_inputs, const HnArray* inputs, const char* function) const;
  void put_inputs(const HnArray* inputs, std::vector<NDArray>& arrays, const char* function) const;

  mutable ThreadSlots<std::unique_ptr<Arguments>> arguments_;
  mutable std::mutex mutex_;
  std::atomic<uint64_t> op_version_{0};  // changes with op_, under the mutex
  Ref<CachedOp> op_;
  mutable Ref<GraphFunction> prediction_;
};

// Throws ValueError with the names of what there is.
void check_count(size_t given, const std::vector<std::string>& names, const char* function, const char* what);

}  // namespace hybridnet::c_api
