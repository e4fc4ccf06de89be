#include <algorithm>
#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <utility>

#include "base/origin.h"
#include "engine/profile.h"
#include "hybridnet/ndarray.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/product/packed.h"
#include "ndarray/release.h"
#include "op/specs_text.h"
#include "plan/graph_position.h"
#include "plan/plain_copy.h"
#include "plan/plan.h"

namespace hybridnet {

// Arguments of every instruction, bound to one call, and, while it runs, the arena.
struct Plan::Frame {
  std::vector<TensorRef> args;
  std::unique_ptr<ReaderCache[]> last_copies;  // one for each of given_args_
  std::vector<DerivedSource> prepared_from;
  ReaderCache last_prepared;
  std::unique_ptr<ArenaPool::Arena> kept;  // with keep_arena
  Storage::Block taken;                    // without keep_arena
  char* arena = nullptr;                   // memory of one of them; null before the first run
  const char* bound = nullptr;             // the arena that args point into
  ~Frame() {
    if (taken.data) storage(taken.device).free(taken);
  }
};

// The arrays that the preparation writes, one after the other. Arrays whose readers have packed copies are dropped
// meanwhile.
class Plan::PreparedArrays final : public RecomputableArrays {
 public:
  // call: lends the parameters to read. They outlive this object and are not written meanwhile: DerivedCopy.
  PreparedArrays(Ref<Plan> preparation, const std::vector<int>& reads, const Call& call)
      : preparation_(std::move(preparation)),
        inputs_(call.inputs.size()),
        memory_(std::make_shared<const OwnedBlock>(bytes_of(*preparation_), device())) {
    for (const int read : reads) inputs_[static_cast<size_t>(read)] = call.inputs[static_cast<size_t>(read)];
    places_ = computed_in(*memory_);
    for (size_t i = 0; i < places_.size(); ++i) add(places_[i], specs()[i].bytes());
    find_parts();
  }
  const std::vector<void*>& places() const { return places_; }
  const std::vector<OutputInfo>& values() const { return preparation_->outputs_; }
  // Keeps the array from now on.
  void keep_values(size_t array);
  void offer(size_t array, const EvictableValues::Values& values) override;
  void end_offers(size_t array, bool accepted) override;
  static int64_t bytes_of(const Plan& preparation) {
    int64_t bytes = 0;
    for (const TensorSpec& spec : preparation.fresh_) bytes += aligned(spec.bytes());
    return bytes;
  }

 private:
  // An input that an array contains unchanged.
  struct Part {
    size_t input;
    int64_t offset, bytes;
  };
  void find_parts();
  std::vector<int> indices_by_argument(const std::vector<Patch>& patches) const;
  std::vector<Part> parts_of(const Instruction& instruction, const std::vector<int>& inputs) const;
  bool holds(size_t array, const std::vector<Part>& parts) const;
  static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  const std::vector<TensorSpec>& specs() const { return preparation_->fresh_; }
  Device device() const { return preparation_->options_.device; }

  std::vector<void*> computed_in(const OwnedBlock& block) const {
    std::vector<void*> places;
    char* at = static_cast<char*>(block.data());
    for (const TensorSpec& spec : specs()) {
      places.push_back(at);
      at += aligned(spec.bytes());
    }
    std::deque<ReadLease> readings;
    for (const InputBinding& input : inputs_) readings.emplace_back(input.derived);
    preparation_->run(
        {.inputs = inputs_, .outputs = places, .residuals = nullptr, .rng = {}, .prepared = {}, .kept = nullptr});
    return places;
  }
  void compute(const std::vector<size_t>& arrays) override {
    const OwnedBlock room(bytes_of(*preparation_), device());
    const std::vector<void*> made = computed_in(room);
    for (const size_t i : arrays) std::memcpy(places_[i], made[i], static_cast<size_t>(specs()[i].bytes()));
  }

