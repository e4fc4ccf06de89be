#include "imperative/invoke.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "device/memory.h"
#include "engine/inline_run.h"
#include "engine/profile.h"
#include "engine/run_ahead.h"
#include "hybridnet/custom.h"
#include "imperative/composition_cache.h"
#include "imperative/device_copies.h"
#include "imperative/kernel_cache.h"
#include "imperative/observed_reads.h"
#include "imperative/one_device.h"
#include "imperative/out_arrays.h"
#include "imperative/recorded_writes.h"
#include "imperative/sparse_calls.h"
#include "imperative/tape.h"
#include "ndarray/device_work.h"
#include "ndarray/overlap.h"
#include "op/fallback_kernel.h"
#include "op/specs_text.h"

namespace hybridnet {
namespace {

const OpRef kCustom{"Custom"}, kCopy{"_copy"}, kCast{"Cast"};

bool is_on_tape(const NDArray& a) {
  return a.impl()->tape || a.impl()->chunk->history.load(std::memory_order_acquire) != nullptr;
}

// An array on the stack for up to N elements, else on the heap.
template <typename T, int N>
class Scratch {
 public:
  explicit Scratch(size_t n) : size_(n), data_(n <= N ? stack_ : (heap_ = std::make_unique<T[]>(n)).get()) {}
  T& operator[](size_t i) { return data_[i]; }
  T* begin() { return data_; }
  std::span<T> span() { return {data_, size_}; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::unique_ptr<T[]> heap_;
  T stack_[N];
  T* data_;
};

using Specs = Scratch<TensorSpec, kMaxStackArrays>;

// Parameters may ask for any number of outputs; arrays for more than this would fill the memory before an error comes.
constexpr int kMaxOutputs = 1 << 20;

[[noreturn]] void wrong_count(const Op& op, size_t given, int expected) {
  ErrorFields e;
  e.op = op.name;
  e.expected = std::to_string(expected) + (expected == 1 ? " input" : " inputs");
  e.given = std::to_string(given);
  std::string names;
  for (const InputInfo& i : op.inputs) names += (names.empty() ? "" : ", ") + i.name;
  e.because = "its inputs are (" + names + ")";
  throw TypeError(std::move(e));
}

[[noreturn]] void wrong_out_count(const Op& op, size_t given, size_t outputs) {
  throw ValueError({.op = op.name,
                    .input = "out",
                    .expected = outputs == 1 ? "one array" : "at most " + std::to_string(outputs) + " arrays",
                    .given = std::to_string(given)});
}

[[noreturn]] void too_many_outputs(const Op& op, int outputs) {
  throw ParamError({.op = op.name,
                    .expected = "parameters that ask for at most " + std::to_string(kMaxOutputs) + " outputs",
                    .given = std::to_string(outputs)});
}

[[noreturn]] void incomplete_output(const Op& op, const TensorSpec& spec, int index) {
  ErrorFields e;
  e.op = op.name;
  e.message = "the shape of output " + std::to_string(index) + " does not follow from the inputs: " + spec.str();
  e.fix = "give the missing sizes explicitly";
  throw ShapeError(std::move(e));
}

// Returns the device that an op without inputs names in its parameter ctx, such as "cpu(1)", else the default.
Device requested_device(const Op& op, const void* params) {
  const int field = op.schema->find("ctx");
  if (field < 0) return DefaultDevice::current();
  const AttrValue value = op.schema->get(params, field);
  const std::string* text = std::get_if<std::string>(&value.value);
  if (text == nullptr || text->empty()) return DefaultDevice::current();
  const size_t open = text->find('(');
  for (const DeviceType type : {DeviceType::kCPU, DeviceType::kGPU, DeviceType::kCPUPinned, DeviceType::kCPUShared}) {
    Device device{type, 0};
    if (text->substr(0, open) != device.str().substr(0, device.str().find('('))) continue;
    if (open == std::string::npos) return device;
    const auto [end, problem] = std::from_chars(text->data() + open + 1, text->data() + text->size(), device.id);
    if (problem == std::errc() && *end == ')') return device;
  }
  throw ParamError({.op = op.name, .input = "ctx", .expected = "a device such as cpu(0) or gpu(0)", .given = *text});
}

Device device_for(const Op& op, const void* params, std::span<const NDArray> inputs, std::span<const NDArray> out) {
  if (!inputs.empty()) return inputs[0].device();
  return out.empty() ? requested_device(op, params) : out[0].device();
}

void infer_outputs(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, std::span<const NDArray> out,
                   Specs* in_specs, Specs* out_specs) {
  if (out.empty()) {
    for (size_t i = 0; i < inputs.size(); ++i) (*in_specs)[i] = inputs[i].spec();
    InferContext context(op, in_specs->span(), out_specs->span(), autograd_state().training);
    op.infer(params->data(), context);
  } else {
    infer_beside(op, params->data(), autograd_state().training, inputs, out, in_specs->span(), out_specs->span());
  }
  // An op without inputs leaves sizes open where its shape says 0 (classic MXNet). No other source determines them, so
  // they are 0.
  if (inputs.empty()) {
    for (TensorSpec& spec : out_specs->span())
      for (int64_t& size : std::span(spec.shape.data(), spec.shape.dims().size())) size = std::max<int64_t>(size, 0);
  }
  for (size_t i = 0; i < out_specs->size(); ++i)
    if (!(*out_specs)[i].known()) incomplete_output(op, (*out_specs)[i], static_cast<int>(i));
}

// Owns everything a queued call needs.
struct QueuedCall {
  RunAhead::Charge charge;
  const Op* op;
  ParamsPtr params;
  Ref<Kernel> owner;
  Kernel* kernel;
  std::vector<NDArray> in, out;
  RngKey rng;
  bool train;
  Device device;
};

void run_kernel(const Op& op, const ParamsPtr& params, Kernel* kernel, std::span<const NDArray> in,
                std::span<const NDArray> out, RngKey rng, bool train, Device device) {
  profile::Scope scope(op.name.c_str(), "operator");
  std::optional<DeviceWork> work;
  if (device.type == DeviceType::kGPU) [[unlikely]]
    work.emplace(in, out);
  Scratch<TensorRef, kMaxStackArrays> in_refs(in.size()), out_refs(out.size());
  for (size_t i = 0; i < in.size(); ++i) in_refs[i] = in[i].ref();
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i]) out_refs[i] = out[i].ref();
  KernelArgs args;
  args.params = params->data();
  args.in = in_refs.span();
  if (scope.recorded()) scope.set_inputs(specs_text(args.in));
  args.out = out_refs.span();
  args.rng = rng;
  args.train = train;
  const int64_t workspace = kernel->workspace_bytes();
  if (workspace <= 0) {
    kernel->run(args);
    return;
  }
  struct Workspace {
    Storage::Block block;
    Workspace(int64_t bytes, Device device) : block(storage(device).allocate(bytes)) {}
    ~Workspace() { storage(block.device).free(block); }
  } space(workspace, device);
  args.workspace = space.block.data;
  kernel->run(args);
}

void add_call_context(Error& error, const Op& op) {
  ErrorFields outer;
  outer.op = op.name;
  outer.where = current_location();
  error.add_context(outer);
}

constexpr size_t kManyArrays = 64;  // calls with more arrays sort them instead of comparing each pair

// Distinct variables to read (not written) and to write. An inline call passes only shared outputs: its new outputs
// need no ordering.
struct VarLists {
  Scratch<Var*, 2 * kMaxStackArrays> reads, writes;
  size_t num_reads = 0, num_writes = 0;
  VarLists(std::span<const NDArray> in, std::span<const NDArray> out) : reads(in.size()), writes(out.size()) {
    if (in.size() + out.size() > kManyArrays) {
      sort(in, out);
      return;
    }
    for (const NDArray& a : out)
      if (a) add(writes.begin(), &num_writes, &a.var());
    for (const NDArray& a : in) {
      Var* v = &a.var();
      if (std::find(writes.begin(), writes.begin() + num_writes, v) == writes.begin() + num_writes)
        add(reads.begin(), &num_reads, v);
    }
  }
  static void add(Var** list, size_t* count, Var* v) {
    if (std::find(list, list + *count, v) == list + *count) list[(*count)++] = v;
  }
  // Does the same for lists that are too long to search for each array.
  void sort(std::span<const NDArray> in, std::span<const NDArray> out) {
    for (const NDArray& a : out)
      if (a) writes[num_writes++] = &a.var();
    Var** const written = sort_distinct(writes.begin(), &num_writes);
    for (const NDArray& a : in) reads[num_reads++] = &a.var();
    Var** const end = std::remove_if(reads.begin(), sort_distinct(reads.begin(), &num_reads),
                                     [&](Var* v) { return std::binary_search(writes.begin(), written, v); });
    num_reads = static_cast<size_t>(end - reads.begin());
  }
  static Var** sort_distinct(Var** list, size_t* count) {
    std::sort(list, list + *count);
    Var** const end = std::unique(list, list + *count);
    *count = static_cast<size_t>(end - list);
    return end;
  }
  Engine::Access access() { return {{reads.begin(), num_reads}, {writes.begin(), num_writes}}; }
};

// A launch is over for the engine at once, whatever the kernel costs; a kernel that waits for the GPU runs on a thread
// of that GPU.
[[gnu::cold]] void ask_of_gpu(const Kernel& kernel, Device device, Engine::Options& options) {
  constexpr int64_t kLaunchNs = 5000;
  if (kernel.waits_for_device())
    options.device = device;
  else
    options.cost_ns = kLaunchNs;
}

// Inlined: it is the last part of every operator call, with one caller.
[[gnu::always_inline]] inline void execute(const Op& op, const ParamsPtr& params, Kernel* kernel, Ref<Kernel>& owner,
                                           std::span<const NDArray> in, std::span<const NDArray> out,
                                           std::span<const NDArray> ordered_out, int64_t cost, RngKey rng,
                                           Device device) {
  const bool train = autograd_state().training;
  VarLists ordered(in, ordered_out);
  Engine::Options options;
  options.name = op.name.c_str();
  options.cost_ns = cost;
  if (device.type == DeviceType::kGPU) [[unlikely]]
    ask_of_gpu(*kernel, device, options);
  Engine& e = engine();
  const Engine::Access access = ordered.access();
  if (e.try_begin_inline(access, options)) {
    const InlineRun running(e, access);
    try {
      run_kernel(op, params, kernel, in, out, rng, train, device);
    } catch (Error& error) {
      add_call_context(error, op);
      throw;
    }
    return;
  }
  options.where = current_location();
  VarLists all(in, out);
  auto call = std::make_shared<QueuedCall>(QueuedCall{run_ahead().charge(cost),
                                                      &op,
                                                      params,
                                                      owner,
                                                      kernel,
                                                      {in.begin(), in.end()},
                                                      {out.begin(), out.end()},
                                                      rng,
                                                      train,
                                                      device});
  e.push(
      [call](TaskContext&) {
        call->charge.release();
        run_kernel(*call->op, call->params, call->kernel, call->in, call->out, call->rng, call->train, call->device);
      },
      all.access(), options);
}

// Runs the kernel of an opaque operator, whose code may wait, on this thread.
void run_opaque(const Op& op, const KernelArgs& args, const Op::Allocate& allocate) {
  if (!op.stateless) throw UnsupportedError({.op = op.name, .message = "the operator runs in graphs only"});
  std::vector<TensorSpec> in, out(static_cast<size_t>(op.num_outputs(args.params)));
  for (const TensorRef& ref : args.in) in.push_back({*ref.shape, ref.dtype});
  InferContext context(op, in, out, args.train);
  op.infer(args.params, context);
  std::vector<TensorRef> out_refs;
  for (size_t i = 0; i < out.size(); ++i) out_refs.push_back(allocate(static_cast<int>(i), out[i]));
  KernelArgs all = args;
  all.out = out_refs;
  op.stateless->run(all);
}

// Runs an operator whose shapes are known only after the run, or that is opaque: waits for the inputs and runs at once.
void run_dynamic(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs,
                 std::vector<NDArray>* results) {
  const bool on_gpu = !inputs.empty() && inputs[0].is_on_gpu();
  if (on_gpu) note_fallback(op.name);
  Scratch<NDArray, kMaxStackArrays> values(inputs.size());
  Scratch<TensorRef, kMaxStackArrays> in_refs(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[i] = on_cpu(inputs[i]);
    values[i].wait_to_read();
    in_refs[i] = values[i].ref();
  }
  KernelArgs args;
  args.params = params->data();
  args.in = in_refs.span();
  args.train = autograd_state().training;
  if (op.random) args.rng = next_rng_key();
  const Op::Allocate allocate = [&](int i, const TensorSpec& spec) {
    (*results)[static_cast<size_t>(i)] = NDArray::empty(spec);
    return (*results)[static_cast<size_t>(i)].ref();
  };
  try {
    op.run_dynamic ? op.run_dynamic(args, allocate) : run_opaque(op, args, allocate);
  } catch (Error& error) {
    add_call_context(error, op);
    throw;
  }
  if (!on_gpu) return;
  for (NDArray& result : *results)
    if (result) result = copy_on(result, inputs[0].device());
}

// True if the kernel may write output k into the memory that input i occupies.
bool may_write_over(const Op& op, const void* params, const NDArray& input, size_t i, const NDArray& out, size_t k) {
  const bool same_place = input == out || (input.spec() == out.spec() && is_same_place(input, out));
  return same_place && op.may_reuse(params, static_cast<int>(i), static_cast<int>(k));
}

// True if writing output k into `out` would destroy elements of input i that the kernel has yet to read.
bool destroys(const Op& op, const void* params, const NDArray& input, size_t i, const NDArray& out, size_t k) {
  return (input == out || overlap(input, out)) && !may_write_over(op, params, input, i, out, k);
}

// Decides for many outputs whether the kernel may write them into memory that its inputs occupy.
class SharedMemory {
 public:
  SharedMemory(const Op& op, const void* params, std::span<const NDArray> inputs, size_t outputs)
      : op_(op), params_(params), inputs_(inputs) {
    if (inputs.size() * outputs <= kManyArrays * kManyArrays) return;
    for (size_t i = 0; i < inputs.size(); ++i) by_memory_.emplace_back(memory_of(inputs[i]), i);
    std::sort(by_memory_.begin(), by_memory_.end());
  }

