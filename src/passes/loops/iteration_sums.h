// Sums over the iterations of a loop, computed outside of it: a sum of products is one large product of stacked
// operands behind the loop instead of a small product and a sum in each iteration.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "graph/control/loop_view.h"

namespace hybridnet {

class IterationSums {
 public:
  using Slices = std::vector<LoopView::Slot>;

  // The terms of the sum at an entry of a body.
  static std::vector<NodeEntry> terms_of(const NodeEntry& value);

  // Takes the sum of a term over all iterations out of the body. True if the operator itself can add up stacked
  // operands: slices, or outputs of the body in `stacked`, which may grow. input: the target of the sum, which add()
  // returns with it. counted: the number of iterations is known at run time only.
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
