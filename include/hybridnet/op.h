// Operators and their declaration. Each is declared in one file under src/ops by a register_ function that the build
// collects (cmake/collect_operators.cmake); front ends, gradients, plans, files, docs and sweep tests all follow from
// the declaration.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "hybridnet/base.h"
#include "hybridnet/error.h"
#include "hybridnet/params.h"

namespace hybridnet {

class DerivedData;
class ReaderCache;
class Op;

// ---------------------------------------------------------------------------------------------------- inference
// Partial specs of one use of an op. A rule adds all specs that follow from the known ones, in both directions, and
// throws ShapeError / DTypeError on contradiction. The caller adds `op` to the error and checks completeness.
class InferContext {
 public:
  InferContext(const Op& op, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train = false)
      : op_(op), in_(in), out_(out), train_(train) {}
  const Op& op() const { return op_; }
  int num_in() const { return static_cast<int>(in_.size()); }
  int num_out() const { return static_cast<int>(out_.size()); }
  const TensorSpec& in(int i) const { return in_[i]; }
  const TensorSpec& out(int i) const { return out_[i]; }
  const Shape& in_shape(int i) const { return in_[i].shape; }
  const Shape& out_shape(int i) const { return out_[i].shape; }
  DType in_dtype(int i) const { return in_[i].dtype; }
  DType out_dtype(int i) const { return out_[i].dtype; }
  bool train() const { return train_; }
  // Merge `known` into the spec, without its unknown parts; a contradiction throws, naming the input or output.
  void set_in_shape(int i, const Shape& known);
  void set_out_shape(int i, const Shape& known);
  void set_in_dtype(int i, DType known);
  void set_out_dtype(int i, DType known);
  // All listed inputs and outputs have one dtype: unify in every direction. Without lists: all inputs, all outputs.
  void unify_dtypes();
  void unify_dtypes(std::initializer_list<int> inputs, std::initializer_list<int> outputs);
  // All inputs and outputs have one shape.
  void unify_shapes();
  // Input i must be of one of these dtypes, once known.
  void require_dtype(int i, DTypeSet allowed) const;
  std::string input_name(int i) const;
  std::string output_name(int i) const;

 private:
  const Op& op_;
  std::span<TensorSpec> in_, out_;
  bool train_;
};

// NumPy shape semantics of this thread (mx.util.set_np_shape): scalars are (), zero sizes are real. Off: classic MXNet,
// where a full reduction gives (1,).
bool is_np_shape();
bool set_np_shape(bool on);  // returns the previous setting

// Normalizes a negative axis; throws ParamError naming the range. ndim must be known.
int normalize_axis(int64_t axis, int ndim, const char* param = "axis");

// ---------------------------------------------------------------------------------------------------- kernels
// Physical order of a tensor's elements. Logical shapes never change with it. kChannelsLast: (N, C, spatial...) stored
// as (N, spatial..., C); appears inside Plans only.
enum class Format : int8_t { kPlain = 0, kChannelsLast = 1 };

struct TensorRef {
  void* data = nullptr;
  const Shape* shape = nullptr;
  DType dtype = DType::kUnknown;
  Format format = Format::kPlain;
  DerivedData* derived = nullptr;    // holds packed copies of the data (derived.h); null: none are kept
  ReaderCache* last_copy = nullptr;  // the copy that this argument used last; null: not remembered
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t size() const { return shape->size(); }
};

// Key of the counter-based generator for one use of a random op; element i of the result uses counter i.
struct RngKey {
  uint64_t seed = 0, stream = 0;
};

class KeptObjects;  // custom.h

struct KernelArgs {
  const void* params = nullptr;
  std::span<const TensorRef> in;
  std::span<const TensorRef> out;  // unwanted outputs have data == nullptr only if Op::skips_unwanted_outputs
  void* workspace = nullptr;       // Kernel::workspace_bytes() bytes, 64-byte aligned
  RngKey rng;                      // only for ops with random()
  bool train = false;
  KeptObjects* kept = nullptr;  // only for opaque ops in graphs; null if no gradient follows
};

// One linked implementation of a node for known types and device. Linked once, run many times, from any thread, also
// several at once: state that changes during run() must be guarded by the kernel.
class Kernel : public RefCounted<Kernel> {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) = 0;
  virtual int64_t workspace_bytes() const { return 0; }
  // For plan_text(): the implementation that linking chose ("brgemm:avx2"); empty if the operator has only one. Loops
  // and branches add the plans of their bodies in further lines.
  virtual std::string description() const { return {}; }
};

