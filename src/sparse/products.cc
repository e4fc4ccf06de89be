// Products with sparse matrices, and rows of sparse tables. They record their own steps on the tape: the gradient of a
// dense or row_sparse factor is row_sparse if only some rows are not zeros.
#include <limits>
#include <memory>

#include "imperative/autograd_scope.h"
#include "kernels/index/indices.h"
#include "sparse/parts.h"
#include "sparse/rules.h"
#include "storage/derived.h"

namespace hybridnet {
namespace {

const OpRef kDot{"dot"}, kTranspose{"transpose"}, kTakeGradient{"_backward_take"};

NDArray new_array(const Shape& shape, const NDArray& like) { return NDArray::deferred({shape, like.dtype()}); }

Shape rows_and_rest(int64_t rows, const Shape& shape) { return with_rows(shape, rows); }

double product_ns(int64_t stored, int64_t width) {
  return 0.3 * static_cast<double>(stored) * static_cast<double>(width);
}

// The properties of a matrix's columns that products with vectors read.
struct ColumnIndex {
  std::vector<int32_t> narrow;
  std::vector<int64_t> used;    // columns with stored values, ascending
  std::vector<int32_t> places;  // place of each stored value's column in `used`; empty if all columns are used
};

std::vector<int32_t> places_in(std::span<const int64_t> used, std::span<const int32_t> columns, int64_t count) {
  std::vector<int32_t> place_of(static_cast<size_t>(count)), places(columns.size());
  for (size_t i = 0; i < used.size(); ++i) place_of[static_cast<size_t>(used[i])] = static_cast<int32_t>(i);
  for (size_t k = 0; k < columns.size(); ++k) places[k] = place_of[static_cast<size_t>(columns[k])];
  return places;
}

// Made by the first product with a vector, and kept as long as the indices. Null if it does not pay or is impossible:
// few values, columns beyond 32 bits, memory whose writes are unknown.
std::shared_ptr<const ColumnIndex> column_index(const SparseStorage& parts, int64_t columns, int64_t width) {
  constexpr int64_t kLeastStored = 2048;
  const int64_t stored = parts.indices.size();
  if (width != 1 || stored < kLeastStored || columns > std::numeric_limits<int32_t>::max()) return nullptr;
  const TensorRef indices = parts.indices.ref();
  if (indices.derived == nullptr) return nullptr;
  // Lives until the end of the process; refers only to objects that others own.
  static auto& user = *new DerivedUser<ColumnIndex>("columns of a csr matrix");
  const DerivedSource source{indices.data, indices.derived};
  return user.get({&source, 1}, 8 * stored + 8 * std::min(stored, columns), [&] {
    const std::span<const int64_t> given = read_int64(parts.indices);
    auto made = std::make_shared<ColumnIndex>();
    made->narrow.assign(given.begin(), given.end());
    made->used = kernels::used_columns({{}, given}, columns);
    if (static_cast<int64_t>(made->used.size()) < columns) made->places = places_in(made->used, made->narrow, columns);
    return std::shared_ptr<const ColumnIndex>(std::move(made));
  });
}

std::shared_ptr<const ColumnIndex> index_for(const NDArray& lhs, const NDArray& rhs) {
  return column_index(checked_parts(lhs), lhs.shape()[1], row_width(rhs.shape()));
}

// csr . rhs
NDArray csr_dot_dense(const NDArray& lhs, const NDArray& rhs) {
  const SparseStorage& parts = checked_parts(lhs);
  kernels::CsrPattern pattern = read_pattern(parts);
  const NDArray out = new_array(rows_and_rest(lhs.shape()[0], rhs.shape()), rhs);
  const int64_t width = row_width(rhs.shape());
  const std::shared_ptr<const ColumnIndex> index = index_for(lhs, rhs);
  if (index) pattern.narrow = index->narrow;
  const NDArray reads[] = {parts.data, rhs}, writes[] = {out};
  run_task("dot(csr, default)", reads, writes, static_cast<int64_t>(product_ns(pattern.stored(), width)) + 1,
           [indptr = parts.indptr, indices = parts.indices, data = parts.data, index, pattern, rhs, out,
            width](TaskContext&) {
             if (out.size() > 0)
               kernels::csr_dot(pattern, data.data(), rhs.dtype(), rhs.size() > 0 ? rhs.data() : nullptr, width,
                                out.data());
           });
  return out;
}

// transposed(csr) . rhs, dense, for matrices of which many columns are used. index: null or the column index of lhs.
// used_only: the result has a row for each used column only.
NDArray transposed_dot_dense(const NDArray& lhs, const NDArray& rhs, const std::shared_ptr<const ColumnIndex>& index,
                             bool used_only) {
  const SparseStorage& parts = checked_parts(lhs);
  kernels::CsrPattern pattern = read_pattern(parts);
  const int64_t columns = used_only ? static_cast<int64_t>(index->used.size()) : lhs.shape()[1];
  const int64_t width = row_width(rhs.shape());
  if (index) pattern.narrow = columns < lhs.shape()[1] ? index->places : index->narrow;
  const NDArray out = new_array(rows_and_rest(columns, rhs.shape()), rhs);
  const NDArray reads[] = {parts.data, rhs}, writes[] = {out};
  run_task("dot(csr.T, default)", reads, writes, static_cast<int64_t>(product_ns(pattern.stored(), width)) + 1,
           [indptr = parts.indptr, indices = parts.indices, data = parts.data, index, pattern, columns, rhs, out,
            width](TaskContext&) {
             if (out.size() > 0)
               kernels::csr_transposed_dot_dense(pattern, data.data(), rhs.dtype(),
                                                 rhs.size() > 0 ? rhs.data() : nullptr, width, columns, out.data());
           });
  return out;
}

bool scatters(const NDArray& lhs, const NDArray& rhs) {
  return kernels::scatters(rhs.dtype(), lhs.shape()[1], checked_parts(lhs).indices.size());
}

// Computes the same product as row_sparse: only rows that are columns of stored values are not zeros.
NDArray transposed_dot_rows(const NDArray& lhs, const NDArray& rhs) {
  const SparseStorage& parts = checked_parts(lhs);
  const kernels::CsrPattern pattern = read_pattern(parts);
  struct Columns {
    kernels::RowGroups groups;
    std::vector<int64_t> row_of;
  };
  auto columns = std::make_shared<const Columns>(
      Columns{kernels::group_rows(pattern.indices), kernels::rows_of_values(pattern.indptr)});
  const int64_t stored_rows = columns->groups.size(), width = row_width(rhs.shape());
  const NDArray values = new_array(rows_and_rest(stored_rows, rhs.shape()), rhs);
  const NDArray reads[] = {parts.data, rhs}, writes[] = {values};
  run_task("dot(csr.T, default)", reads, writes, static_cast<int64_t>(product_ns(pattern.stored(), width)) + 1,
           [data = parts.data, columns, rhs, values, width](TaskContext&) {
             if (values.size() > 0)
               kernels::csr_transposed_dot(columns->groups, columns->row_of, data.data(), rhs.dtype(), rhs.data(),
                                           width, values.data());
           });
  return make_row_sparse(rows_and_rest(lhs.shape()[1], rhs.shape()), values, int64_array(columns->groups.ids));
}

// csr . row_sparse: drops values in columns whose row is not stored, because they are multiplied by zeros.
NDArray csr_dot_row_sparse(const NDArray& lhs, const NDArray& rhs) {
  const SparseStorage &parts = checked_parts(lhs), &rows = checked_parts(rhs);
  if (rows.indices.size() == rhs.shape()[0]) return csr_dot_dense(lhs, rows.data);
  const kernels::CsrPattern pattern = read_pattern(parts);
  const std::vector<int64_t> at = kernels::find_rows(read_int64(rows.indices), pattern.indices);
  std::vector<int64_t> indptr{0}, indices, kept;
  for (int64_t r = 0; r < pattern.rows(); ++r) {
    for (int64_t k = pattern.indptr[static_cast<size_t>(r)]; k < pattern.indptr[static_cast<size_t>(r) + 1]; ++k) {
      if (at[static_cast<size_t>(k)] < 0) continue;
      indices.push_back(at[static_cast<size_t>(k)]);
      kept.push_back(k);
    }
    indptr.push_back(static_cast<int64_t>(indices.size()));
  }
  const NDArray chosen = make_csr(Shape{pattern.rows(), rows.indices.size()}, gather_positions(parts.data, kept),
                                  int64_array(indices), int64_array(indptr));
  return csr_dot_dense(chosen, rows.data);
}

NDArray dense_dot_csr(const NDArray& lhs, const NDArray& rhs) {
  const SparseStorage& parts = checked_parts(rhs);
  const kernels::CsrPattern pattern = read_pattern(parts);
  const int64_t columns = rhs.shape()[1], rows = lhs.shape()[0];
  const NDArray out = new_array(Shape{rows, columns}, lhs);
  const NDArray reads[] = {lhs, parts.data}, writes[] = {out};
  run_task("dot(default, csr)", reads, writes, static_cast<int64_t>(product_ns(pattern.stored(), rows)) + 1,
           [indptr = parts.indptr, indices = parts.indices, data = parts.data, pattern, lhs, out, rows,
            columns](TaskContext&) {
             if (out.size() > 0)
               kernels::dense_dot_csr(lhs.size() > 0 ? lhs.data() : nullptr, rows, pattern, data.data(), columns,
                                      lhs.dtype(), out.data());
           });
  return out;
}

NDArray transposed_dot(const NDArray& lhs, const NDArray& rhs) {
  if (!scatters(lhs, rhs)) return transposed_dot_rows(lhs, rhs);
  const std::shared_ptr<const ColumnIndex> index = index_for(lhs, rhs);
  const Shape whole = rows_and_rest(lhs.shape()[1], rhs.shape());
  if (index) return make_row_sparse(whole, transposed_dot_dense(lhs, rhs, index, true), int64_array(index->used));
  const NDArray dense = transposed_dot_dense(lhs, rhs, index, false);
  std::vector<int64_t> used = kernels::used_columns(read_pattern(checked_parts(lhs)), lhs.shape()[1]);
  const NDArray indices = int64_array(used);
  const bool all = static_cast<int64_t>(used.size()) == lhs.shape()[1];
  return make_row_sparse(whole, all ? dense : gather_positions(dense, std::move(used)), indices);
}

NDArray transposed(const NDArray& matrix) {
  return invoke_one(kTranspose.op(), kTranspose.op().default_params, {&matrix, 1});
}

NDArray product(const NDArray& lhs, const NDArray& rhs, bool transpose_lhs) {
  if (transpose_lhs) return transposed_dot(lhs, to_dense(rhs));
  return rhs.is_sparse() ? csr_dot_row_sparse(lhs, rhs) : csr_dot_dense(lhs, rhs);
}

bool wants_dense(const SparseUse& use) {
  const AttrValue wanted = use.parameter("forward_stype");
  const auto* stype = std::get_if<std::string>(&wanted.value);
  return stype != nullptr && *stype == "default";
}

void check_product(const SparseCall& call, bool transpose_lhs) {
  const Shape &lhs = call.inputs[0].shape(), &rhs = call.inputs[1].shape();
  const int64_t inner = lhs[transpose_lhs ? 0 : 1];
  if (rhs.ndim() < 1 || rhs[0] != inner) {
    throw ShapeError({.op = call.op.name,
                      .input = "rhs",
                      .expected = std::to_string(inner) + " elements along axis 0",
                      .given = "shape " + rhs.str(),
                      .because = "lhs has shape " + lhs.str() + (transpose_lhs ? " and is transposed" : "")});
  }
  if (call.inputs[0].dtype() != call.inputs[1].dtype())
    throw DTypeError({.op = call.op.name,
                      .input = "rhs",
                      .expected = dtype_name(call.inputs[0].dtype()),
                      .given = dtype_name(call.inputs[1].dtype())});
}

// The recorded step of dot(csr, rhs). The gradient of rhs is the product with the transposed matrix.
class CsrDotFunction final : public RecordedFunction {
 public:
  CsrDotFunction(const NDArray& lhs, bool transpose_lhs)
      : lhs_(snapshot(lhs).detached()), transpose_lhs_(transpose_lhs) {}
  std::string name() const override { return "dot"; }
  bool returns_fresh_arrays() const override { return true; }
  bool takes_sparse_gradients() const override { return true; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    if (!out_grads[0]) return {NDArray()};
    const NDArray g = rows_or_dense(out_grads[0]);
    if (!create_graph) return {product(lhs_, g, !transpose_lhs_)};
    const NDArray inputs[] = {to_dense(lhs_), dense_form(g)};
    const Op& op = kDot.op();
    return {invoke_one(op, op.schema->parse({{"transpose_a", AttrValue(!transpose_lhs_)}}, op.name), inputs)};
  }

