#include "plan/control/branch_memory.h"

#include <algorithm>
#include <map>

#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

// Per output of a body: true if the body returns the value once and does not read it, so nothing else can write to its
// rows.
std::vector<bool> only_given_out(const Subgraph& body) {
  std::vector<bool> result;
  const std::vector<Node*> nodes = topological_order(body.outputs);
  for (const NodeEntry& output : body.outputs) {
    const bool read = std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
      return std::find(node->inputs.begin(), node->inputs.end(), output) != node->inputs.end();
    });
    result.push_back(!read && std::count(body.outputs.begin(), body.outputs.end(), output) == 1);
  }
  return result;
}

// Decides which outputs of the nodes of one body exclude each other. A loop is queried once for all of its outputs: it
// queries the loops inside, and a query for each pair of outputs would take exponentially long in nested loops.
class Exclusion {
 public:
  bool operator()(const NodeEntry& a, const NodeEntry& b) {
    if (a.node != b.node || !a.node->op) return false;
    const auto i = static_cast<int>(a.index), j = static_cast<int>(b.index);
    if (control_kind(*a.node) == ControlKind::kCond) {
      const BranchSide one = branch_side(*a.node, i), other = branch_side(*a.node, j);
      return one != other && one != BranchSide::kBoth && other != BranchSide::kBoth;
    }
    const std::map<int, int>& partners = partners_of(*a.node);
    const auto found = partners.find(i);
    return found != partners.end() && found->second == j;
  }

 private:
  const std::map<int, int>& partners_of(const Node& loop) {
    const auto [place, is_new] = known_.try_emplace(&loop);
    if (!is_new) return place->second;
    for (const auto& [i, j] : exclusive_rows(loop)) place->second[i] = j, place->second[j] = i;
    return place->second;
  }

  std::map<const Node*, std::map<int, int>> known_;
};

// Returns the input that this output of a node may be written over; -1: none. Asks for one output only: a query for all
// outputs would take exponentially long in nested branches.
int source_in_place(const Node& node, int output) {
  static const OpRef copy{"_copy"};
  if (node.op == &copy.op()) return 0;
  if (control_kind(node) == ControlKind::kCond) return input_written_over(node, output);
  if (node.op->variadic_inplace) return node.op->variadic_inplace(node.params->data(), output);
  const auto& pairs = node.op->inplace;
  const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.output == output; });
  return found == pairs.end() ? -1 : found->input;
}

// Returns the input of a branch that this output is, or is made from by operators that write in place; -1: none.
int origin_in_place(const Subgraph& branch, NodeEntry output) {
  while (!output.node->is_variable()) {
    const Node& node = *output.node;
    const int source = source_in_place(node, static_cast<int>(output.index));
    if (source < 0) return -1;
    output = node.inputs[static_cast<size_t>(source)];
  }
  const auto at = std::find(branch.inputs.begin(), branch.inputs.end(), output.node);
  return at == branch.inputs.end() ? -1 : static_cast<int>(at - branch.inputs.begin());
}

}  // namespace

int input_written_over(const Node& cond, int output) {
  const BranchSpec& spec = branch_of(cond);
  if (output >= spec.num_out) return -1;
  const Subgraph &then = *cond.subgraphs[1], &other = *cond.subgraphs[2];
  const int input = origin_in_place(then, then.outputs[static_cast<size_t>(output)]);
  return input >= 0 && input == origin_in_place(other, other.outputs[static_cast<size_t>(output)]) ? input : -1;
}

std::vector<Op::InplacePair> inplace_pairs(const Node& node) {
  const bool is_branch = control_kind(node) == ControlKind::kCond;
  if (!is_branch && !node.op->variadic_inplace) return node.op->inplace;
  std::vector<Op::InplacePair> pairs;
  for (int output = 0; output < node.num_outputs(); ++output) {
    const int input =
        is_branch ? input_written_over(node, output) : node.op->variadic_inplace(node.params->data(), output);
    if (input >= 0) pairs.push_back({input, output});
  }
  return pairs;
}

BranchSide branch_side(const Node& cond, int output) {
  const BranchSpec& spec = branch_of(cond);
  const int first_else = spec.num_out + spec.then_extra;
  if (output >= first_else) return BranchSide::kElse;
  return output >= spec.num_out ? BranchSide::kThen : BranchSide::kBoth;
}

std::vector<std::pair<int, int>> exclusive_rows(const Node& node) {
  const ControlKind kind = control_kind(node);
  if (kind != ControlKind::kForeach && kind != ControlKind::kWhileLoop) return {};
  const Subgraph& body = *node.subgraphs.back();
  const int stacked = loop_of(node).num_out;
  // A loop in the body of an untraced graph has no specs before the body is linked: nothing is shared for it.
  if (node.specs.size() < static_cast<size_t>(stacked)) return {};
  auto output = [&](int i) -> const NodeEntry& { return body.outputs[static_cast<size_t>(i)]; };
  auto bytes = [&](int i) { return node.specs[static_cast<size_t>(i)].bytes(); };
  std::vector<std::pair<int, int>> pairs;
  Exclusion are_exclusive;
  std::vector<bool> free;
  for (int i = 0; i < stacked; ++i) {
    for (int j = i + 1; j < stacked; ++j) {
      if (output(i).node != output(j).node || bytes(i) != bytes(j) || !are_exclusive(output(i), output(j))) continue;
      if (free.empty()) free = only_given_out(body);
      if (!free[static_cast<size_t>(i)] || !free[static_cast<size_t>(j)]) continue;
      pairs.emplace_back(i, j);
      free[static_cast<size_t>(i)] = free[static_cast<size_t>(j)] = false;
      break;
    }
  }
  return pairs;
}

}  // namespace hybridnet
