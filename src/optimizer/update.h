// Updates of arrays by the rules of the table.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "optimizer/linked_program.h"
#include "optimizer/rules.h"

namespace hybridnet::optimizer {

// True if a weight has a float32 copy, which is updated in its place.
bool needs_master(const Settings& settings, const NDArray& weight);
// The initial states of a weight, one per item of the layout; null if unused. With a master, the states belong to the
// master. Throws ParamError for weights that the optimizer does not support.
std::vector<NDArray> make_states(const Rule& rule, const Settings& settings, const NDArray& weight);

// Blocks until an array may be read.
using Wait = std::function<void(const NDArray&)>;
// One step of the weights of items: all of one dtype if the rule aggregates, else one weight. settings contain the
// rescale_grad of the step and receive the changes of the step (Rule::variables). programs: used for this rule only.
void update(const Rule& rule, Settings& settings, std::span<UpdateItem> items, double base_lr, const Wait& wait,
            LinkedPrograms& programs);

}  // namespace hybridnet::optimizer
