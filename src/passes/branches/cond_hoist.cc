// Moves work that both branches of a cond do on the same values in front of it: it runs once either way, and merges
// with equal work around it (another branch, the gradient). Work of one branch only stays; so cond_sink, which moves
// work of one branch the other way, never undoes this.
#include <algorithm>
#include <unordered_set>

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"
#include "passes/branches/cond_parts.h"
#include "passes/canonical/value_numbers.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

using Number = ValueNumbers::Number;

// True if the node costs no time in the branch: it is not worth another value that crosses the border.
bool is_free(const Node& node) { return node.inputs.empty() || (node.op->is_view && node.specs.size() <= 1); }

// The nodes and outputs of one branch, producers first, and their numbers.
struct Numbered {
  std::vector<Node*> nodes;
  std::vector<NodeEntry> outputs;
  ValueNumbers::OfNodes numbers;

  Number of(const NodeEntry& entry) const { return ValueNumbers::of(numbers, entry); }
};

// The nodes that run whenever the branch does. Leaves out nodes that only one branch of an inner cond reads: they will
// move into it.
std::unordered_set<const Node*> always_run(const Numbered& branch) {
  std::unordered_set<const Node*> found;
  for (const NodeEntry& output : branch.outputs) found.insert(output.node.get());
  for (auto it = branch.nodes.rbegin(); it != branch.nodes.rend(); ++it) {
    const Node& node = **it;
    if (found.count(&node) == 0) continue;
    std::vector<int> readers(node.inputs.size(), 1);
    if (control_kind(node) == ControlKind::kCond) {
      readers = bodies_reading(node);
    }
    for (size_t i = 0; i < readers.size(); ++i)
      if ((readers[i] & 1) != 0 || readers[i] == 6) found.insert(node.inputs[i].node.get());
  }
  return found;
}

std::unordered_set<Number> numbers_of(const Numbered& branch, const std::unordered_set<const Node*>& nodes) {
  std::unordered_set<Number> numbers;
  for (const Node* node : nodes)
    if (const auto number = branch.numbers.find(node); number != branch.numbers.end()) numbers.insert(number->second);
  return numbers;
}

// The work that two branches share.
struct Common {
  std::unordered_set<Number> nodes;  // nodes that move, by the number of their output 0
  std::vector<size_t> outputs;       // outputs of the cond that are equal in both branches
};

bool is_copy(const Node& node) {
  static const OpRef copy{"_copy"};
  return node.op == &copy.op();
}

template <typename MayMove>
Common find_common(const Numbered& one, const Numbered& other, size_t common_outputs, const MayMove& may_move) {
  std::unordered_set<Number> in_other;
  for (const Node* node : other.nodes) {
    const auto number = other.numbers.find(node);
    if (number != other.numbers.end() && !node->is_variable() && !is_copy(*node)) in_other.insert(number->second);
  }
  Common common;
  std::unordered_set<Number> read;  // values that something in front of the cond reads
  for (size_t i = 0; i < common_outputs; ++i) {
    const Number number = one.of(one.outputs[i]);
    if (number == ValueNumbers::kUnknown || number != other.of(other.outputs[i])) continue;
    common.outputs.push_back(i);
    read.insert(number);
  }
  std::unordered_set<Number> movable;  // closed upwards: operands of moved nodes are outside
  std::unordered_set<Number> outside;
  for (const Node* node : one.nodes) {
    const auto number = one.numbers.find(node);
    if (number == one.numbers.end()) continue;
    const bool given = node->is_variable() || is_copy(*node);
    const bool moves = !given && in_other.count(number->second) != 0 && may_move(*node) &&
                       std::all_of(node->inputs.begin(), node->inputs.end(),
                                   [&](const NodeEntry& input) { return outside.count(one.of(input)) != 0; });
    if (given && (node->is_variable() || outside.count(one.of(node->inputs[0])) != 0)) outside.insert(number->second);
    if (!moves) continue;
    movable.insert(number->second);
    for (uint32_t i = 0; i < static_cast<uint32_t>(node->num_outputs()); ++i) outside.insert(number->second + i);
  }
  std::erase_if(common.outputs, [&](size_t i) { return outside.count(one.of(one.outputs[i])) == 0; });
  const std::unordered_set<Number> in_one_always = numbers_of(one, always_run(one)),
                                   in_other_always = numbers_of(other, always_run(other));
  for (auto it = one.nodes.rbegin(); it != one.nodes.rend(); ++it) {
    const Node& node = **it;
    const auto number = one.numbers.find(&node);
    if (number == one.numbers.end() || movable.count(number->second) == 0) continue;
    bool wanted =
        !is_free(node) && in_one_always.count(number->second) != 0 && in_other_always.count(number->second) != 0;
    for (uint32_t i = 0; i < static_cast<uint32_t>(node.num_outputs()); ++i)
      wanted = wanted || read.count(number->second + i) != 0;
    if (!wanted) continue;
    common.nodes.insert(number->second);
    for (const NodeEntry& input : node.inputs) read.insert(one.of(input));
  }
  return common;
}