  const Ref<Plan> preparation_;
  std::vector<InputBinding> inputs_;  // empty for inputs that the preparation does not read
  const std::shared_ptr<const OwnedBlock> memory_;
  std::vector<void*> places_;
  std::vector<std::vector<Part>> parts_;  // per array, one part after the other; none: it holds other values
};

// Returns per argument the index of the input or output that `patches` binds to it; -1: none.
std::vector<int> Plan::PreparedArrays::indices_by_argument(const std::vector<Patch>& patches) const {
  std::vector<int> indices(preparation_->args_.size(), -1);
  for (const Patch& patch : patches) indices[static_cast<size_t>(patch.arg)] = patch.index;
  return indices;
}

// Returns the inputs of an instruction; none if it reads anything else, too.
std::vector<Plan::PreparedArrays::Part> Plan::PreparedArrays::parts_of(const Instruction& instruction,
                                                                       const std::vector<int>& inputs) const {
  std::vector<Part> parts;
  int64_t offset = 0;
  for (int i = 0; i < instruction.num_in; ++i) {
    const auto arg = static_cast<size_t>(instruction.first_arg + i);
    if (inputs[arg] < 0) return {};
    const TensorRef& ref = preparation_->args_[arg];
    const int64_t bytes = ref.size() * dtype_size(ref.dtype);
    parts.push_back({static_cast<size_t>(inputs[arg]), offset, bytes});
    offset += bytes;
  }
  return parts;
}

// True if the array consists of these parts. Compares values, because operators are not known here.
bool Plan::PreparedArrays::holds(size_t array, const std::vector<Part>& parts) const {
  if (parts.empty() || parts.back().offset + parts.back().bytes != specs()[array].bytes()) return false;
  return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
    const auto* const there = static_cast<const char*>(places_[array]) + part.offset;
    return std::memcmp(there, inputs_[part.input].data, static_cast<size_t>(part.bytes)) == 0;
  });
}

void Plan::PreparedArrays::find_parts() {
  parts_.resize(places_.size());
  const std::vector<int> inputs = indices_by_argument(preparation_->input_patches_),
                         arrays = indices_by_argument(preparation_->output_patches_);
  for (const Instruction& instruction : preparation_->instructions_) {
    const int array = arrays[static_cast<size_t>(instruction.first_arg + instruction.num_in)];
    if (instruction.num_out != 1 || array < 0) continue;
    std::vector<Part> parts = parts_of(instruction, inputs);
    if (holds(static_cast<size_t>(array), parts)) parts_[static_cast<size_t>(array)] = std::move(parts);
  }
}

void Plan::PreparedArrays::keep_values(size_t array) {
  keep(array);
  for (const Part& part : parts_[array]) {
    const InputBinding& input = inputs_[part.input];
    if (!input.derived) continue;
    const char* const from = static_cast<const char*>(places_[array]) + part.offset;
    input.derived->offer({input.data, part.bytes, [memory = memory_, from, bytes = part.bytes](void* to) {
                            std::memcpy(to, from, static_cast<size_t>(bytes));
                          }});
  }
  end_offers(array, true);
}

void Plan::PreparedArrays::offer(size_t array, const EvictableValues::Values& values) {
  const int64_t begin = static_cast<char*>(values.data) - static_cast<char*>(places_[array]);
  for (const Part& part : parts_[array]) {
    const InputBinding& input = inputs_[part.input];
    const int64_t first = part.offset - begin;
    if (!input.derived || first < 0 || first + part.bytes > values.bytes) continue;
    input.derived->offer({input.data, part.bytes, [values, first, bytes = part.bytes](void* to) {
                            const OwnedBlock all(values.bytes);
                            values.unpack(all.data());
                            std::memcpy(to, static_cast<const char*>(all.data()) + first, static_cast<size_t>(bytes));
                          }});
  }
}

void Plan::PreparedArrays::end_offers(size_t array, bool accepted) {
  for (const Part& part : parts_[array]) {
    DerivedData* const derived = inputs_[part.input].derived;
    EvictableValues* const evictable_values = derived ? derived->evictable_values() : nullptr;
    if (!evictable_values) continue;
    if (accepted)
      evictable_values->accept();
    else
      evictable_values->withdraw();
  }
}

// The outputs of the preparation. Kernels keep packed copies of them, as of the user's parameters.
struct Plan::Prepared {
  explicit Prepared(std::unique_ptr<PreparedArrays> made) : arrays(std::move(made)), derived(arrays->places().size()) {
    for (size_t i = 0; i < derived.size(); ++i) derived[i].set_recomputable(*arrays, i);
    for (const OutputInfo& info : arrays->values()) {
      const auto i = static_cast<size_t>(info.fresh);
      values.push_back({arrays->places()[i], &derived[i]});
    }
  }
  // Keeps the array of this value from now on, because a kernel reads it unpacked.
  void keep(size_t value) const {
    const auto array = static_cast<size_t>(arrays->values()[value].fresh);
    if (!arrays->is_kept(array)) arrays->keep_values(array);
  }

  const std::unique_ptr<PreparedArrays> arrays;
  std::vector<DerivedData> derived;
  std::vector<InputBinding> values;  // some may be the same array
};

Plan::Linked::Linked() = default;
Plan::Linked::~Linked() = default;

Plan::Plan() = default;

Plan::~Plan() = default;

