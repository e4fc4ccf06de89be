// Short forms for the graphs of tests of rules.
#pragma once

#include <functional>

#include "graph/build_graph.h"

namespace hybridnet::graph_testing {

inline const TensorSpec kVector = float32({4}), kRows = float32({5, 2, 4}), kState = float32({2, 4}),
                        kWeight = float32({4, 4});

inline Graph of_x(const std::function<NodeEntry(const NodeEntry&)>& make, const TensorSpec& spec = kVector) {
  const NodeEntry x = var("x");
  return make_graph({x}, {spec}, {make(x)});
}

inline NodeEntry scaled(const NodeEntry& x, const char* scalar) {
  return use("_mul_scalar", {x}, {{"scalar", scalar}});
}

inline NodeEntry transposed(const NodeEntry& x, const char* axes) { return use("transpose", {x}, {{"axes", axes}}); }

inline NodeEntry reshaped(const NodeEntry& x, const char* shape) { return use("Reshape", {x}, {{"shape", shape}}); }

inline NodeEntry cast_to(const NodeEntry& x, const char* dtype) { return use("Cast", {x}, {{"dtype", dtype}}); }

inline NodeEntry power(const NodeEntry& x, const char* exponent) {
  return use("_power_scalar", {x}, {{"scalar", exponent}});
}

inline NodeEntry rows(const NodeEntry& x, const char* begin, const char* end) {
  return use("slice_axis", {x}, {{"axis", "0"}, {"begin", begin}, {"end", end}});
}

inline NodeEntry plus(const NodeEntry& x, const char* scalar) { return use("_plus_scalar", {x}, {{"scalar", scalar}}); }

}  // namespace hybridnet::graph_testing