// A cheap check, without inference: true if this cond, or one in its branches, has work to move. around: numbers of
// values of the graph that holds it.
bool has_common_work(const Node& node, const ValueNumbers::OfNodes& around, ValueNumbers& values) {
  const BranchSpec& spec = branch_of(node);
  if (spec.dynamic) return false;
  std::array<Numbered, 2> branches;
  for (size_t b = 0; b < 2; ++b) {
    const Subgraph& body = *node.subgraphs[b + 1];
    Numbered& branch = branches[b];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const NodeEntry& outside = node.inputs[k];
      const Number known = ValueNumbers::of(around, outside);
      branch.numbers[body.inputs[k].get()] = known == ValueNumbers::kUnknown ? values.outer(outside) : known;
    }
    branch.nodes = topological_order(body.outputs);
    branch.outputs = body.outputs;
    values.add(branch.nodes, branch.numbers);
    for (const Node* inner : branch.nodes)
      if (control_kind(*inner) == ControlKind::kCond && has_common_work(*inner, branch.numbers, values)) return true;
  }
  const Common common = find_common(branches[0], branches[1], spec.outs(), [](const Node&) { return true; });
  return !common.nodes.empty() || !common.outputs.empty();
}

bool hoist_common_work(Graph& graph);

class Hoist {
 public:
  Hoist(Graph& graph, Node& node)
      : graph_(graph), node_(node), spec_(branch_of(node)), branches_{Branch(graph, node, 1), Branch(graph, node, 2)} {}

  bool run() {
    bool changed = false;
    for (Branch& branch : branches_) changed = hoist_common_work(branch.graph) || changed;  // inner ones first
    ValueNumbers values;
    std::array<Numbered, 2> numbered;
    for (size_t b = 0; b < 2; ++b) numbered[b] = number(branches_[b], values);
    Common common = find_common(numbered[0], numbered[1], spec_.outs(), [this](const Node& node) {
      const Graph& branch = branches_[0].graph;
      return may_cross_branch_border(branch, node) && tells_its_specs(branch, node);
    });
    if (is_opaque(node_)) common.outputs.clear();
    if (common.nodes.empty() && common.outputs.empty()) {
      if (changed) rebuild({}, {});
      return changed;
    }
    add_in_front(numbered[0], common);
    std::vector<NodeEntry> same;
    for (size_t i : common.outputs) same.push_back(front_value(numbered[0], numbered[0].outputs[i]));
    for (size_t b = 0; b < 2; ++b) read_from_front(branches_[b], numbered[b], common);
    rebuild(common.outputs, same);
    return true;
  }

 private:
  struct Branch {
    Branch(const Graph& around, const Node& node, size_t body)
        : graph(graph_of_body(around, node, body)), outside(node.inputs) {
      share_inputs(graph, outside);  // inner conds then see equal values
    }
    Graph graph;
    std::vector<NodeEntry> outside;  // value of each of its inputs
  };

  Numbered number(const Branch& branch, ValueNumbers& values) {
    Numbered result{branch.graph.order(), branch.graph.outputs(), {}};
    for (size_t k = 0; k < branch.outside.size(); ++k) {
      const Number number = values.outer(branch.outside[k]);
      result.numbers[branch.graph.inputs()[k].get()] = number;
      front_.try_emplace(number, branch.outside[k]);
    }
    values.add(result.nodes, result.numbers);
    return result;
  }

  // True if the specs follow from the inputs. In a body they may come from readers; in front of the cond there are
  // none.
  static bool tells_its_specs(const Graph& branch, const Node& node) {
    std::vector<TensorSpec> in, out(node.specs.size());
    for (const NodeEntry& input : node.inputs) in.push_back(branch.spec(input));
    try {
      infer_node(node, in, out, branch.train());
    } catch (const Error&) {
      return false;
    }
    return out == node.specs;
  }