  bool may_hold(const NDArray& out, size_t k) const {
    if (by_memory_.empty()) {
      for (size_t i = 0; i < inputs_.size(); ++i)
        if (destroys(op_, params_, inputs_[i], i, out, k)) return false;
      return true;
    }
    const Chunk* memory = memory_of(out);
    auto at = std::lower_bound(by_memory_.begin(), by_memory_.end(), std::pair<const Chunk*, size_t>(memory, 0));
    for (; at != by_memory_.end() && at->first == memory; ++at)
      if (destroys(op_, params_, inputs_[at->second], at->second, out, k)) return false;
    return true;
  }

 private:
  // null: foreign memory. Different foreign chunks may overlap.
  static const Chunk* memory_of(const NDArray& array) {
    const Chunk& chunk = array.impl()->chunk->owner();
    return chunk.is_foreign() ? nullptr : &chunk;
  }
  const Op& op_;
  const void* params_;
  std::span<const NDArray> inputs_;
  std::vector<std::pair<const Chunk*, size_t>> by_memory_;  // empty: the inputs are few and are searched one by one
};

void copy_array(const NDArray& from, const NDArray& to) {
  const NDArray reads[] = {from}, writes[] = {to};
  run_task("copy", reads, writes, from.bytes() / 4,
           [from, to](TaskContext&) { device::copy_memory(to.data(), from.data(), from.bytes()); });
}

// Copies the results that could not be computed in the caller's arrays into these arrays.
void copy_to_out(std::span<const NDArray> out, std::vector<NDArray>* results) {
  for (size_t i = 0; i < out.size(); ++i) {
    NDArray& result = (*results)[i];
    if (!is_same_place(result, out[i])) {
      note_overwrite(out[i]);
      copy_array(result, out[i]);
    }
    result = out[i];
  }
}

// Returns a copy of a result that shares the memory of an input, through views; else the result.
NDArray unshared(NDArray result, std::span<const NDArray> inputs) {
  const bool shares =
      std::any_of(inputs.begin(), inputs.end(), [&](const NDArray& in) { return in.shares_memory(result); });
  return shares ? invoke_one(kCopy.op(), kCopy.op().default_params, {&result, 1}) : result;
}

// NumPy's casting "same_kind": integers into floats, but not back.
bool is_same_kind(DType from, DType to) {
  if (from == to || from == DType::kBool || is_floating(to)) return true;
  return !is_floating(from) && to != DType::kBool;
}

ParamsPtr cast_params(DType dtype) {
  return kCast.op().schema->parse({{"dtype", AttrValue(dtype_name(dtype))}}, kCast.op().name);
}

// Copies a result of a composed operator into the caller's array, recorded like any call.
void write_into(NDArray* result, const NDArray& out) {
  const bool same = result->dtype() == out.dtype();
  const Op& copy = same ? kCopy.op() : kCast.op();
  invoke(copy, same ? copy.default_params : cast_params(out.dtype()), {result, 1}, {&out, 1});
  *result = out;
}

// Writes all results or none.
void write_all(const Op& op, std::span<const NDArray> out, std::vector<NDArray>* results) {
  require_apart(op.name, out);
  const auto fits = [](const NDArray& given, const NDArray& result) {
    return given.shape() == result.shape() && is_same_kind(result.dtype(), given.dtype());
  };
  if (!std::equal(out.begin(), out.end(), results->begin(), fits))
    require_specs(op.name, out, std::span<const NDArray>(*results));
  for (size_t i = 0; i < out.size(); ++i) write_into(&(*results)[i], out[i]);
}

// Runs the operator that the values of the inputs choose.
[[gnu::noinline, gnu::cold]] void invoke_resolved(const Op& op, const ParamsPtr& params,
                                                  std::span<const NDArray> inputs, const InvokeOptions& options,
                                                  std::vector<NDArray>* results) {
  Scratch<NDArray, kMaxStackArrays> values(inputs.size());
  Scratch<TensorRef, kMaxStackArrays> refs(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[i] = on_cpu(inputs[i]);
    values[i].wait_to_read();
    refs[i] = values[i].ref();
  }
  try {
    const Op::Resolved use = op.resolve(params->data(), refs.span());
    invoke_into(*use.op, use.params, inputs.first(use.num_inputs), options, results);
  } catch (Error& error) {
    add_call_context(error, op);
    throw;
  }
}

// Returns whether the operator has recorded itself on the tape.
bool invoke_dynamic(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs,
                    std::span<const NDArray> out, std::vector<NDArray>* results) {
  const bool custom = &op == &kCustom.op();
  if (custom) {
    *results = custom_operators(params->as<CustomParams>()).call(params->as<CustomParams>(), inputs);
  } else {
    run_dynamic(op, params, inputs, results);
  }
  require_specs(op.name, out, std::span<const NDArray>(*results));
  require_apart(op.name, out);
  if (!custom) copy_to_out(out, results);
  for (size_t i = 0; custom && i < out.size(); ++i) write_into(&(*results)[i], out[i]);
  return custom;
}

// Outputs that other code may hold, too: the engine orders accesses to them.
struct SharedOutputs {
  Scratch<NDArray, kMaxStackArrays>* arrays;
  size_t* count;
  void add(const NDArray& a) { (*arrays)[(*count)++] = a; }
  std::span<const NDArray> span() const { return {arrays->begin(), *count}; }
};

// Throws if written arrays overlap, including arrays of `out` that results are copied to afterwards.
[[gnu::noinline]] void require_written_apart(const Op& op, std::span<const NDArray> out,
                                             const std::vector<NDArray>& results, const SharedOutputs& shared) {
  const bool all_in_place = std::equal(out.begin(), out.end(), results.begin());
  if (all_in_place) return require_apart(op.name, shared.span());
  std::vector<NDArray> written(out.begin(), out.end());
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] && (i >= out.size() || !is_same_place(results[i], out[i]))) written.push_back(results[i]);
  require_apart(op.name, written);
}