std::unique_ptr<Plan::Frame> Plan::take_frame() {
  if (std::unique_ptr<Frame> frame = spares_.take()) return frame;
  {
    const std::lock_guard lock(frames_mutex_);
    if (!frames_.empty()) {
      std::unique_ptr<Frame> frame = std::move(frames_.back());
      frames_.pop_back();
      return frame;
    }
  }
  if (std::unique_ptr<Frame> frame = spares_.take_any()) return frame;
  return new_frame();
}

std::unique_ptr<Plan::Frame> Plan::new_frame() const {
  auto frame = std::make_unique<Frame>();
  frame->args = args_;
  frame->last_copies = std::make_unique<ReaderCache[]>(given_args_.size());
  for (size_t i = 0; i < given_args_.size(); ++i)
    frame->args[static_cast<size_t>(given_args_[i])].last_copy = &frame->last_copies[i];
  return frame;
}

void Plan::give_frame(std::unique_ptr<Frame> frame) {
  if (frame->kept) options_.arenas->give(std::move(frame->kept));
  if (frame->taken.data) storage(frame->taken.device).free(frame->taken);
  frame->taken = {};
  frame->arena = nullptr;
  spares_.give(frame);
  if (!frame) return;
  const std::lock_guard lock(frames_mutex_);
  frames_.push_back(std::move(frame));
}

void Plan::take_arena(Frame& frame, bool of_pool) {
  if (of_pool) {
    frame.kept = options_.arenas->take(std::max(arena_bytes_, arena_room_), options_.device);
    frame.arena = static_cast<char*>(frame.kept->block.data);
  } else {
    frame.taken = storage(options_.device).allocate(arena_bytes_);
    frame.arena = static_cast<char*>(frame.taken.data);
  }
  if (frame.arena == frame.bound) return;
  for (const Patch& p : arena_patches_) frame.args[static_cast<size_t>(p.arg)].data = frame.arena + p.offset;
  frame.bound = frame.arena;
}

void Plan::bind(Frame& frame, const Call& call) {
  TensorRef* args = frame.args.data();
  if (arena_bytes_ > 0 && frame.arena == nullptr) take_arena(frame, options_.keep_arena);
  for (const Patch& p : input_patches_) {
    const auto index = static_cast<size_t>(p.index);
    const InputBinding& input =
        index < call.inputs.size() ? call.inputs[index] : call.prepared[index - call.inputs.size()];
    args[p.arg].data = input.data;
    args[p.arg].derived = input.derived;
  }
  for (const ConstantPatch& p : constant_patches_) args[p.arg].derived = p.chunk->derived();
  for (const Patch& p : output_patches_) args[p.arg].data = call.outputs[static_cast<size_t>(p.index)];
  char* residuals = static_cast<char*>(call.residuals);
  for (const Patch& p : residual_patches_) args[p.arg].data = residuals + p.offset;
}

std::shared_ptr<const Plan::Prepared> Plan::prepare(const Call& call) const {
  linked_->num_preparations.fetch_add(1, std::memory_order_relaxed);
  return std::make_shared<const Prepared>(
      std::make_unique<PreparedArrays>(linked_->preparation, linked_->prepared_reads, call));
}

DerivedUser<Plan::Prepared>::Use Plan::prepared_for(Frame& frame, const Call& call) {
  return linked_->prepared->get(&frame.last_prepared, frame.prepared_from,
                                PreparedArrays::bytes_of(*linked_->preparation), [&] { return prepare(call); });
}

void Plan::note_reads(size_t num_inputs) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> packed_by(args_.size(), kNone);  // instruction
  for (size_t at = 0; at < instructions_.size(); ++at) {
    const Instruction& instruction = instructions_[at];
    const auto* packs = dynamic_cast<const kernels::ReadsPackedWeights*>(instruction.kernel);
    for (int i = 0; packs && i < instruction.num_in; ++i)
      if (packs->reads_packed(static_cast<size_t>(i))) packed_by[static_cast<size_t>(instruction.first_arg + i)] = at;
  }
  needs_values_.assign(num_inputs, 0);
  std::vector<size_t> last(num_inputs, kNone);
  for (const Patch& p : input_patches_) {
    const auto input = static_cast<size_t>(p.index);
    const size_t instruction = packed_by[static_cast<size_t>(p.arg)];
    if (instruction == kNone) {
      if (input < num_inputs)
        needs_values_[input] = 1;
      else
        plain_reads_.push_back(input - num_inputs);
    } else if (input < num_inputs && (last[input] == kNone || last[input] < instruction)) {
      last[input] = instruction;
    }
  }
  for (size_t input = 0; input < num_inputs; ++input)
    if (last[input] != kNone && !needs_values_[input]) packed_reads_.push_back({last[input], input});
  std::sort(packed_reads_.begin(), packed_reads_.end(),
            [](const PackedRead& a, const PackedRead& b) { return a.instruction < b.instruction; });
}