struct LinkContext {
  const void* params = nullptr;
  std::span<const TensorSpec> in, out;
  std::span<const Format> in_format, out_format;  // empty: all plain
  Device device;
  bool train = false;
  bool frozen_weights = false;  // inputs other than 0 rarely change: packing them pays
  bool may_round_more = false;  // a rewrite allows algorithms with larger rounding errors where they are faster
};

// ---------------------------------------------------------------------------------------------------- gradients
// An entry of a graph under construction, or an array: gradient rules do not know which. Null means symbolic zero.
class Object : public RefCounted<Object> {
 public:
  virtual ~Object() = default;
};
struct Value {
  Ref<Object> object;
  uint32_t index = 0;
  explicit operator bool() const { return static_cast<bool>(object); }
};
using Values = std::vector<Value>;

// Adds nodes to a graph (gradient pass) or invokes ops at once on arrays (tape).
class Emitter {
 public:
  virtual ~Emitter() = default;
  virtual Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) = 0;  // visible and hidden outputs
  virtual TensorSpec spec(const Value& v) const = 0;
  static Emitter& current();  // the emitter of this thread; valid inside gradient and compose rules (ops/emit.h)

  class Scope {
   public:
    explicit Scope(Emitter& e);
    ~Scope();

   private:
    Emitter* before_;
  };
};

// The forward values that a gradient rule reads. Only these are kept alive, and only overwriting these is an error.
struct Saves {
  uint64_t inputs = 0, outputs = 0;
  static constexpr Saves nothing() { return {}; }
  static constexpr Saves all() { return {~uint64_t{0}, ~uint64_t{0}}; }
  static constexpr Saves all_inputs() { return {~uint64_t{0}, 0}; }
  static constexpr Saves all_outputs() { return {0, ~uint64_t{0}}; }
  static constexpr Saves of(std::initializer_list<int> in, std::initializer_list<int> out = {}) {
    Saves s;
    for (int i : in) s.inputs |= uint64_t{1} << i;
    for (int i : out) s.outputs |= uint64_t{1} << i;
    return s;
  }
  bool input(int i) const { return inputs >> (i < 63 ? i : 63) & 1; }
  bool output(int i) const { return outputs >> (i < 63 ? i : 63) & 1; }
};

class GradientContext {
 public:
  virtual ~GradientContext() = default;
  virtual int num_inputs() const = 0;
  virtual int num_outputs() const = 0;                    // hidden ones included
  virtual Value input(int i) const = 0;                   // throws Error if not declared in Saves
  virtual Value output(int i) const = 0;                  // throws Error if not declared in Saves
  virtual Value output_grad(int i) const = 0;             // null: nothing arrives (symbolic zero)
  virtual const TensorSpec& input_spec(int i) const = 0;  // always known
  virtual const TensorSpec& output_spec(int i) const = 0;
  virtual bool wants(int i) const = 0;  // true if the gradient of input i is needed; if not, skip the work
  virtual bool train() const = 0;
  virtual RngKey rng() const { return {}; }
};

// ---------------------------------------------------------------------------------------------------- the operator
struct InputInfo {
  std::string name, doc;
  bool optional = false;   // absent if Op::num_inputs(params) does not count it
  bool auxiliary = false;  // state: listed in list_auxiliary_states
};
struct OutputInfo {
  std::string name, doc;
};

