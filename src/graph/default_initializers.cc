#include "graph/default_initializers.h"

#include <algorithm>

namespace hybridnet {

void set_default_initializers(const Op& op, const std::vector<NodeEntry>& inputs) {
  for (size_t i = 0; i < std::min(inputs.size(), op.inputs.size()); ++i) {
    const NodePtr& variable = inputs[i].node;
    if (!op.inputs[i].initializer.empty() && variable->is_variable() && !variable->constant)
      variable->attrs.try_emplace("__init__", op.inputs[i].initializer);
  }
}

}  // namespace hybridnet