// Chooses the array that each output is computed into. Returns true if some of `out` must be copied to afterwards.
bool place_results(const Op& op, const void* params, std::span<const NDArray> inputs, std::span<const NDArray> out,
                   Specs& specs, Device device, bool train, std::vector<NDArray>* results, SharedOutputs shared) {
  if (out.empty() && !op.has_writebacks()) {
    for (size_t i = 0; i < results->size(); ++i) (*results)[i] = NDArray::deferred(specs[i], device);
    return false;
  }
  const bool writes_back = op.has_writebacks() && (!op.writeback_active || op.writeback_active(params, train));
  const SharedMemory memory(op, params, inputs, out.size());
  bool copy_out = false;
  for (size_t i = 0; i < results->size(); ++i) {
    NDArray& result = (*results)[i];
    const int state = op.has_writebacks() ? op.writeback_input(params, static_cast<int>(i)) : -1;
    if (state >= 0 && (writes_back || op.skips_unwanted_outputs)) {
      if (!writes_back) {  // stays null: the kernel leaves it out
        if (i < out.size()) wrong_out_count(op, out.size(), static_cast<size_t>(op.num_visible_outputs(params)));
        continue;
      }
      result = inputs[static_cast<size_t>(state)];
      copy_out |= i < out.size() && !is_same_place(result, out[i]);
    } else if (i < out.size() && memory.may_hold(out[i], i)) {
      result = out[i];
    } else {
      copy_out |= i < out.size();
      result = NDArray::deferred(specs[i], device);
      continue;
    }
    shared.add(result);
  }
  if (results->size() > 1 && out.size() + *shared.count > 1) require_written_apart(op, out, *results, shared);
  for (const NDArray& written : shared.span()) note_overwrite(written);
  return copy_out;
}