  NodeEntry front_value(const Numbered& branch, const NodeEntry& entry) {
    const auto [found, added] = front_.try_emplace(branch.of(entry));
    if (added) found->second = {graph_.add_constant(entry.node->constant, entry.node->specs[0]), 0};
    return found->second;
  }

  void add_in_front(const Numbered& branch, const Common& common) {
    for (Node* node : branch.nodes) {
      const auto number = branch.numbers.find(node);
      if (number == branch.numbers.end() || common.nodes.count(number->second) == 0 ||
          front_.count(number->second) != 0)
        continue;
      std::vector<NodeEntry> inputs;
      for (const NodeEntry& input : node->inputs) inputs.push_back(front_value(branch, input));
      const NodePtr made = graph_.add(*node->op, node->params, std::move(inputs), &node_, node->subgraphs);
      made->name = node->name;
      made->block = node->block;
      made->where = node->where;
      made->attrs = node->attrs;
      for (uint32_t i = 0; i < made->specs.size(); ++i) front_[number->second + i] = {made, i};
    }
  }

  // Turns moved nodes into inputs. Visits readers first, so that a node that loses its last reader is removed.
  void read_from_front(Branch& branch, const Numbered& numbered, const Common& common) {
    const std::vector<NodePtr> nodes(numbered.nodes.begin(), numbered.nodes.end());
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      const auto number = numbered.numbers.find(it->get());
      if (number == numbered.numbers.end() || common.nodes.count(number->second) == 0 || (*it)->is_variable() ||
          is_copy(**it))
        continue;
      for (uint32_t i = 0; i < (*it)->specs.size(); ++i) {
        if (!branch.graph.contains(it->get()) || !branch.graph.is_used(**it, static_cast<int>(i))) continue;
        branch.graph.replace({*it, i}, input_for(branch, front_.at(number->second + i)));
      }
    }
  }

  NodeEntry input_for(Branch& branch, const NodeEntry& value) {
    const auto known = std::find(branch.outside.begin(), branch.outside.end(), value);
    if (known != branch.outside.end())
      return {branch.graph.inputs()[static_cast<size_t>(known - branch.outside.begin())], 0};
    branch.outside.push_back(value);
    return {branch.graph.add_input(value.node->name, graph_.spec(value)), 0};
  }

  // Makes the cond without these outputs; their readers read `values`.
  void rebuild(const std::vector<size_t>& outputs, const std::vector<NodeEntry>& values) {
    std::vector<NodeEntry> now(node_.specs.size());
    for (size_t i = 0; i < outputs.size(); ++i) now[outputs[i]] = values[i];
    BranchSpec spec = spec_;
    spec.num_out -= static_cast<int32_t>(outputs.size());
    NodePtr made;
    if (spec.num_outputs() > 0)
      made = add_cond(graph_, node_, spec,
                      {bound_body(node_, 0), closed(branches_[0], outputs), closed(branches_[1], outputs)});
    uint32_t next = 0;
    for (NodeEntry& entry : now)
      if (!entry.node) entry = {made, next++};
    move_readers(graph_, node_, now);
  }

  // The branch as a body, without these outputs.
  static BoundBody closed(Branch& branch, const std::vector<size_t>& without) {
    for (auto it = without.rbegin(); it != without.rend(); ++it) branch.graph.remove_output(static_cast<int>(*it));
    return {freeze(branch.graph, branch.graph.outputs()), branch.outside};
  }

  Graph& graph_;
  Node& node_;
  const BranchSpec spec_;
  std::array<Branch, 2> branches_;
  std::unordered_map<Number, NodeEntry> front_;  // values computed in front of the cond
};

bool hoist_common_work(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kCond}, [&](Node& node) {
    ValueNumbers values;
    if (has_common_work(node, {}, values)) changed = Hoist(graph, node).run() || changed;
  });
  return changed;
}

}  // namespace

// Moved work takes the form of its twins around the cond and merges with them at once: cond_sink would take a twin into
// a branch, out of reach.
bool cond_hoist_common(Graph& graph) {
  if (!hoist_common_work(graph)) return false;
  const PipelineScope part_of_this_rule(
      {.query = PipelineScope::current().query, .pipeline = PipelineScope::current().pipeline});
  run_pipeline(graph, only(Stage::kCanonicalize));
  run_pipeline(graph, only(Stage::kClean));
  return true;
}

// After the choice of formats, only equal nodes merge.
bool cond_hoist_common_joint(Graph& graph) {
  if (!hoist_common_work(graph)) return false;
  merge(graph);
  return true;
}

}  // namespace hybridnet::passes
