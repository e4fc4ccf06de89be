// Runs ops on arrays at once and records them for backward.
// Threads: each thread records its own calls; any thread may call these functions, but for one array at a time (see
//          NDArray). Functions that push work return before it is done.
// Throws:  wrong arguments throw at once, with the op and the input. Errors of kernels arrive at a wait for an output.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hybridnet/ndarray.h"
#include "hybridnet/op.h"

namespace hybridnet {

// Owner: the thread.
struct AutogradState {
  bool recording = false, training = false;
};
AutogradState& autograd_state();

enum class GradReq : int8_t { kNull = 0, kWrite = 1, kAdd = 3 };
GradReq grad_req_from_name(std::string_view name);  // "null", "write", "add"; throws ValueError

// Invokes op on inputs. `out` non-empty: results are written into these arrays (shape and dtype checked).
// Returns all outputs, hidden ones last. Records on the tape when recording and some input needs a gradient.
// `visible`: number of visible outputs is op.num_visible_outputs(params).
std::vector<NDArray> invoke(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs,
                            std::span<const NDArray> out = {});
// The hot path of front ends: one visible output, at most 8 inputs, no `out`.
NDArray invoke_one(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs);

// A function that is recorded as one step with its own backward: a hybridized block (a Plan), autograd.Function
// (Python).
// Owner:   the step of the tape, by reference counting; it dies on the thread that drops the last reference.
// Threads: backward() runs on the thread that calls hybridnet::backward() or grad().
// Throws:  backward() may throw; the caller gets the error with name() and the line of the recorded call.
class RecordedFunction : public RefCounted<RecordedFunction> {
 public:
  virtual ~RecordedFunction() = default;
  virtual std::string name() const = 0;
  // out_grads[i] may be null (zero). Returns one array per input (null = zero). Called with recording set to
  // create_graph.
  virtual std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) = 0;
  // The same without create_graph; the gradient of input i may be written directly into into[i], if that is not null.
  virtual std::vector<NDArray> backward_into(std::span<const NDArray> out_grads, std::span<const NDArray> into) {
    (void)into;
    return backward(out_grads, false);
  }
  // True if backward() returns arrays without other owners: gradient buffers may then take them over without a copy.
  virtual bool returns_fresh_arrays() const { return false; }
  // True if backward() without create_graph accepts out_grads in sparse storage; else they are converted to dense ones.
  virtual bool takes_sparse_gradients() const { return false; }
  // The step as graph nodes over these inputs, one value per output; empty if it is not made of operators.
  virtual std::vector<Value> as_graph(std::span<const Value> inputs) const {
    (void)inputs;
    return {};
  }
  virtual void free_residuals() {}  // retain_graph=False
  // Calls visit() for each array of the caller that the function holds, so that its handle can be replaced by another
  // one of the same memory.
  virtual void visit_saved(const std::function<void(NDArray&)>& visit) { (void)visit; }
};
// Marks outputs as produced by `function` from `inputs`. Does nothing when no input needs a gradient.
void record(Ref<RecordedFunction> function, std::span<const NDArray> inputs, std::span<const NDArray> outputs);
bool needs_gradient(const NDArray& a);  // a has a grad buffer, or was computed on this tape from an array with one

// attach_grad / mark_variables: makes `a` a leaf with gradient buffer `grad`. Throws ValueError if `a` would be its own
// gradient, directly or through gradients of gradients.
void mark_variable(const NDArray& a, const NDArray& grad, GradReq req);
NDArray grad_of(const NDArray& a);  // null handle if none
GradReq grad_req_of(const NDArray& a);
void drop_grad(const NDArray& a);
// True if backward has written the gradient of leaf `a` since this was last set to false. False for other arrays.
bool gradient_is_fresh(const NDArray& a);
void set_gradient_fresh(const NDArray& a, bool fresh);

// Runs backward from heads into the grad buffers. head_grads empty or null entries: ones.
void backward(std::span<const NDArray> heads, std::span<const NDArray> head_grads, bool retain_graph, bool train_mode);
// autograd.grad: gradients of heads with respect to variables, as new arrays.
std::vector<NDArray> grad(std::span<const NDArray> heads, std::span<const NDArray> head_grads,
                          std::span<const NDArray> variables, bool retain_graph, bool create_graph, bool train_mode);

// Must be called before pushing any write into an existing array (out=, in-place ops, slice assignment), so that the
// tape can name the overwriting line if a later backward needs the old value.
void note_overwrite(const NDArray& a);

// For front ends: returns `view`, which shares memory with `array`, as an array that the program holds beside `array`.
// While recording, the view depends on the array, and the tape tracks writes through either.
NDArray as_view(const NDArray& array, NDArray view);
// The same memory as a constant. The tape tracks writes through it.
NDArray as_detached(const NDArray& array);
// For writes of values that are no result of an operator: throws GradientError while recording if the array is a leaf
// or a view of one, whose gradient would be lost.
void check_recorded_write(const NDArray& target);

// The process-wide random state of a device. Each random op takes the next stream.
void seed(uint64_t value);
RngKey next_rng_key();
// The key of the next draw; set_rng_state() sets it.
RngKey rng_state();
void set_rng_state(RngKey next);

// Pushes fn onto the engine ordered by the arrays it reads and writes (duplicates and overlaps are resolved), inline if
// cheap.
void run_task(const char* name, std::span<const NDArray> reads, std::span<const NDArray> writes, int64_t cost_ns,
              std::function<void(TaskContext&)> fn);

}  // namespace hybridnet
