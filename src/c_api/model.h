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
#include "plan/graph_callable.h"

namespace hybridnet::c_api {

struct ModelHandle final : Handled {
  static constexpr HandleKind kKind = HandleKind::kModel;
  // Returns all inputs of the graph: the parameters, with the caller's inputs in place of the nulls. Throws ValueError
  // for inputs on another device than the model.
  std::vector<NDArray> with_inputs(size_t num_inputs, const HnArray* inputs, const char* function) const;
  struct Values {
    std::vector<NDArray> arrays;  // one per graph input; null if the caller provides it
    Device device;                // of the arrays, and of the inputs of runs
  };
  Values values() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  NDArray parameter(size_t index) const {
    const std::lock_guard lock(mutex_);
    return values_.arrays[parameter_positions[index]];
  }
  // Makes runs from now on read these values.
  void set_values(Values values);
  // The callable graph. Runs, sessions and batches share its plans.
  Ref<GraphCallable> op() const {
    const std::lock_guard lock(mutex_);
    return op_;
  }
  // Makes a new operator with this RematPolicy. Throws ParamError for an unknown policy.
  void make_op(const std::string& remat);
  // Runs the model. Errors in inputs name `function`.
  std::vector<NDArray> run(size_t num_inputs, const HnArray* inputs, std::span<const NDArray> out,
                           const char* function) const;

  Symbol symbol;
  std::vector<size_t> input_positions, parameter_positions;  // in values()
  std::vector<std::string> input_names, parameter_names, output_names;
  std::vector<TensorSpec> input_specs;  // specs of the inputs in the file
  std::vector<bool> parameter_is_state;

 private:
  // Arguments of a run, kept between runs, so that a run does not count references to every parameter.
  struct Arguments {
    uint64_t version;
    Ref<GraphCallable> op;
    Values values;
  };
  std::unique_ptr<Arguments> take_arguments() const;
  void check_inputs(size_t num_inputs, const HnArray* inputs, const char* function) const;
  void put_inputs(const HnArray* inputs, Values& values, const char* function) const;
  void drop_arguments();

  mutable ThreadSlots<std::unique_ptr<Arguments>> arguments_;
  mutable std::mutex mutex_;
  std::atomic<uint64_t> version_{0};  // changes with the members below, under the mutex
  Ref<GraphCallable> op_;
  Values values_;
};

// Throws ValueError unless the arrays, which are the model's inputs or outputs of these names, are on its device.
void require_on_device(std::span<const NDArray> arrays, const std::vector<std::string>& names, Device device,
                       const char* function);

// Throws ValueError that lists the names if `given` is not their number.
void check_count(size_t given, const std::vector<std::string>& names, const char* function, const char* what);

}  // namespace hybridnet::c_api
