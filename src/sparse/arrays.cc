#include <algorithm>
#include <cstring>

#include "hybridnet/imperative.h"
#include "imperative/tape.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "kernels/memory/strided_copy.h"
#include "sparse/parts.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

void require_cpu(Device device) {
  if (device.type != DeviceType::kGPU) return;
  throw UnsupportedError({.expected = "an array on a CPU",
                          .given = "one on " + device.str(),
                          .because = "arrays in sparse storage exist on CPUs only",
                          .fix = "copy it there first: x.as_in_context(mx.cpu())"});
}

NDArray wrap(const TensorSpec& spec, Ref<SparseStorage> parts) {
  const Device device = parts->data.device();
  require_cpu(device);
  return NDArray::sparse(spec, Ref<Object>(parts.get()), device);
}

[[noreturn]] void bad_index(const NDArray& a, const char* part, const std::string& expected, const std::string& given) {
  throw FormatError({.input = std::string(part) + " of a " + storage_type_name(a.storage_type()) + " array",
                     .expected = expected,
                     .given = given,
                     .because = "the array has shape " + a.shape().str(),
                     .fix = "pass indices that lie within the shape, in ascending order"});
}

void check_bounds(const NDArray& a, std::span<const int64_t> indices, int64_t bound) {
  for (const int64_t index : indices)
    if (index < 0 || index >= bound)
      bad_index(a, "indices", "0 to " + std::to_string(bound - 1), std::to_string(index));
}

void check_row_starts(const NDArray& a, std::span<const int64_t> indptr, int64_t stored) {
  if (indptr.front() != 0) bad_index(a, "indptr", "0 at the start", std::to_string(indptr.front()));
  for (size_t r = 1; r < indptr.size(); ++r)
    if (indptr[r] < indptr[r - 1])
      bad_index(a, "indptr", "ascending numbers",
                std::to_string(indptr[r]) + " after " + std::to_string(indptr[r - 1]));
  if (indptr.back() != stored)
    bad_index(a, "indptr", std::to_string(stored) + " at the end, the number of values", std::to_string(indptr.back()));
}

void check_in_bounds(const NDArray& a) {
  const SparseStorage& parts = sparse_storage(a);
  const std::span<const int64_t> indices = read_int64(parts.indices);
  if (parts.type == StorageType::kCsr) {
    check_row_starts(a, read_int64(parts.indptr), parts.indices.size());
    check_bounds(a, indices, a.shape()[1]);
  } else {
    check_bounds(a, indices, a.shape()[0]);
  }
}

void require_index(const NDArray& part, const char* name, int64_t size) {
  if (part.dtype() != DType::kInt64)
    throw DTypeError({.input = name, .expected = "int64", .given = dtype_name(part.dtype())});
  if (part.ndim() != 1 || (size >= 0 && part.size() != size))
    throw ShapeError({.input = name,
                      .expected = size >= 0 ? "shape (" + std::to_string(size) + ",)" : "one axis",
                      .given = part.shape().str()});
}

// Makes an array from parts that library code has made: they need no check.
NDArray trusted(const TensorSpec& spec, StorageType type, NDArray data, NDArray indices, NDArray indptr = {}) {
  Ref<SparseStorage> parts = make_ref<SparseStorage>(type, std::move(data), std::move(indices), std::move(indptr));
  parts->checked = true;
  return wrap(spec, std::move(parts));
}

NDArray row_sparse_to_dense(const NDArray& a, const SparseStorage& parts) {
  NDArray out = NDArray::deferred(a.spec(), a.device());
  const NDArray reads[] = {parts.data, parts.indices}, writes[] = {out};
  const int64_t rows = a.shape()[0], width = row_width(a.shape());
  run_task("row_sparse_to_dense", reads, writes, out.bytes() / 4,
           [data = parts.data, indices = parts.indices, out, rows, width](TaskContext&) {
             const auto* ids = static_cast<const int64_t*>(indices.data());
             const int64_t element = dtype_size(out.dtype());
             if (indices.size() != rows) kernels::zero_bytes(out.data(), out.bytes());
             kernels::scatter_rows(data.data(), {1, rows, width}, ids, indices.size(), out.data(), element);
           });
  return out;
}

