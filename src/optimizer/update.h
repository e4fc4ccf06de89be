// Updates of arrays by the rules of the table.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "optimizer/linked_program.h"
#include "optimizer/rules.h"

namespace hybridnet::optimizer {

// Whether a weight has a float32 copy that is updated in its place.
bool needs_master(const Settings& settings, const NDArray& weight);
// The states of a weight at the start, as many as the layout has items; null where there is none. With a master they
// are made for it. Throws ParamError for weights that the optimizer cannot have.
std::vector<NDArray> make_states(const Rule& rule, const Settings& settings, const NDArray& weight);

// Blocks until an array may be read.
using Wait = std::function<void(const NDArray&)>;
// One step of the weights of items, which are of one dtype where the rule aggregates, else one; settings hold the
// rescale_grad of the step and take what the step changes (Rule::variables). programs: of this rule alone.
void update(const Rule& rule, Settings& settings, std::span<UpdateItem> items, double base_lr, const Wait& wait,
            LinkedPrograms& programs);

}  // namespace hybridnet::optimizer
