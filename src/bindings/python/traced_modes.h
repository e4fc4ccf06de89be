// What autograd's scopes (pause, predict_mode, train_mode) around a part of a traced block mean for its nodes. The
// graph runs in other modes later, so what such a scope asks for must be in the nodes themselves.
#pragma once

#include "symbol_object.h"

namespace hybridnet::python {

// For `with` scopes. `recording` and `training`: 0, 1, or -1 to leave them as they are. Returns what was before, in
// bits.
unsigned enter_mode(int recording, int training);
void leave_mode(unsigned before);

// The parameters of a new node, fixed to the mode that a scope in the block asks for. Throws TraceError for
// train_mode() where the operator has no parameter for it.
ParamsPtr params_in_scope(const Op& op, ParamsPtr params);
// Within pause(): the values without gradients. Else they are returned as they are.
Symbol without_gradient_in_pause(Symbol symbol);

}  // namespace hybridnet::python
