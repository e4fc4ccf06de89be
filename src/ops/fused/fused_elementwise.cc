// _fused_elementwise: chains of elementwise operators that passes/layers/fuse_elementwise.cc finds.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/pointwise.h"
#include "kernels/memory/stream_copy.h"
#include "op/pointwise_program.h"
#include "ops/fused/device_chain.h"
#include "ops/fused/native_chain.h"
#include "ops/fused/operand.h"

namespace hybridnet::ops {
namespace {

constexpr int64_t kTileBudget = 48 * 1024;  // bytes of all slots of a tile: about the L1 cache of one core
constexpr size_t kMaxSlots = PointwiseProgram::kMaxInputs + PointwiseProgram::kMaxSteps;
constexpr int64_t kLongestTile = 2048, kShortestTile = 256;  // elements
constexpr int64_t kStreamedBytes = int64_t{16} << 20;        // larger results bypass the caches

// Tile memory of the calling thread. It grows and is freed when the thread ends.
char* thread_scratch(size_t bytes) {
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<char, Free> memory;
  thread_local size_t capacity = 0;
  if (bytes > capacity) {
    memory.reset(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
    capacity = memory ? bytes : 0;
    if (!memory) throw OutOfMemoryError({.message = "no memory for a tile of " + std::to_string(bytes) + " bytes"});
  }
  return memory.get();
}

// Alone, a step is bound by memory or by computation, whichever takes longer; in a tile only the computation remains.
int64_t step_cost(const PointwiseProgram::Step& step, const TensorSpec& spec) {
  const int64_t bytes = spec.bytes();
  const std::vector<TensorSpec> in(step.in.size(), spec);
  const int64_t alone = step.op->cost_ns(step.params->data(), in, {&spec, 1});
  const int64_t waiting = bytes * static_cast<int64_t>(step.in.size() + 1) / 16;
  return alone > waiting ? alone : std::min(alone, bytes / 40);
}

// Nanoseconds of computation on one core, with all operands in the cache.
int64_t computing_cost(const PointwiseProgram& program, const TensorSpec& spec) {
  int64_t cost = 0;
  for (const PointwiseProgram::Step& step : program.steps) cost += step_cost(step, spec);
  return cost;
}

class ProgramKernel final : public Kernel {
 public:
  ProgramKernel(const PointwiseProgram& program, const LinkContext& context)
      : program_(program),
        dtype_(context.out[0].dtype),
        bytes_(dtype_size(dtype_)),
        size_(context.out[0].shape.size()) {
    const Format format = context.out_format.empty() ? Format::kPlain : context.out_format[0];
    for (const TensorSpec& in : context.in) operands_.emplace_back(in, context.out[0], format);
    if (context.device.type == DeviceType::kGPU) {
      use_device();
      return;
    }
    place_slots();
    const auto slots = static_cast<int64_t>(num_buffers_ + operands_.size() + program_.outputs.size());
    tile_ = std::clamp(kTileBudget / std::max<int64_t>(1, slots * bytes_) / kShortestTile * kShortestTile,
                       kShortestTile, kLongestTile);
    const auto size = static_cast<double>(std::max<int64_t>(1, size_));
    element_ns_ = static_cast<double>(computing_cost(program, context.out[0])) / size;
    if (!program.native) return;
    std::vector<bool> single;
    for (const Operand& operand : operands_) single.push_back(operand.single());
    native_ = NativeChain::make(program_, dtype_, single);
  }

  std::string description() const override {
    std::string names;
    for (const PointwiseProgram::Step& step : program_.steps) names += (names.empty() ? "" : " ") + step.op->name;
    const char* how = native_ && native_->ready() ? " <machine code>" : "";
    return "pointwise" + std::string(how) + "[" + std::to_string(program_.steps.size()) + " ops: " + names + "]";
  }

  void run(const KernelArgs& args) override {
    if (device_chain_) return device_chain_->run(args, size_);
    bool streamed[PointwiseProgram::kMaxOutputs] = {};
    for (size_t o = 0; o < program_.outputs.size(); ++o)
      streamed[o] = size_ * bytes_ >= kStreamedBytes && !lies_in_an_input(args, o);
    const NativeChain* const native = native_ && native_->ready() ? native_.get() : nullptr;
    if (native_ && !native) native_->note_elements(size_);
    parallel_for(size_, element_ns_,
                 [&](int64_t begin, int64_t end) { run_range(args, native, streamed, begin, end); });
  }

 private:
  static constexpr int kInput = -1;  // the slot is read in place, in the input's memory

  void use_device() {
    std::vector<kernels::FusedInput> inputs;
    for (const Operand& operand : operands_) inputs.push_back(operand.on_device());
    device_chain_ = std::make_unique<DeviceChain>(program_, dtype_, std::move(inputs));
  }

  // Assigns a buffer to every slot that lives in a tile; a buffer is free after the last step that reads it.
  void place_slots() {
    const int num_inputs = program_.num_inputs;
    const int num_slots = num_inputs + static_cast<int>(program_.steps.size());
    std::vector<int> last(static_cast<size_t>(num_slots), -1);
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      for (const int slot : program_.steps[s].in) last[static_cast<size_t>(slot)] = static_cast<int>(s);
    }
    const auto is_output = [&](size_t slot) {
      return std::find(program_.outputs.begin(), program_.outputs.end(), static_cast<int>(slot)) !=
             program_.outputs.end();
    };
    buffer_of_.assign(static_cast<size_t>(num_slots), kInput);
    for (int slot = 0; slot < num_inputs; ++slot) {  // a single value fills its buffer once and keeps it
      if (!operands_[static_cast<size_t>(slot)].full()) buffer_of_[static_cast<size_t>(slot)] = num_buffers_++;
    }
    std::vector<int> free;
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      const auto slot = static_cast<size_t>(num_inputs) + s;
      if (!is_output(slot)) {
        if (free.empty()) free.push_back(num_buffers_++);
        buffer_of_[slot] = free.back();
        free.pop_back();
      }
      // Elementwise functions may overwrite their operands, but a buffer is reused only after its last reader.
      for (size_t i = 0; i < program_.steps[s].in.size(); ++i) {
        const int read = program_.steps[s].in[i];
        const bool repeated =
            std::find(program_.steps[s].in.begin(), program_.steps[s].in.begin() + static_cast<long>(i), read) !=
            program_.steps[s].in.begin() + static_cast<long>(i);
        if (repeated || read < num_inputs || last[static_cast<size_t>(read)] != static_cast<int>(s)) continue;
        if (buffer_of_[static_cast<size_t>(read)] >= 0) free.push_back(buffer_of_[static_cast<size_t>(read)]);
      }
    }
  }

