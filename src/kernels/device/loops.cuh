// Loops and branches that run on the device: what sets the conditions of a graph's nodes, and moves of rows whose number
// the device counts.
#pragma once

#include "kernels/device/loop_arguments.h"
#include "kernels/device/moves.cuh"
#include "kernels/device/elements.cuh"

#ifndef HN_HOST_KERNELS
// NVRTC has no declaration. The driver links the function when it loads the PTX.
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);
#endif

namespace hybridnet::device {

// One thread reads an element as the host does (graph/control/rules.h, read_number).
template <class T>
__device__ inline double number_at(const void* value) {
  return convert<double>(*static_cast<const T*>(value));
}

__device__ inline int64_t count_of(double number, int64_t limit) {
  if (!(number >= 1)) return 0;
  return number < static_cast<double>(limit) ? static_cast<int64_t>(number) : limit;
}

template <class T>
__device__ inline void decide_loop(const LoopDecision& a) {
  if (first() != 0) return;
  LoopControl control = *a.control;
  if (a.stage == LoopStage::kFirst) {
    control.done = 0;
    control.limit = a.meaning == LoopValue::kCount ? count_of(number_at<T>(a.value), a.limit) : a.limit;
    control.row = a.is_reverse != 0 ? control.limit - 1 : 0;
  } else if (a.stage == LoopStage::kNext) {
    ++control.done;
    control.row += a.is_reverse != 0 ? -1 : 1;
  } else {
    control.limit = a.limit;
  }
  if (a.stage != LoopStage::kResumed)
    control.holds = a.meaning != LoopValue::kCondition || number_at<T>(a.value) != 0 ? 1 : 0;
  *a.control = control;
  cudaGraphSetConditional(a.condition, control.holds != 0 && control.done < control.limit ? 1 : 0);
}

template <class T>
__device__ inline void decide_branch(const BranchDecision& a) {
  if (first() != 0) return;
  const bool taken = number_at<T>(a.value) != 0;
  cudaGraphSetConditional(a.then_branch, taken ? 1 : 0);
  cudaGraphSetConditional(a.else_branch, taken ? 0 : 1);
}

template <class Word>
__device__ inline void move_rows(const RowMoves& a) {
  const int64_t row = a.control != nullptr ? a.control->row : 0;
  for (int64_t m = 0; m < a.count; ++m) {
    const RowMoves::Move& move = a.moves[m];
    const void* from = static_cast<const char*>(move.from) + row * move.from_step;
    void* to = static_cast<char*>(move.to) + row * move.to_step;
    for (int64_t i = first(); i < move.words; i += step())
      static_cast<Word*>(to)[i] = static_cast<const Word*>(from)[i];
  }
}

template <class Word>
__device__ inline void clear_rows(const RowClears& a) {
  const int64_t done = a.control->done;
  for (int64_t c = 0; c < a.count; ++c) {
    const RowClears::Clear& clear = a.clears[c];
    Word* out = static_cast<Word*>(clear.out) + done * clear.row_words;
    const int64_t n = (clear.rows - done) * clear.row_words;
    for (int64_t i = first(); i < n; i += step()) out[i] = 0;
  }
}

}  // namespace hybridnet::device
