#include "graph/first_values.h"

#include <algorithm>

namespace hybridnet {

void set_first_values(const Op& op, const std::vector<NodeEntry>& inputs) {
  for (size_t i = 0; i < std::min(inputs.size(), op.inputs.size()); ++i) {
    const NodePtr& variable = inputs[i].node;
    if (!op.inputs[i].initializer.empty() && variable->is_variable() && !variable->constant)
      variable->attrs.try_emplace("__init__", op.inputs[i].initializer);
  }
}

}  // namespace hybridnet