  // True if the output has the memory of an input: it has just been read and is in the caches.
  static bool lies_in_an_input(const KernelArgs& args, size_t output) {
    return std::any_of(args.in.begin(), args.in.end(),
                       [&](const TensorRef& in) { return in.data == args.out[output].data; });
  }

  // native: null, or the compiled code that replaces the interpreter.
  void run_range(const KernelArgs& args, const NativeChain* native, const bool* streamed, int64_t begin,
                 int64_t end) const {
    const int64_t buffer_bytes = tile_ * bytes_;
    const auto num_outputs = static_cast<int64_t>(program_.outputs.size());
    const int64_t own = num_buffers_ + num_outputs, buffers = own + (native ? native->buffers() : 0);
    char* scratch = thread_scratch(static_cast<size_t>(buffers * buffer_bytes));
    char* slots[kMaxSlots];
    for (size_t slot = 0; slot < buffer_of_.size(); ++slot) {
      if (buffer_of_[slot] >= 0) slots[slot] = scratch + buffer_of_[slot] * buffer_bytes;
    }
    char* results[PointwiseProgram::kMaxOutputs] = {};  // per output: its own tile, or null for in place
    for (int64_t o = 0; o < num_outputs; ++o)
      if (streamed[o]) results[o] = scratch + (num_buffers_ + o) * buffer_bytes;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].single())
        operands_[i].expand(static_cast<const char*>(args.in[i].data), slots[i], 0, std::min(tile_, end - begin));
    }
    for (int64_t at = begin; at < end; at += tile_) {
      const int64_t n = std::min(tile_, end - at);
      place_tile(args, slots, results, at, n);
      if (native)
        run_native(*native, slots, scratch + own * buffer_bytes, n);
      else
        run_steps(slots, n);
      for (size_t o = 0; o < program_.outputs.size(); ++o)
        if (results[o] != nullptr)
          kernels::stream_copy(place_of(args, static_cast<int>(o), at), results[o], n * bytes_);
    }
    if (std::any_of(results, results + num_outputs, [](const char* result) { return result != nullptr; }))
      kernels::stream_fence();
  }

  // Sets the addresses of the inputs and outputs of a tile.
  void place_tile(const KernelArgs& args, char** slots, char* const* results, int64_t at, int64_t n) const {
    for (size_t i = 0; i < operands_.size(); ++i) {
      const char* data = static_cast<const char*>(args.in[i].data);
      if (operands_[i].full()) {
        slots[i] = const_cast<char*>(data) + at * bytes_;
      } else if (!operands_[i].single()) {
        operands_[i].expand(data, slots[i], at, n);
      }
    }
    for (size_t o = 0; o < program_.outputs.size(); ++o)
      slots[program_.outputs[o]] = results[o] != nullptr ? results[o] : place_of(args, static_cast<int>(o), at);
  }

  void run_steps(char* const* slots, int64_t n) const {
    const void* in[PointwiseProgram::kMaxOperands];
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      const PointwiseProgram::Step& step = program_.steps[s];
      for (size_t i = 0; i < step.in.size(); ++i) in[i] = slots[static_cast<size_t>(step.in[i])];
      step.op->pointwise(step.params->data(), dtype_, in, slots[static_cast<size_t>(program_.num_inputs) + s], n);
    }
  }

  void run_native(const NativeChain& native, char* const* slots, char* buffers, int64_t n) const {
    const void* in[PointwiseProgram::kMaxInputs];
    void* out[PointwiseProgram::kMaxOutputs];
    for (size_t i = 0; i < operands_.size(); ++i) in[i] = slots[i];
    for (size_t o = 0; o < program_.outputs.size(); ++o) out[o] = slots[program_.outputs[o]];
    native.run(in, out, buffers, tile_, n);
  }

  char* place_of(const KernelArgs& args, int output, int64_t at) const {
    return static_cast<char*>(args.out[static_cast<size_t>(output)].data) + at * bytes_;
  }

  const PointwiseProgram program_;
  const DType dtype_;
  const int64_t bytes_, size_;
  std::vector<Operand> operands_;
  std::vector<int> buffer_of_;  // per slot
  int num_buffers_ = 0;
  int64_t tile_ = kShortestTile;  // elements
  double element_ns_ = 1;
  std::unique_ptr<NativeChain> native_;        // null: always interpreted
  std::unique_ptr<DeviceChain> device_chain_;  // null: runs on the CPU
};

