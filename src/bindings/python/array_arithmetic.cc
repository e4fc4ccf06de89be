#include "array_arithmetic.h"

#include <cmath>
#include <cstdio>

#include "arithmetic_slots.h"
#include "control_bodies.h"
#include "hybridnet/env.h"
#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"
#include "location.h"
#include "op_info.h"
#include "symbol_object.h"

namespace hybridnet::python {

const char* const kClassicOperatorNames[kBinaryCount][3] = {
    {"broadcast_add", "_plus_scalar", "_plus_scalar"},
    {"broadcast_sub", "_minus_scalar", "_rminus_scalar"},
    {"broadcast_mul", "_mul_scalar", "_mul_scalar"},
    {"broadcast_div", "_div_scalar", "_rdiv_scalar"},
    {"broadcast_mod", "_mod_scalar", "_rmod_scalar"},
    {"broadcast_power", "_power_scalar", "_rpower_scalar"},
    {"broadcast_maximum", "_maximum_scalar", "_maximum_scalar"},
    {"broadcast_minimum", "_minimum_scalar", "_minimum_scalar"},
    {"broadcast_hypot", "_hypot_scalar", "_hypot_scalar"},
    {"broadcast_equal", "_equal_scalar", "_equal_scalar"},
    {"broadcast_not_equal", "_not_equal_scalar", "_not_equal_scalar"},
    {"broadcast_greater", "_greater_scalar", "_lesser_scalar"},
    {"broadcast_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar"},
    {"broadcast_lesser", "_lesser_scalar", "_greater_scalar"},
    {"broadcast_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar"},
    {"broadcast_logical_and", "_logical_and_scalar", "_logical_and_scalar"},
    {"broadcast_logical_or", "_logical_or_scalar", "_logical_or_scalar"},
    {"broadcast_logical_xor", "_logical_xor_scalar", "_logical_xor_scalar"},
    {"_npi_floor_divide", "_npi_floor_divide_scalar", "_npi_rfloor_divide_scalar"},
};

const char* const kNumpyOperatorNames[kBinaryCount][3] = {
    {"_npi_add", "_npi_add_scalar", "_npi_add_scalar"},
    {"_npi_subtract", "_npi_subtract_scalar", "_npi_rsubtract_scalar"},
    {"_npi_multiply", "_npi_multiply_scalar", "_npi_multiply_scalar"},
    {"_npi_true_divide", "_npi_true_divide_scalar", "_npi_rtrue_divide_scalar"},
    {"_npi_mod", "_npi_mod_scalar", "_npi_rmod_scalar"},
    {"_npi_power", "_npi_power_scalar", "_npi_rpower_scalar"},
    {"_npi_maximum", "_npi_maximum_scalar", "_npi_maximum_scalar"},
    {"_npi_minimum", "_npi_minimum_scalar", "_npi_minimum_scalar"},
    {"_npi_hypot", "_npi_hypot_scalar", "_npi_hypot_scalar"},
    {"_npi_equal", "_npi_equal_scalar", "_npi_equal_scalar"},
    {"_npi_not_equal", "_npi_not_equal_scalar", "_npi_not_equal_scalar"},
    {"_npi_greater", "_npi_greater_scalar", "_npi_less_scalar"},
    {"_npi_greater_equal", "_npi_greater_equal_scalar", "_npi_less_equal_scalar"},
    {"_npi_less", "_npi_less_scalar", "_npi_greater_scalar"},
    {"_npi_less_equal", "_npi_less_equal_scalar", "_npi_greater_equal_scalar"},
    {"broadcast_logical_and", "_logical_and_scalar", "_logical_and_scalar"},
    {"broadcast_logical_or", "_logical_or_scalar", "_logical_or_scalar"},
    {"broadcast_logical_xor", "_logical_xor_scalar", "_logical_xor_scalar"},
    {"_npi_floor_divide", "_npi_floor_divide_scalar", "_npi_rfloor_divide_scalar"},
};

namespace {

PyTypeObject *numpy_generic = nullptr, *numpy_bool = nullptr, *numpy_array = nullptr;

void load_numpy_types() {
  Owned numpy = checked(PyImport_ImportModule("numpy"));
  const auto type = [&](const char* name) {
    return reinterpret_cast<PyTypeObject*>(checked(PyObject_GetAttrString(numpy.get(), name)).release());
  };
  numpy_bool = type("bool_");
  numpy_array = type("ndarray");
  numpy_generic = type("generic");
}

bool is_numpy_array(PyObject* object) {
  if (numpy_array == nullptr) load_numpy_types();
  return PyObject_TypeCheck(object, numpy_array);
}

void look_up_operators(ArrayClass& cls) {
  const auto info = [](const char* name) -> const OpInfo* {
    const Op* op = op_registry().find(name);
    return op == nullptr ? nullptr : &op_info(*op);
  };
  for (int i = 0; i < kBinaryCount; ++i) {
    cls.array_ops[i] = info(cls.names[i][0]);
    cls.scalar_ops[i] = info(cls.names[i][1]);
    cls.reverse_ops[i] = info(cls.names[i][2]);
  }
  cls.operators_ready = true;
}

const OpInfo& operator_of(ArrayClass& cls, Binary kind, int form) {
  if (!cls.operators_ready) look_up_operators(cls);
  const auto& table = form == 0 ? cls.array_ops : form == 1 ? cls.scalar_ops : cls.reverse_ops;
  const OpInfo* info = table[static_cast<int>(kind)];
  return info != nullptr ? *info : op_info(cls.names[static_cast<int>(kind)][form]);  // throws: unknown operator
}

// Waits for sparse inputs, because the result depends on their stored rows.
PyObject* finish_sparse(const OpInfo& info, const ParamsPtr& params, std::span<const NDArray> inputs, ArrayClass& cls,
                        PyObject* out) {
  std::vector<NDArray> results, targets;
  if (out != nullptr) {
    check_write_in_body(array_of(out));
    targets.push_back(array_of(out));
  }
  {
    ReleaseGil release(true);
    results = invoke(*info.op, params, inputs, targets);
  }
  return out != nullptr ? Py_NewRef(out) : wrap_array(std::move(results[0]), cls);
}

PyObject* finish(const OpInfo& info, const ParamsPtr& params, std::span<const NDArray> inputs, ArrayClass& cls,
                 PyObject* out) {
  if (any_sparse(inputs) || (out != nullptr && array_of(out).is_sparse())) [[unlikely]]
    return finish_sparse(info, params, inputs, cls, out);
  if (out == nullptr) return wrap_array(invoke_one(*info.op, params, inputs), cls);
  check_write_in_body(array_of(out));
  invoke(*info.op, params, inputs, {&array_of(out), 1});
  return Py_NewRef(out);
}

PyObject* with_array(Binary kind, PyObject* left, PyObject* right, PyObject* out) {
  ArrayClass& cls = result_class(left);
  const OpInfo& info = operator_of(cls, kind, 0);
  if (Py_TYPE(left) != Py_TYPE(right)) require_same_class(left, right, info.op->name);
  const NDArray inputs[] = {array_of(left), array_of(right)};
  return finish(info, info.op->default_params, inputs, cls, out);
}

PyObject* with_number(Binary kind, PyObject* array, double value, bool is_int, bool reverse, PyObject* out) {
  ArrayClass& cls = result_class(array);
  const OpInfo& info = operator_of(cls, kind, reverse ? 2 : 1);
  const DType dtype = array_of(array).dtype();
  if (!is_int && &cls != &np_class && is_integer_or_bool(dtype)) {
    note_rounding(kind, dtype, value);
    is_int = true;
  }
  return finish(info, info.scalar_params(value, is_int), {&array_of(array), 1}, cls, out);
}

// Converts the NumPy operand of an array: to the array's device, and to its dtype for an NDArray; with an mx.np array
// it keeps its own dtype.
Owned converted(PyObject* numpy_value, PyObject* beside) {
  ArrayClass& cls = result_class(beside);
  Owned context = checked(PyObject_GetAttrString(beside, "context"));
  Owned dtype = &cls == &np_class ? checked(PyObject_GetAttrString(numpy_value, "dtype"))
                                  : Owned::borrowed(numpy_type(array_of(beside).dtype()));
  return checked(PyObject_CallFunctionObjArgs(cls.converter, numpy_value, context.get(), dtype.get(), nullptr));
}

PyObject* with_other(Binary kind, PyObject* left, PyObject* right, PyObject* out) {
  const bool reverse = !is_array(left);
  PyObject* array = reverse ? right : left;
  PyObject* other = reverse ? left : right;
  double value = 0;
  bool is_int = false;
  if (number_of(other, &value, &is_int)) return with_number(kind, array, value, is_int, reverse, out);
  if (result_class(array).converter == nullptr || !is_numpy_array(other)) return Py_NewRef(Py_NotImplemented);
  Owned partner = converted(other, array);
  return reverse ? with_array(kind, partner.get(), array, out) : with_array(kind, array, partner.get(), out);
}

// Raises for x += traced: Python would bind x to a new object, and arrays that share x's memory would keep old values.
PyObject* unless_traced(PyObject* result, PyObject* right) {
  if (result != Py_NotImplemented || !is_symbol(right)) return result;
  Py_DECREF(result);
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    raise(
        ErrorKind::kTrace,
        {.message = "a value of the traced graph is written into an array in place",
         .because = "it has no value while the graph is being built",
         .fix = "make a new array, as in x = x + y, or make x by an operator, such as zeros, so that it is traced too",
         .where = python_location()});
  });
}

