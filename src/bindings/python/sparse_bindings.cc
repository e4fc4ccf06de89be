// Sparse arrays: classes, parts, creation and conversion.
#include "casters.h"
#include "control_bodies.h"
#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"
#include "imperative/tape.h"
#include "sparse/operators.h"

namespace hybridnet::python {
namespace {

NDArray& sparse_array(const py::handle& object, const char* what) {
  NDArray& array = expect_array(object.ptr(), what);
  if (!array.is_sparse())
    raise(ErrorKind::kType, {.input = what, .expected = "a sparse array", .given = "an array in dense storage"});
  return array;
}

void register_sparse_class(const std::string& stype, const py::type& cls) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls.ptr());
  if (!PyType_IsSubtype(type, array_base_type))
    raise(ErrorKind::kType, {.expected = "a subclass of NDArrayBase", .given = short_repr(cls.ptr())});
  Py_INCREF(cls.ptr());
  sparse_classes[static_cast<int>(storage_type_from_name(stype))] = type;
}

NDArray part_of(const py::object& a, const std::string& name) {
  const SparseStorage& parts = sparse_storage(sparse_array(a, "array"));
  const NDArray& part = name == "data" ? parts.data : name == "indices" ? parts.indices : parts.indptr;
  return part.detached();
}

// Runs work that waits for indices.
template <typename F>
auto waiting(F&& work) {
  ReleaseGil release(true);
  return work();
}

NDArray converted(const NDArray& a, const std::string& stype) {
  return waiting([&] { return convert_storage(a, stype); });
}

// Returns rows of a table that share the table's history and gradient.
NDArray rows_of_table(const NDArray& table, const NDArray& rows) {
  NDArray chosen = waiting([&] { return take_rows_sparse(table, rows); });
  chosen.impl()->tape = Ref<TapeInfo>(mark_of(table));
  return chosen;
}

void assign(const py::object& target, const NDArray& value) {
  const NDArray& to = sparse_array(target, "target");
  check_write_in_body(to);
  check_recorded_write(to);
  waiting([&] { assign_sparse(to, value); });
}

}  // namespace

void bind_sparse(py::module_& m) {
  m.def("register_sparse_class", &register_sparse_class, "Makes cls the class of arrays in that storage.");
  m.def("sparse_part", &part_of, "Part 'data', 'indices' or 'indptr' of a sparse array; the memory is shared.");
  m.def("make_row_sparse", &make_row_sparse, py::arg("shape"), py::arg("data"), py::arg("indices"));
  m.def("make_csr", &make_csr, py::arg("shape"), py::arg("data"), py::arg("indices"), py::arg("indptr"));
  m.def("sparse_zeros", [](const std::string& stype, const Shape& shape, DType dtype) {
    const StorageType type = storage_type_from_name(stype);
    for (const int64_t size : shape)
      if (size < 0)
        raise(ErrorKind::kShape, {.input = "shape", .expected = "sizes of at least 0", .given = shape.str()});
    return type == StorageType::kDefault ? NDArray() : sparse_zeros(type, {shape, dtype});
  });
  m.def("cast_storage", &converted, "A new array of the same values in another storage; recorded like an operator.");
  m.def("check_sparse", [](const py::object& a) {
    const NDArray& array = sparse_array(a, "array");
    waiting([&] { check_sparse(array); });
  });
  m.def("assign_sparse", &assign, "Replaces the values of a sparse array; value may be in any storage.");
  m.def("retain_rows",
        [](const NDArray& a, const NDArray& rows) { return waiting([&] { return retain_rows(a, rows); }); });
  m.def(
      "row_sparse_sum",
      [](const Shape& shape, const NDArray& data, const NDArray& rows) {
        return waiting([&] {
          rows.wait_to_read();
          const auto* ids = static_cast<const int64_t*>(rows.size() > 0 ? rows.data() : nullptr);
          return row_sparse_sum(shape, data, {ids, static_cast<size_t>(rows.size())});
        });
      },
      "data[i] added to row rows[i] (int64) of zeros.");
  m.def("take_rows",
        [](const NDArray& a, const NDArray& rows) { return waiting([&] { return take_rows_sparse(a, rows); }); });
  m.def("rows_of_table", &rows_of_table, "Rows of an array as row_sparse; gradients go to the array's own buffer.");
  m.def("slice_csr",
        [](const py::object& a, int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) {
          const NDArray& array = sparse_array(a, "array");
          return waiting([&] { return slice_csr(array, row_begin, row_end, column_begin, column_end); });
        });
}

}  // namespace hybridnet::python
