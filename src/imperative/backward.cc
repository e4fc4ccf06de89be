// Walks the tape from the heads back, newest step first, and runs each step's gradient rule on arrays.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "imperative/invoke.h"
#include "imperative/tape.h"

namespace hybridnet {
namespace {

const OpRef kAdd{"elemwise_add"}, kOnesLike{"ones_like"}, kZerosLike{"zeros_like"}, kCast{"Cast"};

// Invokes ops at once; under create_graph they are recorded in turn.
class ArrayEmitter final : public Emitter {
 public:
  explicit ArrayEmitter(bool share_views) : share_views_(share_views) {}
  Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) override {
    NDArray arrays[kMaxStackArrays];
    std::vector<NDArray> more;
    std::span<const NDArray> in;
    if (inputs.size() <= kMaxStackArrays) {
      for (size_t i = 0; i < inputs.size(); ++i) arrays[i] = to_array(inputs[i]);
      in = {arrays, inputs.size()};
    } else {
      for (const Value& v : inputs) more.push_back(to_array(v));
      in = more;
    }
    std::vector<NDArray> results;
    invoke_into(op, params, in, {.out = {}, .share_views = share_views_}, &results);
    Values values(results.size());
    for (size_t i = 0; i < results.size(); ++i) values[i] = to_value(results[i]);
    return values;
  }
  TensorSpec spec(const Value& v) const override { return to_array(v).spec(); }

 private:
  bool share_views_;
};

// A gradient on its way to a producer. `owned`: made here by a sum, so further terms are added in place.
struct Slot {
  NDArray array;
  bool owned = false;
};

struct Scope {
  AutogradState before = autograd_state();
  Scope(bool recording, bool training) { autograd_state() = {recording, training}; }
  ~Scope() { autograd_state() = before; }
};

[[noreturn]] void overwritten(const TapeNode& node, const TapeNode::Saved& saved, const std::string& who) {
  const Chunk& chunk = *saved.array.impl()->chunk;
  const SourceLocation written{chunk.overwrite_file.load(std::memory_order_relaxed),
                               chunk.overwrite_line.load(std::memory_order_relaxed)};
  ErrorFields e;
  e.op = node.name();
  e.input = who;
  e.message = "the value that its gradient needs was overwritten in place";
  e.because = "it was recorded at " + (node.where.known() ? node.where.str() : std::string("an unknown line")) +
              " and overwritten at " + (written.known() ? written.str() : std::string("an unknown line"));
  e.fix = "write to a new array (y = x + 1 instead of x += 1), or copy first: x.copy()";
  e.where = node.where;
  throw GradientError(std::move(e));
}

class TapeContext final : public GradientContext {
 public:
  TapeContext(TapeNode& node, std::vector<Slot>& out_grads, bool create_graph)
      : node_(node), out_grads_(out_grads), create_graph_(create_graph) {}
  int num_inputs() const override { return static_cast<int>(node_.inputs.size()); }
  int num_outputs() const override { return static_cast<int>(node_.outputs.size()); }
  Value input(int i) const override {
    const TapeNode::Input& in = node_.inputs[static_cast<size_t>(i)];
    check(in.saved, node_.op->input_name(node_.params->data(), i));
    return value(in.saved.array, in.mark);
  }
  Value output(int i) const override {
    const TapeNode::Output& out = node_.outputs[static_cast<size_t>(i)];
    check(out.saved, node_.op->output_name(node_.params->data(), i));
    if (!create_graph_) return to_value(out.saved.array);
    Ref<TapeMark> mark = make_ref<TapeMark>();
    mark->node = Ref<TapeNode>(&node_);
    mark->index = static_cast<uint32_t>(i);
    return value(out.saved.array, mark);
  }
  Value output_grad(int i) const override { return to_value(out_grads_[static_cast<size_t>(i)].array); }
  const TensorSpec& input_spec(int i) const override { return node_.inputs[static_cast<size_t>(i)].spec; }
  const TensorSpec& output_spec(int i) const override { return node_.outputs[static_cast<size_t>(i)].spec; }
  bool wants(int i) const override { return static_cast<bool>(node_.inputs[static_cast<size_t>(i)].mark); }
  bool train() const override { return node_.train; }

 private:
  void check(const TapeNode::Saved& saved, const std::string& who) const {
    if (!saved.array) {
      throw Error(ErrorKind::kError, {.op = node_.name(), .input = who,
                                      .message = "the gradient rule reads a value that its Saves do not declare"});
    }
    if (saved.array.impl()->chunk->overwrites.load(std::memory_order_relaxed) != saved.overwrites)
      overwritten(node_, saved, who);
  }
  // The array as it stood on the tape when it was recorded, whatever became of its handle since.
  Value value(const NDArray& saved, const Ref<TapeMark>& mark) const {
    if (!create_graph_ || saved.impl()->tape.get() == mark.get()) return to_value(saved);
    NDArray linked = saved.detached();
    linked.impl()->tape = Ref<TapeInfo>(mark.get());
    return to_value(linked);
  }
  TapeNode& node_;
  std::vector<Slot>& out_grads_;
  bool create_graph_;
};

class Backward {
 public:
  Backward(bool retain_graph, bool create_graph) : retain_(retain_graph || create_graph), create_(create_graph) {}

  void add_head(const NDArray& head, const NDArray& head_grad) {
    TapeMark* mark = mark_of(head);
    if (!mark || (!mark->node && mark->req == GradReq::kNull)) {
      throw GradientError({.message = "cannot differentiate an array that was not computed while recording",
                           .fix = "compute it inside 'with autograd.record():' from arrays that have attach_grad()"});
    }
    NDArray g = head_grad;
    if (!g) {
      g = invoke_one(kOnesLike.op(), kOnesLike.op().default_params, {&head, 1});
    } else if (!(g.spec().shape == head.shape())) {
      throw ShapeError({.input = "head gradient", .expected = "shape " + head.shape().str(), .given = g.shape().str()});
    }
    add(mark, g);
    if (mark->node) roots_.push_back(mark->node.get());
  }

