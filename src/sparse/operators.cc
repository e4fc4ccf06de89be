// The table of sparse forms, which operators declare (Op::sparse), and the dense fallback for operators without a form.
// Element-wise operators of one input need none: their function of one element is declared (Op::pointwise) and decides.
//
// The storage of a result follows MXNet 1.9.1, except that sums, differences and products by operators of the broadcast
// family stay sparse if both shapes are equal, and so does every function of one element with f(0) = 0.
#include "sparse/operators.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "base/front_end.h"
#include "imperative/autograd_scope.h"
#include "imperative/invoke.h"
#include "imperative/out_arrays.h"
#include "imperative/tape.h"
#include "kernels/index/indices.h"
#include "ops/index/row_gradient.h"
#include "sparse/parts.h"
#include "sparse/rules.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"}, kConcat{"Concat"}, kTake{"_backward_take"};

// ---------------------------------------------------------------------------------------------------- change of storage
// Passes the gradient through unchanged.
class StorageFunction final : public RecordedFunction {
 public:
  std::string name() const override { return "cast_storage"; }
  bool takes_sparse_gradients() const override { return true; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool) override { return {out_grads[0]}; }
};

ResultStorage cast_target(const SparseUse& use) {
  const AttrValue stype = use.parameter("stype");
  const auto* name = std::get_if<std::string>(&stype.value);
  return name != nullptr ? ResultStorage(storage_type_from_name(*name)) : ResultStorage();
}
NDArray cast_of(const SparseCall& call) {
  const NDArray& a = call.inputs[0];
  const StorageType type = *cast_target(call);
  NDArray out = cast_storage(a, type);
  if (out == a) out = a.is_sparse() ? copy_sparse(a) : invoke_one(kCopy.op(), kCopy.op().default_params, {&a, 1});
  if (autograd_state().recording && needs_gradient(a))
    record(Ref<RecordedFunction>(new StorageFunction), {&a, 1}, {&out, 1});
  return out;
}

// -------------------------------------------------------------------------------------------------------- the table
struct Functions {
  SparseForm form;
  ResultStorage (*storage)(const SparseUse& use);  // ignores shapes
  NDArray (*rule)(const SparseCall& call);         // called if there is a storage; null: shapes or values do not fit
};

constexpr Functions kTable[] = {
    // in the order of SparseForm
    {SparseForm::kOnValues, as_input, on_values},
    {SparseForm::kCopy, as_input, copy_of},
    {SparseForm::kZeros, as_input, zeros_of},
    {SparseForm::kCast, cast_target, cast_of},
    {SparseForm::kNorm, norm_storage, norm_of},
    {SparseForm::kSums, reduction_storage, sums_of},
    {SparseForm::kMeans, reduction_storage, means_of},
    {SparseForm::kSquareSums, square_sum_storage, square_sum_of},
    {SparseForm::kUnion, both_alike, union_of},
    {SparseForm::kSum, sum_storage, sum_of},
    {SparseForm::kProduct, product_storage, product_of},
    {SparseForm::kQuotient, quotient_storage, quotient_of},
    {SparseForm::kRowSums, all_row_sparse, sum_of_row_sparse},
    {SparseForm::kConcatRows, concat_storage, concat_csr},
    {SparseForm::kRetainedRows, as_row_sparse_input, retained},
    {SparseForm::kSlice, as_csr_input, slice_of},
    {SparseForm::kSliceAxis, as_csr_input, slice_axis_of},
    {SparseForm::kTakenRows, take_storage, take_csr},
    {SparseForm::kDot, dot_storage, sparse_dot},
    {SparseForm::kEmbedding, embedding_storage, sparse_embedding},
    {SparseForm::kUpdatedRows, update_storage, update_rows},
};
constexpr bool is_in_order() {
  for (size_t i = 0; i < std::size(kTable); ++i)
    if (static_cast<size_t>(kTable[i].form) != i + 1) return false;
  return true;
}
static_assert(is_in_order());

// Element-wise operators of one input: their function of one element decides.
constexpr Functions kPointwise{SparseForm::kNone, as_input_if_zero_stays, on_values};

struct Row {
  const Functions* functions = nullptr;  // null: the operator reads dense copies
  SparseGradient gradient = SparseGradient::kOnDense;
};

Row row_of_function(const Op& op) {
  if (op.pointwise == nullptr || op.variadic || op.inputs.size() != 1) return {};
  // Gradient rules that read neither input nor output are linear in the output gradient.
  const bool is_linear = !op.saves().input(0) && !op.saves().output(0);
  return {&kPointwise, is_linear ? SparseGradient::kOnSparse : SparseGradient::kOnDense};
}

