// Layers that MXNet's oneDNN backend fused, in the form of symbol JSON: a node _sg_mkldnn_conv or
// _sg_mkldnn_fully_connected, and as its subgraph the operators that it replaced. In memory a layer of floats is these
// operators, which our own passes fuse; a quantized layer is one node (ops/quantized/fused_layers.cc), whose operator
// does not appear in files. Fused attention: graph/fused_attention.h.
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
  std::vector<NodeEntry> inputs;  // data, weight, bias, inputs of batch norm, addend; then ranges
  Ref<Subgraph> body;             // changed by node_of
};

// Returns the node that computes the layer's outputs. Throws FormatError unless attributes, inputs and body fit each
// other.
NodePtr node_of(FusedLayer layer, const std::string& name);

bool is_layer_of_bytes(const Node& node);

// Returns the file form of a quantized layer; nullopt for other nodes.
std::optional<FusedLayer> fused_layer(const Node& node);

}  // namespace hybridnet
