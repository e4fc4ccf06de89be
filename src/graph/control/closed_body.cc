#include "graph/control/closed_body.h"

#include <utility>

#include "hybridnet/error.h"

namespace hybridnet {
namespace {

constexpr char kClosedBody[] = "__closed_body__";

[[noreturn]] void throw_leak(const Node& node, const std::string& description, const SourceLocation& where) {
  ErrorFields e;
  for (const char* construct : {"foreach", "while_loop", "cond", "scan"})
    if (description.find(std::string(" of ") + construct) != std::string::npos) e.op = construct;
  e.node = node.name;
  e.message = "a value made inside " + description + " is read outside of it";
  if (node.where.known())
    e.because = "the value '" + node.name + "' is made at " + node.where.str() + ", and exists only while that runs";
  e.fix = "return it as an output or a state";
  e.where = where.known() ? where : current_location();
  throw TraceError(std::move(e));
}

}  // namespace

void close_with_body(Node& node, const std::string& description) { node.attrs[kClosedBody] = description; }

const std::string* closed_body_of(const Node& node) {
  if (node.attrs.empty()) return nullptr;
  const auto found = node.attrs.find(kClosedBody);
  return found == node.attrs.end() ? nullptr : &found->second;
}

void check_reads_no_closed_body(const Node& node) {
  for (const NodeEntry& input : node.inputs)
    if (const std::string* body = closed_body_of(*input.node)) throw_leak(*input.node, *body, node.where);
}

void check_leaks(const std::vector<NodeEntry>& results) {
  for (const Node* node : topological_order(results))
    if (!closed_body_of(*node)) check_reads_no_closed_body(*node);
  for (const NodeEntry& result : results)
    if (const std::string* body = closed_body_of(*result.node)) throw_leak(*result.node, *body, {});
}

}  // namespace hybridnet
