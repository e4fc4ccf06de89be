// Layers that MXNet's oneDNN backend fused, as symbol JSON holds them: a node _sg_mkldnn_conv or
// _sg_mkldnn_fully_connected with the operators that it stands for as its subgraph. In memory a layer of floats is
// these operators, which our own passes fuse; a layer of bytes is one node (ops/quantized/fused_layers.cc), whose
// operator no file names. Fused attention: graph/fused_attention.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

bool is_fused_layer(std::string_view file_op);

struct FusedLayer {
  std::string op;  // in files
  std::map<std::string, std::string> attributes;
  std::vector<NodeEntry> inputs;  // data, weight, bias, those of batch norm, addend; then ranges
  Ref<Subgraph> body;             // changed by node_of
};

// The node whose outputs are the layer's. Throws FormatError unless attributes, inputs and body fit each other.
NodePtr node_of(FusedLayer layer, const std::string& name);

bool is_layer_of_bytes(const Node& node);

// What a file says of a layer of bytes; nothing for other nodes.
std::optional<FusedLayer> fused_layer(const Node& node);

}  // namespace hybridnet
