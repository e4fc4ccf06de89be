#include "plan/place.h"

namespace hybridnet {
namespace {

thread_local const PlaceScope* innermost = nullptr;

}  // namespace

PlaceScope::PlaceScope(const Node& node, int64_t part) : node_(node), part_(part), around_(innermost) {
  innermost = this;
}

PlaceScope::~PlaceScope() { innermost = around_; }

std::string current_place() {
  if (innermost == nullptr) return {};
  std::string text, line;
  for (const PlaceScope* scope = innermost; scope; scope = scope->around_) {
    std::string part = scope->node_.name;
    if (scope->part_ == PlaceScope::kThenBranch) part += ", then branch";
    if (scope->part_ == PlaceScope::kElseBranch) part += ", else branch";
    if (scope->part_ >= 0) part += ", iteration " + std::to_string(scope->part_);
    text = text.empty() ? part : part + ": " + text;
    if (line.empty() && scope->node_.where.known()) line = " (" + scope->node_.where.str() + ")";
  }
  return "'" + text + "'" + line;
}

}  // namespace hybridnet
