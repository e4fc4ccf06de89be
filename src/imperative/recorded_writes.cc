#include "imperative/recorded_writes.h"

#include <algorithm>
#include <cstring>

#include "hybridnet/sparse.h"
#include "imperative/autograd_scope.h"
#include "imperative/tape.h"
#include "imperative/view_function.h"
#include "ndarray/overlap.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"}, kSliceAssign{"_slice_assign"}, kSliceAssignNumber{"_slice_assign_scalar"},
    kScatterSet{"_scatter_set_nd"}, kZerosLike{"zeros_like"}, kOnesLike{"ones_like"};

// True if the operator writes a part of its first input and leaves the rest.
bool writes_part(const Op& op) {
  return &op == &kSliceAssign.op() || &op == &kSliceAssignNumber.op() || &op == &kScatterSet.op();
}

// True for an optimizer's update, which changes the value of a leaf and leaves it a leaf.
bool is_update(const Op& op, std::span<const NDArray> inputs, const NDArray& out) {
  return !op.differentiable() && !op.stops_gradient && op.pointwise == nullptr &&
         std::find(inputs.begin(), inputs.end(), out) != inputs.end();
}

void refuse_leaves(const Op& op, std::span<const NDArray> inputs, std::span<const NDArray> out) {
  for (const NDArray& target : out) {
    const TapeMark* own = own_mark_of(target);
    const TapeMark* leaf = own ? own->leaf_shown() : nullptr;
    if (leaf != nullptr && !is_update(op, inputs, target)) throw_written_leaf(op.name, *leaf, current_location());
  }
}

// True if the recorded step may read the input after the call.
bool keeps_input(const Op& op, std::span<const NDArray> inputs, size_t i) {
  return op.composed() || op.data_dependent_shape || op.opaque || any_sparse(inputs) ||
         op.saves().input(static_cast<int>(i));
}

// Returns a copy of the input's current value, with the same tape mark.
NDArray kept_value(const NDArray& input) {
  if (input.is_sparse()) return snapshot(input);
  const AutogradScope unrecorded({.recording = false, .training = autograd_state().training});
  const Ref<TapeInfo> mark(mark_of(input));
  NDArray copy = invoke_one(kCopy.op(), kCopy.op().default_params, {&input, 1});
  copy.impl()->tape = mark;
  return copy;
}

// Returns the inputs; input i is a copy if the step reads it after the call (keeps(i)) and `out` overwrites it.
template <typename Keeps>
std::vector<NDArray> kept_inputs(std::span<const NDArray> inputs, std::span<const NDArray> out, Keeps&& keeps) {
  std::vector<NDArray> kept(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Arrays without elements overlap nothing, but a write into their memory counts.
    const auto is_over = [&](const NDArray& target) {
      return overlap(inputs[i], target) || (inputs[i].shares_memory(target) && inputs[i].bytes() == 0);
    };
    if (keeps(i) && std::any_of(out.begin(), out.end(), is_over)) kept[i] = kept_value(kept[i]);
  }
  return kept;
}

// True if the array is a constant of its own, independent of the marks of other arrays of its memory: a detached array,
// or a view that was made while nothing was recorded.
bool stands_apart(const NDArray& a) {
  const TapeMark* own = own_mark_of(a);
  return own != nullptr && !has_gradient(own) && own->leaf_shown() == nullptr &&
         a.impl()->chunk->history.load(std::memory_order_acquire) != nullptr;
}

// Writes a part of an array that stands apart. The tape must not treat the other elements as written, because other
// arrays show them. The set of written elements does not depend on the values: the operator runs once over zeros and
// once over ones, and the elements that are equal afterwards are those that it writes.
void write_in_pieces(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const NDArray& out) {
  std::vector<NDArray> in(inputs.begin(), inputs.end());
  NDArray runs[2];
  for (int i = 0; i < 2; ++i) {
    const Op& fill = (i == 0 ? kZerosLike : kOnesLike).op();
    in[0] = invoke_one(fill, fill.default_params, {&inputs[0], 1});
    runs[i] = invoke_one(op, params, in);
    runs[i].wait_to_read();
  }
  const auto width = static_cast<size_t>(dtype_size(out.dtype()));
  const char *one = static_cast<const char*>(runs[0].data()), *other = static_cast<const char*>(runs[1].data());
  const auto is_written = [&](int64_t i) {
    return std::memcmp(one + static_cast<size_t>(i) * width, other + static_cast<size_t>(i) * width, width) == 0;
  };
  const NDArray values = runs[0].reshaped(Shape{out.size()}), target = out.reshaped(Shape{out.size()});
  for (int64_t begin = 0, end; begin < out.size(); begin = end) {
    for (end = begin + 1; end < out.size() && is_written(end) == is_written(begin); ++end) {
    }
    if (!is_written(begin)) continue;
    const NDArray from = as_view(runs[0], values.sliced(begin, end)), to = target.sliced(begin, end);
    invoke(kCopy.op(), kCopy.op().default_params, {&from, 1}, {&to, 1});
  }
}

}  // namespace

void invoke_over(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                 std::vector<NDArray>* results) {
  const bool recording = autograd_state().recording;
  if (writes_part(op) && inputs.size() == static_cast<size_t>(op.num_inputs(params->data())) &&
      options.out[0] == inputs[0] && stands_apart(inputs[0])) {
    write_in_pieces(op, params, inputs, options.out[0]);
    results->assign(1, options.out[0]);
    return;
  }
  // Without recording, the written elements become constants. The other elements of the array keep their gradient.
  if (!recording &&
      (!writes_part(op) || inputs.empty() || !has_gradient(mark_of(inputs[0])) || mark_of(inputs[0])->leaf_shown()))
    return invoke_apart(op, params, inputs, options, results);
  std::vector<NDArray> read(inputs.begin(), inputs.end());
  for (size_t i = 1; !recording && i < read.size(); ++i) read[i] = read[i].detached();
  if (recording) refuse_leaves(op, inputs, options.out);
  const AutogradScope recorded({.recording = true, .training = autograd_state().training});
  // The parts of a composed operator record themselves, whether or not the operator itself is differentiable.
  if (op.composed() ? std::any_of(read.begin(), read.end(), needs_gradient) : wants_record(op, read))
    read = kept_inputs(read, options.out, [&](size_t i) { return keeps_input(op, inputs, i); });
  invoke_apart(op, params, read, options, results);
  break_cycles(options.out);
}

std::vector<NDArray> kept_inputs(std::span<const NDArray> inputs, std::span<const NDArray> out) {
  return kept_inputs(inputs, out, [](size_t) { return true; });
}

}  // namespace hybridnet
