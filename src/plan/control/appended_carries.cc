#include "plan/control/appended_carries.h"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/control/control_flow.h"
#include "plan/control/control_kernel.h"

namespace hybridnet {
namespace {

const OpRef kConcat{"Concat"}, kConcatenate{"_npi_concatenate"}, kReshape{"Reshape"}, kMoveAxis{"_np_moveaxis"};

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

NodeEntry make(const OpRef& op, std::vector<NodeEntry> inputs, const Attributes& attributes, const Node& around) {
  NodePtr node =
      make_node(op.op(), around.name + "_rows", op.op().schema->parse(attributes, op.op().name), std::move(inputs));
  node->where = around.where;
  node->block = around.block;
  return {node, 0};
}

NodeEntry joined(std::vector<NodeEntry> parts, int64_t axis, const Node& around) {
  if (parts.size() == 1) return parts[0];
  const auto count = static_cast<int64_t>(parts.size());
  return make(kConcat, std::move(parts), {{"num_args", count}, {"dim", axis}}, around);
}

// Stacked rows of a carry that grows along `axis`, as one array: (n, a, r, b) becomes (a, n * r, b) for axis 1.
NodeEntry as_one_array(NodeEntry stacked, int64_t axis, const Node& around) {
  if (axis > 0) stacked = make(kMoveAxis, {stacked}, {{"source", int64_t{0}}, {"destination", axis}}, around);
  AttrValue::List shape(static_cast<size_t>(axis),
                        AttrValue(int64_t{0}));  // codes of Reshape: keep; join two; keep rest
  shape.emplace_back(int64_t{-3});
  shape.emplace_back(int64_t{-2});
  return make(kReshape, {stacked}, {{"shape", AttrValue(shape)}}, around);
}

// Counts the readers of a node in a graph, its outputs included.
int64_t num_readers(const Subgraph& graph, const Node& read) {
  const auto shows_it = [&](const NodeEntry& entry) { return entry.node.get() == &read; };
  int64_t count = std::count_if(graph.outputs.begin(), graph.outputs.end(), shows_it);
  for (const Node* node : topological_order(graph.outputs))
    count += std::count_if(node->inputs.begin(), node->inputs.end(), shows_it);
  return count;
}

class AppendingForm {
 public:
  explicit AppendingForm(const Node& node) : node_(node), loop_(loop_of(node)), axis_of_(loop_.carries(), -1) {
    for (size_t i = 0; i + 1 < loop_.free_axes.size(); i += 2)
      axis_of_[static_cast<size_t>(*loop_.free_axes[i])] = *loop_.free_axes[i + 1];
  }

  bool is_possible() const {
    if (loop_.truncate_gradient > 0 || loop_.detach_every > 0 || has_dynamic_body(node_)) return false;
    if (loop_.reverse) return false;  // stacked rows have the order of the data, appended ones that of the iterations
    const bool rows_match = loop_.exact || control_kind(node_) == ControlKind::kForeach;
    if (loop_.free_axes.empty() || (loop_.outs() > 0 && !rows_match) || (loop_.counted && !loop_.exact)) return false;
    if (static_cast<size_t>(num_grown()) != loop_.free_axes.size() / 2) return false;  // two free axes of one carry
    for (size_t carry = 0; carry < loop_.carries(); ++carry)
      if (axis_of_[carry] >= 0 && !only_appends(carry)) return false;
    return true;
  }

  GraphDefinition definition() {
    GraphDefinition made;
    std::vector<NodeEntry> given;
    for (int i = 0; i < loop_.num_args; ++i) {
      made.inputs.push_back(make_variable(node_.name + "_input" + std::to_string(i)));
      given.push_back({made.inputs.back(), 0});
    }
    const NodePtr loop = without_grown_carries(given);
    for (size_t i = 0; i < loop_.outs(); ++i) made.outputs.push_back({loop, static_cast<uint32_t>(i)});
    auto rows = static_cast<uint32_t>(loop_.outs()), kept = rows + static_cast<uint32_t>(num_grown());
    for (size_t carry = 0; carry < loop_.carries(); ++carry) {
      const int64_t axis = axis_of_[carry];
      made.outputs.push_back(
          axis < 0 ? NodeEntry{loop, kept++}
                   : joined({given[loop_.carry(carry)], as_one_array({loop, rows++}, axis, node_)}, axis, node_));
    }
    while (made.outputs.size() < static_cast<size_t>(node_.num_outputs())) made.outputs.push_back({loop, kept++});
    return made;
  }

