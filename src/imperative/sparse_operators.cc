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

#include "base/front_end.h"
#include "imperative/invoke.h"
#include "imperative/sparse_parts.h"
#include "kernels/indices.h"
#include "kernels/strided_copy.h"
#include "ops/index/row_gradient.h"
#include "ops/reduce/axes.h"
#include "ops/shape/slice_ranges.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"}, kConcat{"Concat"}, kMean{"mean"}, kMultiply{"_mul_scalar"}, kTake{"_backward_take"};

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
NDArray on_values_if_zero_stays(const SparseCall& call) {
  const NDArray zero = NDArray::empty(Shape{1}, call.inputs[0].dtype());
  std::memset(zero.data(), 0, static_cast<size_t>(zero.bytes()));
  return is_zero(apply(call, zero)) ? on_values(call) : NDArray();
}

NDArray copy_of(const SparseCall& call) { return copy_sparse(call.inputs[0]); }

NDArray zeros_of(const SparseCall& call) {
  const NDArray& a = call.inputs[0];
  return sparse_zeros(a.storage_type(), a.spec(), a.device());
}

// Whole reductions look at the stored values only.
NDArray norm_of(const SparseCall& call) {
  if (!call.parameter("axis").is_none() || call.flag("keepdims")) return {};
  return apply(call, checked_parts(call.inputs[0]).data);
}

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
    if (&op != &op_registry().at("sum")) return {};
    out = csr_sums(a, axes).reshaped(shape);
  } else if ((axes & 1u) != 0) {
    out = reduce(axes, p.keepdims);
  } else {
    out = make_row_sparse(shape, reduce(axes, p.keepdims), parts.indices);
    const bool stays = !mean && &op != &op_registry().at("sum") && p.keepdims;  // as _square_sum of MXNet
    if (!stays) out = to_dense(out);
  }
  return mean ? scaled(out, 1.0 / static_cast<double>(std::max<int64_t>(ops::reduced_count(a.shape(), axes), 1))) : out;
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

NDArray union_of(const SparseCall& call) {
  if (!same_shape(call) || call.storage(0) != call.storage(1)) return {};
  return on_aligned_values(call, false);
}

NDArray sum_of(const SparseCall& call) {
  if (!same_shape(call)) return {};
  if (call.storage(0) == call.storage(1)) return on_aligned_values(call, false);
  const bool rows = call.storage(0) == StorageType::kRowSparse || call.storage(1) == StorageType::kRowSparse;
  const bool dense = !call.inputs[0].is_sparse() || !call.inputs[1].is_sparse();
  return rows && dense ? add_rows_to_dense(call) : NDArray();
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

NDArray product_of(const SparseCall& call) {
  if (call.inputs[0].is_sparse() && call.inputs[1].is_sparse())
    return same_shape(call) && call.storage(0) == call.storage(1) ? on_aligned_values(call, true) : NDArray();
  return product_with_dense(call, call.inputs[0].is_sparse() ? 0 : 1);
}

// 0 / x is 0: the quotient by a dense array is stored where the numerator is.
NDArray quotient_of(const SparseCall& call) {
  return call.storage(0) == StorageType::kCsr && !call.inputs[1].is_sparse() ? product_with_dense(call, 0) : NDArray();
}

// ------------------------------------------------------------------------------------------------ many sparse inputs
bool all_stored_as(const SparseCall& call, StorageType type) {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.storage(i) != type) return false;
  return true;
}

NDArray concatenated(const std::vector<NDArray>& arrays) {
  const Op& op = kConcat.op();
  return invoke_one(
      op, params_of(op, {{"num_args", AttrValue(static_cast<int64_t>(arrays.size()))}, {"dim", AttrValue(0)}}), arrays);
}