// One case of the sweep tests: inputs by shape (dtype float32 unless given), values drawn from [low, high].
struct Sample {
  std::vector<Shape> inputs = {};
  std::vector<std::pair<std::string, std::string>> attrs = {};  // texts as in JSON
  double low = -2.0, high = 2.0;
  std::vector<DType> dtypes = {};  // per input; empty: the swept dtype for all
  bool integer_valued = false;     // draw whole numbers in [low, high]
  bool check_gradient = true;      // false if the function is not smooth at random points; say why in `note`
  std::string note = {};
};

// The quantized op (`op`) that computes an op on bytes instead of floats. Its inputs are the inputs of the op, then
// (min, max) of each input that is bytes, in order; its outputs are bytes, or sums of 32 bits, and their min and max.
// It takes over the parameters whose names both ops have.
struct QuantizedForm {
  std::string op = {};
  std::vector<int> inputs = {};  // the inputs that are bytes; empty: all
  // True for the ops that make quantization worthwhile. Other ops are quantized only between quantized ones.
  bool leads = false;
  bool gives_sums = false;   // its output is int32, to be requantized
  bool needs_range = false;  // the range of its output is a parameter: not without calibration
  std::vector<std::pair<std::string, AttrValue>> attrs = {};  // more parameters of the op for bytes
  std::function<bool(const void* params)> when = {};          // null: every use has the form
};

// An elementwise op over n contiguous elements of one dtype, for fused chains. in: one pointer per input.
using PointwiseFn = void (*)(const void* params, DType dtype, const void* const* in, void* out, int64_t n);

class Op {
 public:
  std::string name, doc;
  std::vector<std::string> aliases;
  std::vector<InputInfo> inputs;       // declared; variadic: one entry that repeats
  std::vector<OutputInfo> outputs;     // hidden ones last
  std::unique_ptr<SchemaBase> schema;  // never null (NoParams)
  ParamsPtr default_params;            // made once by seal(); null when a field is required
  bool variadic = false;
  // The first of the trailing inputs that are states, if that depends on the parameters. Null: as declared.
  std::function<int(const void* params)> first_state;
  std::string count_param;  // name of the integer field that holds the number of variadic inputs ("num_args")
  std::vector<std::string> subgraph_names;  // control flow

  int num_inputs(const void* params) const {
    return num_inputs_ ? num_inputs_(params) : static_cast<int>(inputs.size());
  }
  int num_outputs(const void* params) const {
    return num_outputs_ ? num_outputs_(params) : static_cast<int>(outputs.size());
  }
  int num_visible_outputs(const void* params) const {
    return num_visible_ ? num_visible_(params) : num_outputs(params);
  }
  std::string input_name(const void* params, int i) const;  // variadic: arg0, arg1, ...
  std::string output_name(const void* params, int i) const;

  void infer(const void* params, InferContext& c) const;  // calls the rule; adds op name to errors
  Ref<Kernel> link(const LinkContext& c) const;  // throws UnsupportedError for a device or dtype without kernel
  // A composed op is defined by other ops, which replace it before anything runs: it has no kernel and no gradient of
  // its own.
  bool composed() const { return static_cast<bool>(compose_); }
  // Emits the ops that replace a composed op through the current Emitter; returns one value per output, none of which
  // is an input or equal to another output.
  Values compose(const void* params, std::span<const Value> inputs) const;
  // The op that equals a composed op, with the same parameters, for inputs of these dtypes; null: there is none.
  const Op* same_op(const void* params, std::span<const DType> inputs) const {
    return same_ != nullptr && same_when_(params, inputs) ? same_ : nullptr;
  }
  Values gradient(const void* params, const GradientContext& g) const;  // one Value per input, null = zero
  bool differentiable() const { return static_cast<bool>(gradient_); }
  const Saves& saves() const { return saves_; }
  int64_t cost_ns(const void* params, std::span<const TensorSpec> in, std::span<const TensorSpec> out) const;
  // Floating-point operations of a use; a multiply-add counts as two. The number is declared by .flops(), else one per
  // element of elementwise results, and 0 for ops that only move or fill elements. nullopt: unknown. Bodies are not
  // counted.
  std::optional<double> flops(const void* params, std::span<const TensorSpec> in,
                              std::span<const TensorSpec> out) const;

