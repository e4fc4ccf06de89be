// Nodes without variable inputs are computed once, when the graph is compiled.
#include <unordered_map>

#include "hybridnet/ndarray.h"
#include "ndarray/given_out.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

constexpr int64_t kLargest = 1 << 20;  // limit in bytes for a result that is larger than its inputs

std::vector<NDArray> evaluate(const Node& node, const std::vector<NDArray>& inputs, bool train) {
  std::vector<TensorSpec> in_specs;
  std::vector<TensorRef> in, out;
  for (const NDArray& array : inputs) {
    array.wait_to_read();
    in_specs.push_back(array.spec());
    in.push_back(array.ref());
  }
  std::vector<NDArray> results;
  for (const TensorSpec& spec : node.specs) {
    results.push_back(NDArray::empty(spec));
    out.push_back(results.back().ref());
  }
  LinkContext context;
  context.params = node.params->data();
  context.in = in_specs;
  context.out = node.specs;
  context.train = train;
  const Ref<Kernel> kernel = node.op->link(context);
  KernelArgs args;
  args.params = context.params;
  args.in = in;
  args.out = out;
  args.train = train;
  const NDArray workspace = NDArray::empty(Shape{kernel->workspace_bytes()}, DType::kUInt8);
  args.workspace = workspace.data();
  kernel->run(args);
  return results;
}

// Computes every node that depends on constants only, producers first; drops values that no other node reads on the
// way.
class Folding {
 public:
  explicit Folding(Graph& graph) : graph_(graph) {}

  bool run() {
    for (const Node* node : graph_.order()) {
      if (!node->is_variable() && may_fold(*node)) fold(*node);
    }
    bool changed = false;
    for (const NodeEntry& entry : order_) {
      const Known& known = known_.at(entry);
      if (known.unfolded_readers == 0) continue;
      graph_.replace(entry, {graph_.add_constant(Ref<Object>(known.value.impl()), graph_.spec(entry)), 0});
      changed = true;
    }
    return changed;
  }

 private:
  struct Known {
    NDArray value;
    size_t unfolded_readers;
  };

  static NDArray constant_of(const Node& variable) {
    return variable.constant ? NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(variable.constant.get()))) : NDArray();
  }

  bool is_known(const NodeEntry& entry) const {
    return entry.node->is_variable() ? entry.node->constant != nullptr : known_.count(entry) != 0;
  }

  bool may_fold(const Node& node) const {
    const Op& op = *node.op;
    if (op.random || op.opaque || !op.total || op.data_dependent_shape || !node.subgraphs.empty()) return false;
    int64_t in = 0, out = 0;
    for (const NodeEntry& input : node.inputs) {
      if (!is_known(input)) return false;
      if (input.node->constant && may_change_unseen(constant_of(*input.node))) return false;
      if (input.node->constant && constant_of(*input.node).is_on_gpu()) return false;
      in += graph_.spec(input).bytes();
    }
    bool used = false;
    for (int i = 0; i < static_cast<int>(node.specs.size()); ++i) {
      used = used || graph_.is_used(node, i);
      out += node.specs[static_cast<size_t>(i)].bytes();
    }
    return used && (out <= kLargest || out <= in);
  }

  void fold(const Node& node) {
    std::vector<NDArray> inputs, results;
    for (const NodeEntry& input : node.inputs)
      inputs.push_back(input.node->is_variable() ? constant_of(*input.node) : known_.at(input).value);
    try {
      results = evaluate(node, inputs, graph_.train());
    } catch (const Error&) {
      return;  // left in place: the failure belongs to the run, where the caller sees it
    }
    for (const NodeEntry& input : node.inputs) {
      const auto known = known_.find(input);
      if (known != known_.end() && --known->second.unfolded_readers == 0) known->second.value = NDArray();
    }
    const NodePtr self(const_cast<Node*>(&node));
    for (uint32_t i = 0; i < results.size(); ++i) {
      const size_t readers = graph_.clients(node, static_cast<int>(i)).size();
      if (readers == 0) continue;
      order_.push_back({self, i});
      known_.emplace(order_.back(), Known{results[i], readers});
    }
  }

  Graph& graph_;
  std::unordered_map<NodeEntry, Known, NodeEntryHash> known_;
  std::vector<NodeEntry> order_;  // in the order in which they became known
};

}  // namespace

bool fold_constants(Graph& graph) { return Folding(graph).run(); }

}  // namespace hybridnet::passes
