// Walks the tape from the heads back, newest step first, and runs each step's gradient rule on arrays.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "imperative/array_emitter.h"
#include "imperative/autograd_scope.h"
#include "imperative/invoke.h"
#include "imperative/sparse_calls.h"
#include "imperative/tape.h"
#include "ndarray/overlap.h"

namespace hybridnet {
namespace {

const OpRef kAdd{"elemwise_add"}, kOnesLike{"ones_like"}, kZerosLike{"zeros_like"}, kCopy{"_copy"};

// Collects the memory that was allocated during the current step.
class StepEmitter final : public ArrayEmitter {
 public:
  using ArrayEmitter::ArrayEmitter;
  std::vector<const Chunk*> fresh;

  Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) override {
    if (row_sparse_shape_ != nullptr) {
      std::vector<NDArray> in;
      for (const Value& v : inputs) in.push_back(to_array(v));
      const NDArray rows = row_sparse_result(op, params, in);
      if (rows && rows.shape() == *row_sparse_shape_) {
        fresh.push_back(rows.impl()->chunk.get());
        return {to_value(rows)};
      }
    }
    return ArrayEmitter::emit(op, std::move(params), inputs);
  }
  // Gradients of this shape may be row_sparse, because they go straight into a row_sparse buffer. Null: none may.
  void allow_row_sparse(const Shape* shape) { row_sparse_shape_ = shape; }

 private:
  void made(std::span<const NDArray> in, const NDArray& result) override {
    const Chunk* chunk = result.impl()->chunk.get();
    if (std::none_of(in.begin(), in.end(), [&](const NDArray& a) { return a.impl()->chunk.get() == chunk; }))
      fresh.push_back(chunk);
  }
  const Shape* row_sparse_shape_ = nullptr;
};

// A gradient on its way to a producer. `owned`: no other array shares its memory, so further terms are added in place
// and a gradient buffer may take it over.
struct Slot {
  NDArray array;
  bool owned = false;
};

class TapeContext final : public GradientContext {
 public:
  TapeContext(TapeNode& node, std::vector<Slot>& out_grads, bool create_graph)
      : node_(node), out_grads_(out_grads), create_graph_(create_graph) {}
  int num_inputs() const override { return static_cast<int>(node_.inputs.size()); }
  int num_outputs() const override { return static_cast<int>(node_.outputs.size()); }
  Value input(int i) const override {
    const TapeNode::Input& in = node_.inputs[static_cast<size_t>(i)];
    check(in.saved, [&] { return node_.op->input_name(node_.params->data(), i); });
    return is_readable(in.saved.array) ? value(in.saved.array, in.mark) : value(dense_copy(in.saved.array), in.mark);
  }
  Value output(int i) const override {
    const TapeNode::Output& out = node_.outputs[static_cast<size_t>(i)];
    check(out.saved, [&] { return node_.op->output_name(node_.params->data(), i); });
    Ref<TapeMark> mark;
    if (create_graph_) mark = make_mark(Ref<TapeNode>(&node_), static_cast<uint32_t>(i));
    return is_readable(out.saved.array) ? value(out.saved.array, mark) : value(dense_copy(out.saved.array), mark);
  }
  Value output_grad(int i) const override { return to_value(out_grads_[static_cast<size_t>(i)].array); }
  const TensorSpec& input_spec(int i) const override { return node_.inputs[static_cast<size_t>(i)].spec; }
  const TensorSpec& output_spec(int i) const override { return node_.outputs[static_cast<size_t>(i)].spec; }
  bool wants(int i) const override { return static_cast<bool>(node_.inputs[static_cast<size_t>(i)].mark); }
  bool train() const override { return node_.train; }