  // Traits.
  struct InplacePair {
    int input, output;
  };
  struct Writeback {
    int input, output;
  };                                 // output's value becomes the input's (aux states, optimizer states)
  std::vector<InplacePair> inplace;  // output may reuse the input's memory
  std::vector<Writeback> writebacks;
  // The same for variadic ops, where the pairs depend on the parameters: the input of an output, or -1.
  std::function<int(const void*params, int output)> variadic_inplace, variadic_writeback;
  std::function<bool(const void* params, bool train)> writeback_active;  // null: always
  bool has_writebacks() const { return !writebacks.empty() || variadic_writeback; }
  int writeback_input(const void* params, int output) const {  // -1: none
    if (variadic_writeback) return variadic_writeback(params, output);
    for (const Writeback& w : writebacks)
      if (w.output == output) return w.input;
    return -1;
  }
  bool may_reuse(const void* params, int input, int output) const {  // output may reuse the input's memory
    if (variadic_inplace) return variadic_inplace(params, output) == input;
    for (const InplacePair& p : inplace)
      if (p.input == input && p.output == output) return true;
    return false;
  }
  std::function<bool(const void* params)> is_lazy;  // evaluates its inputs on demand, and perhaps not all of them
  std::function<bool(const void* params, bool train)> is_identity;  // output 0 equals input 0 (then removable)
  bool is_view = false;      // output 0 has the bytes of input 0 under another shape
  bool commutative = false;  // two inputs may be exchanged
  bool random = false;       // never merged, folded, moved
  // Calls code outside the library: never merged, folded or copied. It runs on the thread that calls the graph, where
  // that code may wait for arrays.
  bool opaque = false;
  bool total = true;                    // cannot raise once inference has passed
  bool train_sensitive = false;         // behaves differently in training
  bool skips_unwanted_outputs = false;  // kernel checks data == nullptr for outputs other than 0
  bool stops_gradient = false;
  // Most of its time is multiplication: many products per element that it reads (matrix products, convolutions).
  bool heavy = false;
  // Its outputs hold elements of the input, all or some, in another order: cheap to compute again from the input.
  bool takes_part_of_input = false;
  // True if row i (axis 0) of the output depends only on row i of input 0 and on the other inputs as a whole, and one
  // call for many rows is much cheaper than a call per row. Null: never. `rank`: the rank of input 0.
  std::function<bool(const void* params, int rank)> row_wise;
  // The parameters of the same use after a permutation of the axes: axis a of inputs and outputs becomes moved_to[a].
  // Returns null if this use has no such parameters. No function: no parameter is an axis number.
  std::function<ParamsPtr(const void* params, std::span<const int> moved_to)> renumbered_params;
  // The value of all elements of the output, rounded to its dtype, for any inputs. nullopt: there is none.
  std::function<std::optional<double>(const void* params)> fills_with;
  // op(x, n) = x for n = neutral_right, and op(n, x) = x for n = neutral_left. For operators with a parameter `scalar`,
  // neutral_right is the scalar that changes nothing.
  std::optional<double> neutral_right, neutral_left;
  // prediction_params: parameters for training mode with the same outputs as `params` in prediction mode.
  // training_params: parameters for prediction mode with the same outputs as `params` in training mode. Null: none.
  std::function<ParamsPtr(const void*params)> prediction_params, training_params;
  bool data_dependent_shape = false;  // output shape known only after running: run_dynamic
  bool hidden = false;                // internal helper op: not shown in nd/sym namespaces
  PointwiseFn pointwise = nullptr;
  std::optional<QuantizedForm> quantized;
  DTypeSet dtypes = kAllDTypes;  // dtypes with a kernel (the dtype of input 0, or of the output if there is no input)
  std::vector<int> image_inputs, image_outputs;  // these may be channels-last (all of them together), rank 3 to 5
  std::function<bool(const void* params)> image_active;  // null: always; false: this use takes plain memory only
  bool format_agnostic = false;  // same-shape elementwise: any format if all inputs and outputs share it
  // Whether a use with float16 or bfloat16 runs the float32 kernel between conversions. Null: never.
  std::function<bool(const LinkContext&)> through_float;
  std::vector<Sample> samples;
  // For ops with data_dependent_shape: computes the outputs in memory from allocate(i, spec), i being the output.
  using Allocate = std::function<TensorRef(int output, const TensorSpec& spec)>;
  std::function<void(const KernelArgs&, const Allocate&)> run_dynamic;