 private:
  const Subgraph& body() const { return *node_.subgraphs.back(); }
  int num_grown() const {
    return static_cast<int>(std::count_if(axis_of_.begin(), axis_of_.end(), [](int64_t axis) { return axis >= 0; }));
  }
  bool is_grown(size_t slot) const {
    return slot >= loop_.seqs() && slot < loop_.first_invariant() && axis_of_[slot - loop_.seqs()] >= 0;
  }

  bool only_appends(size_t carry) const {
    const NodePtr& variable = body().inputs[loop_.carry(carry)];
    const Node& next = *body().outputs[loop_.final_carry(carry)].node;
    if ((next.op != &kConcat.op() && next.op != &kConcatenate.op()) || next.inputs.size() < 2 ||
        next.inputs[0].node != variable)
      return false;
    if (joined_axis(next) != axis_of_[carry]) return false;
    if (node_.subgraphs.size() > 1 && read_inputs(*node_.subgraphs[0])[loop_.carry(carry)]) return false;
    return num_readers(body(), *variable) == 1 && num_readers(body(), next) == 1;
  }

  static int64_t joined_axis(const Node& concat) {
    const SchemaBase& schema = *concat.op->schema;
    const int field = schema.find(concat.op == &kConcat.op() ? "dim" : "axis");
    const AttrValue axis = schema.get(concat.params->data(), field);
    const auto* number = std::get_if<int64_t>(&axis.value);
    return number ? *number : -1;
  }

  NodePtr without_grown_carries(const std::vector<NodeEntry>& given) const {
    std::vector<NodeEntry> read;
    for (size_t slot = 0; slot < given.size(); ++slot)
      if (!is_grown(slot)) read.push_back(given[slot]);
    NodePtr loop = copy_of(node_, std::move(read));
    LoopSpec spec = loop_;
    spec.num_args -= num_grown();
    spec.num_carry -= num_grown();
    spec.num_out += num_grown();
    spec.free_axes.clear();
    spec.exact = true;
    loop->params = boxed(std::move(spec));
    loop->subgraphs.clear();
    for (const Ref<Subgraph>& before : node_.subgraphs) {
      const Ref<Subgraph> after = make_ref<Subgraph>();
      for (size_t slot = 0; slot < before->inputs.size(); ++slot)
        if (!is_grown(slot)) after->inputs.push_back(before->inputs[slot]);
      after->outputs = before == node_.subgraphs.back() ? outputs_with_rows() : before->outputs;
      loop->subgraphs.push_back(after);
    }
    return loop;
  }

  std::vector<NodeEntry> outputs_with_rows() const {
    const std::vector<NodeEntry>& before = body().outputs;
    std::vector<NodeEntry> after(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(loop_.outs())), kept;
    for (size_t carry = 0; carry < loop_.carries(); ++carry) {
      const NodeEntry& next = before[loop_.final_carry(carry)];
      if (axis_of_[carry] < 0) {
        kept.push_back(next);
        continue;
      }
      const std::vector<NodeEntry>& parts = next.node->inputs;
      after.push_back(joined({parts.begin() + 1, parts.end()}, axis_of_[carry], *next.node));
    }
    after.insert(after.end(), kept.begin(), kept.end());
    return after;
  }

  const Node& node_;
  const LoopSpec& loop_;
  std::vector<int64_t> axis_of_;  // per carry: the axis along which it grows; -1: it keeps its size
};

}  // namespace

bool has_appended_carries(const Node& node) { return AppendingForm(node).is_possible(); }

GraphDefinition with_appended_rows(const Node& node) { return AppendingForm(node).definition(); }

}  // namespace hybridnet