 private:
  // True if a saved value has the storage that the rule reads.
  bool is_readable(const NDArray& saved) const { return node_.is_sparse || !saved.is_sparse(); }
  NDArray dense_copy(const NDArray& saved) const {
    warn_of_dense_copies(*node_.op, " (in its gradient)", "its rule for the gradient reads all elements");
    return dense_form(saved);
  }
  // name: returns the name of the value; called only for an error.
  template <typename Name>
  void check(const SavedArray& saved, Name name) const {
    if (!saved.array) {
      throw Error(ErrorKind::kError, {.op = node_.name(),
                                      .input = name(),
                                      .message = "the gradient rule reads a value that its Saves do not declare"});
    }
    if (saved.is_overwritten()) throw_overwritten(node_.name(), name(), saved, node_.where);
  }
  // Returns the array with the mark that it had when it was recorded; its handle may have another mark by now.
  Value value(const NDArray& saved, const Ref<TapeMark>& mark) const {
    if (!create_graph_ || saved.impl()->tape.get() == mark.get()) return to_value(saved);
    NDArray linked = saved.detached();
    if (mark) linked.impl()->tape = Ref<TapeInfo>(mark.get());
    return to_value(linked);
  }
  TapeNode& node_;
  std::vector<Slot>& out_grads_;
  bool create_graph_;
};

class Backward {
 public:
  Backward(bool retain_graph, bool create_graph)
      : retain_(retain_graph || create_graph), create_(create_graph), emitter_(!create_graph) {}

  // head_grad may have any floating dtype: it is cast to the dtype of the head, which the rules read. null: ones.
  void add_head(const NDArray& head, const NDArray& head_grad) {
    TapeMark* mark = mark_of(head);
    if (!mark || (!mark->node && mark->req == GradReq::kNull)) {
      const bool overwritten = mark != nullptr && !mark->node && mark->where.known();
      throw GradientError({.message = "cannot differentiate an array that was not computed while recording",
                           .because = overwritten ? "it was overwritten at " + mark->where.str() +
                                                        ", by a constant or while nothing was recorded"
                                                  : "",
                           .fix = "compute it inside 'with autograd.record():' from arrays that have attach_grad()"});
    }
    NDArray g = head_grad;
    if (!g) {
      const NDArray values = to_dense(head);
      g = invoke_one(kOnesLike.op(), kOnesLike.op().default_params, {&values, 1});
    } else if (!(g.spec().shape == head.shape())) {
      throw ShapeError({.input = "head gradient", .expected = "shape " + head.shape().str(), .given = g.shape().str()});
    }
    const bool is_given = head_grad && g.dtype() == head.dtype();
    heads_.push_back({mark, as_dtype(g, head.dtype()), !is_given});
    if (mark->node) roots_.push_back(mark->node.get());
  }

  // Keeps the gradient that reaches this mark for take().
  void watch(const TapeMark* mark) {
    if (mark->node) {
      watched_[mark->node.get()].push_back(mark->index);
    }
  }
  NDArray take(const TapeMark* mark) {
    if (!mark->node) {
      auto it = leaves_.find(const_cast<TapeMark*>(mark));
      return it == leaves_.end() ? NDArray() : it->second.array;
    }
    auto it = kept_.find({mark->node.get(), mark->index});
    return it == kept_.end() ? NDArray() : it->second;
  }

  void run() {
    collect();
    for (Head& head : heads_) add(head.mark, head.owned ? head.gradient : apart_from_buffers(head), head.owned);
    heads_.clear();
    Emitter::Scope scope(emitter_);
    for (TapeNode* node : order_) step(node);
  }

  void write_leaves() {
    for (TapeMark* mark : leaf_order_) {
      Slot& slot = leaves_.at(mark);
      if (mark->req == GradReq::kNull || !mark->grad) continue;
      note_overwrite(mark->grad);
      mark->fresh = true;
      if (mark->req == GradReq::kAdd) {
        const NDArray terms[] = {mark->grad, slot.array};
        invoke(kAdd.op(), kAdd.op().default_params, terms, {&mark->grad, 1});
      } else {
        write(slot, mark->grad);
      }
    }
  }

 private:
  struct Head {
    TapeMark* mark;
    NDArray gradient;
    bool owned;
  };

