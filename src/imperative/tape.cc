#include "imperative/tape.h"

#include <algorithm>

#include "imperative/view_function.h"
#include "imperative/write_history.h"
#include "op/gradient_types.h"

namespace hybridnet {
namespace {

std::atomic<uint64_t> g_sequence{1};  // the next tape time

Ref<TapeNode> make_tape_node(std::span<const NDArray> inputs) {
  Ref<TapeNode> node = make_ref<TapeNode>();
  node->train = autograd_state().training;
  node->where = current_location();
  node->inputs.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_pending()) node->inputs[i].spec = inputs[i].spec();
    if (needs_gradient(inputs[i])) node->inputs[i].mark = Ref<TapeMark>(mark_of(inputs[i]));
  }
  node->sequence = next_tape_time();  // after the steps that mark_of() may just have made for the inputs
  return node;
}

void replace_mark(const NDArray& array, const Ref<TapeMark>& mark) {
  mark->is_buffer = is_gradient_buffer(array);
  array.impl()->tape = Ref<TapeInfo>(mark.get());
}

// is_written: the array's memory holds new values, which other arrays may show, too.
void mark_output(const Ref<TapeNode>& node, size_t index, const NDArray& array, bool is_written) {
  Ref<TapeMark> mark = make_ref<TapeMark>();
  mark->node = node;
  mark->index = static_cast<uint32_t>(index);
  mark->time.store(node->sequence, std::memory_order_relaxed);
  replace_mark(array, mark);
  Chunk& chunk = *array.impl()->chunk;
  if (chunk.has_views.load(std::memory_order_relaxed)) [[unlikely]] {
    if (is_written)
      WriteHistory::of(chunk).note(array, mark);
    else
      mark->time.store(next_tape_time(), std::memory_order_relaxed);
  }
}

bool may_have_gradient(DType output, const TapeNode& node, std::span<const NDArray> inputs) {
  if (is_floating(output)) return true;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (node.inputs[i].mark && carries_gradient(inputs[i].dtype(), output)) return true;
  return false;
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

uint64_t next_tape_time() { return g_sequence.fetch_add(1, std::memory_order_relaxed); }

Ref<TapeMark> make_mark(const Ref<TapeNode>& node, uint32_t index) {
  Ref<TapeMark> mark = make_ref<TapeMark>();
  mark->node = node;
  mark->index = index;
  mark->time.store(g_sequence.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  return mark;
}

NDArray another_handle(const NDArray& array) {
  NDArray handle = array.detached();
  handle.impl()->tape = array.impl()->tape;
  return handle;
}

TapeMark* current_mark_of(const NDArray& a) { return WriteHistory::find(*a.impl()->chunk)->current(a); }

void throw_overwritten(const std::string& op, const std::string& input, const SavedArray& saved,
                       SourceLocation recorded) {
  const Chunk& chunk = saved.array.impl()->chunk->owner();
  SourceLocation written{chunk.overwrite_file.load(std::memory_order_relaxed),
                         chunk.overwrite_line.load(std::memory_order_relaxed)};
  if (const WriteHistory* history = WriteHistory::find(*saved.array.impl()->chunk))
    written = history->overwritten_at(saved).value_or(written);
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
  // Deleting a node may drop the last reference to the node before it, and so on: the nodes are collected in a list to
  // avoid recursion.
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
  const TapeMark* mark = own_mark_of(array);
  return mark != nullptr && mark->is_buffer;
}

void throw_written_leaf(const std::string& op, const TapeMark& leaf, SourceLocation written) {
  const auto named = [](SourceLocation where) { return where.known() ? where.str() : std::string("an unknown line"); };
  throw GradientError({.op = op,
                       .message = "an array that has a gradient of its own is written in place while recording",
                       .because = "it got its gradient (attach_grad) at " + named(leaf.where) + " and is written at " +
                                  named(written) + "; that gradient would be lost",
                       .fix = "write to a new array (x = x + 1 instead of x += 1), or write where nothing is recorded: "
                              "inside 'with autograd.pause():'",
                       .where = written});
}

bool needs_gradient(const NDArray& a) { return a && has_gradient(mark_of(a)); }

Ref<TapeNode> begin_record(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs) {
  Ref<TapeNode> node = make_tape_node(inputs);
  node->op = &op;
  node->params = params;
  const Saves& saves = op.saves();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!saves.input(static_cast<int>(i))) continue;
    // Parts of memory that has views may be written: the history notes the ranges from now on.
    Chunk& chunk = *inputs[i].impl()->chunk;
    const bool has_views = chunk.has_views.load(std::memory_order_relaxed);
    if (has_views) WriteHistory::of(chunk);
    node->inputs[i].saved = SavedArray::of(has_views ? another_handle(inputs[i]) : inputs[i]);
  }
  return node;
}

void end_record(const Ref<TapeNode>& node, std::span<const NDArray> inputs, std::vector<NDArray>& outputs,
                bool is_view) {
  const Op& op = *node->op;
  const Saves& saves = op.saves();
  node->outputs.resize(outputs.size());
  const int visible = op.num_visible_outputs(node->params->data());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    node->outputs[i].spec = outputs[i].spec();
    if (saves.output(static_cast<int>(i))) node->outputs[i].saved = SavedArray::of(outputs[i].detached());
    if (static_cast<int>(i) < visible && may_have_gradient(outputs[i].dtype(), *node, inputs))
      mark_output(node, i, outputs[i], !is_view);
    if (!op.has_writebacks()) continue;
    // The operator has written its own state: its gradient reads the new values.
    const int state = op.writeback_input(node->params->data(), static_cast<int>(i));
    if (state >= 0 && node->inputs[static_cast<size_t>(state)].saved.array)
      node->inputs[static_cast<size_t>(state)].saved = SavedArray::of(inputs[static_cast<size_t>(state)]);
  }
}