// Runs an operator that is not composed; results has room for its outputs.
void invoke_itself(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                   std::vector<NDArray>* results);

// Runs the steps of a composition; each records itself. A cache hit parses no parameters.
void replay(const Composition& composition, std::span<const NDArray> inputs, std::vector<NDArray>* results) {
  std::vector<NDArray> values(inputs.begin(), inputs.end()), made;
  for (const Composition::Step& step : composition.steps) {
    Scratch<NDArray, kMaxStackArrays> in(step.inputs.size());
    for (size_t i = 0; i < step.inputs.size(); ++i) in[i] = values[step.inputs[i]];
    invoke_into(*step.op, step.params, in.span(), {.out = {}, .share_views = true}, &made);
    values.insert(values.end(), std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
    made.clear();
  }
  for (size_t i = 0; i < composition.results.size(); ++i)
    (*results)[i] = unshared(values[composition.results[i]], inputs);
}

// Runs the rule, whose operators are invoked as it emits them.
void compose(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const ComposedCall& call,
             std::vector<NDArray>* results) {
  Values values;
  values.reserve(inputs.size());
  for (const NDArray& input : inputs) values.push_back(to_value(input));
  NotingEmitter emitter(values);
  const Emitter::Scope scope(emitter);
  const Values made = op.compose(params->data(), values);
  for (size_t i = 0; i < made.size(); ++i) (*results)[i] = unshared(to_array(made[i]), inputs);
  if (Ref<const Composition> composition = emitter.composition(inputs.size(), made)) call.keep(std::move(composition));
}

// Runs the operators that make up a composed operator; each records itself.
void invoke_composed(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs,
                     const InvokeOptions& options, std::vector<NDArray>* results) {
  // If `out` has another dtype than the inputs, NumPy's casting rules apply (write_into).
  const bool is_plain = std::all_of(options.out.begin(), options.out.end(), [&](const NDArray& out) {
    return !inputs.empty() && out.dtype() == inputs[0].dtype();
  });
  if (op.same_ != nullptr && is_plain) {
    Scratch<DType, kMaxStackArrays> dtypes(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) dtypes[i] = inputs[i].dtype();
    if (const Op* same = op.same_op(params->data(), dtypes.span()))
      return invoke_into(*same, params, inputs, options, results);
  }
  const DefaultDevice of_constants(device_for(op, params->data(), inputs, options.out));
  const ComposedCall call(op, params, inputs);
  const Composition* known = call.find();
  try {
    if (known != nullptr && known->is_one_call && options.out.empty()) {
      const Composition::Step& step = known->steps[0];
      const size_t count = results->size();
      if (step.op->composed()) {
        const Ref<const Composition> held(known);
        invoke_into(*step.op, step.params, inputs, options, results);
      } else {
        results->resize(static_cast<size_t>(step.op->num_outputs(step.params->data())));
        invoke_itself(*step.op, step.params, inputs, options, results);
      }
      return results->resize(count);
    }
    if (const Ref<const Composition> held(known); held)
      replay(*held, inputs, results);
    else
      compose(op, params, inputs, call, results);
  } catch (Error& error) {
    add_call_context(error, op);
    throw;
  }
  if (!options.out.empty()) write_all(op, options.out, results);
}

}  // namespace