  // Gradients that reach these marks are kept for take().
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
    ArrayEmitter emitter(!create_);
    Emitter::Scope scope(emitter);
    for (TapeNode* node : order_) step(node);
  }

  void write_leaves() {
    for (TapeMark* mark : leaf_order_) {
      Slot& slot = leaves_.at(mark);
      if (mark->req == GradReq::kNull || !mark->grad) continue;
      note_overwrite(mark->grad);
      if (mark->req == GradReq::kAdd) {
        const NDArray terms[] = {mark->grad, slot.array};
        invoke(kAdd.op(), kAdd.op().default_params, terms, {&mark->grad, 1});
      } else {
        write(slot, mark->grad);
      }
    }
  }

 private:
  struct EntryHash {
    size_t operator()(const std::pair<TapeNode*, uint32_t>& e) const { return std::hash<void*>()(e.first) * 31 + e.second; }
  };

  // The new gradient becomes the buffer's memory when nobody else can see either; else it is copied.
  void write(Slot& slot, const NDArray& grad) {
    ArrayImpl& from = *slot.array.impl();
    ArrayImpl& to = *grad.impl();
    const bool sole = slot.owned || (from.ref_count() == 1 && from.chunk->ref_count() == 1);
    if (!create_ && sole && from.chunk->ref_count() == 1 && from.offset == 0 && to.chunk->ref_count() == 1 &&
        to.offset == 0 && !from.chunk->deleter && !to.chunk->deleter && from.spec == to.spec) {
      const uint64_t overwrites = to.chunk->overwrites.load(std::memory_order_relaxed);
      from.chunk->overwrites.store(overwrites, std::memory_order_relaxed);
      std::swap(to.chunk, from.chunk);
      return;
    }
    const NDArray reads[] = {slot.array};
    static const OpRef kCopy{"_copy"};
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

  void add(TapeMark* mark, const NDArray& g) {
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
      slot->array = g;
      return;
    }
    const NDArray terms[] = {slot->array, g};
    const Op& op = kAdd.op();
    if (slot->owned && !create_) {
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
      node->release();
    }
  }

  void run_rule(TapeNode* node, std::vector<Slot>& out_grads) {
    TapeContext context(*node, out_grads, create_);
    Values grads = node->op->gradient(node->params->data(), context);
    // The out gradients and saved values are not needed any more: what a leaf receives may then be its sole owner.
    out_grads.clear();
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i] || !node->inputs[i].mark) continue;
      NDArray g = to_array(grads[i]);
      grads[i] = Value{};
      deliver(node, i, std::move(g));
    }
  }

  void run_function(TapeNode* node, std::vector<Slot>& out_grads) {
    std::vector<NDArray> arrays(out_grads.size());
    for (size_t i = 0; i < arrays.size(); ++i) arrays[i] = out_grads[i].array;
    std::vector<NDArray> grads = node->function->backward(arrays, create_);
    out_grads.clear();
    arrays.clear();
    for (size_t i = 0; i < grads.size() && i < node->inputs.size(); ++i)
      if (grads[i] && node->inputs[i].mark) deliver(node, i, std::move(grads[i]));
  }

  void deliver(TapeNode* node, size_t i, NDArray g) {
    const TensorSpec& spec = node->inputs[i].spec;
    if (!(g.shape() == spec.shape)) {
      throw ShapeError({.op = node->name(),
                        .message = "the gradient of input " + std::to_string(i) + " has shape " + g.shape().str() +
                                   ", but the input has " + spec.shape.str()});
    }
    if (g.dtype() != spec.dtype) {
      const Op& cast = kCast.op();
      g = invoke_one(cast, cast.schema->parse({{"dtype", AttrValue(dtype_name(spec.dtype))}}, cast.name), {&g, 1});
    }
    add(node->inputs[i].mark.get(), g);
  }

  bool retain_, create_;
  std::vector<TapeNode*> roots_, order_;
  std::vector<Ref<TapeNode>> keep_alive_;
  std::unordered_map<TapeNode*, std::vector<Slot>> pending_;
  std::unordered_map<TapeMark*, Slot> leaves_;
  std::vector<TapeMark*> leaf_order_;
  std::vector<Ref<TapeMark>> leaf_refs_;
  std::unordered_map<TapeNode*, std::vector<uint32_t>> watched_;
  std::unordered_map<std::pair<TapeNode*, uint32_t>, NDArray, EntryHash> kept_;
};

void add_heads(Backward& run, std::span<const NDArray> heads, std::span<const NDArray> head_grads) {
  if (!head_grads.empty() && head_grads.size() != heads.size()) {
    throw ValueError({.input = "head_grads", .expected = std::to_string(heads.size()) + " arrays, one per head",
                      .given = std::to_string(head_grads.size())});
  }
  for (size_t i = 0; i < heads.size(); ++i) run.add_head(heads[i], head_grads.empty() ? NDArray() : head_grads[i]);
}

}  // namespace

void backward(std::span<const NDArray> heads, std::span<const NDArray> head_grads, bool retain_graph, bool train_mode) {
  Scope scope(false, train_mode);
  Backward run(retain_graph, false);
  add_heads(run, heads, head_grads);
  run.run();
  run.write_leaves();
}

std::vector<NDArray> grad(std::span<const NDArray> heads, std::span<const NDArray> head_grads, std::span<const NDArray> variables,
                          bool retain_graph, bool create_graph, bool train_mode) {
  Scope scope(create_graph, train_mode);
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