NDArray sum_of_row_sparse(const SparseCall& call) {
  if (!all_stored_as(call, StorageType::kRowSparse)) return {};
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

NDArray concat_csr(const SparseCall& call) {
  const AttrValue dim = call.parameter("dim");
  const auto* axis = std::get_if<int64_t>(&dim.value);
  if (!all_stored_as(call, StorageType::kCsr) || axis == nullptr || (*axis != 0 && *axis != -2)) return {};
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
NDArray retained(const SparseCall& call) {
  return call.storage(0) == StorageType::kRowSparse ? retain_rows(call.inputs[0], call.inputs[1]) : NDArray();
}

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
  if (call.storage(0) != StorageType::kCsr) return {};
  return sliced(call.inputs[0], ops::slice_ranges(integers(call.parameter("begin")), integers(call.parameter("end")),
                                                  integers(call.parameter("step")), call.inputs[0].shape()));
}

NDArray slice_axis_of(const SparseCall& call) {
  if (call.storage(0) != StorageType::kCsr) return {};
  const int axis = normalize_axis(integer(call.parameter("axis")).value_or(0), 2);
  OptionalInts begin(static_cast<size_t>(axis)), end(static_cast<size_t>(axis));
  begin.push_back(integer(call.parameter("begin")));
  end.push_back(integer(call.parameter("end")));
  return sliced(call.inputs[0], ops::slice_ranges(begin, end, {}, call.inputs[0].shape()));
}

// Whole rows of a csr matrix in another order.
NDArray take_csr(const SparseCall& call) {
  if (call.storage(0) != StorageType::kCsr || call.inputs[1].is_sparse() || call.inputs[1].ndim() != 1 ||
      integer(call.parameter("axis")).value_or(0) != 0)
    return {};
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
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool) override { return {out_grads[0]}; }
};

