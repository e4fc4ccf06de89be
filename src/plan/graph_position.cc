#include "plan/graph_position.h"

namespace hybridnet {
namespace {

thread_local const GraphPositionScope* innermost = nullptr;

}  // namespace

GraphPositionScope::GraphPositionScope(const std::string& name, SourceLocation where, int64_t part)
    : name_(name), where_(where), part_(part), around_(innermost) {
  innermost = this;
}

GraphPositionScope::~GraphPositionScope() { innermost = around_; }

std::string current_graph_position() {
  if (innermost == nullptr) return {};
  std::string text, line;
  for (const GraphPositionScope* scope = innermost; scope; scope = scope->around_) {
    if (scope->part_ == GraphPositionScope::kOperator && scope != innermost)
      continue;  // the loop or branch names itself
    std::string part = scope->name_;
    if (scope->part_ == GraphPositionScope::kThenBranch) part += ", then branch";
    if (scope->part_ == GraphPositionScope::kElseBranch) part += ", else branch";
    if (scope->part_ >= 0) part += ", iteration " + std::to_string(scope->part_);
    text = text.empty() ? part : part + ": " + text;
    if (line.empty() && scope->where_.known()) line = " (" + scope->where_.str() + ")";
  }
  return "'" + text + "'" + line;
}

}  // namespace hybridnet
