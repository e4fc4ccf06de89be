// Plans of bodies that several plans run: one foreach for 10 and for 1,000 rows has one plan of its body.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

class Plan;

// Threads: one at a time (linking); the plans may run meanwhile.
class BodyPlans : public RefCounted<BodyPlans> {
 public:
  BodyPlans();
  ~BodyPlans();
  // The plan of a body for these inputs; null: none is kept. `frozen`: its captured values rarely change.
  Ref<Plan> find(const Ref<Subgraph>& body, std::span<const TensorSpec> inputs, bool frozen) const;
  void keep(Ref<Subgraph> body, std::vector<TensorSpec> inputs, bool frozen, Ref<Plan> plan);

 private:
  struct Entry;
  std::vector<Entry> entries_;
};

}  // namespace hybridnet
