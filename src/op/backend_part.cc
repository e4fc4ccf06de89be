#include "op/backend_part.h"

#include <functional>

namespace hybridnet {

BackendUse BackendUse::of(Ref<BackendPart> part, bool gradient) {
  const BackendPart::Facts& facts = part->facts();
  const size_t inputs = facts.in.size() + (gradient ? 2 * facts.out.size() : 0);
  return {static_cast<int32_t>(inputs), facts.backend, facts.holds, gradient, std::move(part)};
}

int BackendUse::num_outputs() const {
  if (part) return static_cast<int>(gradient ? part->facts().in.size() : part->facts().out.size());
  return gradient ? num_args / 3 : num_args;
}

void BackendUse::describe(ParamSchema<BackendUse>& schema) {
  schema.field("num_args", &BackendUse::num_args).default_value(0).hidden().doc("Number of inputs.");
  schema.field("backend", &BackendUse::backend).default_value("").doc("Name of the backend that compiled it.");
  schema.field("holds", &BackendUse::holds).default_value("").doc("Operators that it stands for.");
  schema.field("gradient", &BackendUse::gradient)
      .default_value(false)
      .doc("Whether it computes gradients: inputs are those of the outputs, then the inputs, then the outputs.");
}

void BackendUse::complete() {
  if (part || backend.empty()) return;
  throw ParamError({.input = "backend",
                    .message = "code that backend '" + backend + "' compiled is not part of a file",
                    .fix = "export the block: its file holds the operators that the backend has taken over"});
}

bool BackendUse::operator==(const BackendUse& other) const {
  return part.get() == other.part.get() && gradient == other.gradient && num_args == other.num_args;
}

uint64_t BackendUse::hash() const {
  return std::hash<const void*>()(part.get()) * 4 + static_cast<uint64_t>(num_args) * 2 + (gradient ? 1 : 0);
}

}  // namespace hybridnet
