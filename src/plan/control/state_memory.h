// The memory of a loop's states while it runs. A state whose next value is an unchanged input of the body (the state
// before it in a row of taps, a row of the data, a captured value) is passed by pointer. A value that the body makes
// goes to a row of a stacked output if there is one, which is not overwritten, else to a ring of buffers: one more than
// the number of iterations that read it, because the body writes the next value meanwhile. A value that the body writes
// over the state itself has one place during the whole loop, to which the first value is copied.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace hybridnet {

struct LoopSpec;

// Whether a loop may use the memory for a state's last value as a buffer before it writes that value.
enum class LentMemory : int8_t {
  kNone,
  kFree,        // from the start
  kFirstState,  // holds the first value of the state, which nothing else reads: free once the loop has read it
};

class StateMemory {
 public:
  // The place where the body writes an array that it makes.
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
    int64_t bytes;  // 0: the copy is done
  };
  // The memory that one run of the loop works on.
  struct Run {
    std::vector<char*> buffers;   // buffers of all rings
    std::vector<void*> passing;   // states passed by pointer, while the others change
    bool shares_finals = false;   // true if states may lie in the targets of last values
    std::vector<Copy> copies;     // copies of the last values
    std::vector<int> readers;     // per copy: other copies that read its target
    std::vector<size_t> waiting;  // copies that can be made now
  };
  // Copies the first values of states that the body writes over, and binds these states in `inputs`.
  void begin(const KernelArgs& args, Run& run, std::span<Plan::InputBinding> inputs, std::string_view loop) const;
  // Returns the memory that iteration number `done` writes this array of the body to.
  char* buffer(const Run& run, size_t fresh, int64_t done) const {
    const Ring& ring = rings_[fresh];
    const int64_t at = ring.size == 2 ? done & 1 : done % ring.size;
    return run.buffers[static_cast<size_t>(ring.first + at)];
  }
  // Replaces the states of this iteration by those of the next one.
  void pass_on(Run& run, std::span<void* const> fresh, std::span<Plan::InputBinding> inputs) const;
  // Copies the last states of the loop of this name to their targets, which may be the memory of other last states.
  void finish(Run& run, std::span<const Plan::InputBinding> inputs, std::span<const TensorRef> finals,
              std::string_view loop) const;
  const std::vector<int64_t>& state_bytes() const { return state_bytes_; }

 private:
  struct Ring {
    int first = 0, size = 0;  // buffers
  };
  struct Buffer {
    int state = -1;      // the state that lends its memory; -1: none, the buffer lies in the workspace
    int64_t offset = 0;  // in the workspace
  };
  struct Loan {
    int64_t ready = 0;  // the first iteration that may write there
    int state = 0;
  };
  void find_sources(const Plan& body, const LoopSpec& loop);
  void find_lifetimes();
  void place_replaced(std::span<const LentMemory> lent);
  std::vector<std::vector<Loan>> loans(std::span<const LentMemory> lent, size_t num_fresh) const;
  void make_ring(size_t fresh, int64_t size, int64_t bytes, std::span<const Loan> loans);
  int source_of(size_t state) const;

  size_t first_carry_, num_outs_;
  std::vector<int64_t> state_bytes_;
  std::vector<int> fresh_of_state_;  // -1: the state is passed by pointer
  std::vector<int> passed_input_;    // the body input that is its next value; -1: the body makes it
  std::vector<int64_t> lifetime_;    // iterations that read a state's first value, also after it passes to other states
  std::vector<int> made_, passed_;   // states, by the origin of their next value
  std::vector<int> replaced_;        // states whose next value the body writes over them; they stay in place
  std::vector<Buffer> places_;       // of the states that are replaced
  std::vector<Ring> rings_;          // per array that the body makes
  std::vector<Buffer> buffers_;      // buffers of all rings
  int64_t workspace_bytes_ = 0;
  bool is_lent_ = false;  // true if some buffer is the memory of a last value
};

}  // namespace hybridnet