NDArray cast_of(const SparseCall& call) {
  const AttrValue stype = call.parameter("stype");
  const auto* name = std::get_if<std::string>(&stype.value);
  if (name == nullptr) return {};
  const NDArray& a = call.inputs[0];
  const StorageType type = storage_type_from_name(*name);
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
NDArray update_rows(const SparseCall& call, const char* lazy_operator) {
  if (call.inputs.size() < 2 || call.storage(1) != StorageType::kRowSparse || call.out.size() != 1 ||
      call.storage(0) == StorageType::kCsr)
    return {};
  if (const AttrValue lazy = call.parameter("lazy_update"); !lazy.is_none() && !call.flag("lazy_update")) return {};
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
struct Row {
  const char* op;
  SparseRule rule;
  bool records = false;  // the rule puts its step on the tape itself
};

constexpr Row kTable[] = {
    {"abs", on_values},
    {"sign", on_values},
    {"round", on_values},
    {"rint", on_values},
    {"ceil", on_values},
    {"floor", on_values},
    {"trunc", on_values},
    {"fix", on_values},
    {"square", on_values},
    {"sqrt", on_values},
    {"cbrt", on_values},
    {"sin", on_values},
    {"tan", on_values},
    {"arcsin", on_values},
    {"arctan", on_values},
    {"sinh", on_values},
    {"tanh", on_values},
    {"arcsinh", on_values},
    {"arctanh", on_values},
    {"radians", on_values},
    {"degrees", on_values},
    {"expm1", on_values},
    {"log1p", on_values},
    {"relu", on_values},
    {"negative", on_values},
    {"make_loss", on_values},
    {"BlockGrad", on_values},
    {"Cast", on_values},
    {"_copy", copy_of},
    {"zeros_like", zeros_of},
    {"_mul_scalar", on_values_if_zero_stays},
    {"_div_scalar", on_values_if_zero_stays},
    {"_plus_scalar", on_values_if_zero_stays},
    {"_minus_scalar", on_values_if_zero_stays},
    {"_equal_scalar", on_values_if_zero_stays},
    {"_not_equal_scalar", on_values_if_zero_stays},
    {"_greater_scalar", on_values_if_zero_stays},
    {"_greater_equal_scalar", on_values_if_zero_stays},
    {"_lesser_scalar", on_values_if_zero_stays},
    {"_lesser_equal_scalar", on_values_if_zero_stays},
    {"clip", on_values_if_zero_stays},
    {"_contrib_quadratic", on_values_if_zero_stays},
    {"norm", norm_of},
    {"sum", reduction_of},
    {"mean", reduction_of},
    {"_square_sum", reduction_of},
    {"elemwise_add", sum_of},
    {"_grad_add", sum_of},
    {"broadcast_add", sum_of},
    {"elemwise_sub", union_of},
    {"broadcast_sub", union_of},
    {"_hypot", union_of},
    {"_maximum", union_of},
    {"_minimum", union_of},
    {"elemwise_mul", product_of},
    {"broadcast_mul", product_of},
    {"broadcast_div", quotient_of},
    {"add_n", sum_of_row_sparse},
    {"Concat", concat_csr},
    {"_sparse_retain", retained},
    {"slice", slice_of},
    {"slice_axis", slice_axis_of},
    {"take", take_csr},
    {"cast_storage", cast_of, true},
    {"dot", sparse_dot, true},
    {"Embedding", sparse_embedding, true},
    {"_contrib_SparseEmbedding", sparse_embedding, true},
    {"sgd_update", lazy_update<kLazySgd>},
    {"sgd_mom_update", lazy_update<kLazySgdMomentum>},
    {"adam_update", lazy_update<kLazyAdam>},
    {"ftrl_update", lazy_update<kLazyFtrl>},
    {"ftml_update", lazy_update<kLazyFtml>},
    {"_sparse_adagrad_update", lazy_update<kLazyAdagrad>},
    {"_contrib_group_adagrad_update", lazy_update<kLazyGroupAdagrad>},
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

bool some_need_gradient(std::span<const NDArray> inputs) {
  return autograd_state().recording && std::any_of(inputs.begin(), inputs.end(), needs_gradient);
}

// --------------------------------------------------------------------------------------------------- dense fallback
std::string storages(std::span<const NDArray> arrays) {
  std::string text;
  for (const NDArray& a : arrays)
    text += std::string(text.empty() ? "" : ", ") + (a ? storage_type_name(a.storage_type()) : "none");
  return text;
}

void warn_once(const Op& op, std::span<const NDArray> inputs, std::span<const NDArray> out) {
  static std::mutex mutex;
  static auto& told = *new std::unordered_set<const Op*>;
  {
    const std::lock_guard lock(mutex);
    if (!told.insert(&op).second) return;
  }
  warn("operator '" + op.name + "' runs on dense copies of sparse arrays: it has no form for inputs (" +
       storages(inputs) + ")" + (out.empty() ? "" : " and out (" + storages(out) + ")") + " with these parameters" +
       (some_need_gradient(inputs) ? " while gradients are recorded" : "") + ". This is said once per operator.");
}

void store(const NDArray& target, const NDArray& value) {
  if (target == value) return;
  if (target.is_sparse()) return move_into_sparse(target, value);
  const NDArray dense = to_dense(value);
  invoke(kCopy.op(), kCopy.op().default_params, {&dense, 1}, {&target, 1});
}

void run_on_dense(const SparseCall& call, std::vector<NDArray>* results) {
  if (any_sparse(call.inputs)) warn_once(call.op, call.inputs, call.out);
  std::vector<NDArray> inputs;
  for (const NDArray& a : call.inputs) inputs.push_back(dense_form(a));
  const bool sparse_out = any_sparse(call.out);
  InvokeOptions options;
  if (!sparse_out) options.out = call.out;
  invoke_into(call.op, call.params, inputs, options, results);
  for (size_t i = 0; sparse_out && i < call.out.size(); ++i) {
    store(call.out[i], (*results)[i]);
    (*results)[i] = call.out[i];
  }
  // States that the operator has replaced in their dense copies.
  for (size_t k = 0; call.op.has_writebacks() && k < results->size(); ++k) {
    const int state = call.op.writeback_input(call.params->data(), static_cast<int>(k));
    if (state >= 0 && (*results)[k] && call.inputs[static_cast<size_t>(state)].is_sparse())
      store(call.inputs[static_cast<size_t>(state)], (*results)[k]);
  }
}

}  // namespace

AttrValue SparseCall::parameter(std::string_view name) const {
  const int field = op.schema->find(name);
  return field < 0 ? AttrValue() : op.schema->get(params->data(), field);
}

bool SparseCall::flag(std::string_view name) const {
  const AttrValue value = parameter(name);
  const bool* on = std::get_if<bool>(&value.value);
  return on != nullptr && *on;
}

void invoke_sparse(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, std::span<const NDArray> out,
                   std::vector<NDArray>* results) {
  const SparseCall call{op, params, inputs, out};
  results->assign(static_cast<size_t>(op.num_outputs(params->data())), NDArray());
  const Row* row = find_row(op);
  const bool applies = row != nullptr && (row->records || any_sparse(inputs)) &&
                       (row->records || !op.differentiable() || op.stops_gradient || !some_need_gradient(inputs));
  const NDArray result = applies ? row->rule(call) : NDArray();
  if (!result) return run_on_dense(call, results);
  (*results)[0] = result;
  if (out.empty()) return;
  store(out[0], result);
  (*results)[0] = out[0];
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
