// Networks of floats as networks of bytes, for prediction: what mx.contrib.quantization does to graphs. The values of
// parameters are not asked for; which op has which form for bytes says its declaration (Op::quantized).
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet::passes {

// On a node with folded parameters: the entry of the graph before that has its value.
inline constexpr const char* kStandsFor = "__stands_for__";

// A graph some of whose variables have new values: graphs over the variables of the one before.
struct NewValues {
  Symbol symbol;
  std::vector<std::pair<std::string, Symbol>> values;  // by name of the variable
};

// BatchNorm behind Convolution or FullyConnected, in prediction: the layer with other weights and another bias. Layers
// and norms named in `except` stay.
NewValues fold_batch_norms(const Symbol& symbol, const std::set<std::string>& except);

enum class QuantizeMode : int8_t {
  kFull,   // every op that has a form for bytes
  kSmart,  // those that the network is quantized for (QuantizedForm::leads), and what stands between them
};

struct QuantizeOptions {
  std::set<std::string> excluded_nodes, excluded_ops;
  std::set<std::string> parameters;  // variables whose bytes are given: x is read as x_quantize, x_quantize_min, _max
  bool always_signed = true;         // false: bytes whose range has no values below zero have no sign
  QuantizeMode mode = QuantizeMode::kFull;
  bool ranges_follow = false;  // set_ranges() comes next: ops that need a range may be quantized, too
};

struct QuantizedSymbol {
  Symbol symbol;
  std::vector<std::string> entries;  // of the given graph: those whose range makes the bytes exact and fast
};

// The nodes' names are MXNet's: quantized_x, requantize_x, x_quantize, x_dequantize.
QuantizedSymbol quantize(const Symbol& symbol, const QuantizeOptions& options);

using Ranges = std::map<std::string, std::pair<double, double>>;  // by entry of the graph before quantize()

// Bytes of a quantized graph stand for these ranges. A relu or clip whose range says all that it does goes: bytes end
// where it would cut.
Symbol set_ranges(const Symbol& quantized, const Ranges& ranges);

// The quantized weights of convolutions that read bytes without a sign. The op for bytes counts 127 steps up to the end
// of the range of its data, as MXNet's, where these have 255: the ranges of such weights must be smaller by 127 / 255.
std::set<std::string> weights_beside_unsigned_data(const Symbol& quantized);

}  // namespace hybridnet::passes
