// The data of a loop's iterations: the plan of the body, and the places of its inputs and outputs.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plan/control/native_loop.h"
#include "plan/control/state_memory.h"
#include "plan/plain_copy.h"
#include "plan/plan.h"

namespace hybridnet {

inline void bind_inputs(std::span<const TensorRef> inputs, std::vector<Plan::InputBinding>& bound) {
  bound.clear();
  for (const TensorRef& in : inputs) bound.push_back({in.data, in.derived});
}

// Keeps one object between runs, so that consecutive runs allocate nothing; concurrent runs make more.
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

// One plan that runs repeatedly. It writes outputs directly to a row of a stacked output if there is one; states that
// every iteration stacks as received go to the row of the next iteration. StateMemory handles all other memory.
class LoopBody {
 public:
  LoopBody(std::string name, Ref<Plan> plan, const LoopSpec& loop, std::span<const LentMemory> lent)
      : name_(std::move(name)),
        plan_(std::move(plan)),
        first_carry_(loop.seqs()),
        num_carries_(loop.carries()),
        num_slots_(loop.slots()),
        rows_(place_rows(loop)),
        states_(*plan_, loop, lent, rows_) {}

  Plan& plan() const { return *plan_; }
  int64_t workspace_bytes() const { return states_.workspace_bytes(); }

  // The arguments of the machine code: pointers, and memory for the states.
  struct NativeMemory {
    std::vector<const void*> inputs;
    std::vector<void*> rows, carries;
    std::vector<int64_t> states;
  };

  // The memory that one run of the loop works on.
  struct Run {
    std::vector<Plan::InputBinding> inputs;       // the entries of slices and states change
    std::vector<Plan::InputBinding> test_inputs;  // inputs of the condition of a while_loop
    std::vector<int64_t> slice_bytes;             // per sequence
    std::vector<void*> fresh;
    std::vector<char*> stacked;
    StateMemory::Run states;
    KeptObjects* kept = nullptr;
    NativeMemory native;
  };

  // Iteration number `done` writes row `row`; the next one will write next_row, -1: there is none.
  void step(Plan::Repeated& plan, Run& run, int64_t done, int64_t row, int64_t next_row, RngKey key) const {
    for (size_t f = 0; f < run.fresh.size(); ++f) {
      if (const int out = row_of_fresh_[f]; out >= 0) {
        run.fresh[f] = run.stacked[static_cast<size_t>(out)] + row * row_bytes_[static_cast<size_t>(out)];
      } else if (const int state = next_row_of_fresh_[f]; state >= 0 && next_row >= 0) {
        run.fresh[f] = run.stacked[static_cast<size_t>(state)] + next_row * row_bytes_[static_cast<size_t>(state)];
      } else {
        run.fresh[f] = states_.buffer(run.states, f, done);
      }
    }
    plan.run({run.inputs, run.fresh, nullptr, key, {}, run.kept});
    for (const auto& [out, fresh] : copies_) {
      const int64_t bytes = row_bytes_[static_cast<size_t>(out)];
      copy_plainly(run.stacked[static_cast<size_t>(out)] + row * bytes, run.fresh[static_cast<size_t>(fresh)], bytes,
                   name_);
    }
    states_.pass_on(run.states, run.fresh, run.inputs);
  }

  // Writes the final states, and clears the rows that no iteration wrote.
  void finish(Run& run, std::span<const TensorRef> final_states, int64_t first_unwritten, int64_t rows) const {
    states_.finish(run.states, run.inputs, final_states, name_);
    clear_rows(run, first_unwritten, rows);
  }
  void clear_rows(const Run& run, int64_t first_unwritten, int64_t rows) const {
    for (size_t i = 0; i < run.stacked.size(); ++i) {
      const int64_t bytes = (rows - first_unwritten) * row_bytes_[i];
      device::zero_memory(run.stacked[i] + first_unwritten * row_bytes_[i], bytes);
    }
  }
  const std::vector<int64_t>& state_bytes() const { return states_.state_bytes(); }

  Spare<Run>::Lease begin(const KernelArgs& args) {
    Spare<Run>::Lease run = spare_.take();
    bind_inputs(args.in.first(num_slots_), run->inputs);
    for (size_t s = 0; s < num_carries_; ++s) run->inputs[first_carry_ + s].derived = nullptr;
    run->slice_bytes.clear();
    run->fresh.assign(row_of_fresh_.size(), nullptr);
    run->stacked.clear();
    for (size_t i = 0; i < row_bytes_.size(); ++i) run->stacked.push_back(static_cast<char*>(args.out[i].data));
    states_.begin(args, run->states, run->inputs, name_);
    run->kept = args.kept;
    return run;
  }

 private:
  std::vector<StateMemory::Rows> place_rows(const LoopSpec& loop) {
    const size_t num_fresh = plan_->fresh_outputs().size();
    row_of_fresh_.assign(num_fresh, -1);
    for (size_t i = 0; i < loop.outs(); ++i) {
      const Plan::OutputInfo& info = plan_->outputs()[i];
      row_bytes_.push_back(info.spec.bytes());
      int& row = row_of_fresh_[static_cast<size_t>(info.fresh)];
      if (row < 0)
        row = static_cast<int>(i);
      else
        copies_.push_back({static_cast<int>(i), info.fresh});
    }
    find_rows_of_states(loop);
    std::vector<StateMemory::Rows> rows;
    for (size_t f = 0; f < num_fresh; ++f)
      rows.push_back(row_of_fresh_[f] >= 0        ? StateMemory::Rows::kAll
                     : next_row_of_fresh_[f] >= 0 ? StateMemory::Rows::kAllButLast
                                                  : StateMemory::Rows::kNone);
    return rows;
  }

  void find_rows_of_states(const LoopSpec& loop) {
    next_row_of_fresh_.assign(row_of_fresh_.size(), -1);
    for (size_t i = 0; i < loop.outs(); ++i) {
      const Plan::OutputInfo& info = plan_->outputs()[i];
      if (info.input < 0 || row_of_fresh_[static_cast<size_t>(info.fresh)] != static_cast<int>(i)) continue;
      for (size_t s = 0; s < num_carries_; ++s) {
        const Plan::OutputInfo& made = plan_->outputs()[loop.final_carry(s)];
        if (made.fresh < 0 || static_cast<int>(loop.carry(s)) != info.input) continue;
        const auto next = static_cast<size_t>(made.fresh);
        if (row_of_fresh_[next] < 0 && next_row_of_fresh_[next] < 0 && made.spec.bytes() == row_bytes_[i])
          next_row_of_fresh_[next] = static_cast<int>(i);
      }
    }
  }

  const std::string name_;  // the loop's name
  Ref<Plan> plan_;
  const size_t first_carry_, num_carries_, num_slots_;
  std::vector<int> row_of_fresh_, next_row_of_fresh_;
  std::vector<int64_t> row_bytes_;
  struct Copy {
    int out, fresh;
  };
  std::vector<Copy> copies_;
  const std::vector<StateMemory::Rows> rows_;
  const StateMemory states_;
  Spare<Run> spare_;
};

// Runs the loop as machine code, up to `limit` iterations; `done` counts the finished iterations. run.inputs hold the
// first states.
void run_native(const NativeLoop& native, const LoopBody& body, LoopBody::Run& run, const LoopSpec& loop, int64_t limit,
                std::span<const TensorRef> final_states, int64_t* done);

}  // namespace hybridnet
