// Python's operators on a class, such as + and +=, made from the operations of its Side:
//   binary(Binary, left, right), in_place(Binary, left, right),
//   floor_divide(left, right), in_place_floor_divide(left, right), negative(self), absolute(self)
#pragma once

#include <vector>

#include "array_object.h"

namespace hybridnet::python {

template <typename Side>
struct ArithmeticSlots {
  template <Binary kKind>
  static PyObject* binary(PyObject* left, PyObject* right) {
    return Side::binary(kKind, left, right);
  }
  template <Binary kKind>
  static PyObject* in_place(PyObject* left, PyObject* right) {
    return Side::in_place(kKind, left, right);
  }
  static PyObject* power(PyObject* left, PyObject* right, PyObject* modulus) {
    if (modulus != Py_None) return Py_NewRef(Py_NotImplemented);
    return Side::binary(Binary::kPower, left, right);
  }
  static PyObject* in_place_power(PyObject* left, PyObject* right, PyObject* modulus) {
    if (modulus != Py_None) return Py_NewRef(Py_NotImplemented);
    return Side::in_place(Binary::kPower, left, right);
  }
  static PyObject* positive(PyObject* self) { return Py_NewRef(self); }
  static PyObject* compare(PyObject* left, PyObject* right, int op) {
    constexpr Binary kKinds[] = {Binary::kLess,     Binary::kLessEqual, Binary::kEqual,
                                 Binary::kNotEqual, Binary::kGreater,   Binary::kGreaterEqual};
    return Side::binary(kKinds[op], left, right);
  }

  static void add_to(std::vector<PyType_Slot>& slots) {
    const auto add = [&](int id, auto* function) { slots.push_back({id, reinterpret_cast<void*>(function)}); };
    add(Py_nb_add, binary<Binary::kAdd>);
    add(Py_nb_subtract, binary<Binary::kSubtract>);
    add(Py_nb_multiply, binary<Binary::kMultiply>);
    add(Py_nb_true_divide, binary<Binary::kDivide>);
    add(Py_nb_remainder, binary<Binary::kModulo>);
    add(Py_nb_floor_divide, Side::floor_divide);
    add(Py_nb_power, power);
    add(Py_nb_inplace_add, in_place<Binary::kAdd>);
    add(Py_nb_inplace_subtract, in_place<Binary::kSubtract>);
    add(Py_nb_inplace_multiply, in_place<Binary::kMultiply>);
    add(Py_nb_inplace_true_divide, in_place<Binary::kDivide>);
    add(Py_nb_inplace_remainder, in_place<Binary::kModulo>);
    add(Py_nb_inplace_floor_divide, Side::in_place_floor_divide);
    add(Py_nb_inplace_power, in_place_power);
    add(Py_nb_negative, Side::negative);
    add(Py_nb_positive, positive);
    add(Py_nb_absolute, Side::absolute);
    add(Py_tp_richcompare, compare);
  }
};

}  // namespace hybridnet::python
