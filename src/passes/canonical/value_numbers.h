// Numbers for values of several graphs: equal numbers mean equal values, wherever they are computed.
#pragma once

#include <unordered_map>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet::passes {

class ValueNumbers {
 public:
  using Number = int64_t;  // number of a node's output; -1: equal to no other value
  using OfNodes = std::unordered_map<const Node*, Number>;
  static constexpr Number kUnknown = -1;

  // Number of output `index` of a node whose output 0 has number `first`.
  static Number output(Number first, uint32_t index) { return first == kUnknown ? kUnknown : first + index; }
  static Number of(const OfNodes& numbers, const NodeEntry& entry);

  // The number of a value from outside: the same entry, or a constant of the same array, gets the same number.
  Number outer(const NodeEntry& entry);
  // Adds the numbers of the nodes, producers first. On entry, `numbers` holds those of variables. Random nodes, nodes
  // with an effect and nodes that depend on them stay unknown. Copies have the numbers of their sources.
  void add(const std::vector<Node*>& nodes, OfNodes& numbers);

 private:
  struct Known {
    const Node* node;
    std::vector<Number> operands;
    Number first;
  };
  Number fresh(size_t outputs);
  Number of_node(const Node& node, std::vector<Number> operands);

  std::unordered_map<NodeEntry, Number, NodeEntryHash> outer_;
  std::unordered_map<const Object*, Number> constants_;
  std::unordered_multimap<uint64_t, Known> known_;
  Number next_ = 0;
};

// True if the bodies compute the same from the same inputs.
bool same_body(const Subgraph& one, const Subgraph& other);

}  // namespace hybridnet::passes
