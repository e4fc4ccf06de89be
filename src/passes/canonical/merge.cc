// Merges nodes that compute the same from the same inputs, and constants of the same array. Operands of commutative
// operators may be in any order. Work that only one branch of a cond needs is not merged with work of another branch.
#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "graph/control/control_flow.h"
#include "passes/branches/branch_regions.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

bool may_merge(const Node& node) {
  return !node.is_variable() && !is_random(node) && !is_opaque(node) && node.control.empty() &&
         node.attrs.count("__no_merge__") == 0;
}

// The inputs in the order in which they are compared.
std::vector<NodeEntry> operands(const Graph& graph, const Node& node) {
  std::vector<NodeEntry> inputs = node.inputs;
  if (node.op->commutative && inputs.size() >= 2) {
    std::sort(inputs.begin(), inputs.begin() + 2, [&](const NodeEntry& a, const NodeEntry& b) {
      const int64_t x = graph.label(*a.node), y = graph.label(*b.node);
      return x != y ? x < y : a.index < b.index;
    });
  }
  return inputs;
}

uint64_t hash_of(const Node& node, const std::vector<NodeEntry>& inputs) {
  uint64_t hash = mix_hash(node.op->schema->hash(node.params->data()), reinterpret_cast<uintptr_t>(node.op));
  for (const NodeEntry& input : inputs) hash = mix_hash(hash, NodeEntryHash()(input));
  return hash;
}

bool same(const Graph& graph, const Node& a, const Node& b, const std::vector<NodeEntry>& b_inputs) {
  if (a.op != b.op || !(a.specs == b.specs) || a.subgraphs.size() != b.subgraphs.size()) return false;
  for (size_t i = 0; i < a.subgraphs.size(); ++i) {
    if (!(a.subgraphs[i] == b.subgraphs[i])) return false;
  }
  return operands(graph, a) == b_inputs && a.op->schema->equal(a.params->data(), b.params->data());
}

// Merges constants of one array: a trace makes one for each place where the array is read.
bool merge_constants(Graph& graph) {
  bool changed = false;
  std::unordered_map<const Object*, Node*> known;
  for (Node* node : graph.order()) {
    if (!node->is_variable() || !node->constant || graph.input_index(node) >= 0) continue;
    const auto [twin, added] = known.try_emplace(node->constant.get(), node);
    if (added) continue;
    changed =
        graph.replace_validate({{NodeEntry{NodePtr(node), 0}, NodeEntry{NodePtr(twin->second), 0}}}, {}) || changed;
  }
  return changed;
}

// Readers of `gone` read `kept`, which then runs as early as `gone` did; so do copies that are made for it.
bool take_over(Graph& graph, Node& kept, Node& gone) {
  graph.make_as_old_as(kept, gone);
  Graph::Pairs pairs;
  for (uint32_t i = 0; i < gone.specs.size(); ++i)
    pairs.push_back({NodeEntry{NodePtr(&gone), i}, NodeEntry{NodePtr(&kept), i}});
  return graph.replace_validate(pairs, {});
}

}  // namespace

bool merge(Graph& graph) {
  bool changed = merge_constants(graph);
  BranchRegions regions(graph);
  const std::vector<Node*> nodes = graph.order();
  std::unordered_multimap<uint64_t, Node*> known;
  known.reserve(nodes.size());
  for (Node* node : nodes) {  // producers first, so one walk merges whole cones
    if ((changed && !graph.contains(node)) || !may_merge(*node)) continue;
    const std::vector<NodeEntry> inputs = operands(graph, *node);
    const uint64_t hash = hash_of(*node, inputs);
    std::vector<Node*> twins;
    for (auto [it, end] = known.equal_range(hash); it != end; ++it) {
      if (same(graph, *it->second, *node, inputs) && regions.may_merge_equal(*it->second, *node))
        twins.push_back(it->second);
    }
    // Several twins belong to different branches; this node, which runs anyway, takes the place of all of them.
    Node* kept = node;
    for (Node* twin : twins) {
      if (!take_over(graph, *twin, *kept)) continue;
      regions.note_merged(*twin, *kept);
      if (kept != node) std::erase_if(known, [&](const auto& entry) { return entry.second == kept; });
      kept = twin;
      changed = true;
    }
    if (kept == node) known.emplace(hash, node);
  }
  return changed;
}

}  // namespace hybridnet::passes