 private:
  NDArray lhs_;
  bool transpose_lhs_;
};

// The recorded step of Embedding with a row_sparse table.
class EmbeddingFunction final : public RecordedFunction {
 public:
  EmbeddingFunction(std::vector<int64_t> ids, Shape table) : ids_(std::move(ids)), table_(std::move(table)) {}
  std::string name() const override { return "Embedding"; }
  bool returns_fresh_arrays() const override { return true; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    if (!out_grads[0]) return {NDArray()};
    const NDArray g = to_dense(out_grads[0]);
    if (!create_graph) return {row_sparse_sum(table_, g.reshaped(with_rows(table_, count())), ids_)};
    const NDArray inputs[] = {g, int64_array(ids_).reshaped(leading_axes(g.shape()))};
    const Op& op = kTakeGradient.op();
    return {invoke_one(op, op.schema->parse({{"axis", AttrValue(0)}, {"shape", AttrValue(table_)}}, op.name), inputs)};
  }

 private:
  int64_t count() const { return static_cast<int64_t>(ids_.size()); }
  static Shape leading_axes(const Shape& shape) {
    return Shape(shape.dims().first(static_cast<size_t>(shape.ndim()) - 1));
  }
  std::vector<int64_t> ids_;
  Shape table_;
};

}  // namespace

ResultStorage dot_storage(const SparseUse& use) {
  const StorageType lhs = use.storages[0], rhs = use.storages[1];
  const bool transpose_a = use.flag("transpose_a"), transpose_b = use.flag("transpose_b");
  if (lhs == StorageType::kDefault && rhs == StorageType::kCsr && !transpose_a) return StorageType::kCsr;
  if (lhs != StorageType::kCsr || rhs == StorageType::kCsr || transpose_b) return {};
  return transpose_a && !wants_dense(use) ? StorageType::kRowSparse : StorageType::kDefault;
}

NDArray sparse_dot(const SparseCall& call) {
  const NDArray &lhs = call.inputs[0], &rhs = call.inputs[1];
  const bool transpose_a = call.flag("transpose_a"), transpose_b = call.flag("transpose_b");
  const bool recording = autograd_state().recording;
  if (call.storage(0) == StorageType::kCsr) {
    check_product(call, transpose_a);
    const bool dense = rhs.ndim() == 1 || wants_dense(call);
    NDArray out = dense && transpose_a && scatters(lhs, rhs)
                      ? transposed_dot_dense(lhs, to_dense(rhs), index_for(lhs, rhs), false)
                      : product(lhs, rhs, transpose_a);
    if (dense) out = to_dense(out);
    if (needs_gradient(lhs))
      record_result(call, out, false);  // the gradient of lhs has no zeros in general
    else if (recording)
      record(Ref<RecordedFunction>(new CsrDotFunction(lhs, transpose_a)), {&rhs, 1}, {&out, 1});
    return out;
  }
  if (lhs.ndim() != 2) return {};
  if (lhs.shape()[1] != rhs.shape()[transpose_b ? 1 : 0] || lhs.dtype() != rhs.dtype()) return {};  // dot throws
  NDArray out;
  {
    const AutogradScope paused({.recording = false, .training = autograd_state().training});
    out = transpose_b ? transposed(csr_dot_dense(rhs, transposed(lhs))) : dense_dot_csr(lhs, rhs);
    out = cast_storage(out, StorageType::kCsr);
  }
  record_result(call, out, false);
  return out;
}

ResultStorage embedding_storage(const SparseUse& use) {
  if (use.storages[0] != StorageType::kDefault || use.storages[1] != StorageType::kRowSparse) return {};
  return StorageType::kDefault;
}

NDArray sparse_embedding(const SparseCall& call) {
  const NDArray &ids = call.inputs[0], &table = call.inputs[1];
  if (table.ndim() != 2) return {};
  TensorSpec in[] = {ids.spec(), table.spec()}, out_spec;
  InferContext context(call.op, in, {&out_spec, 1});
  call.op.infer(call.params->data(), context);
  ids.wait_to_read();
  kernels::Indices rows(ids.ref());
  rows.resolve(kernels::IndexMode::kClip, table.shape()[0], {"Embedding", "data"});
  std::vector<int64_t> list(rows.data(), rows.data() + rows.size());
  const SparseStorage& parts = checked_parts(table);
  std::vector<int64_t> positions =
      parts.indices.size() == table.shape()[0] ? list : kernels::find_rows(read_int64(parts.indices), list);
  const NDArray out = gather_positions(parts.data, std::move(positions)).reshaped(out_spec.shape);
  if (autograd_state().recording)
    record(Ref<RecordedFunction>(new EmbeddingFunction(std::move(list), table.shape())), {&table, 1}, {&out, 1});
  return out;
}

}  // namespace hybridnet