  // Set by OpBuilder.
  std::function<int(const void*)> num_inputs_, num_outputs_, num_visible_;
  std::function<void(const void*, InferContext&)> infer_;
  std::function<Ref<Kernel>(const LinkContext&)> link_;
  Ref<Kernel> stateless;  // set by cpu(): the same kernel for every use, no linking needed
  std::function<Values(const void*, const GradientContext&)> gradient_;
  std::function<double(const void*, std::span<const TensorSpec>, std::span<const TensorSpec>)> cost_, flops_;
  std::function<Values(const void*, const Values&)> compose_;
  std::string same_name_;
  const Op* same_ = nullptr;  // found by seal()
  std::function<bool(const void*, std::span<const DType>)> same_when_;
  bool gradient_declared_ = false;
  Saves saves_;
  int id = -1;  // dense index, stable within a process
};

namespace detail {
template <typename P, typename F>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(F f) : f_(std::move(f)) {}
  void run(const KernelArgs& a) override { f_(*static_cast<const P*>(a.params), a); }

 private:
  F f_;
};

}  // namespace detail

// A stateless kernel that calls f(const P&, const KernelArgs&).
template <typename P, typename F>
Ref<Kernel> function_kernel(F f) {
  return Ref<Kernel>(new detail::FunctionKernel<P, F>(std::move(f)));
}

namespace detail {
// f(parameters of type P, ...) as a function of (pointer to parameters, ...).
template <typename P, typename F>
auto with_params(F f) {
  return [f = std::move(f)](const void* p, auto&&... rest) {
    return f(*static_cast<const P*>(p), std::forward<decltype(rest)>(rest)...);
  };
}

// The parts of a declaration that do not depend on the parameter type. Out of line and cold: declarations run once, at
// start, so the compiler should make the code that calls these small, not fast.
class DeclarationBase {
 protected:
  explicit DeclarationBase(Op& op) : op_(op) {}
  [[gnu::cold]] void add_input(std::string_view name, std::string_view doc, bool optional, bool auxiliary);
  [[gnu::cold]] void add_output(std::string_view name, std::string_view doc);
  [[gnu::cold]] void add_alias(std::string_view name);
  [[gnu::cold]] void add_sample(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs,
                                double low, double high);
  [[gnu::cold]] void set_doc(std::string_view text);
  [[gnu::cold]] void set_variadic(std::string_view count_param);
  [[gnu::cold]] void set_kernel(Ref<Kernel> kernel, DTypeSet dtypes);
  [[gnu::cold]] void set_through_float(std::function<bool(const LinkContext&)> when);
  Op& op_;
};
}  // namespace detail

struct NotDifferentiable {};
inline constexpr NotDifferentiable kNotDifferentiable;