thread_local constinit Device DefaultDevice::current_ __attribute__((tls_model("initial-exec"))) = {};

void note_overwrite(const NDArray& a) {
  count_overwrite(*a.impl()->chunk);
  if (is_on_tape(a)) forget_overwritten(a);
}

namespace {
// Inlined: all calls pass through it.
[[gnu::always_inline]] inline void call(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs,
                                        const InvokeOptions& options, std::vector<NDArray>* results) {
  const void* p = params->data();
  if (const int expected = op.variadic ? static_cast<int>(inputs.size()) : op.num_inputs(p);
      static_cast<size_t>(expected) != inputs.size()) {
    wrong_count(op, inputs.size(), expected);
  }
  const int outputs = op.num_outputs(p);
  if (outputs > kMaxOutputs) too_many_outputs(op, outputs);
  const size_t num_outputs = static_cast<size_t>(outputs);
  if (options.out.size() > num_outputs) wrong_out_count(op, options.out.size(), num_outputs);
  if (any_sparse(inputs) || any_sparse(options.out)) [[unlikely]] {
    if (!share_a_device(inputs, options.out)) throw_devices_apart(op, inputs, options.out);
    return invoke_sparse(op, params, inputs, options.out, results);
  }
  results->resize(num_outputs);
  if (op.composed())
    invoke_composed(op, params, inputs, options, results);
  else
    invoke_itself(op, params, inputs, options, results);
}
}  // namespace

