// The parameters of the kernels of loops.cuh, for the host and for the device. Structs have no gaps: graphs compare
// them byte by byte.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// The state of a loop that runs on the device, in its memory.
struct LoopControl {
  int64_t done;   // finished iterations
  int64_t row;    // of the scanned inputs and stacked outputs in the next iteration
  int64_t limit;  // iterations at most, then the host has to see to it
  int64_t holds;  // the condition of the next iteration; not 0 without a condition
};

enum class LoopStage : int32_t {
  kFirst,    // before the first iteration
  kNext,     // after an iteration
  kResumed,  // the host raises the limit
};

// The meaning of `value` when a loop decides whether it goes on.
enum class LoopValue : int32_t { kNone, kCondition, kCount };

struct LoopDecision {
  uint64_t condition;  // the graph's handle
  LoopControl* control;
  const void* value;  // one element
  int64_t limit;      // iterations at most; not for kNext
  LoopStage stage;
  LoopValue meaning;   // kCount: the number of iterations, cut off at limit
  int64_t is_reverse;  // the last row comes first
};

struct BranchDecision {
  uint64_t then_branch, else_branch;  // the graph's handles
  const void* value;
};

// Copies between memory of which a row belongs to each iteration. Steps: bytes between rows; 0: all use the same
// memory.
struct RowMoves {
  static constexpr int kMost = 24;
  struct Move {
    const void* from;
    void* to;
    int64_t from_step, to_step;
    int64_t words;
  };
  const LoopControl* control;  // null: the row is 0
  int64_t count;
  Move moves[kMost];
};

// Zeros for the rows that no iteration has written.
struct RowClears {
  static constexpr int kMost = 24;
  struct Clear {
    void* out;
    int64_t row_words, rows;
  };
  const LoopControl* control;
  int64_t count;
  Clear clears[kMost];
};

}  // namespace hybridnet::device