template <typename P>
class OpBuilder : detail::DeclarationBase {
 public:
  explicit OpBuilder(Op& op) : DeclarationBase(op) {}
  OpBuilder& doc(std::string_view t) {
    set_doc(t);
    return *this;
  }
  OpBuilder& alias(std::string_view n) {
    add_alias(n);
    return *this;
  }
  OpBuilder& input(std::string_view name, std::string_view doc = "") {
    add_input(name, doc, false, false);
    return *this;
  }
  // Trailing inputs that num_inputs() may leave out (bias).
  OpBuilder& optional_input(std::string_view name, std::string_view doc = "") {
    add_input(name, doc, true, false);
    return *this;
  }
  OpBuilder& auxiliary(std::string_view name, std::string_view doc = "") {
    add_input(name, doc, false, true);
    return *this;
  }
  // int(const P&): this input and all later ones are states.
  template <typename F>
  OpBuilder& auxiliary_from(F f) {
    op_.first_state = erased(std::move(f));
    return *this;
  }
  // Any number of inputs; the field count_param (if any) receives their number.
  OpBuilder& variadic_input(std::string_view name, std::string_view count_param, std::string_view doc = "") {
    add_input(name, doc, false, false);
    set_variadic(count_param);
    return *this;
  }
  OpBuilder& output(std::string_view name, std::string_view doc = "") {
    add_output(name, doc);
    return *this;
  }
  // int(const P&)
  template <typename F>
  OpBuilder& num_inputs(F f) {
    op_.num_inputs_ = erased(std::move(f));
    return *this;
  }
  template <typename F>
  OpBuilder& num_outputs(F f) {
    op_.num_outputs_ = erased(std::move(f));
    return *this;
  }
  template <typename F>
  OpBuilder& num_visible_outputs(F f) {
    op_.num_visible_ = erased(std::move(f));
    return *this;
  }
  OpBuilder& visible_outputs(int n) {
    op_.num_visible_ = [n](const void*) { return n; };
    return *this;
  }
  // void(const P&, InferContext&)
  template <typename F>
  OpBuilder& infer(F f) {
    op_.infer_ = erased(std::move(f));
    return *this;
  }
  // Stateless kernel, void(const P&, const KernelArgs&). `dtypes`: the dtypes that it supports.
  template <typename F>
  OpBuilder& cpu(F f, DTypeSet dtypes = kAllDTypes) {
    set_kernel(function_kernel<P>(std::move(f)), dtypes);
    return *this;
  }
  // Linked kernel, Ref<Kernel>(const P&, const LinkContext&): called once per node (or found in a cache by signature
  // for imperative calls).
  template <typename F>
  OpBuilder& link(F f, DTypeSet dtypes = kFloating) {
    op_.dtypes = dtypes;
    op_.link_ = [f = std::move(f)](const LinkContext& c) { return f(*static_cast<const P*>(c.params), c); };
    return *this;
  }
  // Values(const P&, const GradientContext&)
  template <typename F>
  OpBuilder& gradient(F f, Saves saves = Saves::all()) {
    op_.gradient_ = erased(std::move(f));
    op_.saves_ = saves;
    op_.gradient_declared_ = true;
    return *this;
  }
  OpBuilder& gradient(NotDifferentiable) {
    op_.gradient_declared_ = true;
    return *this;
  }
  // Values(const P&, const Values& inputs): defines the op by other ops (ops/emit.h), instead of inference, kernel and
  // gradient. A rule may ask for specs; while those are unknown, so are the specs of the outputs.
  template <typename F>
  OpBuilder& compose(F f) {
    op_.compose_ = erased(std::move(f));
    return *this;
  }
  // A composed op that equals op `name` with the same parameters if when(const P&, std::span<const DType> inputs).
  template <typename F>
  OpBuilder& same_as(std::string_view name, F when) {
    op_.same_name_ = name;
    op_.same_when_ = erased(std::move(when));
    return *this;
  }
  // For a composed op: the shape of one of the ops that replace it depends on the data.
  OpBuilder& composes_dynamic() {
    op_.data_dependent_shape = true;
    return *this;
  }
  OpBuilder& inplace(int in, int out) {
    op_.inplace.push_back({in, out});
    return *this;
  }
  OpBuilder& writeback(int in, int out) {
    op_.writebacks.push_back({in, out});
    return *this;
  }
  // int(const P&, int output): the input, or -1
  template <typename F>
  OpBuilder& variadic_inplace(F f) {
    op_.variadic_inplace = erased(std::move(f));
    return *this;
  }
  template <typename F>
  OpBuilder& variadic_writeback(F f) {
    op_.variadic_writeback = erased(std::move(f));
    return *this;
  }
  // bool(const P&, bool train)
  template <typename F>
  OpBuilder& writeback_active(F f) {
    op_.writeback_active = erased(std::move(f));
    return *this;
  }
  template <typename F>
  OpBuilder& identity_when(F f) {
    op_.is_identity = erased(std::move(f));
    return *this;
  }
  OpBuilder& view() {
    op_.is_view = true;
    return *this;
  }
  OpBuilder& commutative() {
    op_.commutative = true;
    return *this;
  }
  OpBuilder& random() {
    op_.random = true;
    return *this;
  }
  OpBuilder& opaque() {
    op_.opaque = true;
    return *this;
  }
  // bool(const P&)
  template <typename F>
  OpBuilder& lazy_when(F f) {
    op_.is_lazy = erased(std::move(f));
    return *this;
  }
  OpBuilder& may_raise() {
    op_.total = false;
    return *this;
  }
  OpBuilder& train_sensitive() {
    op_.train_sensitive = true;
    return *this;
  }
  OpBuilder& skips_unwanted_outputs() {
    op_.skips_unwanted_outputs = true;
    return *this;
  }
  OpBuilder& stops_gradient() {
    op_.stops_gradient = true;
    return *this;
  }
  OpBuilder& heavy() {
    op_.heavy = true;
    return *this;
  }
  OpBuilder& takes_part_of_input() {
    op_.takes_part_of_input = true;
    return *this;
  }
  // std::optional<P>(const P&, std::span<const int> moved_to)
  template <typename F>
  OpBuilder& renumbered_params(F f) {
    op_.renumbered_params = [f = std::move(f)](const void* p, std::span<const int> moved_to) {
      std::optional<P> renumbered = f(*static_cast<const P*>(p), moved_to);
      return renumbered ? ParamSchema<P>::box(std::move(*renumbered)) : ParamsPtr();
    };
    return *this;
  }
  // std::optional<double>(const P&)
  template <typename F>
  OpBuilder& fills_with(F f) {
    op_.fills_with = erased(std::move(f));
    return *this;
  }
  OpBuilder& neutral(std::optional<double> right, std::optional<double> left = std::nullopt) {
    op_.neutral_right = right;
    op_.neutral_left = left;
    return *this;
  }
  // bool(const P&, int rank of input 0)
  template <typename F>
  OpBuilder& row_wise_when(F f) {
    op_.row_wise = erased(std::move(f));
    return *this;
  }
  // P(P): parameters that pin the behaviour of prediction, in every mode.
  template <typename F>
  OpBuilder& prediction_params(F f) {
    op_.prediction_params = changed_params(std::move(f));
    return *this;
  }
  // P(P): parameters that pin the behaviour of training, in every mode.
  template <typename F>
  OpBuilder& training_params(F f) {
    op_.training_params = changed_params(std::move(f));
    return *this;
  }
  // Kernels are written in float32 and float64: float16 and bfloat16 are converted before and after them.
  OpBuilder& halves_through_float() {
    set_through_float([](const LinkContext&) { return true; });
    return *this;
  }
  // The same, except for uses that have their own kernel for halves: bool(const P&, const LinkContext&).
  template <typename F>
  OpBuilder& halves_through_float_unless(F f) {
    set_through_float([f = std::move(f)](const LinkContext& c) { return !f(*static_cast<const P*>(c.params), c); });
    return *this;
  }
  OpBuilder& internal() {
    op_.hidden = true;
    return *this;
  }
  OpBuilder& pointwise(PointwiseFn f) {
    op_.pointwise = f;
    op_.format_agnostic = true;
    return *this;
  }
  // when, if any: bool(const P&)
  OpBuilder& quantized(QuantizedForm form) {
    op_.quantized = std::move(form);
    return *this;
  }
  template <typename F>
  OpBuilder& quantized(QuantizedForm form, F when) {
    form.when = erased(std::move(when));
    return quantized(std::move(form));
  }
  OpBuilder& format_agnostic() {
    op_.format_agnostic = true;
    return *this;
  }
  OpBuilder& image(std::vector<int> in, std::vector<int> out) {
    op_.image_inputs = std::move(in);
    op_.image_outputs = std::move(out);
    return *this;
  }
  // bool(const P&)
  template <typename F>
  OpBuilder& image_when(F f) {
    op_.image_active = erased(std::move(f));
    return *this;
  }
  // double(const P&, std::span<const TensorSpec> in, std::span<const TensorSpec> out): nanoseconds on one core. Sizes
  // and attributes must be multiplied in double: the product may not fit into int64_t.
  template <typename F>
  OpBuilder& cost(F f) {
    op_.cost_ = erased(std::move(f));
    return *this;
  }
  // double(const P&, std::span<const TensorSpec> in, std::span<const TensorSpec> out): Op::flops in prediction.
  template <typename F>
  OpBuilder& flops(F f) {
    op_.flops_ = erased(std::move(f));
    return *this;
  }
  // void(const P&, const KernelArgs&, const Op::Allocate&)
  template <typename F>
  OpBuilder& dynamic(F f) {
    op_.data_dependent_shape = true;
    op_.run_dynamic = [f = std::move(f)](const KernelArgs& a, const Op::Allocate& alloc) {
      f(*static_cast<const P*>(a.params), a, alloc);
    };
    return *this;
  }
  OpBuilder& sample(Sample s) {
    op_.samples.push_back(std::move(s));
    return *this;
  }
  // Short form: shapes of the inputs, attrs as in JSON.
  OpBuilder& sample(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs = {},
                    double low = -2.0, double high = 2.0) {
    add_sample(std::move(inputs), std::move(attrs), low, high);
    return *this;
  }
  Op& op() { return op_; }