  // Copies a head gradient that overlaps a buffer which this backward may write before it has read the gradient.
  NDArray apart_from_buffers(const Head& head) const {
    const auto is_in_the_way = [&](const TapeMark* mark) {
      return mark && !mark->node && mark->grad && overlap(mark->grad, head.gradient);
    };
    bool found = is_in_the_way(head.mark);
    for (const TapeNode* node : order_)
      for (const TapeNode::Input& in : node->inputs) found = found || is_in_the_way(in.mark.get());
    if (!found) return head.gradient;
    return invoke_one(kCopy.op(), kCopy.op().default_params, {&head.gradient, 1});
  }

  struct EntryHash {
    size_t operator()(const std::pair<TapeNode*, uint32_t>& e) const {
      return std::hash<void*>()(e.first) * 31 + e.second;
    }
  };

  // The buffer takes over the new gradient's memory if no other array shares the memory of either and no task is
  // pending on the buffer (queued tasks find memory through the array); else the gradient is copied.
  void write(Slot& slot, const NDArray& grad) {
    if (grad.is_sparse()) return slot.owned ? move_into_sparse(grad, slot.array) : assign_sparse(grad, slot.array);
    const ArrayImpl& from = *slot.array.impl();
    ArrayImpl& to = *grad.impl();
    if (from.chunk.get() == to.chunk.get() && from.offset == to.offset && from.spec == to.spec)
      return;  // is there already
    if (slot.owned && to.chunk->var.idle() && to.chunk->ref_count() == 1 && !to.chunk->history && to.offset == 0 &&
        !from.chunk->is_foreign() && !from.chunk->mapping && !to.chunk->is_foreign() && from.spec == to.spec) {
      from.chunk->overwrites.store(to.chunk->overwrites.load(std::memory_order_relaxed), std::memory_order_relaxed);
      to.chunk = from.chunk;
      to.offset = from.offset;
      return;
    }
    const NDArray reads[] = {slot.array};
    invoke(kCopy.op(), kCopy.op().default_params, reads, {&grad, 1});
  }

  void collect() {
    std::unordered_set<TapeNode*> seen;
    std::vector<TapeNode*> stack = roots_;
    while (!stack.empty()) {
      TapeNode* node = stack.back();
      stack.pop_back();
      if (!seen.insert(node).second) continue;
      order_.push_back(node);
      for (const TapeNode::Input& in : node->inputs)
        if (in.mark && in.mark->node) stack.push_back(in.mark->node.get());
    }
    std::sort(order_.begin(), order_.end(), [](TapeNode* a, TapeNode* b) { return a->sequence > b->sequence; });
  }

  // True if gradients for this mark stay sparse: a sparse buffer or a step that takes sparse gradients receives them.
  bool keeps_sparse(const TapeMark& mark) const {
    return mark.node ? mark.node->is_sparse && !create_ : mark.grad && mark.grad.is_sparse();
  }

  void add(TapeMark* mark, NDArray g, bool owned) {
    if (g.is_sparse() && !keeps_sparse(*mark)) {
      g = create_ ? dense_form(g) : to_dense(g);  // dense_form() keeps the tape mark
      owned = !create_;
    }
    Slot* slot;
    if (mark->node) {
      std::vector<Slot>& slots = pending_[mark->node.get()];
      if (slots.empty()) slots.resize(mark->node->outputs.size());
      slot = &slots[mark->index];
    } else {
      auto [it, fresh] = leaves_.try_emplace(mark);
      if (fresh) {
        leaf_order_.push_back(mark);
        leaf_refs_.emplace_back(mark);
      }
      slot = &it->second;
    }
    if (!slot->array) {
      *slot = {g, owned};
      return;
    }
    const NDArray terms[] = {slot->array, g};
    const Op& op = kAdd.op();
    if (slot->owned && !create_ && !any_sparse(terms)) {
      invoke(op, op.default_params, terms, {&slot->array, 1});
    } else {
      slot->array = invoke_one(op, op.default_params, terms);
      slot->owned = true;
    }
  }

