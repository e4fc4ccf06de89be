#include "plan/control/device_loop.h"

#include "base/interrupt.h"
#include "device/memory.h"
#include "engine/profile.h"
#include "graph/control/body_graph.h"
#include "hybridnet/error.h"
#include "kernels/control/device_steps.h"
#include "plan/control/branch_memory.h"
#include "plan/control/control_kernel.h"
#include "plan/control/loop_body.h"

namespace hybridnet {
namespace {

using device::LaunchBatch;
using device::LoopControl;
using kernels::on_device::RowMove;

constexpr int64_t kMostIterations = 1 << 16;  // a loop that nothing can stop has no more
constexpr int64_t kPiece = 1 << 12;           // iterations between looks of the host

bool may_run_alone(const Node& node, const Plan& body) {
  return !is_random(node) && !body.needs_host() && body.written_inputs().empty();
}

bool ends_soon(const LoopSpec& loop) {
  return loop.on_limit == "stop" && !loop.counted && loop.max_iterations.value_or(INT64_MAX) <= kMostIterations;
}

}  // namespace

bool device_decides(Device device) {
  return device.type == DeviceType::kGPU && device::backend() != nullptr && device::backend()->makes_conditions();
}

std::unique_ptr<DeviceLoop> DeviceLoop::make(const Node& node, const LinkContext& context, Plan* condition,
                                             Plan& body) {
  if (!device_decides(context.device) || !may_run_alone(node, body)) return nullptr;
  if (condition != nullptr && !may_run_alone(node, *condition)) return nullptr;
  const std::vector<TensorSpec> inputs = body_input_specs(node, condition != nullptr ? 1 : 0, context.in);
  return std::unique_ptr<DeviceLoop>(new DeviceLoop(node, condition, body, inputs));
}

DeviceLoop::DeviceLoop(const Node& node, Plan* condition, Plan& body, const std::vector<TensorSpec>& inputs)
    : name_(node.name), loop_(loop_of(node)), condition_(condition), body_(body) {
  needs_host_ = condition != nullptr && !ends_soon(loop_);
  control_ = place(sizeof(LoopControl));
  test_ = place(sizeof(double));
  for (size_t k = 0; k < loop_.seqs(); ++k) slices_.push_back(place(inputs[k].bytes()));
  for (size_t s = 0; s < loop_.carries(); ++s) states_.push_back(place(inputs[loop_.carry(s)].bytes()));
  for (const TensorSpec& spec : body.fresh_outputs()) fresh_.push_back(place(spec.bytes()));
  share_exclusive_rows(node);
  for (size_t s = 0; s < loop_.carries(); ++s) {
    const Plan::OutputInfo& made = body.outputs()[loop_.final_carry(s)];
    Next next;
    next.fresh = made.fresh;
    const bool stays = made.replaces_input || made.input == static_cast<int>(loop_.carry(s));
    if (made.fresh < 0 && !stays) {
      next.input = made.input;
      next.aside = place(states_[s].bytes);
    }
    next_.push_back(next);
  }
}

// Stacked outputs of which an iteration writes one or the other may have one memory, so their rows have one place too:
// the row that was not written must not replace the other one.
void DeviceLoop::share_exclusive_rows(const Node& node) {
  for (const auto& [one, other] : exclusive_rows(node)) {
    const Slot& kept = row_of(static_cast<size_t>(one));
    Slot& shared = fresh_[static_cast<size_t>(body_.outputs()[static_cast<size_t>(other)].fresh)];
    if (kept.bytes == shared.bytes) shared = kept;
  }
}

const DeviceLoop::Slot& DeviceLoop::row_of(size_t stacked) const {
  return fresh_[static_cast<size_t>(body_.outputs()[stacked].fresh)];
}

DeviceLoop::Slot DeviceLoop::place(int64_t bytes) {
  constexpr int64_t kAlignment = 64;
  const Slot slot{workspace_bytes_, bytes};
  workspace_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return slot;
}

// One iteration in the memory of one run.
class DeviceLoop::Recording {
 public:
  Recording(const DeviceLoop& loop, const KernelArgs& args)
      : loop_(loop), args_(args), memory_(static_cast<char*>(args.workspace)), body_(loop.body_) {
    if (loop.condition_ != nullptr) condition_.emplace(*loop.condition_);
    bind_inputs(args.in.first(loop.loop_.slots()), inputs_);
    for (size_t k = 0; k < loop.slices_.size(); ++k) inputs_[k] = {at(loop.slices_[k]), nullptr};
    for (size_t s = 0; s < loop.states_.size(); ++s) inputs_[loop.loop_.carry(s)] = {at(loop.states_[s]), nullptr};
    for (const Slot& fresh : loop.fresh_) fresh_.push_back(at(fresh));
  }

