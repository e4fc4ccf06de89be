// Where the calling thread is in a graph that runs node by node: which iteration of which loop, which branch, which
// operator. Code outside the library (Custom) can tell it when it fails.
#pragma once

#include <cstdint>
#include <string>

#include "hybridnet/graph.h"

namespace hybridnet {

// While it lives the thread is there. Costs two stores; the text is made only when somebody asks.
class PlaceScope {
 public:
  static constexpr int64_t kOperator = -1, kThenBranch = -2, kElseBranch = -3;  // else the number of an iteration

  PlaceScope(const Node& node, int64_t part);
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  friend std::string current_place();
  const Node& node_;
  const int64_t part_;
  const PlaceScope* around_;
};

// From the outermost loop to the operator: "'net_foreach0, iteration 2: net_custom0' (model.py:12)"; "" outside graphs.
std::string current_place();

}  // namespace hybridnet
