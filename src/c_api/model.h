// Models behind handles.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

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

  Symbol symbol;
  std::vector<NDArray> values;                               // one per graph input; null where the caller provides it
  std::vector<size_t> input_positions, parameter_positions;  // in `values`
  std::vector<std::string> input_names, parameter_names, output_names;
  std::vector<TensorSpec> input_specs;  // what the file says of the inputs
  std::vector<bool> parameter_is_state;

 private:
  mutable std::mutex mutex_;
  Ref<CachedOp> op_;
  mutable Ref<GraphFunction> prediction_;
};

// Throws ValueError with the names of what there is.
void check_count(size_t given, const std::vector<std::string>& names, const char* function, const char* what);

}  // namespace hybridnet::c_api
