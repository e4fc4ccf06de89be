// What an iteration of a loop runs on: the plan of the body, and where its inputs and outputs lie.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "plan/control/native_loop.h"
#include "plan/plan.h"

namespace hybridnet {

inline void bind_inputs(std::span<const TensorRef> inputs, std::vector<Plan::InputBinding>& bound) {
  bound.clear();
  for (const TensorRef& in : inputs) bound.push_back({in.data, in.derived});
}

// Keeps one object between runs, so that runs that follow one another allocate nothing; runs at once make more.
template <typename T>
class Spare {
 public:
  Spare() = default;
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() { delete kept_.load(std::memory_order_acquire); }
  struct GiveBack {
    Spare* owner;
    void operator()(T* object) const {
      T* none = nullptr;
      if (!owner->kept_.compare_exchange_strong(none, object, std::memory_order_acq_rel)) delete object;
    }
  };
  using Lease = std::unique_ptr<T, GiveBack>;
  Lease take() {
    T* object = kept_.exchange(nullptr, std::memory_order_acq_rel);
    return Lease(object ? object : new T, GiveBack{this});
  }

 private:
  std::atomic<T*> kept_{nullptr};
};

// One plan run over and over. Fresh outputs go to a row of a stacked output where there is one, else to one of two
// buffers in turn, because the run before is still being read as the state. A state of which every iteration stacks
// what it gets goes straight into the row of the next iteration.
class LoopBody {
 public:
  LoopBody(Ref<Plan> plan, const LoopSpec& loop)
      : plan_(std::move(plan)), first_carry_(loop.seqs()), num_carries_(loop.carries()), num_slots_(loop.slots()) {
    const size_t num_stacked = loop.outs();
    const size_t num_fresh = plan_->fresh_outputs().size();
    row_of_fresh_.assign(num_fresh, -1);
    buffer_of_fresh_.assign(num_fresh, -1);
    for (size_t i = 0; i < num_stacked; ++i) {
      const Plan::OutputInfo& info = plan_->outputs()[i];
      row_bytes_.push_back(info.spec.bytes());
      int& row = row_of_fresh_[static_cast<size_t>(info.fresh)];
      if (row < 0)
        row = static_cast<int>(i);
      else
        copies_.push_back({static_cast<int>(i), info.fresh});
    }
    for (size_t s = 0; s < num_carries_; ++s) {
      const Plan::OutputInfo& info = plan_->outputs()[num_stacked + s];
      fresh_of_state_.push_back(info.fresh);
      state_bytes_.push_back(info.spec.bytes());
      const auto fresh = static_cast<size_t>(info.fresh);
      if (row_of_fresh_[fresh] >= 0 || buffer_of_fresh_[fresh] >= 0) continue;
      buffer_of_fresh_[fresh] = static_cast<int>(buffer_bytes_);
      buffer_bytes_ += 2 * aligned(info.spec.bytes());
    }
    find_rows_of_states(num_stacked);
  }

  Plan& plan() const { return *plan_; }
  int64_t workspace_bytes() const { return buffer_bytes_; }

  // What machine code is given: pointers, and the states.
  struct NativeMemory {
    std::vector<const void*> inputs;
    std::vector<void*> rows, carries;
    std::vector<int64_t> states;
  };

  // What one run of the loop works on.
  struct Run {
    std::vector<Plan::InputBinding> inputs;       // those of slices and states change
    std::vector<Plan::InputBinding> test_inputs;  // of the condition of a while_loop
    std::vector<int64_t> slice_bytes;             // per sequence
    std::vector<void*> fresh;
    std::vector<char*> stacked;
    char* buffers = nullptr;
    KeptObjects* kept = nullptr;
    NativeMemory native;
  };

