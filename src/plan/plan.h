// Executable form of a graph: linear instructions with linked kernels over one planned block of memory. Instructions
// are linked once for a graph (Plan::Linked) and laid out for each signature of sizes that it is called with (Plan).
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/thread_slots.h"
#include "device/launch_graphs.h"
#include "hybridnet/custom.h"
#include "hybridnet/pass.h"
#include "plan/arena_pool.h"
#include "plan/control/branch_memory.h"
#include "plan/measured_time.h"
#include "plan/shared_kernels.h"
#include "storage/derived.h"

namespace hybridnet {

// Memory that instructions read and write. Several entries share one storage: views, in-place results, reused
// temporaries.
struct PlanStorage {
  enum class Kind : int8_t {
    kTemporary,  // in the arena, at `offset`
    kInput,      // array number `index` of the call; also written when a write-back is done in place
    kOutput,     // fresh array number `index` of the call
    kResidual,   // in the block that the backward run reads, at `offset`
    kConstant,   // constant number `index` of the plan
  };
  Kind kind = Kind::kTemporary;
  int index = 0;
  int64_t bytes = 0;
  int first = 0, last = 0;  // instructions between which a temporary lives
  int64_t offset = -1;
  // Only one of the two branches of a cond is written and read, so values of both may lie in the same memory.
  const Node* cond = nullptr;
  BranchSide side = BranchSide::kBoth;
};

// Places temporaries so that those alive at one time do not overlap: largest first, at the lowest gap that is free all
// the time. Sets offset; returns the bytes needed.
int64_t place_in_arena(std::vector<PlanStorage*> temporaries);

class Plan : public RefCounted<Plan> {
 public:
  struct Options {
    std::string name;  // block path, for errors
    Device device;
    int num_residuals = 0;        // this many of the graph's last outputs live in one block, read by the backward plan
    bool keep_arena = false;      // between calls, in `arenas`; else each run takes memory from the storage
    bool frozen_weights = false;  // inputs other than the data rarely change
    bool atomic = false;          // a run that fails has written to no input
    // Per output (residuals not counted): the number of the first output that shows the same value to the caller; both
    // share an array. Empty: all outputs that prove to have one value share an array.
    std::vector<int> first_of;
    Ref<ArenaPool> arenas;         // shared with plans that mostly run at other times; null: the plan's own
    Ref<KernelStore> kernels;      // shared with plans of similar graphs; null: only nodes of this graph share kernels
    bool wakes_team = false;       // runs by itself, not as part of another plan: its team sleeps before
    std::vector<uint8_t> donated;  // per input: outputs may be written into its memory; empty: none is
    // Per output: the number of the input that it equals, which the caller reads itself, so that no copy is made; -1:
    // none. Empty: none.
    std::vector<int> passed;
    // Per output: the number of an input that the output replaces in the next run, and whose memory only this plan
    // writes; -1: none. The plan writes the output there if nothing reads the old value afterwards. Empty: none.
    std::vector<int> replaced;

    Options for_body() const;         // for the body of a loop or branch in the plan
    Options for_preparation() const;  // for the plan of values that depend on parameters alone
  };
  // Throws the errors of linking, with node, block and source line. The graph may be deleted afterwards.
  static Ref<Plan> compile(const Graph& graph, const Options& options);
  // The parts that plans of one graph share for all sizes.
  struct Linked;
  // Returns a plan of the same instructions for `graph`, which differs in sizes only from the graph that they were
  // linked from. Operators whose kernels depend on sizes are linked anew if these have changed; loops and branches
  // whose bodies keep their sizes, and operators with one kernel for all uses, are not. Null: `graph` needs other
  // instructions.
  static Ref<Plan> lay_out(const Graph& graph, const Options& options, const Ref<Linked>& linked);
  const Ref<Linked>& linked() const { return linked_; }
  Plan();
  ~Plan();

  struct InputBinding {
    void* data = nullptr;
    DerivedData* derived = nullptr;  // see TensorRef
  };
  // Told, by the thread that runs the plan, that a fresh array is complete: the rest of the run does not use it.
  class OutputListener {
   public:
    virtual void complete(size_t fresh) = 0;

   protected:
    ~OutputListener() = default;
  };
  struct Call {
    std::span<const InputBinding> inputs;
    std::span<void* const> outputs;  // one per entry of fresh_outputs()
    void* residuals = nullptr;       // residual_bytes() bytes
    RngKey rng;
    std::span<const InputBinding> prepared;  // filled by run(): inputs after the given ones
    KeptObjects* kept = nullptr;             // null: the plan has no opaque instruction
    // The inputs of a task that reads each of them once: values of which kernels read only packed copies are released
    // when the last copy was made. Empty: they stay.
    std::span<const NDArray> arrays;
    OutputListener* listener = nullptr;  // null: none
  };
  // Runs on the calling thread, with the cores it has. Any number of threads may run at once. Throws the errors of
  // kernels, with node, block and source line.
  void run(const Call& call);