NDArray csr_to_dense(const NDArray& a, const SparseStorage& parts) {
  NDArray out = NDArray::deferred(a.spec(), a.device());
  const kernels::CsrPattern pattern = read_pattern(parts);
  const NDArray reads[] = {parts.data, parts.indices, parts.indptr}, writes[] = {out};
  run_task("csr_to_dense", reads, writes, out.bytes() / 4,
           [keep = parts.indptr, indices = parts.indices, data = parts.data, pattern, out](TaskContext&) {
             kernels::csr_to_dense(pattern, data.data(), out.shape()[1], out.dtype(), out.data());
           });
  return out;
}

NDArray dense_to_row_sparse(const NDArray& a) {
  require_cpu(a.device());
  if (a.ndim() < 1)
    throw ShapeError({.op = "cast_storage", .expected = "at least one axis for row_sparse", .given = "shape ()"});
  a.wait_to_read();
  std::vector<int64_t> rows = kernels::nonzero_rows(a.data(), a.shape()[0], row_width(a.shape()), a.dtype());
  const NDArray indices = int64_array(rows);
  return trusted(a.spec(), StorageType::kRowSparse, gather_positions(a, std::move(rows)), indices);
}

NDArray dense_to_csr(const NDArray& a) {
  require_cpu(a.device());
  if (a.ndim() != 2)
    throw ShapeError({.op = "cast_storage", .expected = "a matrix for csr", .given = "shape " + a.shape().str()});
  a.wait_to_read();
  const int64_t rows = a.shape()[0], columns = a.shape()[1];
  const NDArray indptr = NDArray::empty(Shape{rows + 1}, DType::kInt64);
  auto* starts = static_cast<int64_t*>(indptr.data());
  kernels::count_nonzeros(a.data(), rows, columns, a.dtype(), starts);
  const NDArray indices = NDArray::empty(Shape{starts[rows]}, DType::kInt64);
  const NDArray data = NDArray::empty(Shape{starts[rows]}, a.dtype());
  kernels::take_nonzeros(a.data(), rows, columns, a.dtype(), starts, static_cast<int64_t*>(indices.data()),
                         data.data());
  return trusted(a.spec(), StorageType::kCsr, data, indices, indptr);
}

NDArray copied(const NDArray& a) { return invoke_one(kCopy.op(), kCopy.op().default_params, {&a, 1}); }