void record_op(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, std::vector<NDArray>& outputs,
               bool is_sparse) {
  const Ref<TapeNode> node = begin_record(op, params, inputs);
  node->is_sparse = is_sparse;
  end_record(node, inputs, outputs);
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
    mark_output(node, i, outputs[i], /*is_written=*/false);
  }
}

// ------------------------------------------------------------------------------------------- writes, views
void forget_overwritten(const NDArray& array) {
  const TapeMark* own = own_mark_of(array);
  if (own && own->node && !own->leaf) {
    const Ref<TapeMark> constant = make_ref<TapeMark>();
    constant->where = current_location();
    replace_mark(array, constant);
  }
  if (WriteHistory* history = WriteHistory::find(*array.impl()->chunk)) history->note(array, {});
}

void note_given_out(const NDArray& array) {
  count_overwrite(*array.impl()->chunk);
  if (WriteHistory* history = WriteHistory::find(*array.impl()->chunk)) history->note_given_out(array);
}

namespace {

// Returns the mark of a view whose values are constants for the tape.
Ref<TapeMark> constant_view(const TapeMark* of) {
  Ref<TapeMark> mark = make_mark({}, 0);
  if (of == nullptr) return mark;
  mark->detached = of->detached;
  return mark;
}

NDArray view_on_tape(const NDArray& array, const TapeMark* own, NDArray view) {
  Chunk& chunk = *array.impl()->chunk;
  Ref<TapeMark> mark;
  const bool known = own && own->node && has_gradient(own);
  if (known) WriteHistory::of(chunk);
  if (autograd_state().recording && !(own && own->detached)) {
    if (WriteHistory* history = WriteHistory::find(chunk)) {
      mark = history->mark_of_view(array, view);
    } else if (has_gradient(own)) {
      recorded_view(array, view);
      mark = Ref<TapeMark>(own_mark_of(view));
    }
  }
  if (!mark) mark = constant_view(own);
  if (own != nullptr) {
    mark->is_buffer = own->is_buffer;
    mark->leaf = Ref<TapeMark>(const_cast<TapeMark*>(own->leaf_shown()));
  }
  view.impl()->tape = Ref<TapeInfo>(mark.get());
  return view;
}

void note_views(Chunk& chunk) {
  if (!chunk.has_views.load(std::memory_order_relaxed)) chunk.has_views.store(true, std::memory_order_relaxed);
}

}  // namespace

NDArray as_view(const NDArray& array, NDArray view) {
  Chunk& chunk = *array.impl()->chunk;
  note_views(chunk);
  const TapeMark* own = own_mark_of(array);
  if (own == nullptr && chunk.history.load(std::memory_order_acquire) == nullptr) return view;
  return view_on_tape(array, own, std::move(view));
}

NDArray as_detached(const NDArray& array) {
  NDArray result = array.detached();
  Chunk& chunk = *array.impl()->chunk;
  note_views(chunk);
  const TapeMark* own = own_mark_of(array);
  if (own && own->node && has_gradient(own)) WriteHistory::of(chunk);
  const Ref<TapeMark> mark = make_mark({}, 0);
  mark->detached = true;
  result.impl()->tape = Ref<TapeInfo>(mark.get());
  return result;
}

void check_recorded_write(const NDArray& target) {
  if (!autograd_state().recording) return;
  const TapeMark* own = own_mark_of(target);
  if (own && own->leaf_shown() != nullptr) throw_written_leaf("", *own->leaf_shown(), current_location());
}

void mark_variable(const NDArray& a, const NDArray& grad, GradReq req) {
  if (grad && !(grad.spec() == a.spec()))
    throw ShapeError({.input = "gradient", .expected = a.spec().str(), .given = grad.spec().str()});
  Ref<TapeMark> mark = make_ref<TapeMark>();
  mark->grad = grad;
  mark->req = req;
  mark->where = current_location();
  mark->time.store(next_tape_time(), std::memory_order_relaxed);
  if (grad) {
    require_other_gradient(a, grad, *mark);
    if (TapeMark* known = own_mark_of(grad))
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
  TapeMark* mark = own_mark_of(a);
  return mark ? mark->grad : NDArray();
}
GradReq grad_req_of(const NDArray& a) {
  TapeMark* mark = own_mark_of(a);
  return mark ? mark->req : GradReq::kNull;
}
void drop_grad(const NDArray& a) {
  if (is_gradient_buffer(a))
    keep_as_buffer(a);
  else
    a.impl()->tape = nullptr;
}

bool gradient_is_fresh(const NDArray& a) {
  const TapeMark* mark = own_mark_of(a);
  return mark != nullptr && mark->fresh;
}
void set_gradient_fresh(const NDArray& a, bool fresh) {
  if (TapeMark* mark = own_mark_of(a)) mark->fresh = fresh;
}

}  // namespace hybridnet
