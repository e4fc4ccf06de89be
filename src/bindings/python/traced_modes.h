// Effect of autograd's scopes (pause, predict_mode, train_mode) inside a traced block on its nodes. The graph may run
// in other modes later, so the nodes themselves must store the mode of the scope.
#pragma once

#include "symbol_object.h"

namespace hybridnet::python {

// For `with` scopes. `recording` and `training`: 0, 1, or -1 for no change. Returns the previous modes as bits.
unsigned enter_mode(int recording, int training);
void leave_mode(unsigned before);

// Returns the parameters of a new node, fixed to the mode of a scope in the block. Throws TraceError for train_mode()
// if the operator has no parameter for it.
ParamsPtr params_in_scope(const Op& op, ParamsPtr params);
// Returns the values without gradients inside pause(), otherwise unchanged.
Symbol without_gradient_in_pause(Symbol symbol);

}  // namespace hybridnet::python
