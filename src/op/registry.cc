#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <typeinfo>

#include "base/checked_size.h"
#include "base/edit_distance.h"
#include "hybridnet/declare.h"
#include "hybridnet/env.h"
#include "op/checked_kernel.h"
#include "op/composed.h"
#include "op/empty_results.h"
#include "op/fallback_kernel.h"
#include "op/memory_order.h"
#include "op/through_float.h"

namespace hybridnet {
namespace {

std::atomic<const OpRegistry*> g_registry{nullptr};
thread_local Emitter* t_emitter = nullptr;
thread_local bool t_np_shape = false;

std::string lower(std::string_view s) {
  std::string r(s);
  std::transform(r.begin(), r.end(), r.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return r;
}

// Rules, costs and kernels multiply sizes: limits them to kMaxElements, so that no product overflows.
template <typename Name>
void require_possible_size(const Shape& shape, Name name) {
  if (shape.is_possible()) [[likely]]
    return;
  throw ShapeError({.input = name(), .expected = "at most 2**56 elements", .given = "shape " + shape.str()});
}

[[noreturn]] void incomplete(const Op& op, const char* lacks) {
  ErrorFields e;
  e.op = op.name;
  e.message = std::string("the declaration lacks ") + lacks;
  e.fix = "add it where the operator is declared (docs/adding-an-operator.md)";
  throw ParamError(std::move(e));
}

}  // namespace

bool is_np_shape() { return t_np_shape; }
bool set_np_shape(bool on) { return std::exchange(t_np_shape, on); }

Emitter& Emitter::current() {
  if (!t_emitter)
    throw Error(ErrorKind::kError,
                {.message = "a rule for a gradient or a composed operator ran outside an Emitter::Scope"});
  return *t_emitter;
}
Emitter::Scope::Scope(Emitter& e) : before_(std::exchange(t_emitter, &e)) {}
Emitter::Scope::~Scope() { t_emitter = before_; }

std::string Op::input_name(const void* params, int i) const {
  (void)params;
  if (variadic) return "arg" + std::to_string(i);
  return i < static_cast<int>(inputs.size()) ? inputs[i].name : "input" + std::to_string(i);
}

std::string Op::output_name(const void* params, int i) const {
  if (i < static_cast<int>(outputs.size()) && (outputs.size() > 1 || num_outputs(params) == 1)) return outputs[i].name;
  return "output" + std::to_string(i);
}

void Op::infer(const void* params, InferContext& c) const {
  try {
    for (int i = 0; i < c.num_in(); ++i) require_possible_size(c.in_shape(i), [&] { return c.input_name(i); });
    composed() ? infer_composed(*this, params, c) : infer_(params, c);
    for (int i = 0; i < c.num_out(); ++i) require_possible_size(c.out_shape(i), [&] { return c.output_name(i); });
  } catch (Error& error) {
    ErrorFields outer;
    outer.op = name;
    error.add_context(outer);
    throw;
  }
}

namespace {

// A kernel on a GPU that waits for it (Op::waits_on_gpu).
class WaitingKernel final : public Kernel {
 public:
  explicit WaitingKernel(Ref<Kernel> kernel) : kernel_(std::move(kernel)) {}
  void run(const KernelArgs& args) override { kernel_->run(args); }
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  bool waits_for_device() const override { return true; }
  std::string description() const override { return kernel_->description(); }

