// MXNet's rule: the names that the operator lists; without a list "output", or "output0", "output1", ... if it has
// several outputs, hidden ones counted. Declarations name outputs by their meaning, mostly in MXNet's words, and say
// where MXNet has other names (OutputNames, OutputInfo::mxnet_name). tests/python/symbol/mxnet_names.json holds MXNet's
// names for the whole registry.
#include "graph/output_names.h"

namespace hybridnet {
namespace {

bool is_numbered(const Op& op, int count) {
  return op.output_names == OutputNames::kNumbered || (op.output_names == OutputNames::kNumberedSeveral && count > 1);
}

std::string name_in_node(const Node& node, uint32_t index) {
  const Op& op = *node.op;
  if (index < op.outputs.size() && !op.outputs[index].mxnet_name.empty()) return op.outputs[index].mxnet_name;
  const int count = node.num_outputs();
  const std::string number = "output" + std::to_string(index);
  if (is_numbered(op, count)) return number;
  const bool declared = op.outputs.size() > 1 && static_cast<size_t>(count) <= op.outputs.size();
  if (declared && node.num_visible_outputs() > 1) return op.output_name(node.params->data(), static_cast<int>(index));
  return node.num_visible_outputs() == 1 ? "output" : number;
}

}  // namespace

std::string output_name_of(const NodeEntry& entry) {
  const Node& node = *entry.node;
  return node.is_variable() ? node.name : node.name + "_" + name_in_node(node, entry.index);
}

}  // namespace hybridnet
