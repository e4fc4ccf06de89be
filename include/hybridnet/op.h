// Operators and the registry. Each operator is declared in one file under src/ops by a register_ function that the
// build collects (cmake/collect_operators.cmake) with the words of declare.h; front ends, gradients, plans, files, docs
// and sweep tests all follow from the declaration.
// Threads: a sealed registry and its operators do not change, so any thread may read them; extend() locks.
// Owner: Runtime owns the registry, and the registry its operators, to the end of the process: pointers to an Op stay
// valid. Throws: ParamError for unknown names and for parameters out of range.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "hybridnet/base.h"
#include "hybridnet/error.h"
#include "hybridnet/gradient.h"
#include "hybridnet/inference.h"
#include "hybridnet/kernel.h"
#include "hybridnet/params.h"

namespace hybridnet {

template <typename P>
class OpBuilder;  // declare.h

struct InputInfo {
  std::string name, doc;
  bool optional = false;         // absent if Op::num_inputs(params) does not count it
  bool auxiliary = false;        // state: listed in list_auxiliary_states
  std::string initializer = {};  // of a variable that is made for it, as MXNet writes it: ["zero", {}]; empty: none
};
struct OutputInfo {
  std::string name, doc;
  std::string mxnet_name = {};  // in symbols, where MXNet has another name than `name`; empty: the same
};
// The names of outputs in symbols, which follow MXNet's: Symbol::list_outputs().
enum class OutputNames : uint8_t {
  kDeclared,         // the declared names; "output" if one output is visible
  kNumberedSeveral,  // output0, output1, ... if a use has several outputs, hidden ones counted
  kNumbered,         // always
};

// One case of the sweep tests: inputs by shape (dtype float32 unless given), values drawn from [low, high].
struct Sample {
  std::vector<Shape> inputs = {};
  std::vector<std::pair<std::string, std::string>> attrs = {};  // texts as in JSON
  double low = -2.0, high = 2.0;
  std::vector<DType> dtypes = {};  // per input; empty: the swept dtype for all
  bool integer_valued = false;     // draw integers from [low, high]
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

// The op that computes output 0 of a use again at less cost, because it reads other outputs of that use: a
// normalization reads the statistics. It takes over the parameters whose names both ops have.
struct RepeatedForm {
  struct Source {
    int input = -1, output = -1;  // a number of an input or of an output of that use; the other is -1
  };
  std::string op = {};
  std::vector<Source> inputs = {};
  std::vector<std::pair<std::string, AttrValue>> attrs = {};  // more parameters of the op
};

// An activation that layers apply to their result while it is in registers, as parameters of the fused layers:
// act_type, act_alpha and act_beta (ops/nn/activation_params.h).
struct LayerActivation {
  std::string type;
  std::optional<double> alpha = {}, beta = {};
};

// The floating type in which an op runs in mixed precision (contrib.amp).
enum class AmpType : uint8_t {
  kAny,      // that of its inputs
  kHalf,     // 16 bits: products, which are fast there and add in 32 bits
  kFloat,    // 32 bits: it overflows or loses too much accuracy in 16 bits (exponents, powers, long sums, losses)
  kWidest,   // the widest type of its inputs, which must have one type
  kProduct,  // as kHalf in graphs (CallOptions::precision), as kWidest where contrib.amp follows MXNet
};

// The result of an op with sparse arrays among its inputs; src/sparse has the rule of each form. Functions of one
// element need none: f(0) = 0 decides.
enum class SparseForm : uint8_t {
  kNone,          // computed on dense copies
  kOnValues,      // the op on the stored values
  kCopy,          // a copy in the same storage
  kZeros,         // nothing is stored
  kCast,          // in the storage that a parameter names
  kNorm,          // over all elements, from the stored ones
  kSums,          // dense sums over axes, from the stored elements
  kMeans,         // the same, divided by the number of elements
  kSquareSums,    // sums of squares; in row_sparse storage if rows remain
  kUnion,         // of two arrays: the op on all positions that either stores
  kSum,           // the same, and a dense array plus rows
  kProduct,       // the op on the positions that all sparse factors store
  kQuotient,      // csr divided by a dense array: the op on the positions of csr
  kRowSums,       // the sum of any number of row_sparse arrays
  kConcatRows,    // csr matrices, one below the other
  kRetainedRows,  // some rows of a row_sparse array
  kSlice,         // of csr: begin, end and step of each axis
  kSliceAxis,     // of csr: begin and end of one axis
  kTakenRows,     // of csr
  kDot,           // a product with a csr matrix
  kEmbedding,     // rows of a row_sparse table
  kUpdatedRows,   // of an optimizer: another op updates the rows that the gradient stores
};
// The gradient of a use with sparse arrays.
enum class SparseGradient : uint8_t {
  kOnDense,   // by the op's rule, on dense copies: if f(0) = 0, the derivative at 0 is any number
  kOnSparse,  // by the op's rule, on the sparse arrays: its operators keep storage
  kOwn,       // the rule of the form records its own step
};
struct SparseTrait {
  SparseForm form = SparseForm::kNone;
  SparseGradient gradient = SparseGradient::kOnDense;
  const char* row_op = nullptr;  // kUpdatedRows: the op, which reads row numbers as its last input
};

// The function of an elementwise op as an expression in C ($a, $b: its operands, $t: their type), for machine code
// (op/c_forms.h).
struct CForm {
  const char* text = nullptr;  // null: machine code calls Op::pointwise
  bool floats_only = false;
  bool number_first = false;  // for an op with a parameter `scalar`: it is $a instead of $b
};

// The numbers to which an op cuts its input, which it does not change otherwise.
struct Interval {
  double low, high;
  static constexpr Interval not_negative() { return {0.0, std::numeric_limits<double>::infinity()}; }
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
  // It takes one or two sweeps over memory, like elementwise ops.
  bool light = false;
  // Its outputs hold elements of the input, all or some, in another order: cheap to compute again from the input.
  bool takes_part_of_input = false;
  bool keeps_zeros = false;  // zeros as all inputs give zeros; views and ops that take part of their input need not say
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
  bool allowed_in_files = false;      // a hidden op that models may contain: it checks its parameters
  PointwiseFn pointwise = nullptr;
  CForm c_form;
  std::optional<QuantizedForm> quantized;
  std::optional<RepeatedForm> repeated;
  std::function<std::optional<Interval>(const void* params)> clamps;  // null: it is no clamp
  std::function<std::optional<LayerActivation>(const void* params)> layer_activation;
  const char* fused_layer = nullptr;  // the op for the same layer with an activation and an addend
  SparseTrait sparse;
  AmpType amp = AmpType::kAny;
  int written_input = -1;  // its values replace some of input 0: in mixed precision it takes the type of input 0
  std::function<bool(const void* params)> amp_when;  // null: every use runs in the type `amp`; false: as kAny
  // Its output is a prediction and its gradient that of a loss: the gradient that arrives at the output is not read.
  bool predicts = false;
  OutputNames output_names = OutputNames::kDeclared;
  bool names_its_input = false;  // monitors show the name of its only input, as in MXNet; false: "input0"
  DTypeSet dtypes = kAllDTypes;  // dtypes with a kernel (the dtype of input 0, or of the output if there is no input)
  std::vector<int> image_inputs, image_outputs;  // these may be channels-last (all of them together), rank 3 to 5
  std::function<bool(const void* params)> image_active;  // null: always; false: this use takes plain memory only
  bool format_agnostic = false;  // same-shape elementwise: any format if all inputs and outputs share it
  // Whether the CPU's kernel of a use runs on a GPU, too: it touches its arrays only through functions of src/kernels
  // that have a form for devices (device/stream.h). Null: never; the use runs on the CPU, with copies.
  std::function<bool(const LinkContext&)> any_device;
  bool waits_on_gpu = false;  // there, its kernel waits for values that the CPU needs: Kernel::waits_for_device
  // Whether a use with float16 or bfloat16 runs the float32 kernel between conversions. Null: never.
  std::function<bool(const LinkContext&)> through_float;
  std::vector<Sample> samples;
  // For ops with data_dependent_shape: computes the outputs in memory from allocate(i, spec), i being the output.
  using Allocate = std::function<TensorRef(int output, const TensorSpec& spec)>;
  std::function<void(const KernelArgs&, const Allocate&)> run_dynamic;
  // The op that another one stands for, to run on the first num_inputs inputs.
  struct Resolved {
    const Op* op;
    ParamsPtr params;
    size_t num_inputs;
  };
  // For an op that stands for one chosen by the values of its inputs: its call is recorded in place of this one.
  std::function<Resolved(const void* params, std::span<const TensorRef> inputs)> resolve;
  // For an op that equals another one once the shapes of its inputs are known; nullopt: a shape is not known.
  std::function<std::optional<Resolved>(const void* params, std::span<const TensorSpec> inputs)> resolve_sizes;

  // Set by OpBuilder.
  std::function<int(const void*)> num_inputs_, num_outputs_, num_visible_;
  std::function<void(const void*, InferContext&)> infer_;
  Ref<Kernel> link_here(const LinkContext& c) const;  // the kernel of the CPU, which may run on a device
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

// Owner: Runtime. Filled by ops::register_all, then sealed.
class OpRegistry {
 public:
  template <typename P = NoParams>
  OpBuilder<P> declare(std::string_view name);  // defined in declare.h
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
