// The table of operators that keep to the storage of their inputs, and what becomes of all others.
//
// Which storage a result has follows MXNet 1.9.1, except that sums, differences and products by operators of the
// broadcast family stay sparse where both shapes are equal.
#include "imperative/sparse_operators.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/front_end.h"
#include "imperative/autograd_scope.h"
#include "imperative/invoke.h"
#include "imperative/sparse_parts.h"
#include "imperative/tape.h"
#include "kernels/indices.h"
#include "kernels/strided_copy.h"
#include "ops/index/row_gradient.h"
#include "ops/reduce/axes.h"
#include "ops/shape/slice_ranges.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"}, kConcat{"Concat"}, kMean{"mean"}, kMultiply{"_mul_scalar"}, kTake{"_backward_take"},
    kSquareSum{"_square_sum"}, kBroadcastMultiply{"broadcast_mul"};

NDArray apply(const SparseCall& call, std::span<const NDArray> inputs) {
  return invoke_one(call.op, call.params, inputs);
}
NDArray apply(const SparseCall& call, const NDArray& input) { return apply(call, {&input, 1}); }

// An array with the pattern of `a` and other values.
NDArray with_values(const NDArray& a, const NDArray& values) {
  const SparseStorage& parts = checked_parts(a);
  Ref<SparseStorage> made = make_ref<SparseStorage>(parts.type, values, parts.indices, parts.indptr);
  made->checked = true;
  return NDArray::sparse({a.shape(), values.dtype()}, Ref<Object>(made.get()), a.device());
}

// -------------------------------------------------------------------------------------------------- one sparse input
using Form = std::optional<StorageType>;

NDArray values_at(const NDArray& sparse, const NDArray& dense);

bool some_need_gradient(std::span<const NDArray> inputs) {
  return autograd_state().recording && std::any_of(inputs.begin(), inputs.end(), needs_gradient);
}

Form as_input(const SparseUse& use) {
  return use.storages[0] == StorageType::kDefault ? Form() : Form(use.storages[0]);
}
Form as_csr_input(const SparseUse& use) {
  return use.storages[0] == StorageType::kCsr ? Form(StorageType::kCsr) : Form();
}
Form as_row_sparse_input(const SparseUse& use) {
  return use.storages[0] == StorageType::kRowSparse ? Form(StorageType::kRowSparse) : Form();
}

NDArray on_values(const SparseCall& call) {
  return with_values(call.inputs[0], apply(call, checked_parts(call.inputs[0]).data));
}

bool is_zero(const NDArray& one_element) {
  one_element.wait_to_read();
  return dispatch_dtype(one_element.dtype(), [&](auto zero) {
    return static_cast<double>(*static_cast<const decltype(zero)*>(one_element.data())) == 0.0;
  });
}

// Zeros stay zeros with these parameters: x * 2, x + 0, x > 1, but not x + 1.
Form as_input_if_zero_stays(const SparseUse& use) {
  if (use.storages[0] == StorageType::kDefault) return {};
  const NDArray zero = NDArray::empty(Shape{1}, DType::kFloat32);
  std::memset(zero.data(), 0, static_cast<size_t>(zero.bytes()));
  return is_zero(invoke_one(use.op, use.params, {&zero, 1})) ? Form(use.storages[0]) : Form();
}

NDArray copy_of(const SparseCall& call) { return copy_sparse(call.inputs[0]); }

NDArray zeros_of(const SparseCall& call) {
  const NDArray& a = call.inputs[0];
  return sparse_zeros(a.storage_type(), a.spec(), a.device());
}

// Whole reductions look at the stored values only.
Form norm_form(const SparseUse& use) {
  const bool whole = use.parameter("axis").is_none() && !use.flag("keepdims");
  return whole && use.storages[0] != StorageType::kDefault ? Form(StorageType::kDefault) : Form();
}

NDArray norm_of(const SparseCall& call) { return apply(call, checked_parts(call.inputs[0]).data); }

ParamsPtr params_of(const Op& op, std::initializer_list<std::pair<std::string, AttrValue>> attrs) {
  return op.schema->parse(std::vector<std::pair<std::string, AttrValue>>(attrs), op.name);
}

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