PyObject* unary(const char* name, PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    const OpInfo& info = op_info(op_registry().at(name));
    return finish(info, info.op->default_params, {&array_of(self), 1}, result_class(self), nullptr);
  });
}
Py_hash_t identity_hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self) >> 4); }

struct ArraySide {
  static PyObject* binary(Binary kind, PyObject* left, PyObject* right) { return binary_operation(kind, left, right); }
  static PyObject* in_place(Binary kind, PyObject* left, PyObject* right) {
    return unless_traced(binary_operation(kind, left, right, left), right);
  }
  // a // b: floor of the quotient. Integers have their own operator, because their division truncates.
  static PyObject* floor_divide(PyObject* left, PyObject* right) {
    PyObject* array = is_array(left) ? left : right;
    if (is_floating(array_of(array).dtype())) {
      Owned quotient(binary_operation(Binary::kDivide, left, right));
      if (!quotient || quotient.get() == Py_NotImplemented) return quotient.release();
      return unary("floor", quotient.get());
    }
    return binary_operation(Binary::kFloorDivide, left, right);
  }
  static PyObject* in_place_floor_divide(PyObject* left, PyObject* right) {
    Owned result(floor_divide(left, right));
    if (!result || result.get() == Py_NotImplemented) return unless_traced(result.release(), right);
    return guarded<PyObject*>(nullptr, [&] {
      const Op& copy = op_registry().at("_copy");
      check_write_in_body(array_of(left));
      invoke(copy, copy.default_params, {&array_of(result.get()), 1}, {&array_of(left), 1});
      return Py_NewRef(left);
    });
  }
  static PyObject* negative(PyObject* self) {
    // MXNet multiplies by -1, which converts bool to an integer dtype.
    if (array_of(self).dtype() == DType::kBool && &result_class(self) != &np_class)
      return guarded<PyObject*>(nullptr,
                                [&] { return with_number(Binary::kMultiply, self, -1, true, false, nullptr); });
    return unary("negative", self);
  }
  static PyObject* absolute(PyObject* self) { return unary("abs", self); }
};

}  // namespace

