// The words with which an operator is declared: `registry.declare<Params>("name").input(..).infer(..).cpu(..)`.
// docs/adding-an-operator.md shows a whole declaration.
// Threads: declarations run once, before the registry is sealed, on one thread.
// Throws: OpRegistry::seal() reports declarations that are incomplete.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

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
  [[gnu::cold]] void set_initializer(std::string_view input, std::string_view initializer);
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
  OpBuilder& names_its_input() {
    op_.names_its_input = true;
    return *this;
  }
  // initializer: MXNet's notation of the initial values of a variable that is made for the input, ["zero", {}].
  OpBuilder& initialized(std::string_view input, std::string_view initializer) {
    set_initializer(input, initializer);
    return *this;
  }
  OpBuilder& output(std::string_view name, std::string_view doc = "") {
    add_output(name, doc);
    return *this;
  }
  OpBuilder& output_names(OutputNames names) {
    op_.output_names = names;
    return *this;
  }
  // The last declared output has another name in symbols.
  OpBuilder& mxnet_name(std::string_view name) {
    op_.outputs.back().mxnet_name = name;
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
  OpBuilder& light() {
    op_.light = true;
    return *this;
  }
  OpBuilder& takes_part_of_input() {
    op_.takes_part_of_input = true;
    return *this;
  }
  OpBuilder& keeps_zeros() {
    op_.keeps_zeros = true;
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
  // P(P): parameters that pin the behavior of prediction, in every mode.
  template <typename F>
  OpBuilder& prediction_params(F f) {
    op_.prediction_params = changed_params(std::move(f));
    return *this;
  }
  // P(P): parameters that pin the behavior of training, in every mode.
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
  // bool(const P&, const LinkContext&): the uses for which they are; the others have kernels that read them.
  template <typename F>
  OpBuilder& halves_through_float_when(F f) {
    set_through_float([f = std::move(f)](const LinkContext& c) { return f(*static_cast<const P*>(c.params), c); });
    return *this;
  }
  // The kernel runs on GPUs, too: see Op::any_device.
  OpBuilder& any_device() {
    op_.any_device = [](const LinkContext&) { return true; };
    return *this;
  }
  // bool(const P&, const LinkContext&): the uses that do.
  template <typename F>
  OpBuilder& any_device_when(F f) {
    op_.any_device = [f = std::move(f)](const LinkContext& c) { return f(*static_cast<const P*>(c.params), c); };
    return *this;
  }
  // On GPUs, the kernel waits for values that the CPU needs.
  OpBuilder& waits_on_gpu() {
    op_.waits_on_gpu = true;
    return *this;
  }
  OpBuilder& internal() {
    op_.hidden = true;
    return *this;
  }
  OpBuilder& allowed_in_files() {
    op_.allowed_in_files = true;
    return *this;
  }
  OpBuilder& pointwise(PointwiseFn f) {
    op_.pointwise = f;
    op_.format_agnostic = true;
    return *this;
  }
  OpBuilder& c_form(CForm form) {
    op_.c_form = form;
    return *this;
  }
  OpBuilder& amp(AmpType type) {
    op_.amp = type;
    return *this;
  }
  // bool(const P&): the uses that run in this type. It must depend on one parameter, which has choices.
  template <typename F>
  OpBuilder& amp(AmpType type, F when) {
    op_.amp_when = erased(std::move(when));
    return amp(type);
  }
  OpBuilder& writes_input(int input) {
    op_.written_input = input;
    return *this;
  }
  OpBuilder& predicts() {
    op_.predicts = true;
    return *this;
  }
  OpBuilder& sparse(SparseForm form, SparseGradient gradient = SparseGradient::kOnDense) {
    op_.sparse = {form, gradient};
    return *this;
  }
  // For updates of an optimizer: op `name` updates the rows that a row_sparse gradient stores.
  OpBuilder& updates_rows_by(const char* name) {
    op_.sparse = {SparseForm::kUpdatedRows, SparseGradient::kOnDense, name};
    return *this;
  }
  OpBuilder& repeated_by(RepeatedForm form) {
    op_.repeated = std::move(form);
    return *this;
  }
  OpBuilder& clamps(Interval interval) {
    op_.clamps = [interval](const void*) { return std::optional(interval); };
    return *this;
  }
  // std::optional<Interval>(const P&): nullopt if this use is no clamp.
  template <typename F>
  OpBuilder& clamps(F f) {
    op_.clamps = erased(std::move(f));
    return *this;
  }
  OpBuilder& layer_activation(const char* type) {
    op_.layer_activation = [type](const void*) { return std::optional(LayerActivation{type}); };
    return *this;
  }
  // std::optional<LayerActivation>(const P&): nullopt if layers do not have the activation of this use.
  template <typename F>
  OpBuilder& layer_activation(F f) {
    op_.layer_activation = erased(std::move(f));
    return *this;
  }
  OpBuilder& fused_layer(const char* name) {
    op_.fused_layer = name;
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
  // Op::Resolved(const P&, std::span<const TensorRef> inputs)
  template <typename F>
  OpBuilder& resolves(F f) {
    op_.data_dependent_shape = true;
    op_.resolve = erased(std::move(f));
    return *this;
  }
  // std::optional<Op::Resolved>(const P&, std::span<const TensorSpec> inputs)
  template <typename F>
  OpBuilder& resolves_sizes(F f) {
    op_.resolve_sizes = erased(std::move(f));
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

template <typename P>
OpBuilder<P> OpRegistry::declare(std::string_view name) {
  return OpBuilder<P>(add(std::string(name), std::make_unique<ParamSchema<P>>()));
}

}  // namespace hybridnet