  void step(TapeNode* node) {
    auto found = pending_.find(node);
    if (found == pending_.end()) return;
    std::vector<Slot> out_grads = std::move(found->second);
    pending_.erase(found);
    if (auto w = watched_.find(node); w != watched_.end())
      for (uint32_t i : w->second)
        if (out_grads[i].array) kept_[{node, i}] = out_grads[i].array;
    if (node->released) {
      throw GradientError({.op = node->name(),
                           .message = "the recorded graph was already used by a backward and freed",
                           .fix = "pass retain_graph=True to the first backward",
                           .where = node->where});
    }
    try {
      if (node->op) {
        run_rule(node, out_grads);
      } else {
        run_function(node, out_grads);
      }
    } catch (Error& error) {
      ErrorFields outer;
      outer.op = node->name();
      outer.where = node->where;
      error.add_context(outer);
      throw;
    }
    if (!retain_) {
      keep_alive_.emplace_back(node);
      node->free_saved();
    }
  }

  void run_rule(TapeNode* node, std::vector<Slot>& out_grads) {
    TapeContext context(*node, out_grads, create_);
    emitter_.fresh.clear();
    emitter_.allow_row_sparse(create_ ? nullptr : shape_of_row_sparse_leaf(*node));
    const GradientRuleScope scope(*node->op);
    const DefaultDevice of_constants(device_of(out_grads));
    Values values = node->op->gradient(node->params->data(), context);
    emitter_.allow_row_sparse(nullptr);
    std::vector<NDArray> grads(values.size());
    for (size_t i = 0; i < values.size(); ++i) grads[i] = to_array(values[i]);
    values.clear();
    for (const Slot& slot : out_grads)
      if (slot.array && slot.owned) emitter_.fresh.push_back(slot.array.impl()->chunk.get());
    out_grads.clear();
    std::sort(emitter_.fresh.begin(), emitter_.fresh.end());
    deliver_all(node, grads,
                [&](const Chunk* c) { return std::binary_search(emitter_.fresh.begin(), emitter_.fresh.end(), c); });
  }

  static Device device_of(std::span<const Slot> gradients) {
    for (const Slot& slot : gradients)
      if (slot.array) return slot.array.device();
    return {};
  }

  static const Shape* shape_of_row_sparse_leaf(const TapeNode& node) {
    for (const TapeNode::Input& in : node.inputs)
      if (in.mark && !in.mark->node && in.mark->grad && in.mark->grad.storage_type() == StorageType::kRowSparse)
        return &in.mark->grad.shape();
    return nullptr;
  }

  void run_function(TapeNode* node, std::vector<Slot>& out_grads) {
    std::vector<NDArray> arrays(out_grads.size());
    for (size_t i = 0; i < arrays.size(); ++i) arrays[i] = out_grads[i].array;
    std::vector<NDArray> grads = node == order_.back() && !create_
                                     ? node->function->backward_into(arrays, buffers_of(*node))
                                     : node->function->backward(arrays, create_);
    grads.resize(node->inputs.size());
    deliver_all(node, grads, [&](const Chunk*) { return node->function->returns_fresh_arrays(); });
  }

  // Returns the gradient buffers that only this node, the last one to run, contributes to: it may write into them.
  // Nodes that run later could still read the previous contents of a buffer.
  std::vector<NDArray> buffers_of(const TapeNode& node) const {
    std::vector<NDArray> buffers(node.inputs.size());
    std::unordered_set<const TapeMark*> met, twice;
    for (const TapeNode::Input& in : node.inputs)
      if (in.mark && !met.insert(in.mark.get()).second) twice.insert(in.mark.get());
    for (size_t i = 0; i < buffers.size(); ++i) {
      TapeMark* mark = node.inputs[i].mark.get();
      if (mark && !mark->node && mark->req == GradReq::kWrite && !leaves_.contains(mark) && !twice.contains(mark))
        if (mark->grad && !mark->grad.is_sparse()) buffers[i] = mark->grad;
    }
    return buffers;
  }

