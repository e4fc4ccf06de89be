// Sparse arrays: creation from parts, access to parts, conversion.
#include "hybridnet/sparse.h"

#include "c_api/arrays.h"
#include "c_api/status.h"
#include "sparse/operators.h"
#include "sparse/parts.h"

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::array_of;
using c_api::guarded;
using c_api::require;

namespace {

// Copies the indices: they are checked once, so the caller must not be able to write to them later. Other arrays than
// int64 vectors are returned unchanged, for make_*() to report.
NDArray own_indices(const NDArray& given) {
  if (given.is_sparse() || given.dtype() != DType::kInt64 || given.ndim() != 1) return given;
  return int64_array(read_int64(given));
}

void require_dense(const NDArray& part, const char* name) {
  if (part.is_sparse())
    throw UnsupportedError(
        {.op = "hn_array_create_sparse", .input = name, .expected = "a dense array", .given = "a sparse one"});
}

}  // namespace

int hn_array_create_sparse(const char* storage, const int64_t* shape, int ndim, HnArray data, HnArray indices,
                           HnArray indptr, HnArray* out) {
  return guarded([&] {
    constexpr const char* kFunction = "hn_array_create_sparse";
    require(storage, kFunction, "storage");
    require(out, kFunction, "out");
    const StorageType type = storage_type_from_name(storage);
    if (type == StorageType::kDefault)
      throw ValueError({.op = kFunction,
                        .input = "storage",
                        .expected = "'row_sparse' or 'csr'",
                        .given = "'default'",
                        .fix = "make dense arrays by hn_array_create"});
    const Shape sizes = c_api::shape_of(shape, ndim, kFunction, "shape");
    const NDArray values = array_of(data, kFunction, "data"), places = array_of(indices, kFunction, "indices");
    require_dense(values, "data");
    require_dense(places, "indices");
    NDArray made;
    if (type == StorageType::kRowSparse) {
      if (indptr)
        throw ValueError(
            {.op = kFunction, .input = "indptr", .expected = "NULL for 'row_sparse'", .given = "an array"});
      made = make_row_sparse(sizes, values.detached(), own_indices(places));
    } else {
      const NDArray starts = array_of(indptr, kFunction, "indptr");
      require_dense(starts, "indptr");
      made = make_csr(sizes, values.detached(), own_indices(places), own_indices(starts));
    }
    checked_parts(made);
    *out = c_api::give_array(made);
  });
}

int hn_array_part(HnArray array, const char* part, HnArray* out) {
  return guarded([&] {
    constexpr const char* kFunction = "hn_array_part";
    const NDArray given = array_of(array, kFunction, "array");
    require(part, kFunction, "part");
    require(out, kFunction, "out");
    if (!given.is_sparse())
      throw TypeError({.op = kFunction,
                       .input = "array",
                       .expected = "a sparse array",
                       .given = "a dense one",
                       .fix = "convert it by hn_array_cast_storage"});
    const SparseStorage& parts = checked_parts(given);
    const std::string_view name = part;
    if (name == "data") {
      *out = c_api::give_array(parts.data.detached());
    } else if (name == "indices") {
      *out = c_api::give_array(int64_array(read_int64(parts.indices)));
    } else if (name == "indptr" && parts.indptr) {
      *out = c_api::give_array(int64_array(read_int64(parts.indptr)));
    } else {
      throw ValueError({.op = kFunction,
                        .input = "part",
                        .expected = parts.indptr ? "'data', 'indices' or 'indptr'" : "'data' or 'indices'",
                        .given = "'" + std::string(name) + "'",
                        .because = std::string("the array is in storage '") + storage_type_name(parts.type) + "'"});
    }
  });
}

int hn_array_cast_storage(HnArray array, const char* storage, HnArray* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_cast_storage", "array");
    require(storage, "hn_array_cast_storage", "storage");
    require(out, "hn_array_cast_storage", "out");
    *out = c_api::give_array(convert_storage(given, storage));
  });
}
