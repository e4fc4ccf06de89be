// Numbers for values of several graphs: equal numbers mean equal values, wherever they are computed.
#pragma once

#include <unordered_map>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet::passes {

class ValueNumbers {
 public:
  using Number = int64_t;  // of a node's output; -1: equal to no other value
  using OfNodes = std::unordered_map<const Node*, Number>;
  static constexpr Number kUnknown = -1;

  // Number of output `index` of a node whose output 0 has number `first`.
  static Number output(Number first, uint32_t index) { return first == kUnknown ? kUnknown : first + index; }
  static Number of(const OfNodes& numbers, const NodeEntry& entry);

  // A value that is given from outside: the same entry, or a constant of the same array, gets the same number.
  Number outer(const NodeEntry& entry);
  // Numbers of the nodes, producers first. inputs holds those of variables on entry. Random nodes, nodes with an effect
  // and all that depends on them stay unknown. Copies are what they copy.
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

// Do the bodies compute the same from the same inputs?
bool same_body(const Subgraph& one, const Subgraph& other);

}  // namespace hybridnet::passes