 private:
  const Ref<Kernel> kernel_;
};

}  // namespace

Ref<Kernel> Op::link(const LinkContext& c) const {
  if (!link_) {
    ErrorFields e;
    e.op = name;
    e.message = data_dependent_shape ? "the output's shape depends on the data, so the operator cannot be linked ahead"
                                     : "no kernel for " + c.device.str();
    throw UnsupportedError(std::move(e));
  }
  const DType dtype = !c.in.empty() ? c.in[0].dtype : c.out.empty() ? DType::kFloat32 : c.out[0].dtype;
  if (!dtypes.has(dtype)) {
    ErrorFields e;
    e.op = name;
    e.input = !c.in.empty() ? input_name(c.params, 0) : "dtype";
    e.expected = "one of " + dtypes.str();
    e.given = dtype_name(dtype);
    e.fix = "cast it first with .astype(...)";
    throw DTypeError(std::move(e));
  }
  if (computes_nothing(*this, c.in, c.out)) return make_empty_kernel();
  if (c.device.type != DeviceType::kGPU) return link_here(c);
  if (!any_device || !any_device(c)) return link_fallback(*this, c);
  Ref<Kernel> kernel = waits_on_gpu ? Ref<Kernel>(new WaitingKernel(link_here(c))) : link_here(c);
  return environment().cuda_check && can_be_checked(*this) ? link_checked(*this, c, std::move(kernel)) : kernel;
}

Ref<Kernel> Op::link_here(const LinkContext& c) const {
  if (needs_memory_order(*this, c)) return link_in_memory_order(*this, c);
  auto has_halves = [](std::span<const TensorSpec> specs) {
    return std::any_of(specs.begin(), specs.end(), [](const TensorSpec& s) { return is_half(s.dtype); });
  };
  if (through_float && (has_halves(c.in) || has_halves(c.out)) && through_float(c)) return link_through_float(c, link_);
  return link_(c);
}

Values Op::gradient(const void* params, const GradientContext& g) const {
  if (!gradient_) return Values(static_cast<size_t>(g.num_inputs()));
  Values result = gradient_(params, g);
  result.resize(static_cast<size_t>(g.num_inputs()));
  return result;
}

int64_t Op::cost_ns(const void* params, std::span<const TensorSpec> in, std::span<const TensorSpec> out) const {
  constexpr double kMaxCostNs = 4e18;  // fits into int64_t
  if (cost_) return static_cast<int64_t>(std::clamp(cost_(params, in, out), 0.0, kMaxCostNs));
  int64_t bytes = 0;
  for (const TensorSpec& s : in) bytes += s.bytes();
  for (const TensorSpec& s : out) bytes += s.bytes();
  return bytes / 8;  // about 8 bytes per ns through one core
}

std::optional<double> Op::flops(const void* params, std::span<const TensorSpec> in,
                                std::span<const TensorSpec> out) const {
  if (flops_) return flops_(params, in, out);
  if (pointwise != nullptr && !out.empty()) return static_cast<double>(out[0].shape.size());
  if (is_view || takes_part_of_input || fills_with || (is_identity && is_identity(params, false))) return 0.0;
  return {};
}

Op& OpRegistry::add(std::string name, std::unique_ptr<SchemaBase> schema) {
  if (sealed_) throw Error(ErrorKind::kError, {.op = name, .message = "declared after the registry was sealed"});
  auto op = std::make_unique<Op>();
  op->name = std::move(name);
  op->schema = std::move(schema);
  op->id = static_cast<int>(ops_.size());
  ops_.push_back(std::move(op));
  return *ops_.back();
}

const Op* OpRegistry::find(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

namespace {

// The distance of a known name from the wanted one; above `limit` the names are not similar.
size_t unlikeness(const std::string& known, const std::string& wanted, size_t limit) {
  const size_t lengths = known.size() > wanted.size() ? known.size() - wanted.size() : wanted.size() - known.size();
  const bool part = known.size() > 3 && wanted.size() > 3 &&
                    (known.find(wanted) != std::string::npos || wanted.find(known) != std::string::npos);
  if (part) return std::min(lengths, limit);
  return lengths > limit ? limit + 1 : edit_distance(known, wanted);
}

}  // namespace

const Op& OpRegistry::at(std::string_view name) const {
  if (const Op* op = find(name)) return *op;
  const std::string wanted = lower(name);
  const size_t limit = std::max<size_t>(1, wanted.size() / 4);
  std::vector<std::pair<size_t, std::string_view>> similar;
  const std::shared_lock lock(mutex_);
  for (const auto& [known, op] : by_name_) {
    const size_t distance = unlikeness(lower(known), wanted, limit);
    if (!op->hidden && distance <= limit) similar.emplace_back(distance, known);
  }
  std::sort(similar.begin(), similar.end());
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(similar.size(), 5); ++i)
    names += (names.empty() ? "" : ", ") + std::string(similar[i].second);
  ErrorFields e;
  e.op = name.substr(0, 200);
  e.message = "unknown operator '" + std::string(name.substr(0, 200)) + "'";
  e.fix = names.empty() ? "list the operators with mx.operator.get_all_registered_operators()"
                        : "operators of similar names: " + names;
  throw ParamError(std::move(e));
}

namespace {

void check_declaration(Op& op) {
  if (op.doc.empty()) incomplete(op, "a doc");
  if (!op.composed()) {
    if (!op.infer_) incomplete(op, "inference (infer)");
    if (!op.link_ && !op.run_dynamic && !op.resolve) incomplete(op, "a kernel (cpu or link)");
    if (!op.gradient_declared_) incomplete(op, "a gradient (or kNotDifferentiable)");
  } else if (op.infer_ || op.link_ || op.run_dynamic || op.gradient_declared_ || op.has_writebacks()) {
    incomplete(op, "unity: a composed operator has no inference, kernel, gradient or state of its own");
  }
  const std::vector<FieldInfo>& fields = op.schema->fields();
  if (std::none_of(fields.begin(), fields.end(), [](const FieldInfo& f) { return f.required; }))
    op.default_params = ParamsPtr(op.schema->create().get());
}

}  // namespace

std::vector<const Op*> OpRegistry::all() const {
  const std::shared_lock lock(mutex_);
  return order_;
}

void OpRegistry::extend(std::vector<std::unique_ptr<Op>> ops) {
  for (const auto& op : ops) check_declaration(*op);
  const std::lock_guard lock(mutex_);
  std::set<std::string_view> names;
  for (const auto& op : ops) {
    if (by_name_.count(op->name) == 0 && names.insert(op->name).second) continue;
    throw ParamError({.op = op->name,
                      .message = "there is an operator of this name already",
                      .fix = "give it another name; a library is loaded once"});
  }
  for (auto& op : ops) {
    op->id = static_cast<int>(ops_.size());
    order_.push_back(op.get());
    by_name_.emplace(op->name, op.get());
    ops_.push_back(std::move(op));
  }
}

void OpRegistry::seal() {
  for (const auto& op : ops_) {
    check_declaration(*op);
    if (op->samples.empty() && op->subgraph_names.empty()) incomplete(*op, "a sample");
  }
  for (const auto& op : ops_) {
    order_.push_back(op.get());
    if (!by_name_.emplace(op->name, op.get()).second) incomplete(*op, "a name of its own: it is declared twice");
  }
  for (const auto& op : ops_)
    for (const std::string& alias : op->aliases)
      if (!by_name_.emplace(alias, op.get()).second && by_name_[alias] != op.get())
        incomplete(*op, ("an alias of its own: '" + alias + "' is taken").c_str());
  for (const auto& op : ops_) {
    if (op->same_name_.empty()) continue;
    op->same_ = find(op->same_name_);
    if (!op->composed() || op->same_ == nullptr || op->same_->composed() ||
        typeid(*op->schema) != typeid(*op->same_->schema))
      incomplete(*op, ("an operator '" + op->same_name_ + "' with its parameters (same_as)").c_str());
  }
  sealed_ = true;
}

const Op& OpRef::op() const {
  const Op* op = op_.load(std::memory_order_acquire);
  if (!op) {
    op = &op_registry().at(name_);
    op_.store(op, std::memory_order_release);
  }
  return *op;
}

const OpRegistry& op_registry() {
  const OpRegistry* r = g_registry.load(std::memory_order_acquire);
  if (!r) throw Error(ErrorKind::kError, {.message = "the operator registry was used before Runtime::get()"});
  return *r;
}
void set_op_registry(const OpRegistry* r) { g_registry.store(r, std::memory_order_release); }

namespace detail {

void DeclarationBase::add_input(std::string_view name, std::string_view doc, bool optional, bool auxiliary) {
  op_.inputs.push_back({std::string(name), std::string(doc), optional, auxiliary});
}
void DeclarationBase::add_output(std::string_view name, std::string_view doc) {
  op_.outputs.push_back({std::string(name), std::string(doc)});
}
void DeclarationBase::set_initializer(std::string_view input, std::string_view initializer) {
  const auto named = [&](const InputInfo& info) { return info.name == input; };
  const auto found = std::find_if(op_.inputs.begin(), op_.inputs.end(), named);
  if (found == op_.inputs.end()) incomplete(op_, ("the input '" + std::string(input) + "' (initialized)").c_str());
  found->initializer = initializer;
}
void DeclarationBase::add_alias(std::string_view name) { op_.aliases.emplace_back(name); }
void DeclarationBase::add_sample(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs,
                                 double low, double high) {
  Sample s;
  s.inputs = std::move(inputs);
  s.attrs = std::move(attrs);
  s.low = low;
  s.high = high;
  op_.samples.push_back(std::move(s));
}
void DeclarationBase::set_doc(std::string_view text) { op_.doc = text; }
void DeclarationBase::set_variadic(std::string_view count_param) {
  op_.variadic = true;
  op_.count_param = count_param;
}
void DeclarationBase::set_kernel(Ref<Kernel> kernel, DTypeSet dtypes) {
  op_.dtypes = dtypes;
  if (!op_.through_float) op_.stateless = kernel;
  op_.link_ = [kernel](const LinkContext&) { return kernel; };
}
void DeclarationBase::set_through_float(std::function<bool(const LinkContext&)> when) {
  op_.through_float = std::move(when);
  op_.stateless = nullptr;  // a use with halves is linked with a kernel that wraps the declared one
}

}  // namespace detail

}  // namespace hybridnet