  struct Frame;  // the memory that one running call writes to
  class PreparedArrays;
  struct Prepared;  // values that depend on parameters only, for one set of parameters
  // Runs the plan repeatedly with one frame, on one thread at a time; loops run their bodies with it.
  class Repeated {
   public:
    enum class Memory : int8_t {
      kShared,  // shared with other runs of the plan, for runs in a row between which no parameter is written
      kOwn,     // for runs at any time: they share no memory that they write, and take no lock
    };
    explicit Repeated(Plan& plan, Memory memory = Memory::kShared);
    ~Repeated();
    Repeated(const Repeated&) = delete;
    Repeated& operator=(const Repeated&) = delete;
    void run(const Call& call);

   private:
    Plan& plan_;
    const Memory memory_;
    std::unique_ptr<Frame> frame_;
    DerivedUser<Prepared>::Use prepared_;
  };

  // An output (residuals not counted): fresh array `fresh` seen with this spec. Two outputs may share one.
  struct OutputInfo {
    TensorSpec spec;
    int fresh = 0;                // -1: the output is Options::passed, or is written to Options::replaced
    int input = -1;               // the array is this input, or a copy of it, with the value at the start of the run
    bool replaces_input = false;  // the run writes the output to the memory of `input`
  };
  struct ResidualPlace {
    bool in_output = false;  // else in the residual block
    int fresh = 0;
    int64_t offset = 0;
  };
  const std::vector<OutputInfo>& outputs() const { return outputs_; }
  const std::vector<TensorSpec>& fresh_outputs() const { return fresh_; }
  const std::vector<ResidualPlace>& residuals() const { return residuals_; }
  const std::vector<int>& written_inputs() const { return written_inputs_; }
  // True if a run uses the memory of this input itself. Else kernels read copies of it, and make a ReadLease when
  // they read the values, which may therefore be released.
  bool needs_values(size_t input) const { return input >= needs_values_.size() || needs_values_[input] != 0; }
  // A fresh array that may use the memory of an input which the caller donates.
  struct Donation {
    int fresh = 0, input = 0;
  };
  const std::vector<Donation>& donations() const { return donations_; }
  ArenaPool& arenas() const { return *options_.arenas; }
  // Makes the arena large enough for `next`, which will run in it, too: an arena that grows leaves its block to the
  // pool.
  void make_room_for(const Plan& next) { arena_room_ = std::max(arena_room_, next.arena_bytes_); }
  size_t num_preparations() const;  // so far
  int64_t residual_bytes() const { return residual_bytes_; }
  int64_t arena_bytes() const { return arena_bytes_; }
  int64_t held_bytes() const;                     // estimate; without arena, copies of weights and shared parts
  int64_t cost_ns() const { return cost_ns_; }    // estimate for one core
  MeasuredTime& time_of_runs() { return runs_; }  // measured for single calls, with the cores that they had
  // The number of cores that its most costly instruction can use; 1 if all instructions together are not worth waking a
  // team.
  int cores() const { return cores_; }
  // True if the same graph, linked without Options::wakes_team, would use more cores.
  bool gains_from_awake_team() const { return gains_from_awake_team_; }
  size_t num_instructions() const { return instructions_.size(); }
  size_t num_own_kernels() const { return own_kernels_.size(); }  // linked by lay_out for these sizes
  bool uses_random() const { return uses_random_; }
  // True if a run has failed after an instruction that wrote to an input. Then some states are new and some are old.
  bool is_torn() const { return torn_.load(std::memory_order_relaxed); }
  void forget_torn() { torn_.store(false, std::memory_order_relaxed); }
  Device device() const { return options_.device; }
  device::LaunchGraphs& launch_graphs() const { return launch_graphs_; }
  bool waits_for_device() const { return waits_for_device_; }  // see Kernel
  // True if a run needs the host between its launches on a GPU, so that they cannot be recorded
  // (device/launch_batch.h).
  bool needs_host() const { return needs_host_; }
  bool is_opaque() const { return is_opaque_; }      // calls code outside the library: runs on the caller's thread
  bool has_control() const { return has_control_; }  // loops or branches
  // A readable listing: every instruction in order with its implementation, the memory it reads and writes, and its
  // node, block and source line; the bodies of loops and branches below their instruction; the arena cell by cell.
  std::string text() const;
  std::string op_name(size_t instruction) const;