 private:
  template <typename F>
  static auto erased(F f) {
    return detail::with_params<P>(std::move(f));
  }
  template <typename F>
  static auto changed_params(F f) {
    return [f = std::move(f)](const void* p) { return ParamSchema<P>::box(f(*static_cast<const P*>(p))); };
  }
};

// Owner: Runtime. Filled by ops::register_all, then sealed.
class OpRegistry {
 public:
  template <typename P = NoParams>
  OpBuilder<P> declare(std::string_view name) {
    return OpBuilder<P>(add(std::string(name), std::make_unique<ParamSchema<P>>()));
  }
  const Op* find(std::string_view name) const;  // by name or alias; null if unknown
  const Op& at(std::string_view name) const;    // throws ParamError naming similar ones
  std::vector<const Op*> all() const;
  // Checks that every op has a doc, a sample, and either inference, kernel and a gradient or kNotDifferentiable, or a
  // rule that composes it. Throws Error naming the op and the missing part.
  void seal();
  bool sealed() const { return sealed_; }
  // Adds operators of other libraries, all or none, to a sealed registry, from any thread. They need no sample. Throws
  // ParamError if a name is taken.
  void extend(std::vector<std::unique_ptr<Op>> ops);

 private:
  [[gnu::cold]] Op& add(std::string name, std::unique_ptr<SchemaBase> schema);
  mutable std::shared_mutex mutex_;  // guards the members below, once sealed
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<const Op*> order_;
  std::map<std::string, const Op*, std::less<>> by_name_;
  bool sealed_ = false;
};

// A name that resolves once: `static const OpRef kMul{"broadcast_mul"}; kMul.op()`.
class OpRef {
 public:
  constexpr explicit OpRef(const char* name) : name_(name) {}
  const Op& op() const;  // throws if the registry does not know the name
  const char* name() const { return name_; }

 private:
  const char* name_;
  mutable std::atomic<const Op*> op_{nullptr};
};
const OpRegistry& op_registry();            // the process' sealed registry; made on first use by Runtime
void set_op_registry(const OpRegistry* r);  // Runtime only

}  // namespace hybridnet