bool is_square_sum(const Op& op) { return &op == &kSquareSum.op(); }

Form reduction_form(const SparseUse& use) {
  if (use.storages[0] == StorageType::kDefault) return {};
  const auto& p = use.params->as<ops::ReduceParams>();
  if (!is_square_sum(use.op)) return StorageType::kDefault;
  if (use.storages[0] == StorageType::kCsr)
    return ops::reduced_axes(p.axis, p.exclude, 2) == 3 ? Form(StorageType::kDefault) : Form();
  const bool keeps_rows = p.keepdims && p.axis && p.axis->ndim() > 0 && !p.exclude &&
                          std::find(p.axis->begin(), p.axis->end(), 0) == p.axis->end();
  return keeps_rows ? StorageType::kRowSparse : StorageType::kDefault;
}

// sum, mean and _square_sum over the stored values; rows that are not stored add nothing.
NDArray reduction_of(const SparseCall& call) {
  const auto& p = call.params->as<ops::ReduceParams>();
  const NDArray& a = call.inputs[0];
  const uint32_t axes = ops::reduced_axes(p.axis, p.exclude, a.ndim());
  const SparseStorage& parts = checked_parts(a);
  const bool csr = parts.type == StorageType::kCsr, mean = &call.op == &kMean.op();
  const Op& op = mean ? op_registry().at("sum") : call.op;
  const Shape shape = ops::reduced_shape(a.shape(), axes, p.keepdims);
  const uint32_t all = (1u << a.ndim()) - 1;
  const auto reduce = [&](uint32_t over, bool keepdims) {
    return invoke_one(op, ParamSchema<ops::ReduceParams>::box({ops::axes_tuple(over), keepdims, false}),
                      {&parts.data, 1});
  };
  NDArray out;
  if (axes == all) {
    out = reduce(csr ? 1u : all, false).reshaped(shape);
  } else if (csr) {
    out = csr_sums(a, axes).reshaped(shape);
  } else if ((axes & 1u) != 0) {
    out = reduce(axes, p.keepdims);
  } else {
    out = make_row_sparse(shape, reduce(axes, p.keepdims), parts.indices);
    if (!is_square_sum(op) || !p.keepdims)  // as _square_sum of MXNet
      out = to_dense(out);
  }
  return mean ? scaled(out, 1.0 / static_cast<double>(std::max<int64_t>(ops::reduced_count(a.shape(), axes), 1))) : out;
}

// What a recorded step keeps: later writes to an input do not reach it.
std::vector<NDArray> snapshots(std::span<const NDArray> arrays) {
  std::vector<NDArray> taken;
  for (const NDArray& a : arrays) taken.push_back(snapshot(a));
  return taken;
}

// The operator's own rule for the gradient.
void record_result(const SparseCall& call, const NDArray& result, bool on_sparse) {
  if (!call.op.differentiable() || call.op.stops_gradient || !some_need_gradient(call.inputs)) return;
  std::vector<NDArray> results(static_cast<size_t>(call.op.num_outputs(call.params->data())));
  results[0] = result;
  record_op(call.op, call.params, snapshots(call.inputs), results, on_sparse);
}

// Sums of squares of each row, as rows: the gradient reaches the rows that both the gradient arriving and the input
// store.
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

NDArray square_sum_of(const SparseCall& call) {
  NDArray out;
  {
    const AutogradScope paused({.recording = false, .training = autograd_state().training});
    out = reduction_of(call);
  }
  if (out && out.is_sparse() && some_need_gradient(call.inputs))
    record(Ref<RecordedFunction>(new SquareSumFunction(snapshot(call.inputs[0]))), call.inputs, {&out, 1});
  else if (out)
    record_result(call, out, false);
  return out;
}

