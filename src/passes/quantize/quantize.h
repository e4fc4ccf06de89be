// Turns networks of floats into networks of bytes, for prediction, as mx.contrib.quantization does with graphs. Needs
// no values of parameters; Op::quantized declares the form of an operator for bytes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet::passes {

// Attribute of a node with folded parameters: the entry of the original graph that has its value.
inline constexpr const char* kStandsFor = "__stands_for__";

// A graph in which some variables have new values: graphs over the variables of the original graph.
struct NewValues {
  Symbol symbol;
  std::vector<std::pair<std::string, Symbol>> values;  // by name of the variable
};

// Folds BatchNorm behind Convolution or FullyConnected, in prediction, into the weights and bias of the layer. Layers
// and norms named in `except` stay.
NewValues fold_batch_norms(const Symbol& symbol, const std::set<std::string>& except);

enum class QuantizeMode : int8_t {
  kFull,   // every op that has a form for bytes
  kSmart,  // operators that QuantizedForm::leads marks, and the nodes between them
};

struct QuantizeOptions {
  std::set<std::string> excluded_nodes, excluded_ops;
  std::set<std::string> parameters;  // variables given as bytes: x is read as x_quantize, x_quantize_min, _max
  bool always_signed = true;         // false: bytes whose range has no values below zero have no sign
  QuantizeMode mode = QuantizeMode::kFull;
  bool ranges_follow = false;  // set_ranges() comes next: ops that need a range may be quantized, too
};

struct QuantizedSymbol {
  Symbol symbol;
  std::vector<std::string> entries;  // entries of the given graph whose range makes the bytes exact and fast
};

// The nodes' names are MXNet's: quantized_x, requantize_x, x_quantize, x_dequantize.
QuantizedSymbol quantize(const Symbol& symbol, const QuantizeOptions& options);

struct WeightQuantizedSymbol {
  Symbol symbol;
  std::set<std::string> weights;  // the variables that are read as bytes: x as x_quantize, and x_quantize_scale
};

// Layers of floats that read weights of bytes, with a scale for each output: FullyConnected and Embedding, if their
// weight is one of options.parameters. rounds_data: products round their data to bytes in each run, too. Bodies of
// loops and branches stay as they are.
WeightQuantizedSymbol quantize_weights(const Symbol& symbol, const QuantizeOptions& options, bool rounds_data);

using Ranges = std::map<std::string, std::pair<double, double>>;  // by entry of the graph before quantize()

// Sets the ranges of the bytes of a quantized graph. A relu or clip that its range makes redundant is removed: the
// bytes end where it would clip.
Symbol set_ranges(const Symbol& quantized, const Ranges& ranges);

// The quantized weights of convolutions that read unsigned bytes. The quantized operator, like MXNet's, counts 127
// steps up to the end of the range of its data, but unsigned bytes have 255: the ranges of these weights must be
// smaller by 127 / 255.
std::set<std::string> weights_beside_unsigned_data(const Symbol& quantized);

}  // namespace hybridnet::passes