void invoke_into(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                 std::vector<NDArray>* results) {
  if (observed_reads != nullptr) [[unlikely]]
    observe_reads(inputs);
  if (!options.out.empty() && (autograd_state().recording || is_on_tape(options.out[0])))
    invoke_over(op, params, inputs, options, results);
  else
    call(op, params, inputs, options, results);
}

void invoke_apart(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                  std::vector<NDArray>* results) {
  call(op, params, inputs, options, results);
}

namespace {
// Returns true if inputs overlap the states that the operator writes; it was then invoked on copies of them.
[[gnu::noinline]] bool invoke_beside_states(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs,
                                            const InvokeOptions& options, std::vector<NDArray>* results) {
  const std::vector<NDArray> apart = apart_from_states(op, params->data(), inputs, results->size());
  if (apart.empty()) return false;
  invoke_itself(op, params, apart, options, results);
  return true;
}

// A copy is the only operator whose output may be on another device than its input.
[[gnu::noinline, gnu::cold]] void invoke_across_devices(const Op& op, std::span<const NDArray> inputs,
                                                        const InvokeOptions& options, std::vector<NDArray>* results) {
  if (&op != &kCopy.op() || options.out.size() != 1) throw_devices_apart(op, inputs, options.out);
  const TensorSpec spec = inputs[0].spec();
  require_specs(op.name, options.out, {&spec, 1});
  copy_into_device(inputs[0], options.out[0]);
  (*results)[0] = options.out[0];
}

void invoke_itself(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                   std::vector<NDArray>* results) {
  const void* p = params->data();
  const size_t num_outputs = results->size();
  if (!share_a_device(inputs, options.out)) [[unlikely]]
    return invoke_across_devices(op, inputs, options, results);
  if (op.has_writebacks() && invoke_beside_states(op, params, inputs, options, results)) return;
  const bool recorded = wants_record(op, inputs);
  if (op.data_dependent_shape || op.opaque) {
    if (op.resolve) return invoke_resolved(op, params, inputs, options, results);
    const bool recorded_itself = invoke_dynamic(op, params, inputs, options.out, results);
    if (recorded && !recorded_itself) record_op(op, params, inputs, *results);
    return;
  }

  Specs in_specs(inputs.size()), out_specs(num_outputs);
  infer_outputs(op, params, inputs, options.out, &in_specs, &out_specs);
  const Device device = device_for(op, p, inputs, options.out);

  if (op.is_view && options.share_views && options.out.empty()) {
    (*results)[0] = inputs[0].reshaped(out_specs[0].shape);
    if (recorded)
      end_record(begin_record(op, params, inputs), inputs, *results, /*is_view=*/true);
    else if (inputs[0].impl()->chunk->history.load(std::memory_order_acquire) != nullptr)
      (*results)[0] = (*results)[0].detached();
    return;
  }
  const Ref<TapeNode> node = recorded ? begin_record(op, params, inputs) : Ref<TapeNode>();

  const bool train = autograd_state().training;
  Scratch<NDArray, kMaxStackArrays> shared(num_outputs);
  size_t num_shared = 0;
  const bool copy_out =
      place_results(op, p, inputs, options.out, out_specs, device, train, results, {&shared, &num_shared});

  Ref<Kernel> owner;
  Kernel* kernel = find_kernel(op, params, in_specs.span(), out_specs.span(), device, train, &owner);
  const int64_t cost = op.cost_ns(p, in_specs.span(), out_specs.span());
  const RngKey rng = op.random ? next_rng_key() : RngKey{};
  execute(op, params, kernel, owner, inputs, *results, {shared.begin(), num_shared}, cost, rng, device);

  if (copy_out) copy_to_out(options.out, results);
  if (recorded) end_record(node, inputs, *results);
}
}  // namespace

