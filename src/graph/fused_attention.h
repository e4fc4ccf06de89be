// Products of attention that MXNet's oneDNN backend fused: the nodes _sg_mkldnn_selfatt_qk and
// _sg_mkldnn_selfatt_valatt of symbol JSON, on floats or on int8. In memory they become ordinary operators.
#pragma once

#include <string>
#include <string_view>

#include "graph/fused_form.h"

namespace hybridnet {

bool is_fused_attention(std::string_view file_op);

// Returns the node that computes the outputs of the product. Throws FormatError unless attributes and inputs fit each
// other.
NodePtr attention_node_of(const FusedLayer& layer, const std::string& name);

}  // namespace hybridnet