  void launch(LaunchBatch& batch, int64_t most, int64_t rows, const TensorRef* count) {
    launch_piece(batch, most, /*is_first=*/true, count);
    finish(count != nullptr || condition_ ? rows : 0);
  }

  // Iterations up to a limit.
  void launch_piece(LaunchBatch& batch, int64_t limit, bool is_first, const TensorRef* count) {
    const uint64_t condition = batch.new_condition();
    if (is_first) take_first_states();
    const device::LoopStage stage = is_first ? device::LoopStage::kFirst : device::LoopStage::kResumed;
    decide({.condition = condition, .limit = limit, .stage = stage}, count);
    batch.begin_part(device::Backend::Launch::Kind::kWhile, condition);
    take_slices();
    body_.run({inputs_, fresh_, nullptr, RngKey{}, {}, args_.kept});
    give_rows();
    pass_states_on();
    decide({.condition = condition, .stage = device::LoopStage::kNext}, nullptr);
    batch.end_part();
  }

  // rows: those of stacked outputs, of which some may not be written.
  void finish(int64_t rows) {
    give_last_states();
    clear_rows(rows);
  }

  // Waits for the device.
  LoopControl read_control() const { return device::read_value<LoopControl>(control()); }

 private:
  const LoopSpec& spec() const { return loop_.loop_; }
  void* at(const Slot& slot) const { return memory_ + slot.offset; }
  LoopControl* control() const { return static_cast<LoopControl*>(at(loop_.control_)); }
  void* given_state(size_t s) const { return args_.in[spec().carry(s)].data; }

  void move(const void* from, void* to, int64_t bytes, int64_t from_step = 0, int64_t to_step = 0) {
    if (bytes > 0 && to != nullptr && (from != to || from_step != to_step))
      moves_.push_back({from, to, from_step, to_step, bytes});
  }
  // True if the memory of this stacked output gets the rows of an earlier one (share_exclusive_rows).
  bool is_moved(size_t output) const {
    for (size_t i = 0; i < output; ++i) {
      if (args_.out[i].data != args_.out[output].data || loop_.row_of(i).bytes == 0) continue;
      if (loop_.row_of(i).offset == loop_.row_of(output).offset) return true;
      throw UnsupportedError({.message = "two stacked outputs of '" + loop_.name_ + "' share memory"});
    }
    return false;
  }
  void launch_moves() {
    if (!moves_.empty()) kernels::on_device::launch_row_moves(control(), moves_);
    moves_.clear();
  }

  // The row number is not known yet, and not needed: no step is set.
  void take_first_states() {
    for (size_t s = 0; s < loop_.states_.size(); ++s)
      move(given_state(s), at(loop_.states_[s]), loop_.states_[s].bytes);
    if (!moves_.empty()) kernels::on_device::launch_row_moves(nullptr, moves_);
    moves_.clear();
  }
  void take_slices() {
    for (size_t k = 0; k < loop_.slices_.size(); ++k)
      move(args_.in[k].data, at(loop_.slices_[k]), loop_.slices_[k].bytes, loop_.slices_[k].bytes);
    launch_moves();
  }
  // Also puts the inputs that become states aside, because the states change together.
  void give_rows() {
    for (size_t i = 0; i < spec().outs(); ++i)
      if (!is_moved(i)) move(at(loop_.row_of(i)), args_.out[i].data, loop_.row_of(i).bytes, 0, loop_.row_of(i).bytes);
    for (const Next& next : loop_.next_)
      if (next.input >= 0) move(inputs_[static_cast<size_t>(next.input)].data, at(next.aside), next.aside.bytes);
    launch_moves();
  }
  void pass_states_on() {
    for (size_t s = 0; s < loop_.next_.size(); ++s) {
      const Next& next = loop_.next_[s];
      const Slot& state = loop_.states_[s];
      if (next.fresh >= 0) move(fresh_[static_cast<size_t>(next.fresh)], at(state), state.bytes);
      if (next.input >= 0) move(at(next.aside), at(state), state.bytes);
    }
    launch_moves();
  }