void Plan::note_last_uses() {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> instruction_of_arg(args_.size()), last(fresh_.size(), kNone);
  for (size_t at = 0; at < instructions_.size(); ++at)
    for (int i = 0; i < instructions_[at].num_in + instructions_[at].num_out; ++i)
      instruction_of_arg[static_cast<size_t>(instructions_[at].first_arg + i)] = at;
  for (const Patch& p : output_patches_) {
    size_t& found = last[static_cast<size_t>(p.index)];
    const size_t at = instruction_of_arg[static_cast<size_t>(p.arg)];
    if (found == kNone || found < at) found = at;
  }
  for (size_t fresh = 0; fresh < last.size(); ++fresh)
    if (last[fresh] != kNone) last_uses_.push_back({last[fresh], fresh});
  std::stable_sort(last_uses_.begin(), last_uses_.end(),
                   [](const LastUse& a, const LastUse& b) { return a.instruction < b.instruction; });
}

// Announces the fresh arrays that the instruction of this last use completes; returns the first later last use.
size_t Plan::announce_complete(size_t last_use, OutputListener& listener) const {
  const size_t instruction = last_uses_[last_use].instruction;
  for (; last_use < last_uses_.size() && last_uses_[last_use].instruction == instruction; ++last_use)
    listener.complete(last_uses_[last_use].fresh);
  return last_use;
}

// Releases inputs after the instruction of this packed read, and returns the first packed read of a later instruction.
// So the values of a network and their copies are not in memory together in its first run. An array that shares its
// memory with one that kernels read unpacked waits for the end of the run.
size_t Plan::release_behind(size_t packed_read, const Call& call) const {
  const size_t instruction = packed_reads_[packed_read].instruction;
  for (; packed_read < packed_reads_.size() && packed_reads_[packed_read].instruction == instruction; ++packed_read) {
    if (call.arrays.empty()) continue;
    const NDArray& array = call.arrays[packed_reads_[packed_read].input];
    if (!may_be_released(array)) continue;
    const auto reads_it_plainly = [&](const NDArray& other) {
      return other.impl()->chunk.get() == array.impl()->chunk.get() &&
             needs_values(static_cast<size_t>(&other - call.arrays.data()));
    };
    if (std::none_of(call.arrays.begin(), call.arrays.end(), reads_it_plainly)) release_accepted({&array, 1});
  }
  return packed_read;
}

size_t Plan::num_preparations() const { return linked_->num_preparations.load(std::memory_order_relaxed); }

void Plan::run(const Call& call) { Repeated(*this).run(call); }

Plan::Repeated::Repeated(Plan& plan, Memory memory)
    : plan_(plan), memory_(memory), frame_(memory == Memory::kOwn ? plan.new_frame() : plan.take_frame()) {
  if (memory == Memory::kOwn && plan.arena_bytes_ > 0) plan.take_arena(*frame_, false);
}

Plan::Repeated::~Repeated() {
  prepared_ = {};  // returns the held copy to the frame
  plan_.give_frame(std::move(frame_));
}

void Plan::Repeated::run(const Call& call) {
  if (!plan_.linked_->preparation) return plan_.run_instructions(*frame_, call);
  bool current = static_cast<bool>(prepared_);
  std::vector<DerivedSource>& from = frame_->prepared_from;
  const std::vector<int>& reads = plan_.linked_->prepared_reads;
  from.resize(reads.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const InputBinding& input = call.inputs[static_cast<size_t>(reads[i])];
    const DerivedSource source{input.data, input.derived};
    current = current && source.derived && source == from[i];
    from[i] = source;
  }
  if (!current) {
    prepared_ = {};  // so that the frame can find it again
    prepared_ = plan_.prepared_for(*frame_, call);
    for (const size_t value : plan_.plain_reads_) prepared_->keep(value);
  }
  Call extended = call;
  extended.prepared = prepared_->values;
  plan_.run_instructions(*frame_, extended);
  prepared_->arrays->drop_again();
  if (memory_ == Memory::kOwn) prepared_ = {};
}