// ------------------------------------------------------------------------------------------------- two sparse inputs
// Both on one pattern: that of both, or (common) of places that both store.
NDArray on_aligned_values(const SparseCall& call, bool common) {
  const NDArray &a = call.inputs[0], &b = call.inputs[1];
  const SparseStorage &left = checked_parts(a), &right = checked_parts(b);
  kernels::CsrAlignment aligned;
  NDArray indptr;
  if (left.type == StorageType::kCsr) {
    const kernels::CsrPattern patterns[] = {read_pattern(left), read_pattern(right)};
    if (!kernels::columns_ascending(patterns[0]) || !kernels::columns_ascending(patterns[1])) return {};
    aligned = kernels::align_csr(patterns[0], patterns[1], common);
    indptr = int64_array(aligned.indptr);
  } else {
    kernels::align(read_int64(left.indices), read_int64(right.indices), common, &aligned.columns);
  }
  const NDArray values[] = {gather_positions(left.data, std::move(aligned.columns.a)),
                            gather_positions(right.data, std::move(aligned.columns.b))};
  const NDArray data = apply(call, values);
  Ref<SparseStorage> made = make_ref<SparseStorage>(left.type, data, int64_array(aligned.columns.ids), indptr);
  made->checked = true;
  return NDArray::sparse({a.shape(), data.dtype()}, Ref<Object>(made.get()), a.device());
}

bool same_shape(const SparseCall& call) { return call.inputs[0].shape() == call.inputs[1].shape(); }

// dense + row_sparse: a copy with the stored rows added.
NDArray add_rows_to_dense(const SparseCall& call) {
  const size_t sparse = call.storage(0) == StorageType::kRowSparse ? 0 : 1;
  const NDArray &rows = call.inputs[sparse], &dense = call.inputs[1 - sparse];
  if (dense.dtype() != rows.dtype()) return {};
  const SparseStorage& parts = checked_parts(rows);
  const NDArray out = invoke_one(kCopy.op(), kCopy.op().default_params, {&dense, 1});
  const NDArray reads[] = {parts.data, parts.indices}, writes[] = {out};
  note_overwrite(out);
  run_task("add_rows", reads, writes, parts.data.bytes() / 2 + 1,
           [data = parts.data, indices = parts.indices, out](TaskContext&) {
             const auto* ids = static_cast<const int64_t*>(indices.data());
             const int64_t width = row_width(out.shape());
             dispatch_dtype(out.dtype(), [&](auto zero) {
               using T = decltype(zero);
               using A = accumulator_t<T>;
               const T* from = static_cast<const T*>(data.data());
               T* to = static_cast<T*>(out.data());
               for (int64_t r = 0; r < indices.size(); ++r) {
                 for (int64_t i = 0; i < width; ++i) {
                   T& target = to[ids[r] * width + i];
                   target = static_cast<T>(static_cast<A>(target) + static_cast<A>(from[r * width + i]));
                 }
               }
             });
           });
  return out;
}

Form both_alike(const SparseUse& use) { return use.storages[0] == use.storages[1] ? as_input(use) : Form(); }
NDArray union_of(const SparseCall& call) { return same_shape(call) ? on_aligned_values(call, false) : NDArray(); }

Form sum_form(const SparseUse& use) {
  const StorageType a = use.storages[0], b = use.storages[1];
  if (a == b) return as_input(use);
  const bool rows = a == StorageType::kRowSparse || b == StorageType::kRowSparse;
  const bool dense = a == StorageType::kDefault || b == StorageType::kDefault;
  return rows && dense ? Form(StorageType::kDefault) : Form();
}
NDArray sum_of(const SparseCall& call) {
  if (!same_shape(call)) return {};
  return call.storage(0) == call.storage(1) ? on_aligned_values(call, false) : add_rows_to_dense(call);
}

