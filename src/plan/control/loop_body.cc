#include "plan/control/loop_body.h"

#include <algorithm>

#include "base/interrupt.h"
#include "plan/control/control_kernel.h"

namespace hybridnet {

void run_native(const NativeLoop& native, const LoopBody& body, LoopBody::Run& run, const LoopSpec& loop, int64_t limit,
                std::span<const TensorRef> final_states, int64_t* done) {
  constexpr int64_t kIterationsAtOnce = 1 << 16;  // between checks for an interrupt
  LoopBody::NativeMemory& memory = run.native;
  memory.inputs.clear();
  for (const Plan::InputBinding& input : run.inputs) memory.inputs.push_back(input.data);
  memory.rows.assign(run.stacked.begin(), run.stacked.end());
  memory.carries.clear();
  size_t words = 0;  // each state begins at a word: aligned for every type
  for (const int64_t size : body.state_bytes()) words += static_cast<size_t>((size + 7) / 8);
  memory.states.resize(words);
  int64_t* next = memory.states.data();
  for (size_t s = 0; s < loop.carries(); ++s) {
    const int64_t size = body.state_bytes()[s];
    std::memcpy(next, memory.inputs[loop.carry(s)], static_cast<size_t>(size));
    memory.carries.push_back(next);
    next += (size + 7) / 8;
  }
  NativeLoop::Run state{memory.inputs, memory.rows, memory.carries, 0, 0, limit, false};
  InterruptWatch watch;
  while (state.done < limit && !state.ended) {
    check_interrupt(watch);
    state.end = std::min(limit, state.done + kIterationsAtOnce);
    native.run(state);
    *done = state.done;
  }
  for (size_t s = 0; s < loop.carries(); ++s)
    if (final_states[s].data)
      std::memcpy(final_states[s].data, memory.carries[s], static_cast<size_t>(body.state_bytes()[s]));
}

}  // namespace hybridnet