bool number_of(PyObject* object, double* value, bool* is_int) {
  if (PyFloat_CheckExact(object)) {
    *value = PyFloat_AS_DOUBLE(object);
    *is_int = false;
    return true;
  }
  if (!PyLong_Check(object) && !PyFloat_Check(object)) {
    if (numpy_generic == nullptr) load_numpy_types();
    if (!PyObject_TypeCheck(object, numpy_generic) || PyComplex_Check(object)) return false;
  }
  *is_int = PyIndex_Check(object) || (numpy_bool != nullptr && PyObject_TypeCheck(object, numpy_bool));
  *value = PyFloat_AsDouble(object);
  if (*value == -1.0 && PyErr_Occurred()) throw PythonErrorIsSet();
  return true;
}

static std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void note_rounding(Binary kind, DType dtype, double value) {
  const double rounded = std::trunc(value);
  if (kind >= Binary::kEqual && kind <= Binary::kLessEqual) return;
  if (rounded == value) return;
  const std::string text = std::string(dtype_name(dtype)) + " array and " + short_number(value);
  if (environment().strict)
    raise(ErrorKind::kParam, {.message = text,
                              .because = "the result keeps the dtype of the array, so the number would be rounded",
                              .fix = "convert the array first: x.astype('float32')"});
  warn_at_location(text + ": the number counts as " + short_number(rounded) +
                   ", because the result keeps the dtype of the array, as in MXNet. Fix: convert the array first: "
                   "x.astype('float32'). (HYBRIDNET_STRICT=1 makes this an error.)");
}

void set_array_converter(PyObject* callable, bool numpy) {
  Py_INCREF(callable);
  Py_XSETREF((numpy ? np_class : nd_class).converter, callable);
}

PyObject* binary_operation(Binary kind, PyObject* left, PyObject* right, PyObject* out) {
  return guarded<PyObject*>(nullptr, [&] {
    if (is_array(left) && is_array(right)) return with_array(kind, left, right, out);
    return with_other(kind, left, right, out);
  });
}

void add_arithmetic_slots(std::vector<PyType_Slot>& slots) {
  ArithmeticSlots<ArraySide>::add_to(slots);
  slots.push_back({Py_tp_hash, reinterpret_cast<void*>(identity_hash)});
}

}  // namespace hybridnet::python