  template <typename Fresh>
  void deliver_all(TapeNode* node, const std::vector<NDArray>& grads, Fresh&& fresh) {
    const bool few = grads.size() <= 16;  // few arrays are compared with each other, more are sorted
    if (!few) sort_chunks(grads);
    const auto held_once = [&](const Chunk* chunk) {
      const auto same = [&](const NDArray& a) { return a && a.impl()->chunk.get() == chunk; };
      if (few) return std::count_if(grads.begin(), grads.end(), same) == 1;
      const auto [begin, end] = std::equal_range(chunks_.begin(), chunks_.end(), chunk);
      return end - begin == 1;
    };
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i] || !node->inputs[i].mark) continue;
      const Chunk* chunk = grads[i].impl()->chunk.get();
      deliver(node, i, grads[i], fresh(chunk) && held_once(chunk));
    }
  }

  void sort_chunks(const std::vector<NDArray>& grads) {
    chunks_.clear();
    for (const NDArray& grad : grads)
      if (grad) chunks_.push_back(grad.impl()->chunk.get());
    std::sort(chunks_.begin(), chunks_.end());
  }

  void deliver(TapeNode* node, size_t i, NDArray g, bool owned) {
    const TensorSpec& spec = node->inputs[i].spec;
    if (!spec.known()) return add(node->inputs[i].mark.get(), g, owned);
    if (!(g.shape() == spec.shape)) {
      throw ShapeError({.op = node->name(),
                        .message = "the gradient of input " + std::to_string(i) + " has shape " + g.shape().str() +
                                   ", but the input has " + spec.shape.str()});
    }
    if (g.dtype() != spec.dtype) {
      g = as_dtype(g, spec.dtype);
      owned = true;
    }
    add(node->inputs[i].mark.get(), g, owned);
  }

  bool retain_, create_;
  StepEmitter emitter_;
  std::vector<Head> heads_;
  std::vector<TapeNode*> roots_, order_;
  std::vector<Ref<TapeNode>> keep_alive_;
  std::vector<const Chunk*> chunks_;  // memory of the gradients that are being delivered, sorted
  std::unordered_map<TapeNode*, std::vector<Slot>> pending_;
  std::unordered_map<TapeMark*, Slot> leaves_;
  std::vector<TapeMark*> leaf_order_;
  std::vector<Ref<TapeMark>> leaf_refs_;
  std::unordered_map<TapeNode*, std::vector<uint32_t>> watched_;
  std::unordered_map<std::pair<TapeNode*, uint32_t>, NDArray, EntryHash> kept_;
};

void add_heads(Backward& run, std::span<const NDArray> heads, std::span<const NDArray> head_grads) {
  if (!head_grads.empty() && head_grads.size() != heads.size()) {
    throw ValueError({.input = "head_grads",
                      .expected = std::to_string(heads.size()) + " arrays, one per head",
                      .given = std::to_string(head_grads.size())});
  }
  for (size_t i = 0; i < heads.size(); ++i) run.add_head(heads[i], head_grads.empty() ? NDArray() : head_grads[i]);
}

}  // namespace

void backward(std::span<const NDArray> heads, std::span<const NDArray> head_grads, bool retain_graph, bool train_mode) {
  const AutogradScope scope({.recording = false, .training = train_mode});
  Backward run(retain_graph, false);
  add_heads(run, heads, head_grads);
  run.run();
  run.write_leaves();
}

std::vector<NDArray> grad(std::span<const NDArray> heads, std::span<const NDArray> head_grads,
                          std::span<const NDArray> variables, bool retain_graph, bool create_graph, bool train_mode) {
  const AutogradScope scope({.recording = create_graph, .training = train_mode});
  Backward run(retain_graph, create_graph);
  for (const NDArray& v : variables) {
    if (!needs_gradient(v)) {
      throw GradientError({.message = "cannot differentiate with respect to an array that was not marked",
                           .fix = "call x.attach_grad() before recording"});
    }
    run.watch(mark_of(v));
  }
  add_heads(run, heads, head_grads);
  run.run();
  std::vector<NDArray> results;
  for (const NDArray& v : variables) {
    NDArray g = run.take(mark_of(v));
    if (!g) g = invoke_one(kZerosLike.op(), kZerosLike.op().default_params, {&v, 1});
    results.push_back(std::move(g));
  }
  return results;
}

}  // namespace hybridnet