// Values of a dense array at the places that a sparse one stores. The dense shape may be broadcast.
NDArray values_at(const NDArray& sparse, const NDArray& dense) {
  const SparseStorage& parts = checked_parts(sparse);
  if (parts.type == StorageType::kRowSparse) {
    const std::span<const int64_t> rows = read_int64(parts.indices);
    return gather_positions(dense, {rows.begin(), rows.end()});
  }
  const Shape& shape = dense.shape();
  const int64_t columns = shape[shape.ndim() - 1], rows = shape.ndim() == 2 ? shape[0] : 1;
  const int64_t row_stride = rows == 1 ? 0 : columns, column_stride = columns == 1 ? 0 : 1;
  const kernels::CsrPattern pattern = read_pattern(parts);
  const NDArray out = NDArray::deferred({parts.data.shape(), dense.dtype()});
  const NDArray reads[] = {dense}, writes[] = {out};
  run_task(
      "values_at", reads, writes, pattern.stored() + 1,
      [indptr = parts.indptr, indices = parts.indices, pattern, dense, out, row_stride, column_stride](TaskContext&) {
        if (out.size() > 0)
          kernels::gather_at_values(pattern, dense.data(), row_stride, column_stride, dtype_size(out.dtype()),
                                    out.data());
      });
  return out;
}

// Operators of the broadcast family take vectors and single numbers beside a matrix, too.
bool fits_values_at(const Op& op, const NDArray& sparse, const NDArray& dense) {
  if (sparse.shape() == dense.shape()) return true;
  const Shape &s = sparse.shape(), &d = dense.shape();
  if (!op.name.starts_with("broadcast_") || d.ndim() < 1 || d.ndim() > s.ndim()) return false;
  if (dense.size() == 1) return true;
  if (sparse.storage_type() != StorageType::kCsr) return false;
  const int64_t columns = d[d.ndim() - 1], rows = d.ndim() == 2 ? d[0] : 1;
  return (columns == s[1] || columns == 1) && (rows == s[0] || rows == 1);
}

// A sparse factor on either side decides where the product is stored.
NDArray product_with_dense(const SparseCall& call, size_t sparse) {
  const NDArray& dense = call.inputs[1 - sparse];
  if (!fits_values_at(call.op, call.inputs[sparse], dense)) return {};
  NDArray values[2];
  values[sparse] = checked_parts(call.inputs[sparse]).data;
  const bool one_number = dense.size() == 1 && !same_shape(call);
  values[1 - sparse] = one_number ? dense.reshaped(Shape{1}) : values_at(call.inputs[sparse], dense);
  return with_values(call.inputs[sparse], apply(call, values));
}

Form product_form(const SparseUse& use) {
  const StorageType a = use.storages[0], b = use.storages[1];
  if (a == b) return as_input(use);
  if (a != StorageType::kDefault && b != StorageType::kDefault) return {};
  return a == StorageType::kDefault ? b : a;
}
NDArray product_of(const SparseCall& call) {
  if (call.inputs[0].is_sparse() && call.inputs[1].is_sparse())
    return same_shape(call) ? on_aligned_values(call, true) : NDArray();
  return product_with_dense(call, call.inputs[0].is_sparse() ? 0 : 1);
}

// 0 / x is 0: the quotient by a dense array is stored where the numerator is.
Form quotient_form(const SparseUse& use) {
  return use.storages[1] == StorageType::kDefault ? as_csr_input(use) : Form();
}
NDArray quotient_of(const SparseCall& call) { return product_with_dense(call, 0); }

// ------------------------------------------------------------------------------------------------ many sparse inputs
bool all_stored_as(const SparseUse& use, StorageType type) {
  return std::all_of(use.storages.begin(), use.storages.end(), [type](StorageType s) { return s == type; });
}

NDArray concatenated(const std::vector<NDArray>& arrays) {
  const Op& op = kConcat.op();
  return invoke_one(
      op, params_of(op, {{"num_args", AttrValue(static_cast<int64_t>(arrays.size()))}, {"dim", AttrValue(0)}}), arrays);
}

Form all_row_sparse(const SparseUse& use) {
  return all_stored_as(use, StorageType::kRowSparse) ? as_input(use) : Form();
}
NDArray sum_of_row_sparse(const SparseCall& call) {
  std::vector<int64_t> rows;
  std::vector<NDArray> data;
  for (const NDArray& a : call.inputs) {
    if (!(a.spec() == call.inputs[0].spec())) return {};
    const SparseStorage& parts = checked_parts(a);
    const std::span<const int64_t> ids = read_int64(parts.indices);
    rows.insert(rows.end(), ids.begin(), ids.end());
    if (!ids.empty()) data.push_back(parts.data);
  }
  const NDArray& first = call.inputs[0];
  if (data.empty()) return sparse_zeros(StorageType::kRowSparse, first.spec(), first.device());
  return row_sparse_sum(first.shape(), data.size() == 1 ? data[0] : concatenated(data), rows);
}