  // The iteration number `done` writes row `row`; the one behind it will write next_row, -1: there is none.
  void step(Plan::Repeated& plan, Run& run, int64_t done, int64_t row, int64_t next_row, RngKey key) const {
    for (size_t f = 0; f < run.fresh.size(); ++f) {
      if (const int out = row_of_fresh_[f]; out >= 0) {
        run.fresh[f] = run.stacked[static_cast<size_t>(out)] + row * row_bytes_[static_cast<size_t>(out)];
      } else if (const int state = next_row_of_fresh_[f]; state >= 0 && next_row >= 0) {
        run.fresh[f] = run.stacked[static_cast<size_t>(state)] + next_row * row_bytes_[static_cast<size_t>(state)];
      } else {
        const int64_t bytes = aligned(plan_->fresh_outputs()[f].bytes());
        run.fresh[f] = run.buffers + buffer_of_fresh_[f] + (done & 1) * bytes;
      }
    }
    plan.run({run.inputs, run.fresh, nullptr, key, {}, run.kept});
    for (const auto& [out, fresh] : copies_) {
      const int64_t bytes = row_bytes_[static_cast<size_t>(out)];
      if (bytes > 0)
        std::memcpy(run.stacked[static_cast<size_t>(out)] + row * bytes, run.fresh[static_cast<size_t>(fresh)],
                    static_cast<size_t>(bytes));
    }
    for (size_t s = 0; s < num_carries_; ++s)
      run.inputs[first_carry_ + s] = {run.fresh[static_cast<size_t>(fresh_of_state_[s])], nullptr};
  }

  // Final states and rows that no iteration wrote.
  void finish(const Run& run, std::span<const TensorRef> final_states, int64_t first_unwritten, int64_t rows) const {
    for (size_t s = 0; s < num_carries_; ++s) {
      const void* last = run.inputs[first_carry_ + s].data;
      if (state_bytes_[s] > 0 && final_states[s].data)
        std::memcpy(final_states[s].data, last, static_cast<size_t>(state_bytes_[s]));
    }
    clear_rows(run, first_unwritten, rows);
  }
  void clear_rows(const Run& run, int64_t first_unwritten, int64_t rows) const {
    for (size_t i = 0; i < run.stacked.size(); ++i) {
      const int64_t bytes = (rows - first_unwritten) * row_bytes_[i];
      if (bytes > 0) std::memset(run.stacked[i] + first_unwritten * row_bytes_[i], 0, static_cast<size_t>(bytes));
    }
  }
  const std::vector<int64_t>& state_bytes() const { return state_bytes_; }

  Spare<Run>::Lease begin(const KernelArgs& args) {
    Spare<Run>::Lease run = spare_.take();
    bind_inputs(args.in.first(num_slots_), run->inputs);
    for (size_t s = 0; s < num_carries_; ++s) run->inputs[first_carry_ + s].derived = nullptr;
    run->slice_bytes.clear();
    run->fresh.assign(row_of_fresh_.size(), nullptr);
    run->stacked.clear();
    for (size_t i = 0; i < row_bytes_.size(); ++i) run->stacked.push_back(static_cast<char*>(args.out[i].data));
    run->buffers = static_cast<char*>(args.workspace);
    run->kept = args.kept;
    return run;
  }

 private:
  static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  void find_rows_of_states(size_t num_stacked) {
    next_row_of_fresh_.assign(row_of_fresh_.size(), -1);
    for (size_t i = 0; i < num_stacked; ++i) {
      const Plan::OutputInfo& info = plan_->outputs()[i];
      if (info.input < 0 || row_of_fresh_[static_cast<size_t>(info.fresh)] != static_cast<int>(i)) continue;
      for (size_t s = 0; s < num_carries_; ++s) {
        const auto next = static_cast<size_t>(fresh_of_state_[s]);
        if (static_cast<int>(first_carry_ + s) == info.input && row_of_fresh_[next] < 0 &&
            next_row_of_fresh_[next] < 0 && state_bytes_[s] == row_bytes_[i])
          next_row_of_fresh_[next] = static_cast<int>(i);
      }
    }
  }

  Ref<Plan> plan_;
  const size_t first_carry_, num_carries_, num_slots_;
  std::vector<int> row_of_fresh_, buffer_of_fresh_, next_row_of_fresh_, fresh_of_state_;
  std::vector<int64_t> row_bytes_, state_bytes_;
  struct Copy {
    int out, fresh;
  };
  std::vector<Copy> copies_;
  int64_t buffer_bytes_ = 0;
  Spare<Run> spare_;
};

// Runs the loop as machine code, up to `limit` iterations; `done` counts those that are over. run.inputs hold the first
// states.
void run_native(const NativeLoop& native, const LoopBody& body, LoopBody::Run& run, const LoopSpec& loop, int64_t limit,
                std::span<const TensorRef> final_states, int64_t* done);

}  // namespace hybridnet