void Plan::run_instructions(Frame& frame, const Call& call) {
  bind(frame, call);
  TensorRef* args = frame.args.data();
  char* arena = frame.arena;
  KernelArgs kernel_args;
  kernel_args.train = train_;
  kernel_args.kept = call.kept;
  size_t at = 0, packed_read = 0, last_use = call.listener ? 0 : last_uses_.size();
  const OriginScope origin_of_warnings(
      [](const void* plan, size_t instruction) { return static_cast<const Plan*>(plan)->origin(instruction); },
      [](const void* plan, size_t instruction) {
        const Linked::Step& step = static_cast<const Plan*>(plan)->linked_->steps[instruction];
        return OriginScope::Place{step.where, step.node};
      },
      this, &at);
  try {
    for (; at < instructions_.size(); ++at) {
      const Instruction& instruction = instructions_[at];
      TensorRef* in = args + instruction.first_arg;
      TensorRef* out = in + instruction.num_in;
      if (!instruction.kernel) {
        const Linked::Step& copied = linked_->steps[at];
        copy_plainly(out->data, in->data, in->size() * dtype_size(in->dtype), copied.node, copied.block);
        if (last_use < last_uses_.size() && last_uses_[last_use].instruction == at)
          last_use = announce_complete(last_use, *call.listener);
        continue;
      }
      kernel_args.params = instruction.params;
      kernel_args.in = {in, static_cast<size_t>(instruction.num_in)};
      kernel_args.out = {out, static_cast<size_t>(instruction.num_out)};
      kernel_args.workspace = instruction.workspace >= 0 ? arena + instruction.workspace : nullptr;
      if (instruction.random) kernel_args.rng = {call.rng.seed, call.rng.stream ^ instruction.stream};
      const bool profiled = profile::active();
      const Linked::Step& origin = linked_->steps[at];
      profile::Scope scope(profiled ? origin.op->name.c_str() : nullptr, "operator",
                           profiled ? intern_file(origin.node) : "", profiled ? intern_file(origin.block) : "");
      if (scope.recorded()) scope.set_inputs(specs_text(kernel_args.in));
      if (instruction.opaque) {
        const GraphPositionScope place(origin.node, origin.where, GraphPositionScope::kOperator);
        instruction.kernel->run(kernel_args);
      } else {
        instruction.kernel->run(kernel_args);
      }
      if (packed_read < packed_reads_.size() && packed_reads_[packed_read].instruction == at)
        packed_read = release_behind(packed_read, call);
      if (last_use < last_uses_.size() && last_uses_[last_use].instruction == at)
        last_use = announce_complete(last_use, *call.listener);
    }
  } catch (...) {
    fail(at);
  }
}

ErrorFields Plan::origin(size_t instruction) const {
  const Linked::Step& step = linked_->steps[instruction];
  return {.op = op_name(instruction), .node = step.node, .block = step.block, .where = step.where};
}

void Plan::fail(size_t instruction) {
  if (instruction > first_write_) torn_.store(true, std::memory_order_relaxed);
  ErrorFields context = origin(instruction);
  try {
    throw;
  } catch (Error& error) {
    error.add_context(context);
    throw;
  } catch (const std::bad_alloc&) {
    context.message = "out of memory";
    throw OutOfMemoryError(std::move(context));
  } catch (const std::exception& error) {
    if (instructions_[instruction].opaque) throw;  // code outside the library has exceptions of its own
    context.message = error.what();
    throw Error(ErrorKind::kError, std::move(context));
  }
}

namespace {

constexpr size_t kKernelBytes = 1024;  // estimate for a linked kernel

}  // namespace

int64_t Plan::held_bytes() const {
  const size_t patches =
      arena_patches_.size() + input_patches_.size() + output_patches_.size() + residual_patches_.size();
  const size_t bytes = sizeof(Plan) + instructions_.size() * (sizeof(Instruction) + sizeof(ParamsPtr)) +
                       own_kernels_.size() * (sizeof(Ref<Kernel>) + kKernelBytes) +
                       args_.size() * (2 * sizeof(TensorRef) + sizeof(TensorSpec)) + patches * sizeof(Patch) +
                       cells_.size() * sizeof(Cell);
  return static_cast<int64_t>(bytes);
}

int64_t Plan::Linked::held_bytes() const {
  size_t bytes = sizeof(Linked) + steps.size() * (sizeof(Step) + kKernelBytes);
  for (const Ref<Object>& constant : constants)
    bytes += static_cast<size_t>(static_cast<const ArrayImpl*>(constant.get())->spec.bytes());
  if (preparation) bytes += static_cast<size_t>(preparation->held_bytes() + preparation->linked_->held_bytes());
  return static_cast<int64_t>(bytes);
}

std::string Plan::op_name(size_t instruction) const {
  const Linked::Step& origin = linked_->steps[instruction];
  return origin.op ? origin.op->name : "copy";
}

}  // namespace hybridnet
