// Chains of multiplications and divisions, as a list of factors.
#pragma once

#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet::passes {

// number * over[0] * over[1] * ... / (under[0] * under[1] * ...)
struct Product {
  double number = 1;
  std::vector<NodeEntry> over, under;
  int numbers = 0;    // operands of the chain that are numbers
  int divisions = 0;  // divisions by an array, or of a number by an array
  size_t nodes = 0;   // nodes of the chain
};

// The chain that ends in `root`: nodes inside it have no reader but the chain and are floats of the root's dtype.
// Without nodes if `root` is no product.
Product product_of(const Graph& graph, const Node& root);

}  // namespace hybridnet::passes