Row find_row(const Op& op) {
  if (op.sparse.form == SparseForm::kNone) return row_of_function(op);
  return {&kTable[static_cast<size_t>(op.sparse.form) - 1], op.sparse.gradient};
}

// --------------------------------------------------------------------------------------------------- dense fallback
thread_local const Op* running_rule_of = nullptr;

std::vector<StorageType> storages_of(std::span<const NDArray> arrays) {
  std::vector<StorageType> storages;
  for (const NDArray& a : arrays) storages.push_back(a ? a.storage_type() : StorageType::kDefault);
  return storages;
}

std::string names_of(std::span<const StorageType> storages) {
  std::string text;
  for (const StorageType type : storages) text += std::string(text.empty() ? "" : ", ") + storage_type_name(type);
  return text;
}

void store(const NDArray& target, const NDArray& value) {
  if (target == value) return;
  if (target.is_sparse()) return move_into_sparse(target, value);
  const NDArray dense = to_dense(value);
  invoke(kCopy.op(), kCopy.op().default_params, {&dense, 1}, {&target, 1});
}

// True for an optimizer's update of tables that store all rows: it may write to their values. Other operators write to
// new parts, so that recorded steps keep the values they have read.
bool updates_in_place(const SparseCall& call) {
  return !call.op.differentiable() && std::none_of(call.out.begin(), call.out.end(), needs_copy);
}

void run_on_dense(const SparseCall& call, std::vector<NDArray>* results) {
  if (std::any_of(call.inputs.begin(), call.inputs.end(), needs_copy))
    warn_of_dense_copies(call.op,
                         running_rule_of != nullptr ? " (in the gradient of '" + running_rule_of->name + "')" : "",
                         "it has no form for inputs (" + names_of(call.storages) + ")" +
                             (call.out.empty() ? "" : " and out (" + names_of(storages_of(call.out)) + ")") +
                             " with these parameters and shapes");
  std::vector<NDArray> inputs;
  for (const NDArray& a : call.inputs) inputs.push_back(dense_form(a));
  std::vector<NDArray> targets;
  if (!any_sparse(call.out) || updates_in_place(call))
    for (const NDArray& a : call.out) targets.push_back(dense_form(a));
  invoke_into(call.op, call.params, inputs, {.out = targets, .share_views = false}, results);
  if (targets.empty()) require_specs(call.op.name, call.out, std::span<const NDArray>(*results));
  for (size_t i = 0; i < call.out.size(); ++i) {
    if (targets.empty()) store(call.out[i], (*results)[i]);
    (*results)[i] = call.out[i];
  }
  // Stores the states that the operator has replaced in their dense copies.
  for (size_t k = 0; call.op.has_writebacks() && k < results->size(); ++k) {
    const int state = call.op.writeback_input(call.params->data(), static_cast<int>(k));
    if (state < 0 || !(*results)[k]) continue;
    const NDArray& target = call.inputs[static_cast<size_t>(state)];
    if (target.is_sparse() && !inputs[static_cast<size_t>(state)].shares_memory(sparse_storage(target).data))
      store(target, (*results)[k]);
  }
}

// Returns the arrays for a recorded step: later writes to an input do not change them.
std::vector<NDArray> snapshots(std::span<const NDArray> arrays) {
  std::vector<NDArray> taken;
  for (const NDArray& a : arrays) taken.push_back(snapshot(a));
  return taken;
}

}  // namespace

// -------------------------------------------------------------------------------------------------------- for rules
NDArray apply(const SparseCall& call, std::span<const NDArray> inputs) {
  return invoke_one(call.op, call.params, inputs);
}

NDArray with_values(const NDArray& a, const NDArray& values) {
  const SparseStorage& parts = checked_parts(a);
  Ref<SparseStorage> made = make_ref<SparseStorage>(parts.type, values, parts.indices, parts.indptr);
  made->checked = true;
  return NDArray::sparse({a.shape(), values.dtype()}, Ref<Object>(made.get()), a.device());
}

bool some_need_gradient(std::span<const NDArray> inputs) {
  return autograd_state().recording && std::any_of(inputs.begin(), inputs.end(), needs_gradient);
}

NDArray concatenated(const std::vector<NDArray>& arrays) {
  const Op& op = kConcat.op();
  return invoke_one(
      op, params_of(op, {{"num_args", AttrValue(static_cast<int64_t>(arrays.size()))}, {"dim", AttrValue(0)}}), arrays);
}