 private:
  friend class PlanBuilder;
  friend class PlanPrinter;
  static Ref<Plan> build(const Graph& graph, const Options& options, const Ref<Linked>& known);
  static Ref<Plan> build_prepared(const Graph& graph, const Options& options, const Ref<Linked>& known);
  DerivedUser<Prepared>::Use prepared_for(Frame& frame, const Call& call);
  std::shared_ptr<const Prepared> prepare(const Call& call) const;
  void note_reads(size_t num_inputs);
  void note_last_uses();
  size_t announce_complete(size_t last_use, OutputListener& listener) const;
  size_t release_behind(size_t packed_read, const Call& call) const;
  void run_instructions(Frame& frame, const Call& call);
  struct Instruction {
    Kernel* kernel = nullptr;  // null: copies input 0 to output 0
    const void* params = nullptr;
    int first_arg = 0, num_in = 0, num_out = 0;
    int64_t workspace = -1;  // offset in the arena
    uint64_t stream = 0;
    bool random = false;
    bool opaque = false;
  };
  struct Cell {  // memory that arguments share
    PlanStorage::Kind kind{};
    int index = 0;
    int64_t bytes = 0, offset = 0;
    int first = 0, last = 0;
  };
  struct Patch {
    int arg = 0;
    int index = 0;  // number of the input or output
    int64_t offset = 0;
  };
  std::unique_ptr<Frame> new_frame() const;
  std::unique_ptr<Frame> take_frame();
  void give_frame(std::unique_ptr<Frame> frame);
  void take_arena(Frame& frame, bool of_pool);
  void bind(Frame& frame, const Call& call);
  ErrorFields origin(size_t instruction) const;  // operator, node, block and line
  [[noreturn]] void fail(size_t instruction);

  Ref<Linked> linked_;
  Options options_;
  bool train_ = false;
  std::vector<Instruction> instructions_;
  std::vector<Ref<Kernel>> own_kernels_;  // that were linked for these sizes
  std::vector<ParamsPtr> params_;         // per instruction: keeps them alive
  std::deque<TensorSpec> specs_;          // stable addresses: arguments point to the shapes
  std::vector<TensorRef> args_;           // initial arguments of a frame: constants are bound
  std::vector<Patch> arena_patches_, input_patches_, output_patches_, residual_patches_;
  struct ConstantPatch {
    int arg;
    Chunk* chunk;
  };
  std::vector<ConstantPatch> constant_patches_;  // bound in each call: whether copies of a constant are kept may change
  std::vector<int> given_args_;   // arguments that are inputs or constants: copies may be derived from them
  std::vector<Cell> cells_;       // for text()
  std::vector<int> cell_of_arg_;  // -1: the argument has no memory
  std::vector<OutputInfo> outputs_;
  std::vector<TensorSpec> fresh_;
  std::vector<ResidualPlace> residuals_;
  std::vector<int> written_inputs_;
  std::vector<Donation> donations_;
  std::vector<uint8_t> needs_values_;  // by input; empty: all are needed
  std::vector<size_t> plain_reads_;    // outputs of the preparation that kernels read unpacked
  struct PackedRead {
    size_t instruction, input;
  };
  std::vector<PackedRead> packed_reads_;  // last read of each input that is only read packed, by instruction
  struct LastUse {
    size_t instruction, fresh;
  };
  std::vector<LastUse> last_uses_;  // the last use of each fresh array that instructions write, by instruction
  int64_t arena_bytes_ = 0, residual_bytes_ = 0, cost_ns_ = 0;
  int64_t arena_room_ = 0;  // minimum bytes of a kept arena
  int cores_ = 1;
  MeasuredTime runs_;
  size_t first_write_ = SIZE_MAX;  // the first instruction that writes to an input
  std::atomic<bool> torn_{false};
  size_t num_temporaries_ = 0;
  bool uses_random_ = false, is_opaque_ = false, waits_for_device_ = false, has_control_ = false, needs_host_ = false,
       gains_from_awake_team_ = false;

  mutable device::LaunchGraphs launch_graphs_;
  ThreadSlots<std::unique_ptr<Frame>> spares_;
  std::mutex frames_mutex_;
  std::vector<std::unique_ptr<Frame>> frames_;
};

struct Plan::Linked : RefCounted<Plan::Linked> {
  struct Step {              // an instruction
    const Op* op = nullptr;  // null: a copy
    Ref<Kernel> kernel;      // first linked for these parameters and specs of inputs and outputs
    ParamsPtr params;
    std::vector<TensorSpec> specs;
    std::string node, block;  // for messages, like the source line
    SourceLocation where;
  };
  Linked();
  ~Linked();
  int64_t held_bytes() const;  // estimated

  std::vector<Step> steps;
  std::vector<std::string> input_names;
  std::vector<Ref<Object>> constants;
  // Null: nothing to prepare. Else its outputs are the last inputs of the plans.
  Ref<Plan> preparation;
  std::vector<int> prepared_reads;  // inputs that the preparation depends on
  std::string recipe;               // identifies the preparation
  std::unique_ptr<DerivedUser<Prepared>> prepared;
  std::atomic<size_t> num_preparations{0};
};

}  // namespace hybridnet
