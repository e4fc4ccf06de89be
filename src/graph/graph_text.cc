// What a Graph says about itself: fingerprint, text, and the check of its own books.
#include <algorithm>
#include <utility>

#include "graph/control/control_flow.h"
#include "hybridnet/pass.h"

namespace hybridnet {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 12) + (hash >> 4);
  return hash * 0xff51afd7ed558ccdu;
}

uint64_t entry_hash(const std::unordered_map<const Node*, uint64_t>& hashes, const NodeEntry& entry) {
  return mix(hashes.at(entry.node.get()), entry.index);
}

[[noreturn]] void throw_wrong(const Node& node, std::string message) {
  throw Error(ErrorKind::kError,
              {.op = node.op ? node.op->name : "", .node = node.name, .message = std::move(message)});
}

}  // namespace

uint64_t Graph::fingerprint() const {
  std::unordered_map<const Node*, uint64_t> hashes;
  for (const auto& [label, node] : by_label_) {
    uint64_t hash = 1;
    if (node->is_variable()) {
      const int input = input_index(node);
      hash =
          input >= 0 ? mix(2, static_cast<uint64_t>(input)) : mix(3, reinterpret_cast<uintptr_t>(node->constant.get()));
    } else {
      hash = mix(reinterpret_cast<uintptr_t>(node->op), node->op->schema->hash(node->params->data()));
      for (const auto& [key, value] : node->attrs)  // rules mark nodes by attributes
        hash = mix(mix(hash, std::hash<std::string>()(key)), std::hash<std::string>()(value));
      for (const NodeEntry& input : node->inputs) hash = mix(hash, entry_hash(hashes, input));
      for (const Ref<Subgraph>& subgraph : node->subgraphs)
        hash = mix(hash, reinterpret_cast<uintptr_t>(subgraph.get()));
    }
    hashes[node] = hash;
  }
  uint64_t hash = 7;
  for (const NodeEntry& output : outputs_) hash = mix(hash, entry_hash(hashes, output));
  for (const Writeback& writeback : writebacks_) {
    hash = mix(mix(hash, static_cast<uint64_t>(writeback.input)), entry_hash(hashes, writeback.value));
  }
  return hash;
}

std::string Graph::text() const {
  std::unordered_map<const Node*, int> numbers;
  auto name = [&](const NodeEntry& entry) {
    std::string text = "%" + std::to_string(numbers.at(entry.node.get()));
    if (entry.node->num_outputs() > 1) text += "." + std::to_string(entry.index);
    return text;
  };
  std::string text;
  for (const auto& [label, node] : by_label_) {
    const int number = static_cast<int>(numbers.size());
    numbers[node] = number;
    text += "%" + std::to_string(number) + " = ";
    if (node->is_variable()) {
      text += input_index(node) >= 0 ? "input " + std::to_string(input_index(node)) : std::string("constant");
    } else {
      text += node->op->name + "(";
      for (size_t i = 0; i < node->inputs.size(); ++i) text += (i ? ", " : "") + name(node->inputs[i]);
      text += ")";
      std::string attrs;
      for (const auto& [key, value] : node->op->schema->print(node->params->data())) {
        attrs += (attrs.empty() ? " {" : ", ") + key + "=" + value;
      }
      if (!attrs.empty()) text += attrs + "}";
    }
    text += " :";
    for (size_t i = 0; i < node->specs.size(); ++i) {
      text += " " + node->specs[i].str();
      if (format({NodePtr(node), static_cast<uint32_t>(i)}) == Format::kChannelsLast) text += "/channels_last";
    }
    text += "  # " + node->name + "\n" + text_of_bodies(*node);
  }
  for (const NodeEntry& output : outputs_) text += "output " + name(output) + "\n";
  for (const Writeback& writeback : writebacks_) {
    text += "write input " + std::to_string(writeback.input) + " <- " + name(writeback.value) + "\n";
  }
  return text;
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
    throw Error(ErrorKind::kError, {.message = "the schedule that is kept is that of an earlier state"});
}

}  // namespace hybridnet
