// A hash table from nodes to small values, for walks over whole graphs: one block of memory, no removal.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

template <typename Value>
class NodeTable {
 public:
  // expected: the expected number of nodes; the table grows beyond it if necessary.
  explicit NodeTable(size_t expected = 0) : slots_(std::bit_ceil(2 * expected + 16)) {}

  // Returns the value of the node, and true if the node is new. References are valid until the next insertion.
  std::pair<Value&, bool> insert(const Node* node, Value value) {
    if (2 * size_ >= slots_.size()) grow();
    Slot& slot = find_slot(node);
    const bool is_new = slot.node == nullptr;
    if (is_new) {
      slot = {node, std::move(value)};
      ++size_;
    }
    return {slot.value, is_new};
  }

  // Returns null if the table does not hold the node.
  Value* find(const Node* node) {
    Slot& slot = find_slot(node);
    return slot.node ? &slot.value : nullptr;
  }
  const Value* find(const Node* node) const { return const_cast<NodeTable*>(this)->find(node); }

 private:
  struct Slot {
    const Node* node = nullptr;
    Value value{};
  };

  Slot& find_slot(const Node* node) {
    const size_t mask = slots_.size() - 1;
    size_t at = reinterpret_cast<uintptr_t>(node) * 0x9e3779b97f4a7c15u >> 32 & mask;
    while (slots_[at].node != nullptr && slots_[at].node != node) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (Slot& slot : before)
      if (slot.node) find_slot(slot.node) = std::move(slot);
  }

  std::vector<Slot> slots_;  // open addressing; the size is a power of two, at least half of the slots stay empty
  size_t size_ = 0;
};

}  // namespace hybridnet