Form concat_form(const SparseUse& use) {
  const AttrValue dim = use.parameter("dim");
  const auto* axis = std::get_if<int64_t>(&dim.value);
  const bool rows = axis != nullptr && (*axis == 0 || *axis == -2);
  return rows && all_stored_as(use, StorageType::kCsr) ? as_input(use) : Form();
}
NDArray concat_csr(const SparseCall& call) {
  std::vector<int64_t> indptr{0};
  std::vector<NDArray> data, indices;
  const NDArray& first = call.inputs[0];
  for (const NDArray& a : call.inputs) {
    if (a.shape()[1] != first.shape()[1] || a.dtype() != first.dtype()) return {};
    const SparseStorage& parts = checked_parts(a);
    const int64_t before = indptr.back();
    for (const int64_t start : read_int64(parts.indptr).subspan(1)) indptr.push_back(before + start);
    if (parts.data.size() == 0) continue;
    data.push_back(parts.data);
    indices.push_back(parts.indices);
  }
  const Shape shape{static_cast<int64_t>(indptr.size()) - 1, first.shape()[1]};
  if (data.empty()) return sparse_zeros(StorageType::kCsr, {shape, first.dtype()}, first.device());
  return make_csr(shape, concatenated(data), concatenated(indices), int64_array(indptr));
}

// ----------------------------------------------------------------------------------------------- parts of an array
NDArray retained(const SparseCall& call) { return retain_rows(call.inputs[0], call.inputs[1]); }

std::optional<int64_t> integer(const AttrValue& value) {
  const auto* number = std::get_if<int64_t>(&value.value);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

OptionalInts integers(const AttrValue& value) {
  OptionalInts list;
  if (const auto* items = std::get_if<AttrValue::List>(&value.value))
    for (const AttrValue& item : *items) list.push_back(integer(item));
  return list;
}

NDArray sliced(const NDArray& a, const std::vector<ops::SliceRange>& ranges) {
  for (const ops::SliceRange& range : ranges)
    if (range.step != 1) return {};
  return slice_csr(a, ranges[0].begin, ranges[0].begin + ranges[0].count, ranges[1].begin,
                   ranges[1].begin + ranges[1].count);
}

NDArray slice_of(const SparseCall& call) {
  return sliced(call.inputs[0], ops::slice_ranges(integers(call.parameter("begin")), integers(call.parameter("end")),
                                                  integers(call.parameter("step")), call.inputs[0].shape()));
}

NDArray slice_axis_of(const SparseCall& call) {
  const int axis = normalize_axis(integer(call.parameter("axis")).value_or(0), 2);
  OptionalInts begin(static_cast<size_t>(axis)), end(static_cast<size_t>(axis));
  begin.push_back(integer(call.parameter("begin")));
  end.push_back(integer(call.parameter("end")));
  return sliced(call.inputs[0], ops::slice_ranges(begin, end, {}, call.inputs[0].shape()));
}

// Whole rows of a csr matrix in another order.
Form take_form(const SparseUse& use) {
  const bool rows = integer(use.parameter("axis")).value_or(0) == 0 && use.storages[1] == StorageType::kDefault;
  return rows ? as_csr_input(use) : Form();
}
NDArray take_csr(const SparseCall& call) {
  if (call.inputs[1].ndim() != 1) return {};
  const NDArray& a = call.inputs[0];
  const AttrValue mode = call.parameter("mode");
  const auto* word = std::get_if<std::string>(&mode.value);
  call.inputs[1].wait_to_read();
  kernels::Indices rows(call.inputs[1].ref());
  if (rows.size() > 0)
    rows.resolve(word == nullptr || *word == "clip" ? kernels::IndexMode::kClip
                 : *word == "wrap"                  ? kernels::IndexMode::kWrap
                                                    : kernels::IndexMode::kRaise,
                 a.shape()[0]);
  const SparseStorage& parts = checked_parts(a);
  const kernels::CsrPattern pattern = read_pattern(parts);
  std::vector<int64_t> indptr{0}, indices, positions;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i]);
    for (int64_t k = pattern.indptr[row]; k < pattern.indptr[row + 1]; ++k) {
      indices.push_back(pattern.indices[static_cast<size_t>(k)]);
      positions.push_back(k);
    }
    indptr.push_back(static_cast<int64_t>(indices.size()));
  }
  return make_csr(Shape{rows.size(), a.shape()[1]}, gather_positions(parts.data, std::move(positions)),
                  int64_array(indices), int64_array(indptr));
}

