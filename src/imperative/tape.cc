#include "imperative/tape.h"

#include <algorithm>
#include <atomic>

#include "op/gradient_types.h"

namespace hybridnet {
namespace {

std::atomic<uint64_t> g_sequence{0};

Ref<TapeNode> make_tape_node(std::span<const NDArray> inputs) {
  Ref<TapeNode> node = make_ref<TapeNode>();
  node->sequence = g_sequence.fetch_add(1, std::memory_order_relaxed);
  node->train = autograd_state().training;
  node->where = current_location();
  node->inputs.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_pending()) node->inputs[i].spec = inputs[i].spec();
    if (needs_gradient(inputs[i])) node->inputs[i].mark = Ref<TapeMark>(mark_of(inputs[i]));
  }
  return node;
}

void replace_mark(const NDArray& array, const Ref<TapeMark>& mark) {
  mark->is_buffer = is_gradient_buffer(array);
  array.impl()->tape = Ref<TapeInfo>(mark.get());
}

void mark_output(const Ref<TapeNode>& node, size_t index, const NDArray& array) {
  Ref<TapeMark> mark = make_ref<TapeMark>();
  mark->node = node;
  mark->index = static_cast<uint32_t>(index);
  replace_mark(array, mark);
}

bool has_gradient(DType output, std::span<const NDArray> inputs) {
  if (is_floating(output)) return true;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const NDArray& a) { return carries_gradient(a.dtype(), output) && needs_gradient(a); });
}

}  // namespace

AutogradState& autograd_state() {
  thread_local AutogradState state;
  return state;
}

GradReq grad_req_from_name(std::string_view name) {
  if (name == "write") return GradReq::kWrite;
  if (name == "add") return GradReq::kAdd;
  if (name == "null") return GradReq::kNull;
  throw ValueError(
      {.input = "grad_req", .expected = "'write', 'add' or 'null'", .given = "'" + std::string(name) + "'"});
}

void throw_overwritten(const std::string& op, const std::string& input, const SavedArray& saved,
                       SourceLocation recorded) {
  const Chunk& chunk = saved.array.impl()->chunk->owner();
  const SourceLocation written{chunk.overwrite_file.load(std::memory_order_relaxed),
                               chunk.overwrite_line.load(std::memory_order_relaxed)};
  throw GradientError({.op = op,
                       .input = input,
                       .message = "the value that its gradient needs was overwritten in place",
                       .because = (recorded.known() ? "it was recorded at " + recorded.str() + " and" : "it was") +
                                  " overwritten at " + (written.known() ? written.str() : "an unknown line"),
                       .fix = "write to a new array (y = x + 1 instead of x += 1), or copy first: x.copy()",
                       .where = recorded});
}

std::string TapeNode::name() const { return op ? op->name : function->name(); }

void TapeNode::free_saved() {
  released = true;
  for (Input& i : inputs) i.saved.array = NDArray();
  for (Output& o : outputs) o.saved.array = NDArray();
  if (function) function->free_residuals();
}

void TapeNode::destroy(TapeNode* node) {
  // Deleting a node may drop the last reference to the node before it, and so on: collected in a list, not in
  // recursion.
  thread_local std::vector<TapeNode*>* pending = nullptr;
  if (pending) {
    pending->push_back(node);
    return;
  }
  std::vector<TapeNode*> list{node};
  pending = &list;
  while (!list.empty()) {
    TapeNode* next = list.back();
    list.pop_back();
    delete next;
  }
  pending = nullptr;
}

bool is_gradient_buffer(const NDArray& array) {
  const TapeMark* mark = mark_of(array);
  return mark != nullptr && mark->is_buffer;
}

bool needs_gradient(const NDArray& a) {
  const TapeMark* mark = a ? mark_of(a) : nullptr;
  if (!mark) return false;
  // What stems from a graph that a backward has freed is a constant for what is computed from now on, as in MXNet:
  // states carried from one training step to the next end the gradient there.
  return mark->node ? !mark->node->released : mark->req != GradReq::kNull;
}

void record_op(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, std::vector<NDArray>& outputs,
               bool is_sparse) {
  Ref<TapeNode> node = make_tape_node(inputs);
  node->op = &op;
  node->is_sparse = is_sparse;
  node->params = params;
  const Saves& saves = op.saves();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (saves.input(static_cast<int>(i))) node->inputs[i].saved = SavedArray::of(inputs[i]);
  node->outputs.resize(outputs.size());
  const int visible = op.num_visible_outputs(params->data());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    node->outputs[i].spec = outputs[i].spec();
    if (saves.output(static_cast<int>(i))) node->outputs[i].saved = SavedArray::of(outputs[i].detached());
    if (static_cast<int>(i) < visible && has_gradient(outputs[i].dtype(), inputs)) mark_output(node, i, outputs[i]);
  }
}

void record(Ref<RecordedFunction> function, std::span<const NDArray> inputs, std::span<const NDArray> outputs) {
  bool wanted = false;
  for (const NDArray& a : inputs) wanted |= needs_gradient(a);
  if (!wanted) return;
  Ref<TapeNode> node = make_tape_node(inputs);
  node->function = std::move(function);
  node->outputs.resize(outputs.size());
  node->is_sparse = node->function->takes_sparse_gradients();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_pending()) node->outputs[i].spec = outputs[i].spec();
    mark_output(node, i, outputs[i]);
  }
}

void mark_variable(const NDArray& a, const NDArray& grad, GradReq req) {
  if (grad && !(grad.spec() == a.spec()))
    throw ShapeError({.input = "gradient", .expected = a.spec().str(), .given = grad.spec().str()});
  Ref<TapeMark> mark = make_ref<TapeMark>();
  mark->grad = grad;
  mark->req = req;
  if (grad) {
    require_other_gradient(a, grad, *mark);
    if (TapeMark* known = mark_of(grad))
      known->is_buffer = true;
    else
      keep_as_buffer(grad);
  }
  replace_mark(a, mark);
}

void keep_as_buffer(const NDArray& grad) {
  Ref<TapeMark> mark = make_ref<TapeMark>();
  mark->is_buffer = true;
  grad.impl()->tape = Ref<TapeInfo>(mark.get());
}

NDArray grad_of(const NDArray& a) {
  TapeMark* mark = mark_of(a);
  return mark ? mark->grad : NDArray();
}
GradReq grad_req_of(const NDArray& a) {
  TapeMark* mark = mark_of(a);
  return mark ? mark->req : GradReq::kNull;
}
void drop_grad(const NDArray& a) {
  if (is_gradient_buffer(a))
    keep_as_buffer(a);
  else
    a.impl()->tape = nullptr;
}

bool gradient_is_fresh(const NDArray& a) {
  const TapeMark* mark = mark_of(a);
  return mark != nullptr && mark->fresh;
}
void set_gradient_fresh(const NDArray& a, bool fresh) {
  if (TapeMark* mark = mark_of(a)) mark->fresh = fresh;
}

}  // namespace hybridnet
