// Fingerprint and structure hash of a Graph, and the check of its internal tables.
#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "graph/node_table.h"
#include "graph/notation.h"

namespace hybridnet {
namespace {

uint64_t entry_hash(const std::unordered_map<const Node*, uint64_t>& hashes, const NodeEntry& entry) {
  return mix_hash(hashes.at(entry.node.get()), entry.index);
}

using hybridnet::mix_hash;
uint64_t mix_hash(uint64_t hash, std::string_view text) { return mix_hash(hash, hash_text(text)); }

// Hashes nodes by their computation on the leaves of their region.
class Structure {
 public:
  explicit Structure(const BytesOfConstant& bytes) : bytes_(bytes) {}

  // hashes: holds the hashes of the leaves of a body.
  void add(std::unordered_map<const Node*, uint64_t>& hashes, const std::vector<Node*>& nodes) {
    for (const Node* node : nodes)
      if (hashes.count(node) == 0) hashes[node] = node->is_variable() ? of_constant(*node) : of_node(*node, hashes);
  }

 private:
  uint64_t of_constant(const Node& node) const {
    uint64_t hash = 3;
    if (!node.specs.empty()) hash = mix_hash(hash, node.specs[0].str());
    return node.constant ? mix_hash(hash, bytes_(*node.constant)) : mix_hash(hash, node.name);
  }

  uint64_t of_node(const Node& node, const std::unordered_map<const Node*, uint64_t>& hashes) {
    uint64_t hash = mix_hash(5, node.op->name);
    for (const auto& [key, value] : node.op->schema->print(node.params->data()))
      hash = mix_hash(mix_hash(hash, key), value);
    for (const auto& [key, value] : node.attrs) hash = mix_hash(mix_hash(hash, key), value);
    for (const NodeEntry& input : node.inputs) hash = mix_hash(hash, entry_hash(hashes, input));
    for (const Ref<Subgraph>& body : node.subgraphs) hash = mix_hash(hash, of_body(*body));
    return hash;
  }

  uint64_t of_body(const Subgraph& body) {
    if (const auto found = bodies_.find(&body); found != bodies_.end()) return found->second;
    std::unordered_map<const Node*, uint64_t> hashes;
    for (size_t i = 0; i < body.inputs.size(); ++i) hashes[body.inputs[i].get()] = mix_hash(uint64_t{2}, uint64_t{i});
    add(hashes, topological_order(body.outputs));
    uint64_t hash = mix_hash(uint64_t{11}, uint64_t{body.inputs.size()});
    for (const NodeEntry& output : body.outputs) hash = mix_hash(hash, entry_hash(hashes, output));
    return bodies_[&body] = hash;
  }

  const BytesOfConstant& bytes_;
  std::unordered_map<const Subgraph*, uint64_t> bodies_;
};

[[noreturn]] void throw_wrong(const Node& node, std::string message) {
  throw Error(ErrorKind::kError,
              {.op = node.op ? node.op->name : "", .node = node.name, .message = std::move(message)});
}

}  // namespace

uint64_t Graph::fingerprint() const {
  NodeTable<uint64_t> hashes(by_label_.size());
  const auto hash_of = [&](const NodeEntry& entry) { return mix_hash(*hashes.find(entry.node.get()), entry.index); };
  for (const auto& [label, node] : by_label_) {
    uint64_t hash = 1;
    if (node->is_variable()) {
      const int input = input_index(node);
      hash = input >= 0 ? mix_hash(2, static_cast<uint64_t>(input))
                        : mix_hash(3, reinterpret_cast<uintptr_t>(node->constant.get()));
    } else {
      hash = mix_hash(reinterpret_cast<uintptr_t>(node->op), node->op->schema->hash(node->params->data()));
      for (const auto& [key, value] : node->attrs)  // rules mark nodes by attributes
        hash = mix_hash(mix_hash(hash, std::hash<std::string>()(key)), std::hash<std::string>()(value));
      for (const NodeEntry& input : node->inputs) hash = mix_hash(hash, hash_of(input));
      for (const Ref<Subgraph>& subgraph : node->subgraphs)
        hash = mix_hash(hash, reinterpret_cast<uintptr_t>(subgraph.get()));
    }
    hashes.insert(node, hash);
  }
  uint64_t hash = 7;
  for (const NodeEntry& output : outputs_) hash = mix_hash(hash, hash_of(output));
  for (const Writeback& writeback : writebacks_)
    hash = mix_hash(mix_hash(hash, static_cast<uint64_t>(writeback.input)), hash_of(writeback.value));
  return hash;
}

uint64_t structure_hash(const Graph& graph, const BytesOfConstant& bytes) {
  std::unordered_map<const Node*, uint64_t> hashes;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Node& input = *graph.inputs()[i];
    hashes[&input] = mix_hash(mix_hash(uint64_t{2}, uint64_t{i}), input.specs[0].str());
  }
  Structure(bytes).add(hashes, graph.order());
  uint64_t hash = graph.train() ? 13 : 7;
  for (const NodeEntry& output : graph.outputs()) hash = mix_hash(hash, entry_hash(hashes, output));
  for (const Graph::Writeback& writeback : graph.writebacks())
    hash = mix_hash(mix_hash(hash, static_cast<uint64_t>(writeback.input)), entry_hash(hashes, writeback.value));
  return hash;
}

void Graph::check() const {
  std::unordered_map<NodeEntry, std::vector<Client>, NodeEntryHash> expected;
  for (const auto& [node, s] : states_) {
    const auto at = by_label_.find(s.label);
    if (at == by_label_.end() || at->second != node) throw_wrong(*node, "the label of this node is not its own");
    if (node->specs.size() != static_cast<size_t>(node->num_outputs())) throw_wrong(*node, "a spec is missing");
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const NodeEntry& input = node->inputs[i];
      if (!contains(input.node.get())) throw_wrong(*node, "the node reads one that is not in the graph");
      if (label(*input.node) >= s.label) throw_wrong(*node, "the node stands before its producer");
      expected[input].push_back({Client::Kind::kNode, const_cast<Node*>(node), static_cast<int>(i)});
    }
  }
  if (by_label_.size() != states_.size())
    throw Error(ErrorKind::kError, {.message = "labels and nodes differ in number"});
  for (size_t i = 0; i < outputs_.size(); ++i) {
    expected[outputs_[i]].push_back({Client::Kind::kOutput, nullptr, static_cast<int>(i)});
  }
  for (size_t i = 0; i < writebacks_.size(); ++i) {
    expected[writebacks_[i].value].push_back({Client::Kind::kWriteback, nullptr, static_cast<int>(i)});
  }
  for (const auto& [node, s] : states_) {
    for (size_t i = 0; i < s.clients.size(); ++i) {
      const std::vector<Client>& wanted = expected[{s.self, static_cast<uint32_t>(i)}];
      if (wanted.size() != s.clients[i].size() ||
          !std::is_permutation(wanted.begin(), wanted.end(), s.clients[i].begin())) {
        throw_wrong(*node, "the list of readers of output " + std::to_string(i) + " is wrong");
      }
    }
  }
  const std::vector<Node*> kept = std::exchange(schedule_, {});
  if (schedule() != kept && !kept.empty())
    throw Error(ErrorKind::kError, {.message = "the stored schedule belongs to an earlier state of the graph"});
}

}  // namespace hybridnet