  void decide(device::LoopDecision decision, const TensorRef* count) {
    DType dtype = DType::kFloat32;
    decision.control = control();
    decision.is_reverse = spec().reverse ? 1 : 0;
    if (condition_ && decision.stage != device::LoopStage::kResumed) {
      void* const outputs[] = {at(loop_.test_)};
      condition_->run({inputs_, outputs, nullptr, RngKey{}, {}, args_.kept});
      decision.value = at(loop_.test_);
      decision.meaning = device::LoopValue::kCondition;
      dtype = loop_.condition_->outputs()[0].spec.dtype;
    } else if (count != nullptr) {
      decision.value = count->data;
      decision.meaning = device::LoopValue::kCount;
      dtype = count->dtype;
    }
    kernels::on_device::launch_loop_decision(decision, dtype);
  }

  void give_last_states() {
    for (size_t s = 0; s < loop_.states_.size(); ++s)
      move(at(loop_.states_[s]), args_.out[spec().final_carry(s)].data, loop_.states_[s].bytes);
    if (condition_) move(&control()->done, args_.out.back().data, sizeof(int64_t));
    launch_moves();
  }
  void clear_rows(int64_t rows) {
    std::vector<kernels::on_device::ClearedRows> clears;
    for (size_t i = 0; i < spec().outs(); ++i) {
      const int64_t bytes = loop_.row_of(i).bytes;
      if (bytes > 0 && rows > 0) clears.push_back({args_.out[i].data, bytes, rows});
    }
    if (!clears.empty()) kernels::on_device::launch_row_clears(control(), clears);
  }

  const DeviceLoop& loop_;
  const KernelArgs& args_;
  char* const memory_;
  Plan::Repeated body_;
  std::optional<Plan::Repeated> condition_;
  std::vector<Plan::InputBinding> inputs_;
  std::vector<void*> fresh_;
  std::vector<RowMove> moves_;
};

// Null: the loop cannot be recorded now.
LaunchBatch* DeviceLoop::usable_batch() const {
  LaunchBatch* const batch = LaunchBatch::current();
  if (batch == nullptr || batch->is_recording()) return batch;
  const bool may_begin = !gave_up_.load(std::memory_order_relaxed) && batch->makes_conditions() && !profile::active();
  return may_begin ? batch : nullptr;
}

bool DeviceLoop::run(const KernelArgs& args, int64_t most, int64_t rows, const TensorRef* count) {
  LaunchBatch* const batch = usable_batch();
  if (batch == nullptr) return false;
  Recording recording(*this, args);
  if (batch->run_as_graph([&] { recording.launch(*batch, most, rows, count); })) return true;
  gave_up_.store(true, std::memory_order_relaxed);
  return false;
}

bool DeviceLoop::run_piece(LaunchBatch& batch, Recording& recording, int64_t limit, bool is_first) {
  if (batch.run_as_graph([&] { recording.launch_piece(batch, limit, is_first, nullptr); })) return true;
  gave_up_.store(true, std::memory_order_relaxed);
  return false;
}

// The inputs stay as they were until the end: if a later piece fails, the host can begin anew.
std::optional<DeviceLoop::End> DeviceLoop::run_in_pieces(const KernelArgs& args, int64_t most, int64_t rows) {
  LaunchBatch* const batch = usable_batch();
  if (batch == nullptr || batch->is_recording()) return std::nullopt;
  Recording recording(*this, args);
  InterruptWatch watch;
  LoopControl control{};
  do {
    check_interrupt(watch);
    const int64_t limit = most - control.done > kPiece ? control.done + kPiece : most;
    if (!run_piece(*batch, recording, limit, control.done == 0)) return std::nullopt;
    control = recording.read_control();
  } while (control.holds != 0 && control.done < most);
  recording.finish(rows);
  return End{control.done, control.holds != 0};
}

}  // namespace hybridnet