// ---------------------------------------------------------------------------------------------------- change of storage
// The gradient passes through as it arrives.
class StorageFunction final : public RecordedFunction {
 public:
  std::string name() const override { return "cast_storage"; }
  bool takes_sparse_gradients() const override { return true; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool) override { return {out_grads[0]}; }
};

Form cast_form(const SparseUse& use) {
  const AttrValue stype = use.parameter("stype");
  const auto* name = std::get_if<std::string>(&stype.value);
  return name != nullptr ? Form(storage_type_from_name(*name)) : Form();
}
NDArray cast_of(const SparseCall& call) {
  const NDArray& a = call.inputs[0];
  const StorageType type = *cast_form(call);
  NDArray out = cast_storage(a, type);
  if (out == a) out = a.is_sparse() ? copy_sparse(a) : invoke_one(kCopy.op(), kCopy.op().default_params, {&a, 1});
  if (autograd_state().recording && needs_gradient(a))
    record(Ref<RecordedFunction>(new StorageFunction), {&a, 1}, {&out, 1});
  return out;
}

// ---------------------------------------------------------------------------------------------------- lazy updates
// A table of which all rows are stored, as the dense array that holds them; completed where rows are missing.
NDArray whole_table(const NDArray& a) {
  if (!a.is_sparse()) return a;
  if (checked_parts(a).indices.size() != a.shape()[0]) {
    const NDArray dense = to_dense(a);
    std::vector<int64_t> rows(static_cast<size_t>(a.shape()[0]));
    for (size_t r = 0; r < rows.size(); ++r) rows[r] = static_cast<int64_t>(r);
    SparseStorage& parts = sparse_storage(a);
    parts.data = dense;
    parts.indices = int64_array(rows);
  }
  return sparse_storage(a).data;
}

// Updates the rows that the gradient stores, of the weight and of the states.
Form update_form(const SparseUse& use) {
  if (use.storages.size() < 2 || use.storages[1] != StorageType::kRowSparse || use.storages[0] == StorageType::kCsr)
    return {};
  if (const AttrValue lazy = use.parameter("lazy_update"); !lazy.is_none() && !use.flag("lazy_update")) return {};
  return use.storages[0];
}
NDArray update_rows(const SparseCall& call, const char* lazy_operator) {
  if (call.out.size() != 1) return {};
  const NDArray &weight = call.inputs[0], &grad = call.inputs[1];
  if (!(call.out[0] == weight) || !(grad.spec() == weight.spec())) return {};
  const SparseStorage& rows = checked_parts(grad);
  if (rows.indices.size() == 0) return weight;
  std::vector<NDArray> inputs{whole_table(weight), rows.data};
  for (const NDArray& state : call.inputs.subspan(2)) {
    if (state.storage_type() == StorageType::kCsr) return {};
    inputs.push_back(whole_table(state));
  }
  inputs.push_back(rows.indices);
  const Op& op = op_registry().at(lazy_operator);
  const NDArray table = inputs[0];
  invoke(op, call.params, inputs, {&table, 1});
  return weight;
}

