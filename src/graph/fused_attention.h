// Products of attention that MXNet's oneDNN backend fused: the nodes _sg_mkldnn_selfatt_qk and
// _sg_mkldnn_selfatt_valatt of symbol JSON, on floats or on bytes. In memory both are operators that others know, too.
#pragma once

#include <string>
#include <string_view>

#include "graph/fused_form.h"

namespace hybridnet {

bool is_fused_attention(std::string_view file_op);

// The node whose outputs are the product's. Throws FormatError unless attributes and inputs fit each other.
NodePtr attention_node_of(const FusedLayer& layer, const std::string& name);

}  // namespace hybridnet