int64_t program_cost(const PointwiseProgram& program, const TensorSpec& spec) {
  const auto streams = static_cast<int64_t>(program.outputs.size()) + program.num_inputs;
  return spec.bytes() * streams / 16 + computing_cost(program, spec);
}

// The shape that the inputs broadcast to.
Shape broadcast_shape(const InferContext& context) {
  int ndim = 0;
  for (int i = 0; i < context.num_in(); ++i) ndim = std::max(ndim, context.in_shape(i).ndim());
  std::vector<int64_t> dims(static_cast<size_t>(ndim), 1);
  for (int i = 0; i < context.num_in(); ++i) {
    const Shape& shape = context.in_shape(i);
    for (int from_end = 1; from_end <= shape.ndim(); ++from_end) {
      int64_t& dim = dims[static_cast<size_t>(ndim - from_end)];
      const int64_t given = shape[shape.ndim() - from_end];
      if (dim != 1 && given != 1 && given != dim)
        throw ShapeError({.input = context.input_name(i),
                          .expected = "a shape that broadcasts to the other inputs'",
                          .given = shape.str()});
      if (dim == 1) dim = given;
    }
  }
  return Shape(std::span<const int64_t>(dims));
}

// Throws unless every step maps values of the inputs' dtype to one value of that dtype: tiles have room for no other.
void check_steps(const PointwiseProgram& program, DType dtype, bool train) {
  const TensorSpec element{Shape{1}, dtype};
  for (const PointwiseProgram::Step& step : program.steps) {
    std::vector<TensorSpec> in(step.in.size(), element);
    TensorSpec out;
    InferContext context(*step.op, in, {&out, 1}, train);
    step.op->infer(step.params->data(), context);
    if (!(out == element) || !step.op->dtypes.has(dtype))
      throw DTypeError({.input = "program",
                        .expected = std::string("steps that make ") + dtype_name(dtype) + " of " + dtype_name(dtype),
                        .given = step.op->name});
  }
}