ParamsPtr params_of(const Op& op, std::initializer_list<std::pair<std::string, AttrValue>> attrs) {
  return op.schema->parse(std::vector<std::pair<std::string, AttrValue>>(attrs), op.name);
}

void record_result(const SparseCall& call, const NDArray& result, bool on_sparse) {
  if (!call.op.differentiable() || call.op.stops_gradient || !some_need_gradient(call.inputs)) return;
  std::vector<NDArray> results(static_cast<size_t>(call.op.num_outputs(call.params->data())));
  results[0] = result;
  record_op(call.op, call.params, snapshots(call.inputs), results, on_sparse);
}

GradientRuleScope::GradientRuleScope(const Op& op) : before_(std::exchange(running_rule_of, &op)) {}
GradientRuleScope::~GradientRuleScope() { running_rule_of = before_; }

AttrValue SparseUse::parameter(std::string_view name) const {
  const int field = op.schema->find(name);
  return field < 0 ? AttrValue() : op.schema->get(params->data(), field);
}

bool SparseUse::flag(std::string_view name) const {
  const AttrValue value = parameter(name);
  const bool* on = std::get_if<bool>(&value.value);
  return on != nullptr && *on;
}

std::optional<StorageType> sparse_form(const Op& op, const ParamsPtr& params, std::span<const StorageType> storages) {
  const Row row = find_row(op);
  if (row.functions == nullptr) return {};
  const ResultStorage result = row.functions->storage({op, params, storages});
  const auto dense = [](StorageType type) { return type == StorageType::kDefault; };
  return result && dense(*result) && std::all_of(storages.begin(), storages.end(), dense) ? ResultStorage() : result;
}

void warn_of_dense_copies(const Op& op, const std::string& where, const std::string& because) {
  static std::mutex mutex;
  static auto& told = *new std::unordered_set<const Op*>;
  {
    const std::lock_guard lock(mutex);
    if (!told.insert(&op).second) return;
  }
  warn(
      "operator '" + op.name + "'" + where + " runs on dense copies of sparse arrays: " + because +
      ". Fix: convert its inputs before it, x.tostype('default'), where memory for all elements is no problem. This is "
      "said once per operator.");
}

void invoke_sparse(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, std::span<const NDArray> out,
                   std::vector<NDArray>* results) {
  require_apart(op.name, out);
  const std::vector<StorageType> storages = storages_of(inputs);
  const SparseCall call{{op, params, storages}, inputs, out};
  results->assign(static_cast<size_t>(op.num_outputs(params->data())), NDArray());
  const Row row = find_row(op);
  NDArray result;
  if (row.functions != nullptr && row.functions->storage(call)) {
    const AutogradState state = autograd_state();
    const AutogradScope scope(
        {.recording = state.recording && row.gradient == SparseGradient::kOwn, .training = state.training});
    result = row.functions->rule(call);
  }
  if (!result) return run_on_dense(call, results);
  if (!out.empty()) {
    require_specs(op.name, out.first(1), std::span<const NDArray>(&result, 1));
    store(out[0], result);
  }
  (*results)[0] = out.empty() ? result : out[0];
  if (row.gradient != SparseGradient::kOwn)
    record_result(call, (*results)[0], row.gradient == SparseGradient::kOnSparse);
}

NDArray convert_storage(const NDArray& a, std::string_view storage) {
  const Op& op = op_registry().at("cast_storage");
  const std::vector<std::pair<std::string, AttrValue>> attributes{{"stype", AttrValue(std::string(storage))}};
  std::vector<NDArray> results;
  invoke_sparse(op, op.schema->parse(attributes, op.name), {&a, 1}, {}, &results);
  return results[0];
}

NDArray row_sparse_result(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs) {
  if (&op != &kTake.op() || any_sparse(inputs)) return {};
  const auto& p = params->as<ops::TakeGradParams>();
  if (p.axis != 0 || p.shape.ndim() < 1 || p.shape[0] == 0) return {};
  return row_sparse_gradient(p.shape, inputs[0], inputs[1], p.mode);
}

NDArray row_sparse_gradient(const Shape& shape, const NDArray& values, const NDArray& indices,
                            kernels::IndexMode mode) {
  indices.wait_to_read();
  kernels::Indices rows(indices.ref());
  if (rows.size() > 0) rows.resolve(mode, shape[0]);
  return row_sparse_sum(shape, values.reshaped(with_rows(shape, rows.size())),
                        {rows.data(), static_cast<size_t>(rows.size())});
}

}  // namespace hybridnet