std::vector<NDArray> invoke(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs,
                            std::span<const NDArray> out) {
  std::vector<NDArray> results;
  invoke_into(op, params, inputs, {.out = out}, &results);
  return results;
}

NDArray as_dtype(const NDArray& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  return invoke_one(kCast.op(), cast_params(dtype), {&array, 1});
}

NDArray invoke_one(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs) {
  std::vector<NDArray> results;
  invoke_into(op, params, inputs, {}, &results);
  return std::move(results[0]);
}

void run_task(const char* name, std::span<const NDArray> reads, std::span<const NDArray> writes, int64_t cost_ns,
              std::function<void(TaskContext&)> fn) {
  VarLists lists(reads, writes);
  Engine::Options options;
  options.name = name;
  options.cost_ns = cost_ns;
  Engine& e = engine();
  const Engine::Access access = lists.access();
  if (e.try_begin_inline(access, options)) {
    const InlineRun running(e, access);
    const DeviceWork work(reads, writes);
    TaskContext context;
    context.inline_run = true;
    fn(context);
    return;
  }
  options.where = current_location();
  struct Queued {
    RunAhead::Charge charge;
    std::function<void(TaskContext&)> fn;
    std::vector<NDArray> keep_in, keep_out;
  };
  auto queued = std::make_shared<Queued>(
      Queued{run_ahead().charge(cost_ns), std::move(fn), {reads.begin(), reads.end()}, {writes.begin(), writes.end()}});
  e.push(
      [queued](TaskContext& c) {
        queued->charge.release();
        const DeviceWork work(queued->keep_in, queued->keep_out);
        queued->fn(c);
      },
      access, options);
}

}  // namespace hybridnet
