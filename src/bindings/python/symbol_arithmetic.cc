#include "symbol_arithmetic.h"

#include "arithmetic_slots.h"
#include "array_arithmetic.h"
#include "symbol_object.h"
#include "traced_memory.h"

namespace hybridnet::python {
namespace {

// MXNet's operators for arithmetic on Symbols, and the stems of the generated names, because files contain both. The
// elementwise operator is used unless both shapes are known (while tracing) and differ.
struct Row {
  const char* equal_shapes;
  const char* hint;
  const char* broadcast;
  const char* scalar;
  const char* scalar_hint;
  const char* reverse;
  const char* reverse_hint;
};
constexpr Row kRows[kBinaryCount] = {
    {"elemwise_add", "_plus", "broadcast_add", "_plus_scalar", "_plusscalar", "_plus_scalar", "_plusscalar"},
    {"elemwise_sub", "_minus", "broadcast_sub", "_minus_scalar", "_minusscalar", "_rminus_scalar", "_rminusscalar"},
    {"elemwise_mul", "_mul", "broadcast_mul", "_mul_scalar", "_mulscalar", "_mul_scalar", "_mulscalar"},
    {"elemwise_div", "_div", "broadcast_div", "_div_scalar", "_divscalar", "_rdiv_scalar", "_rdivscalar"},
    {"_mod", "_mod", "broadcast_mod", "_mod_scalar", "_modscalar", "_rmod_scalar", "_rmodscalar"},
    {"_power", "_power", "broadcast_power", "_power_scalar", "_powerscalar", "_rpower_scalar", "_rpower_scalar"},
    {"_maximum", "_maximum", "broadcast_maximum", "_maximum_scalar", "_maximumscalar", "_maximum_scalar",
     "_maximumscalar"},
    {"_minimum", "_minimum", "broadcast_minimum", "_minimum_scalar", "_minimumscalar", "_minimum_scalar",
     "_minimumscalar"},
    {"_hypot", "_hypot", "broadcast_hypot", "_hypot_scalar", "_hypotscalar", "_hypot_scalar", "_hypotscalar"},
    {"_equal", "_equal", "broadcast_equal", "_equal_scalar", "_equalscalar", "_equal_scalar", "_equalscalar"},
    {"_not_equal", "_not_equal", "broadcast_not_equal", "_not_equal_scalar", "_notequalscalar", "_not_equal_scalar",
     "_notequalscalar"},
    {"_greater", "_greater", "broadcast_greater", "_greater_scalar", "_greaterscalar", "_lesser_scalar",
     "_lesserscalar"},
    {"_greater_equal", "_greater_equal", "broadcast_greater_equal", "_greater_equal_scalar", "_greaterequalscalar",
     "_lesser_equal_scalar", "_lesserequalscalar"},
    {"_lesser", "_lesser", "broadcast_lesser", "_lesser_scalar", "_lesserscalar", "_greater_scalar", "_greaterscalar"},
    {"_lesser_equal", "_lesser_equal", "broadcast_lesser_equal", "_lesser_equal_scalar", "_lesserequalscalar",
     "_greater_equal_scalar", "_greaterequalscalar"},
    {"_logical_and", "_logical_and", "broadcast_logical_and", "_logical_and_scalar", "_logicalandscalar",
     "_logical_and_scalar", "_logicalandscalar"},
    {"_logical_or", "_logical_or", "broadcast_logical_or", "_logical_or_scalar", "_logicalorscalar",
     "_logical_or_scalar", "_logicalorscalar"},
    {"_logical_xor", "_logical_xor", "broadcast_logical_xor", "_logical_xor_scalar", "_logicalxorscalar",
     "_logical_xor_scalar", "_logicalxorscalar"},
    {"_npi_floor_divide", "_floordiv", "_npi_floor_divide", "_npi_floor_divide_scalar", "_floordivscalar",
     "_npi_rfloor_divide_scalar", "_rfloordivscalar"},
};

// The same for Symbols of mx.sym.np, whose operators broadcast. Stems are the names of the operators.
constexpr Row kNumpyRows[kBinaryCount] = {
    {"_npi_add", "add", "_npi_add", "_npi_add_scalar", "add_scalar", "_npi_add_scalar", "add_scalar"},
    {"_npi_subtract", "subtract", "_npi_subtract", "_npi_subtract_scalar", "subtract_scalar", "_npi_rsubtract_scalar",
     "rsubtract_scalar"},
    {"_npi_multiply", "multiply", "_npi_multiply", "_npi_multiply_scalar", "multiply_scalar", "_npi_multiply_scalar",
     "multiply_scalar"},
    {"_npi_true_divide", "true_divide", "_npi_true_divide", "_npi_true_divide_scalar", "true_divide_scalar",
     "_npi_rtrue_divide_scalar", "rtrue_divide_scalar"},
    {"_npi_mod", "mod", "_npi_mod", "_npi_mod_scalar", "mod_scalar", "_npi_rmod_scalar", "rmod_scalar"},
    {"_npi_power", "power", "_npi_power", "_npi_power_scalar", "power_scalar", "_npi_rpower_scalar", "rpower_scalar"},
    {"_npi_maximum", "maximum", "_npi_maximum", "_npi_maximum_scalar", "maximum_scalar", "_npi_maximum_scalar",
     "maximum_scalar"},
    {"_npi_minimum", "minimum", "_npi_minimum", "_npi_minimum_scalar", "minimum_scalar", "_npi_minimum_scalar",
     "minimum_scalar"},
    {"_npi_hypot", "hypot", "_npi_hypot", "_npi_hypot_scalar", "hypot_scalar", "_npi_hypot_scalar", "hypot_scalar"},
    {"_npi_equal", "equal", "_npi_equal", "_npi_equal_scalar", "equal_scalar", "_npi_equal_scalar", "equal_scalar"},
    {"_npi_not_equal", "not_equal", "_npi_not_equal", "_npi_not_equal_scalar", "not_equal_scalar",
     "_npi_not_equal_scalar", "not_equal_scalar"},
    {"_npi_greater", "greater", "_npi_greater", "_npi_greater_scalar", "greater_scalar", "_npi_less_scalar",
     "less_scalar"},
    {"_npi_greater_equal", "greater_equal", "_npi_greater_equal", "_npi_greater_equal_scalar", "greater_equal_scalar",
     "_npi_less_equal_scalar", "less_equal_scalar"},
    {"_npi_less", "less", "_npi_less", "_npi_less_scalar", "less_scalar", "_npi_greater_scalar", "greater_scalar"},
    {"_npi_less_equal", "less_equal", "_npi_less_equal", "_npi_less_equal_scalar", "less_equal_scalar",
     "_npi_greater_equal_scalar", "greater_equal_scalar"},
    kRows[static_cast<int>(Binary::kAnd)],
    kRows[static_cast<int>(Binary::kOr)],
    kRows[static_cast<int>(Binary::kXor)],
    {"_npi_floor_divide", "floor_divide", "_npi_floor_divide", "_npi_floor_divide_scalar", "floor_divide_scalar",
     "_npi_rfloor_divide_scalar", "rfloor_divide_scalar"},
};

bool is_numpy_symbol(PyObject* object) {
  return numpy_symbol_class != nullptr && PyObject_TypeCheck(object, numpy_symbol_class);
}

bool shapes_differ(const NodeEntry& a, const NodeEntry& b) {
  const TensorSpec *x = traced_spec(a), *y = traced_spec(b);
  if (x == nullptr || y == nullptr || !x->shape.rank_known() || !y->shape.rank_known()) return false;
  if (x->shape.ndim() != y->shape.ndim()) return true;
  for (int i = 0; i < x->shape.ndim(); ++i) {
    const int64_t one = x->shape[i], two = y->shape[i];
    if (one >= 0 && two >= 0 && one != two) return true;
    // A size of 1 beside one that is known only when the graph runs is broadcast, as on arrays.
    if ((one == 1 && two < 0 && !a.node->is_variable()) || (two == 1 && one < 0 && !b.node->is_variable())) return true;
  }
  return false;
}

PyObject* compose_binary(const Row& row, PyObject* left, PyObject* right) {
  Composition c;
  c.inputs = {entry_of(left, "lhs"), entry_of(right, "rhs")};
  const bool broadcast = shapes_differ(c.inputs[0], c.inputs[1]);
  c.info = &op_info(broadcast ? row.broadcast : row.equal_shapes);
  c.params = c.info->op->default_params;
  c.hint = broadcast ? row.broadcast : row.hint;
  c.result = result_symbol_class(is_symbol(left) ? left : right);
  return compose(std::move(c));
}

// With classic operators the number has the dtype of the array, which may still be unknown in a graph.
PyObject* with_number(Binary kind, const char* op, const char* hint, PyObject* symbol, double value, bool is_int) {
  Composition c;
  c.inputs = {entry_of(symbol, "data")};
  if (!is_int && !is_numpy_symbol(symbol)) {
    const TensorSpec* spec = traced_spec(c.inputs[0]);
    if (spec != nullptr && is_integer_or_bool(spec->dtype)) note_rounding(kind, spec->dtype, value);
    is_int = true;
  }
  c.info = &op_info(op);
  c.params = c.info->scalar_params(value, is_int);
  c.hint = hint;
  c.result = result_symbol_class(symbol);
  return compose(std::move(c));
}

PyObject* compose_unary(const char* op, PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] {
    Composition c;
    c.info = &op_info(op);
    c.params = c.info->op->default_params;
    c.inputs = {entry_of(self, "data")};
    c.hint = op;
    c.result = result_symbol_class(self);
    return compose(std::move(c));
  });
}
bool is_floating_symbol(PyObject* object) {
  const TensorSpec* spec =
      is_symbol(object) && symbol_of(object).outputs.size() == 1 ? traced_spec(symbol_of(object).outputs[0]) : nullptr;
  return spec != nullptr && is_floating(spec->dtype);
}

