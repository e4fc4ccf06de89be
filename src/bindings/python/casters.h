// pybind11's type casters for our types. Every file that binds functions includes it, so that all agree.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "array_object.h"
#include "symbol_object.h"

namespace pybind11::detail {

// None is the null array.
template <>
struct type_caster<hybridnet::NDArray> {
  PYBIND11_TYPE_CASTER(hybridnet::NDArray, const_name("NDArray"));
  bool load(handle source, bool) {
    if (source.is_none()) return true;
    if (!hybridnet::python::is_array(source.ptr())) return false;
    value = hybridnet::python::array_of(source.ptr());
    return true;
  }
  static handle cast(const hybridnet::NDArray& array, return_value_policy, handle) {
    return array ? hybridnet::python::wrap_array(array, hybridnet::python::nd_class) : none().release();
  }
};

template <>
struct type_caster<hybridnet::Symbol> {
  PYBIND11_TYPE_CASTER(hybridnet::Symbol, const_name("Symbol"));
  bool load(handle source, bool) {
    if (!hybridnet::python::is_symbol(source.ptr())) return false;
    value = hybridnet::python::current_symbol(source.ptr());
    return true;
  }
  static handle cast(const hybridnet::Symbol& symbol, return_value_policy, handle) {
    return hybridnet::python::wrap_symbol(symbol, hybridnet::python::symbol_class);
  }
};

// An int or a sequence of ints; None is the unknown shape.
template <>
struct type_caster<hybridnet::Shape> {
  PYBIND11_TYPE_CASTER(hybridnet::Shape, const_name("tuple[int, ...]"));
  bool load(handle source, bool) {
    if (!source.is_none()) value = hybridnet::python::shape_from(source.ptr(), "shape");
    return true;
  }
  static handle cast(const hybridnet::Shape& shape, return_value_policy, handle) {
    return shape.rank_known() ? hybridnet::python::shape_to_tuple(shape).release() : none().release().ptr();
  }
};

// A NumPy dtype, type or name; None is the unknown dtype.
template <>
struct type_caster<hybridnet::DType> {
  PYBIND11_TYPE_CASTER(hybridnet::DType, const_name("dtype"));
  bool load(handle source, bool) {
    value = source.is_none() ? hybridnet::DType::kUnknown : hybridnet::python::dtype_from(source.ptr());
    return true;
  }
  static handle cast(hybridnet::DType dtype, return_value_policy, handle) {
    return handle(hybridnet::python::numpy_type(dtype)).inc_ref();
  }
};

}  // namespace pybind11::detail

namespace hybridnet::python {

namespace py = pybind11;

// Returns the array as an object of the class of `like` (an array).
inline py::object wrap_like(NDArray array, const py::handle& like) {
  if (!array) return py::none();
  PyObject* object = wrap_array(std::move(array), result_class(like.ptr()));
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

void bind_arrays(py::module_& m);
void bind_dlpack(py::module_& m);
void bind_devices(py::module_& m);
void bind_user_kernels(py::module_& m);
void bind_groups(py::module_& m);
void bind_sparse(py::module_& m);
void bind_operators(py::module_& m);
void bind_autograd(py::module_& m);
void bind_custom(py::module_& m);
void bind_symbols(py::module_& m);
void bind_control_flow(py::module_& m);
void bind_plans(py::module_& m);
void bind_optimizers(py::module_& m);
void bind_quantization(py::module_& m);
void bind_rewrites(py::module_& m);
void bind_host_images(py::module_& m);
void bind_runtime(py::module_& m);

}  // namespace hybridnet::python
