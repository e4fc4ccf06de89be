// Where the states of a loop lie while it runs. A state whose next value is an input of the body as it is (the state
// before it in a row of taps, a row of the data, a captured value) passes by pointer. A value that the body makes goes
// to a row of a stacked output where there is one, which stays as it is, else to a ring of buffers: one more than the
// number of iterations that read it, because the body writes the next one meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace hybridnet {

struct LoopSpec;

// May a loop use the memory of the last value of a state, which it fills at its end, before that?
enum class LentMemory : int8_t {
  kNone,
  kFree,        // from the start
  kFirstState,  // it holds the first value of the state, which nothing else reads: as soon as the loop has read it
};

class StateMemory {
 public:
  // Where the body writes an array that it makes.
  enum class Rows : int8_t {
    kNone,        // to the ring
    kAll,         // to rows of a stacked output
    kAllButLast,  // to the row of the next iteration; the last iteration has none, and writes to a ring of one
  };
  // lent: per state; empty: none is lent. rows: per array that the body makes.
  StateMemory(const Plan& body, const LoopSpec& loop, std::span<const LentMemory> lent, std::span<const Rows> rows);

  int64_t workspace_bytes() const { return workspace_bytes_; }

  struct Copy {
    char* to;
    char* from;
    int64_t bytes;  // 0: made
  };
  // What one run of the loop works on.
  struct Run {
    std::vector<char*> buffers;   // of all rings
    std::vector<void*> passing;   // states that pass, while the others change
    bool shares_finals = false;   // may states lie where last values are to be copied?
    std::vector<Copy> copies;     // of the last values
    std::vector<int> readers;     // per copy: others that read where it writes
    std::vector<size_t> waiting;  // copies that can be made
  };
  void begin(const KernelArgs& args, Run& run) const;
  // Where iteration number `done` writes this array of the body.
  char* buffer(const Run& run, size_t fresh, int64_t done) const {
    const Ring& ring = rings_[fresh];
    const int64_t at = ring.size == 2 ? done & 1 : done % ring.size;
    return run.buffers[static_cast<size_t>(ring.first + at)];
  }
  // The states of the next iteration take the place of those of this one.
  void pass_on(Run& run, std::span<void* const> fresh, std::span<Plan::InputBinding> inputs) const;
  // Copies the last states of the loop of this name to where they are wanted, which may be where others of them lie.
  void finish(Run& run, std::span<const Plan::InputBinding> inputs, std::span<const TensorRef> finals,
              std::string_view loop) const;
  const std::vector<int64_t>& state_bytes() const { return state_bytes_; }

 private:
  struct Ring {
    int first = 0, size = 0;  // buffers
  };
  struct Buffer {
    int state = -1;      // lends its memory; -1: none, it lies in the workspace
    int64_t offset = 0;  // there
  };
  struct Loan {
    int64_t ready = 0;  // iteration that may be the first to write there
    int state = 0;
  };
  void find_sources(const Plan& body, const LoopSpec& loop);
  void find_lifetimes();
  std::vector<std::vector<Loan>> loans(std::span<const LentMemory> lent, size_t num_fresh) const;
  void make_ring(size_t fresh, int64_t size, int64_t bytes, std::span<const Loan> loans);
  int source_of(size_t state) const;

  size_t first_carry_, num_outs_;
  std::vector<int64_t> state_bytes_;
  std::vector<int> fresh_of_state_;  // -1: the state passes
  std::vector<int> passed_input_;    // its next value; -1: the body makes it
  std::vector<int64_t> lifetime_;    // iterations that read the first value of a state, through all that it passes to
  std::vector<int> made_, passed_;   // states, by how they get their next value
  std::vector<Ring> rings_;          // per array that the body makes
  std::vector<Buffer> buffers_;      // of all rings
  int64_t workspace_bytes_ = 0;
  bool is_lent_ = false;  // is some buffer memory of a last value?
};

}  // namespace hybridnet
