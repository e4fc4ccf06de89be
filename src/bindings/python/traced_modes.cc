#include "traced_modes.h"

#include "control_bodies.h"
#include "hybridnet/imperative.h"
#include "imperative/write_history.h"
#include "location.h"

namespace hybridnet::python {
namespace {

constexpr unsigned kRecording = 1, kTraining = 2, kPaused = 4, kScopeTraining = 8;  // bits of a mode

ParamsPtr predicting(const Op& op, ParamsPtr params) {
  return op.prediction_params ? op.prediction_params(params->data()) : std::move(params);
}

// Returns parameters for training mode. They need no change in a graph traced in training mode, which runs only in it.
ParamsPtr training(const Op& op, ParamsPtr params) {
  if (op.training_params) return op.training_params(params->data());
  if (!op.prediction_params || op.schema->equal(op.prediction_params(params->data())->data(), params->data()))
    return params;  // the operator does the same in both modes
  TraceState& trace = trace_state();
  trace.reads |= kReadTraining;
  if (trace.training) return params;
  ErrorFields e;
  e.op = op.name;
  e.message = "train_mode() inside a hybridized block that runs in prediction mode";
  e.because = "the graph has one mode for all of its '" + op.name + "' nodes";
  e.fix = "put train_mode() around the call of the block, or run this part without hybridize()";
  e.where = python_location();
  raise(ErrorKind::kTrace, std::move(e));
}

}  // namespace

unsigned enter_mode(int recording, int training) {
  AutogradState& state = autograd_state();
  TraceState& trace = trace_state();
  const unsigned before = (state.recording ? kRecording : 0) | (state.training ? kTraining : 0) |
                          (trace.scopes.paused ? kPaused : 0) |
                          static_cast<unsigned>(trace.scopes.training + 1) * kScopeTraining;
  if (recording == 1 && !state.recording) WriteHistory::drop_unseen();
  if (recording >= 0) state.recording = recording != 0;
  if (training >= 0) state.training = training != 0;
  if (!trace.active) return before;
  if (recording >= 0) trace.scopes.paused = recording == 0;
  if (training >= 0) trace.scopes.training = training;
  return before;
}

void leave_mode(unsigned before) {
  autograd_state() = {(before & kRecording) != 0, (before & kTraining) != 0};
  trace_state().scopes = {(before & kPaused) != 0, static_cast<int>(before / kScopeTraining) - 1};
}

ParamsPtr params_in_scope(const Op& op, ParamsPtr params) {
  const TraceState& trace = trace_state();
  if (!trace.active || trace.scopes.training < 0) return params;
  return trace.scopes.training == 0 ? predicting(op, std::move(params)) : training(op, std::move(params));
}

Symbol without_gradient_in_pause(Symbol symbol) {
  static const OpRef block_grad{"BlockGrad"};
  const TraceState& trace = trace_state();
  if (!trace.active || !trace.scopes.paused) return symbol;
  for (NodeEntry& entry : symbol.outputs) {
    if (entry.node->op != nullptr && entry.node->op->stops_gradient) continue;
    NodePtr node = make_node(block_grad.op(), make_name(nullptr, "blockgrad"), block_grad.op().default_params, {entry});
    node->where = entry.node->where;
    node->block = entry.node->block;
    note_made_node(node);
    infer_made_node(*node);
    entry = {node, 0};
  }
  return symbol;
}

}  // namespace hybridnet::python