PyObject* write_result(PyObject* target, PyObject* result) {
  Owned value(result);
  if (!value || value.get() == Py_NotImplemented) return value.release();
  return guarded<PyObject*>(nullptr, [&] {
    write_traced(target, value.get(), is_numpy_symbol(target));
    return Py_NewRef(target);
  });
}

struct SymbolSide {
  static PyObject* binary(Binary kind, PyObject* left, PyObject* right) {
    return symbol_binary_operation(kind, left, right);
  }
  static PyObject* in_place(Binary kind, PyObject* left, PyObject* right) {
    return write_result(left, symbol_binary_operation(kind, left, right));
  }
  // Untraced Symbols may become integers, whose division truncates, so floor(a / b) is used only for floating Symbols.
  static PyObject* floor_divide(PyObject* left, PyObject* right) {
    if (!is_floating_symbol(is_symbol(left) ? left : right))
      return symbol_binary_operation(Binary::kFloorDivide, left, right);
    Owned quotient(symbol_binary_operation(Binary::kDivide, left, right));
    if (!quotient || quotient.get() == Py_NotImplemented) return quotient.release();
    return compose_unary("floor", quotient.get());
  }
  static PyObject* in_place_floor_divide(PyObject* left, PyObject* right) {
    return write_result(left, floor_divide(left, right));
  }
  static PyObject* negative(PyObject* self) {
    if (is_numpy_symbol(self)) return compose_unary("negative", self);
    return guarded<PyObject*>(
        nullptr, [&] { return with_number(Binary::kMultiply, "_mul_scalar", "_mulscalar", self, -1, true); });
  }
  static PyObject* absolute(PyObject* self) { return compose_unary("abs", self); }
};

}  // namespace

PyObject* symbol_binary_operation(Binary kind, PyObject* left, PyObject* right) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const bool numpy = is_numpy_symbol(left) || is_numpy_symbol(right);
    const Row& row = (numpy ? kNumpyRows : kRows)[static_cast<int>(kind)];
    const auto tensor = [](PyObject* o) { return is_symbol(o) || is_array(o); };
    if (tensor(left) && tensor(right)) return compose_binary(row, left, right);
    double value = 0;
    bool is_int = false;
    if (is_symbol(left)) {
      if (!number_of(right, &value, &is_int)) return Py_NewRef(Py_NotImplemented);
      return with_number(kind, row.scalar, row.scalar_hint, left, value, is_int);
    }
    if (!number_of(left, &value, &is_int)) return Py_NewRef(Py_NotImplemented);
    return with_number(kind, row.reverse, row.reverse_hint, right, value, is_int);
  });
}

void add_symbol_arithmetic_slots(std::vector<PyType_Slot>& slots) { ArithmeticSlots<SymbolSide>::add_to(slots); }

}  // namespace hybridnet::python