std::vector<int64_t> sorted_rows(const NDArray& rows, int64_t bound) {
  std::vector<int64_t> ids = read_indices(rows);
  for (const int64_t id : ids) {
    if (id >= 0 && id < bound) continue;
    throw IndexError(
        {.input = "row_ids", .expected = "0 to " + std::to_string(bound - 1), .given = std::to_string(id)});
  }
  return kernels::group_rows(ids).ids;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------ parts.h
std::span<const int64_t> read_int64(const NDArray& a) {
  a.wait_to_read();
  return {static_cast<const int64_t*>(a.size() > 0 ? a.data() : nullptr), static_cast<size_t>(a.size())};
}

std::vector<int64_t> read_indices(const NDArray& a) {
  const NDArray dense = to_dense(a);
  dense.wait_to_read();
  if (dense.size() == 0) return {};
  const kernels::Indices values(dense.ref());
  return {values.data(), values.data() + values.size()};
}

NDArray int64_array(std::span<const int64_t> values) {
  NDArray array = NDArray::empty(Shape{static_cast<int64_t>(values.size())}, DType::kInt64);
  if (!values.empty()) std::memcpy(array.data(), values.data(), values.size_bytes());
  return array;
}

kernels::CsrPattern read_pattern(const SparseStorage& csr) { return {read_int64(csr.indptr), read_int64(csr.indices)}; }

Shape with_rows(Shape shape, int64_t rows) {
  shape[0] = rows;
  return shape;
}

NDArray gather_positions(const NDArray& values, std::vector<int64_t> positions) {
  const int64_t count = static_cast<int64_t>(positions.size());
  NDArray out = NDArray::deferred({with_rows(values.shape(), count), values.dtype()}, values.device());
  const NDArray reads[] = {values}, writes[] = {out};
  run_task("gather_rows", reads, writes, out.bytes() / 4 + 1,
           [values, out, positions = std::move(positions)](TaskContext&) {
             kernels::gather_or_zero(values.size() > 0 ? values.data() : nullptr,
                                     row_width(values.shape()) * dtype_size(values.dtype()), positions,
                                     out.size() > 0 ? out.data() : nullptr);
           });
  return out;
}

// ------------------------------------------------------------------------------------------------------------ sparse.h
NDArray make_row_sparse(const Shape& shape, const NDArray& data, const NDArray& indices) {
  require_index(indices, "indices", -1);
  if (shape.ndim() < 1) throw ShapeError({.input = "shape", .expected = "at least one axis", .given = shape.str()});
  if (!(data.shape() == with_rows(shape, indices.size()))) {
    throw ShapeError({.input = "data",
                      .expected = "shape " + with_rows(shape, indices.size()).str(),
                      .given = data.shape().str(),
                      .because = "the array has shape " + shape.str() + " and " + std::to_string(indices.size()) +
                                 " rows are stored"});
  }
  return wrap({shape, data.dtype()}, make_ref<SparseStorage>(StorageType::kRowSparse, data, indices));
}

NDArray make_csr(const Shape& shape, const NDArray& data, const NDArray& indices, const NDArray& indptr) {
  if (shape.ndim() != 2) throw ShapeError({.input = "shape", .expected = "a matrix for csr", .given = shape.str()});
  require_index(indices, "indices", -1);
  require_index(indptr, "indptr", shape[0] + 1);
  if (data.ndim() != 1 || data.size() != indices.size()) {
    throw ShapeError({.input = "data",
                      .expected = "shape " + indices.shape().str() + ", one value per index",
                      .given = data.shape().str()});
  }
  return wrap({shape, data.dtype()}, make_ref<SparseStorage>(StorageType::kCsr, data, indices, indptr));
}

NDArray sparse_zeros(StorageType type, const TensorSpec& spec, Device device) {
  require_cpu(device);
  const NDArray none = NDArray::empty(Shape{0}, DType::kInt64);
  if (type == StorageType::kRowSparse) {
    if (spec.shape.ndim() < 1)
      throw ShapeError({.input = "shape", .expected = "at least one axis", .given = spec.shape.str()});
    return trusted(spec, type, NDArray::empty(with_rows(spec.shape, 0), spec.dtype, device), none);
  }
  if (spec.shape.ndim() != 2)
    throw ShapeError({.input = "shape", .expected = "a matrix for csr", .given = spec.shape.str()});
  const std::vector<int64_t> starts(static_cast<size_t>(spec.shape[0]) + 1, 0);
  return trusted(spec, type, NDArray::empty(Shape{0}, spec.dtype, device), none, int64_array(starts));
}

NDArray row_sparse_sum(const Shape& shape, const NDArray& data, std::span<const int64_t> rows) {
  auto groups = std::make_shared<const kernels::RowGroups>(kernels::group_rows(rows));
  const NDArray indices = int64_array(groups->ids);
  NDArray sums = NDArray::deferred({with_rows(shape, groups->size()), data.dtype()}, data.device());
  const NDArray reads[] = {data}, writes[] = {sums};
  const int64_t width = row_width(shape);
  run_task("sum_rows", reads, writes, data.bytes() / 2 + 1, [data, sums, groups, width](TaskContext&) {
    if (sums.size() > 0) kernels::sum_groups(*groups, data.data(), width, data.dtype(), sums.data());
  });
  return trusted({shape, data.dtype()}, StorageType::kRowSparse, sums, indices);
}

void check_sparse(const NDArray& a) {
  if (!a.is_sparse()) return;
  check_in_bounds(a);
  const SparseStorage& parts = sparse_storage(a);
  const bool ascending = parts.type == StorageType::kCsr ? kernels::columns_ascending(read_pattern(parts))
                                                         : kernels::strictly_ascending(read_int64(parts.indices));
  if (!ascending) bad_index(a, "indices", "ascending numbers, each once", "another order");
}

const SparseStorage& checked_parts(const NDArray& a) {
  SparseStorage& parts = sparse_storage(a);
  if (parts.checked) return parts;
  check_in_bounds(a);
  if (parts.type == StorageType::kRowSparse && !kernels::strictly_ascending(read_int64(parts.indices))) {
    const NDArray sorted = row_sparse_sum(a.shape(), parts.data, read_int64(parts.indices));
    parts.data = sparse_storage(sorted).data;
    parts.indices = sparse_storage(sorted).indices;
  }
  parts.checked = true;
  return parts;
}

NDArray to_dense(const NDArray& a) {
  if (!a.is_sparse()) return a;
  const SparseStorage& parts = checked_parts(a);
  return parts.type == StorageType::kCsr ? csr_to_dense(a, parts) : row_sparse_to_dense(a, parts);
}

bool needs_copy(const NDArray& a) {
  if (!a.is_sparse()) return false;
  const SparseStorage& parts = checked_parts(a);
  return parts.type == StorageType::kCsr || parts.indices.size() != a.shape()[0];
}

NDArray dense_form(const NDArray& a) {
  if (!a.is_sparse()) return a;
  NDArray dense = needs_copy(a) ? to_dense(a) : checked_parts(a).data.detached();
  dense.impl()->tape = Ref<TapeInfo>(mark_of(a));
  return dense;
}

NDArray cast_storage(const NDArray& a, StorageType type) {
  if (a.storage_type() == type) return a;
  if (type == StorageType::kDefault) return to_dense(a);
  const NDArray dense = to_dense(a);
  return type == StorageType::kCsr ? dense_to_csr(dense) : dense_to_row_sparse(dense);
}

NDArray snapshot(const NDArray& a) {
  if (!a.is_sparse()) return a;
  const SparseStorage& parts = checked_parts(a);
  NDArray taken = trusted(a.spec(), parts.type, parts.data, parts.indices, parts.indptr);
  taken.impl()->tape = Ref<TapeInfo>(mark_of(a));
  return taken;
}

NDArray copy_sparse(const NDArray& a) {
  const SparseStorage& parts = sparse_storage(a);
  Ref<SparseStorage> copy = make_ref<SparseStorage>(parts.type, copied(parts.data), copied(parts.indices),
                                                    parts.indptr ? copied(parts.indptr) : NDArray());
  copy->checked = parts.checked;
  return wrap(a.spec(), std::move(copy));
}

void assign_sparse(const NDArray& target, const NDArray& value) {
  move_into_sparse(target, value.is_sparse() ? copy_sparse(value) : value);
}

void move_into_sparse(const NDArray& target, const NDArray& value) {
  if (!(value.spec() == target.spec()))
    throw ShapeError({.input = "value", .expected = target.spec().str(), .given = value.spec().str()});
  const NDArray taken = cast_storage(value, target.storage_type());
  SparseStorage& to = sparse_storage(target);
  const SparseStorage& from = sparse_storage(taken);
  to.data = from.data;
  to.indices = from.indices;
  to.indptr = from.indptr;
  to.checked = from.checked;
}

NDArray retain_rows(const NDArray& a, const NDArray& rows) {
  if (a.storage_type() != StorageType::kRowSparse)
    throw TypeError({.op = "_sparse_retain",
                     .input = "data",
                     .expected = "an array in storage 'row_sparse'",
                     .given = std::string("'") + storage_type_name(a.storage_type()) + "'",
                     .fix = "convert it first: x.tostype('row_sparse')"});
  return take_rows_sparse(a, rows);
}

NDArray take_rows_sparse(const NDArray& a, const NDArray& rows) {
  std::vector<int64_t> ids = sorted_rows(rows, a.shape()[0]);
  const NDArray indices = int64_array(ids);
  if (!a.is_sparse()) return trusted(a.spec(), StorageType::kRowSparse, gather_positions(a, std::move(ids)), indices);
  const SparseStorage& parts = checked_parts(a);
  const std::span<const int64_t> stored = read_int64(parts.indices);
  // If all rows are stored, row numbers are positions.
  std::vector<int64_t> positions =
      static_cast<int64_t>(stored.size()) == a.shape()[0] ? std::move(ids) : kernels::find_rows(stored, ids);
  return trusted(a.spec(), StorageType::kRowSparse, gather_positions(parts.data, std::move(positions)), indices);
}

NDArray slice_csr(const NDArray& a, int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) {
  const SparseStorage& parts = checked_parts(a);
  kernels::CsrSelection chosen = kernels::select_csr(read_pattern(parts), row_begin, row_end, column_begin, column_end);
  const NDArray indices = int64_array(chosen.indices), indptr = int64_array(chosen.indptr);
  return trusted({Shape{row_end - row_begin, column_end - column_begin}, a.dtype()}, StorageType::kCsr,
                 gather_positions(parts.data, std::move(chosen.positions)), indices, indptr);
}

}  // namespace hybridnet