void infer_program(const PointwiseProgram& p, InferContext& c) {
  c.unify_dtypes();
  if (p.is_read && c.in_dtype(0) != DType::kUnknown) check_steps(p, c.in_dtype(0), c.train());
  for (int i = 0; i < c.num_in(); ++i)
    if (!c.in_shape(i).known()) return;
  const Shape shape = broadcast_shape(c);
  for (int i = 0; i < c.num_out(); ++i) {
    c.set_out_shape(i, shape);
    const int memory = p.memory_of[static_cast<size_t>(i)];
    if (memory >= 0 && !(c.in_shape(memory) == shape))
      throw ShapeError({.input = c.input_name(memory), .expected = shape.str(), .given = c.in_shape(memory).str()});
  }
}

}  // namespace

void register_fused_elementwise(OpRegistry& ops) {
  ops.declare<PointwiseProgram>("_fused_elementwise")
      .internal()
      .doc("A chain of elementwise operators in one pass over memory.")
      .variadic_input("data", "num_args", "arrays of one dtype that broadcast to one shape")
      .output("output", "the shape that the inputs broadcast to, their dtype")
      .num_inputs([](const PointwiseProgram& p) { return p.num_inputs; })
      .num_outputs([](const PointwiseProgram& p) { return static_cast<int>(p.outputs.size()); })
      .infer(infer_program)
      .link([](const PointwiseProgram& p, const LinkContext& c) { return Ref<Kernel>(new ProgramKernel(p, c)); },
            kAllDTypes)
      .any_device_when(
          [](const PointwiseProgram& p, const LinkContext& c) { return DeviceChain::runs_everywhere(p, c); })
      .gradient(kNotDifferentiable)
      .variadic_inplace([](const PointwiseProgram& p, int output) { return p.memory_of[static_cast<size_t>(output)]; })
      .format_agnostic()
      .cost([](const PointwiseProgram& p, std::span<const TensorSpec>, std::span<const TensorSpec> out) {
        return program_cost(p, out[0]);
      })
      .sample({{3, 4}}, {{"num_args", "1"}, {"program", "elemwise_mul(0, 0); elemwise_add(1, 0) -> 2@0"}})
      .sample(
          {{2, 3, 4}, {3, 1}, Shape{1}},
          {{"num_args", "3"}, {"program", "broadcast_mul(0, 1); broadcast_add(3, 2); elemwise_mul(4, 0) -> 5@0, 3"}})
      .sample({Shape{2, 0}, Shape{2, 0}}, {{"num_args", "2"}, {"program", "elemwise_mul(0, 1) -> 2"}});
}

}  // namespace hybridnet::ops
