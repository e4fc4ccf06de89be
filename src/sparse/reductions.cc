// Reductions of sparse arrays, which read only the stored values.
#include "imperative/autograd_scope.h"
#include "imperative/invoke.h"
#include "ops/reduce/axes.h"
#include "sparse/parts.h"
#include "sparse/rules.h"

namespace hybridnet {
namespace {

const OpRef kSum{"sum"}, kMultiply{"_mul_scalar"}, kBroadcastMultiply{"broadcast_mul"};

}  // namespace

// Reductions over all elements read the stored values only.
ResultStorage norm_storage(const SparseUse& use) {
  const bool whole = use.parameter("axis").is_none() && !use.flag("keepdims");
  return whole && use.storages[0] != StorageType::kDefault ? ResultStorage(StorageType::kDefault) : ResultStorage();
}

NDArray norm_of(const SparseCall& call) { return apply(call, checked_parts(call.inputs[0]).data); }

namespace {

NDArray scaled(const NDArray& a, double factor) {
  const Op& op = kMultiply.op();
  return invoke_one(op, params_of(op, {{"scalar", AttrValue(factor)}}), {&a, 1});
}

NDArray csr_sums(const NDArray& a, uint32_t axes) {
  const SparseStorage& parts = checked_parts(a);
  const kernels::CsrPattern pattern = read_pattern(parts);
  const bool by_row = axes == 2;
  const NDArray out = NDArray::deferred({Shape{a.shape()[by_row ? 0 : 1]}, a.dtype()});
  const NDArray reads[] = {parts.data}, writes[] = {out};
  run_task("sum(csr)", reads, writes, pattern.stored() + out.size() + 1,
           [indptr = parts.indptr, indices = parts.indices, data = parts.data, pattern, out, by_row](TaskContext&) {
             if (out.size() == 0) return;
             if (by_row)
               kernels::csr_row_sums(pattern, data.data(), out.dtype(), out.data());
             else
               kernels::csr_column_sums(pattern, data.data(), out.dtype(), out.size(), out.data());
           });
  return out;
}

}  // namespace

ResultStorage reduction_storage(const SparseUse& use) {
  return use.storages[0] == StorageType::kDefault ? ResultStorage() : ResultStorage(StorageType::kDefault);
}

ResultStorage square_sum_storage(const SparseUse& use) {
  const auto& p = use.params->as<ops::ReduceParams>();
  if (use.storages[0] == StorageType::kDefault) return {};
  if (use.storages[0] == StorageType::kCsr)
    return ops::reduced_axes(p.axis, p.exclude, 2) == 3 ? ResultStorage(StorageType::kDefault) : ResultStorage();
  const bool keeps_rows = p.keepdims && p.axis && p.axis->ndim() > 0 && !p.exclude &&
                          std::find(p.axis->begin(), p.axis->end(), 0) == p.axis->end();
  return keeps_rows ? StorageType::kRowSparse : StorageType::kDefault;
}

namespace {

// The sums that `op` computes, over the stored values; rows that are not stored add nothing. If rows remain, the result
// is a row_sparse array.
NDArray sums_by(const Op& op, const SparseCall& call) {
  const auto& p = call.params->as<ops::ReduceParams>();
  const NDArray& a = call.inputs[0];
  const uint32_t axes = ops::reduced_axes(p.axis, p.exclude, a.ndim());
  const SparseStorage& parts = checked_parts(a);
  const bool csr = parts.type == StorageType::kCsr;
  const Shape shape = ops::reduced_shape(a.shape(), axes, p.keepdims);
  const uint32_t all = (1u << a.ndim()) - 1;
  const auto reduce = [&](uint32_t over, bool keepdims) {
    return invoke_one(op, ParamSchema<ops::ReduceParams>::box({ops::axes_tuple(over), keepdims, false}),
                      {&parts.data, 1});
  };
  if (axes == all) return reduce(csr ? 1u : all, false).reshaped(shape);
  if (csr) return csr_sums(a, axes).reshaped(shape);
  if ((axes & 1u) != 0) return reduce(axes, p.keepdims);
  return make_row_sparse(shape, reduce(axes, p.keepdims), parts.indices);
}

}  // namespace

NDArray sums_of(const SparseCall& call) { return to_dense(sums_by(call.op, call)); }

NDArray means_of(const SparseCall& call) {
  const auto& p = call.params->as<ops::ReduceParams>();
  const Shape& shape = call.inputs[0].shape();
  const int64_t count = ops::reduced_count(shape, ops::reduced_axes(p.axis, p.exclude, shape.ndim()));
  return scaled(to_dense(sums_by(kSum.op(), call)), 1.0 / static_cast<double>(std::max<int64_t>(count, 1)));
}

namespace {

// The step of row-wise sums of squares, with a row_sparse result: the gradient has the rows that are stored by both the
// output gradient and the input.
class SquareSumFunction final : public RecordedFunction {
 public:
  explicit SquareSumFunction(NDArray input) : input_(std::move(input)) {}
  std::string name() const override { return "_square_sum"; }
  bool returns_fresh_arrays() const override { return true; }
  bool takes_sparse_gradients() const override { return true; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    if (!out_grads[0]) return {NDArray()};
    const NDArray g = rows_or_dense(out_grads[0]);
    if (create_graph) return {product(dense_form(input_), dense_form(g))};
    if (!g.is_sparse()) return {with_values(input_, product(checked_parts(input_).data, values_at(input_, g)))};
    const SparseStorage& rows = checked_parts(g);
    const NDArray chosen = take_rows_sparse(input_, rows.indices);
    return {with_values(chosen, product(checked_parts(chosen).data, rows.data))};
  }

 private:
  static NDArray product(const NDArray& values, const NDArray& g) {
    const NDArray factors[] = {scaled(values, 2.0), g};
    return invoke_one(kBroadcastMultiply.op(), kBroadcastMultiply.op().default_params, factors);
  }
  NDArray input_;
};

}  // namespace

NDArray square_sum_of(const SparseCall& call) {
  NDArray out;
  {
    const AutogradScope paused({.recording = false, .training = autograd_state().training});
    out = sums_by(call.op, call);
    if (!call.flag("keepdims")) out = to_dense(out);  // the storage of MXNet's result
  }
  if (out && out.is_sparse() && some_need_gradient(call.inputs))
    record(Ref<RecordedFunction>(new SquareSumFunction(snapshot(call.inputs[0]))), call.inputs, {&out, 1});
  else if (out)
    record_result(call, out, false);
  return out;
}

}  // namespace hybridnet