template <const char* const& kOperator>
NDArray lazy_update(const SparseCall& call) {
  return update_rows(call, kOperator);
}
constexpr const char* kLazySgd = "_lazy_sgd_update";
constexpr const char* kLazySgdMomentum = "_lazy_sgd_mom_update";
constexpr const char* kLazyAdam = "_lazy_adam_update";
constexpr const char* kLazyFtrl = "_lazy_ftrl_update";
constexpr const char* kLazyFtml = "_lazy_ftml_update";
constexpr const char* kLazyAdagrad = "_lazy_adagrad_update";
constexpr const char* kLazyGroupAdagrad = "_lazy_group_adagrad_update";

// -------------------------------------------------------------------------------------------------------- the table
// How the gradient of a use is found.
enum class Gradient : uint8_t {
  kOnDense,   // by the operator's rule, on dense copies: where f(0) = 0, the derivative at 0 is any number
  kOnSparse,  // by the operator's rule, on the sparse arrays: its operators keep storage
  kOwn,       // the rule of this table puts its step on the tape itself
};

struct Row {
  const char* op;
  SparseForm form;
  SparseRule rule;
  Gradient gradient = Gradient::kOnDense;
};

constexpr Row kTable[] = {
    {"abs", as_input, on_values, Gradient::kOnSparse},
    {"sign", as_input, on_values},
    {"round", as_input, on_values},
    {"rint", as_input, on_values},
    {"ceil", as_input, on_values},
    {"floor", as_input, on_values},
    {"trunc", as_input, on_values},
    {"fix", as_input, on_values},
    {"square", as_input, on_values, Gradient::kOnSparse},
    {"sqrt", as_input, on_values},
    {"cbrt", as_input, on_values},
    {"sin", as_input, on_values},
    {"tan", as_input, on_values},
    {"arcsin", as_input, on_values},
    {"arctan", as_input, on_values},
    {"sinh", as_input, on_values},
    {"tanh", as_input, on_values},
    {"arcsinh", as_input, on_values},
    {"arctanh", as_input, on_values},
    {"radians", as_input, on_values, Gradient::kOnSparse},
    {"degrees", as_input, on_values, Gradient::kOnSparse},
    {"expm1", as_input, on_values},
    {"log1p", as_input, on_values},
    {"relu", as_input, on_values, Gradient::kOnSparse},
    {"negative", as_input, on_values, Gradient::kOnSparse},
    {"make_loss", as_input, on_values},
    {"BlockGrad", as_input, on_values},
    {"Cast", as_input, on_values, Gradient::kOnSparse},
    {"_copy", as_input, copy_of, Gradient::kOnSparse},
    {"zeros_like", as_input, zeros_of},
    {"_mul_scalar", as_input_if_zero_stays, on_values, Gradient::kOnSparse},
    {"_div_scalar", as_input_if_zero_stays, on_values, Gradient::kOnSparse},
    {"_plus_scalar", as_input_if_zero_stays, on_values, Gradient::kOnSparse},
    {"_minus_scalar", as_input_if_zero_stays, on_values, Gradient::kOnSparse},
    {"_equal_scalar", as_input_if_zero_stays, on_values},
    {"_not_equal_scalar", as_input_if_zero_stays, on_values},
    {"_greater_scalar", as_input_if_zero_stays, on_values},
    {"_greater_equal_scalar", as_input_if_zero_stays, on_values},
    {"_lesser_scalar", as_input_if_zero_stays, on_values},
    {"_lesser_equal_scalar", as_input_if_zero_stays, on_values},
    {"clip", as_input_if_zero_stays, on_values},
    {"_contrib_quadratic", as_input_if_zero_stays, on_values},
    {"norm", norm_form, norm_of},
    {"sum", reduction_form, reduction_of},
    {"mean", reduction_form, reduction_of},
    {"_square_sum", reduction_form, square_sum_of, Gradient::kOwn},
    {"elemwise_add", sum_form, sum_of, Gradient::kOnSparse},
    {"_grad_add", sum_form, sum_of, Gradient::kOnSparse},
    {"broadcast_add", sum_form, sum_of, Gradient::kOnSparse},
    {"elemwise_sub", both_alike, union_of, Gradient::kOnSparse},
    {"broadcast_sub", both_alike, union_of, Gradient::kOnSparse},
    {"_hypot", both_alike, union_of},
    {"_maximum", both_alike, union_of},
    {"_minimum", both_alike, union_of},
    {"elemwise_mul", product_form, product_of, Gradient::kOnSparse},
    {"broadcast_mul", product_form, product_of, Gradient::kOnSparse},
    {"_backward_relu", product_form, product_of},
    {"_backward_square", product_form, product_of},
    {"broadcast_div", quotient_form, quotient_of},
    {"add_n", all_row_sparse, sum_of_row_sparse, Gradient::kOnSparse},
    {"Concat", concat_form, concat_csr},
    {"_sparse_retain", as_row_sparse_input, retained},
    {"slice", as_csr_input, slice_of},
    {"slice_axis", as_csr_input, slice_axis_of},
    {"take", take_form, take_csr},
    {"cast_storage", cast_form, cast_of, Gradient::kOwn},
    {"dot", dot_form, sparse_dot, Gradient::kOwn},
    {"Embedding", embedding_form, sparse_embedding, Gradient::kOwn},
    {"_contrib_SparseEmbedding", embedding_form, sparse_embedding, Gradient::kOwn},
    {"sgd_update", update_form, lazy_update<kLazySgd>},
    {"sgd_mom_update", update_form, lazy_update<kLazySgdMomentum>},
    {"adam_update", update_form, lazy_update<kLazyAdam>},
    {"ftrl_update", update_form, lazy_update<kLazyFtrl>},
    {"ftml_update", update_form, lazy_update<kLazyFtml>},
    {"_sparse_adagrad_update", update_form, lazy_update<kLazyAdagrad>},
    {"_contrib_group_adagrad_update", update_form, lazy_update<kLazyGroupAdagrad>},
};

