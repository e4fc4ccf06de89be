#include "plan/control/body_plans.h"

#include <algorithm>
#include <utility>

#include "plan/plan.h"

namespace hybridnet {

struct BodyPlans::Entry {
  Ref<Subgraph> body;
  std::vector<TensorSpec> inputs;
  bool frozen;
  Ref<Plan> plan;
};

BodyPlans::BodyPlans() = default;
BodyPlans::~BodyPlans() = default;

Ref<Plan> BodyPlans::find(const Ref<Subgraph>& body, std::span<const TensorSpec> inputs, bool frozen) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.body.get() == body.get() && entry.frozen == frozen && std::ranges::equal(entry.inputs, inputs);
  });
  return found == entries_.end() ? nullptr : found->plan;
}

void BodyPlans::keep(Ref<Subgraph> body, std::vector<TensorSpec> inputs, bool frozen, Ref<Plan> plan) {
  entries_.push_back({std::move(body), std::move(inputs), frozen, std::move(plan)});
}

}  // namespace hybridnet
