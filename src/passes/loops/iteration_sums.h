// Sums over the iterations of a loop, taken outside of it: a sum of products is one product of stacked operands, one
// large product behind the loop instead of a small one and a sum in each iteration.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "graph/control/loop_view.h"

namespace hybridnet {

class IterationSums {
 public:
  using Slices = std::vector<LoopView::Slot>;

  // The terms that an entry of a body is the sum of.
  static std::vector<NodeEntry> terms_of(const NodeEntry& value);

  // Takes the sum over all iterations of a term out of the body: true, if it is one that the operator itself can add
  // up from stacked operands. They come from slices, or from outputs of the body that are stacked: those in
  // `stacked`, to which may be added. input: what the sum is for, as add() tells it. counted: only running the loop
  // tells how many iterations there are.
  bool take(const Graph& body, int input, const NodeEntry& term, const Slices& slices, std::vector<NodeEntry>& stacked,
            bool counted);

  // The sums as nodes of the surrounding graph: (input, value). loop: the node whose first outputs are `stacked`.
  std::vector<std::pair<int, NodeEntry>> add(Graph& graph, const NodePtr& loop, const Node& origin) const;

 private:
  struct Operand {
    NodeEntry outer;  // rows outside, or
    int output = -1;  // number of the stacked output
    Shape row;
  };
  struct Sum {
    int input;
    ParamsPtr params;
    const Op* op;
    std::vector<Operand> operands;
  };
  static std::optional<Operand> operand(const Graph& body, const NodeEntry& entry, bool may_add, const Slices& slices,
                                        std::vector<NodeEntry>& stacked);
  std::vector<Sum> sums_;
};

}  // namespace hybridnet