const Row* find_row(const Op& op) {
  static const auto* const rows = [] {
    auto* table = new std::unordered_map<const Op*, const Row*>;
    for (const Row& row : kTable) table->emplace(&op_registry().at(row.op), &row);
    return table;
  }();
  const auto found = rows->find(&op);
  return found == rows->end() ? nullptr : found->second;
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

// An optimizer's update of tables of which all rows are stored: it may write to their values. Others write to new
// parts, which leaves recorded steps what they have read.
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
  for (size_t i = 0; i < call.out.size(); ++i) {
    if (targets.empty()) store(call.out[i], (*results)[i]);
    (*results)[i] = call.out[i];
  }
  // States that the operator has replaced in their dense copies.
  for (size_t k = 0; call.op.has_writebacks() && k < results->size(); ++k) {
    const int state = call.op.writeback_input(call.params->data(), static_cast<int>(k));
    if (state < 0 || !(*results)[k]) continue;
    const NDArray& target = call.inputs[static_cast<size_t>(state)];
    if (target.is_sparse() && !inputs[static_cast<size_t>(state)].shares_memory(sparse_storage(target).data))
      store(target, (*results)[k]);
  }
}

}  // namespace

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
  const Row* row = find_row(op);
  if (row == nullptr) return {};
  const Form form = row->form({op, params, storages});
  const auto dense = [](StorageType type) { return type == StorageType::kDefault; };
  return form && dense(*form) && std::all_of(storages.begin(), storages.end(), dense) ? Form() : form;
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
  const std::vector<StorageType> storages = storages_of(inputs);
  const SparseCall call{{op, params, storages}, inputs, out};
  results->assign(static_cast<size_t>(op.num_outputs(params->data())), NDArray());
  const Row* row = find_row(op);
  NDArray result;
  if (row != nullptr && row->form(call)) {
    const AutogradState state = autograd_state();
    const AutogradScope scope(
        {.recording = state.recording && row->gradient == Gradient::kOwn, .training = state.training});
    result = row->rule(call);
  }
  if (!result) return run_on_dense(call, results);
  if (!out.empty()) store(out[0], result);
  (*results)[0] = out.empty() ? result : out[0];
  if (row->gradient != Gradient::kOwn) record_result(call, (*results)[0], row->gradient == Gradient::kOnSparse);
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
