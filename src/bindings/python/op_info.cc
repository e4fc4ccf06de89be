#include "op_info.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "array_object.h"

namespace hybridnet::python {
namespace {

PyObject* interned(const std::string& text) {
  PyObject* name = PyUnicode_InternFromString(text.c_str());
  if (name == nullptr) throw PythonErrorIsSet();
  return name;
}

int find_name(const std::vector<PyObject*>& names, PyObject* name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<int>(i);
  for (size_t i = 0; i < names.size(); ++i)  // a keyword built at run time is not interned
    if (PyUnicode_Compare(names[i], name) == 0) return static_cast<int>(i);
  return -1;
}

std::unique_ptr<OpInfo> make_info(const Op& op) {
  auto info = std::make_unique<OpInfo>();
  info->op = &op;
  if (!op.variadic)
    for (const InputInfo& input : op.inputs) info->input_names.push_back(interned(input.name));
  for (const FieldInfo& field : op.schema->fields()) info->field_names.push_back(interned(field.name));
  info->prototype = op.schema->create();
  info->ready = op.default_params;
  const auto& fields = op.schema->fields();
  const int scalar = op.schema->find("scalar");
  if (scalar >= 0 && fields[scalar].kind == FieldKind::kDouble) info->scalar_field = scalar;
  const int is_int = op.schema->find("is_int");
  if (is_int >= 0 && fields[is_int].kind == FieldKind::kBool) info->is_int_field = is_int;
  if (!op.count_param.empty()) info->count_field = op.schema->find(op.count_param);
  return info;
}

PyObject* value_simplifier = nullptr;

template <typename T>
T& member(void* params, const FieldInfo& field) {
  return *reinterpret_cast<T*>(static_cast<char*>(params) + field.offset);
}

// Converts an exact int that fits. If it returns false, the schema converts the value or reports the error.
bool small_int(PyObject* value, int64_t* result) {
  if (!PyLong_CheckExact(value)) return false;
  int overflow = 0;
  *result = PyLong_AsLongLongAndOverflow(value, &overflow);
  return overflow == 0;
}

bool int_sequence(PyObject* value, Tuple* result) {
  if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) return false;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
  if (size > kMaxDims) return false;
  Tuple tuple = Tuple::scalar();
  for (Py_ssize_t i = 0; i < size; ++i) {
    int64_t item = 0;
    if (!small_int(PySequence_Fast_GET_ITEM(value, i), &item)) return false;
    tuple.push_back(item);
  }
  *result = tuple;
  return true;
}

bool in_range(const FieldInfo& field, double value) {
  return (!field.minimum || value >= *field.minimum) && (!field.maximum || value <= *field.maximum);
}

bool in_range(const FieldInfo& field, const Tuple& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](int64_t value) { return in_range(field, static_cast<double>(value)); });
}

// Stores the common exact types without an AttrValue. If it returns false, the schema converts the value or reports the
// error.
bool set_directly(const FieldInfo& field, void* params, PyObject* value) {
  int64_t number = 0;
  switch (field.kind) {
    case FieldKind::kBool:
      if (value != Py_True && value != Py_False) return false;
      member<bool>(params, field) = value == Py_True;
      return true;
    case FieldKind::kInt32:
      if (!small_int(value, &number) || number != static_cast<int32_t>(number) ||
          !in_range(field, static_cast<double>(number)))
        return false;
      member<int32_t>(params, field) = static_cast<int32_t>(number);
      return true;
    case FieldKind::kInt64:
      if (!small_int(value, &number) || !in_range(field, static_cast<double>(number))) return false;
      member<int64_t>(params, field) = number;
      return true;
    case FieldKind::kDouble:
    case FieldKind::kFloat: {
      double real = 0;
      if (PyFloat_CheckExact(value))
        real = PyFloat_AS_DOUBLE(value);
      else if (small_int(value, &number))
        real = static_cast<double>(number);
      else
        return false;
      if (!in_range(field, real)) return false;
      if (field.kind == FieldKind::kDouble)
        member<double>(params, field) = real;
      else
        member<float>(params, field) = static_cast<float>(real);
      return true;
    }
    case FieldKind::kTuple:
    case FieldKind::kOptTuple: {
      Tuple tuple;
      if (!int_sequence(value, &tuple) || !in_range(field, tuple)) return false;
      if (field.kind == FieldKind::kTuple)
        member<Tuple>(params, field) = tuple;
      else
        member<std::optional<Tuple>>(params, field) = tuple;
      return true;
    }
    case FieldKind::kOptInt32:
      if (!small_int(value, &number) || number != static_cast<int32_t>(number) ||
          !in_range(field, static_cast<double>(number)))
        return false;
      member<std::optional<int32_t>>(params, field) = static_cast<int32_t>(number);
      return true;
    case FieldKind::kOptInt64:
      if (!small_int(value, &number) || !in_range(field, static_cast<double>(number))) return false;
      member<std::optional<int64_t>>(params, field) = number;
      return true;
    default:
      return false;
  }
}

// Limit for nested lists: a list may contain itself. Python's own limit for C code is not used: in versions 3.12 and
// 3.13 it is 10,000, for which the stack is too small.
constexpr int kMaxNesting = 64;

AttrValue nested_value(PyObject* value, const char* what, int depth);

AttrValue list_value(PyObject* sequence, const char* what, int depth) {
  if (depth > kMaxNesting) {
    PyErr_Format(PyExc_RecursionError, "%s: lists nest more than %d levels deep", what, kMaxNesting);
    throw PythonErrorIsSet();
  }
  Owned items = checked(PySequence_Fast(sequence, "a sequence was expected"));
  AttrValue::List list;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.get());
  list.reserve(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i)
    list.push_back(nested_value(PySequence_Fast_GET_ITEM(items.get(), i), what, depth));
  return AttrValue(std::move(list));
}

// Converts plain Python values, at nesting depth `depth`; returns false for other objects.
bool plain_value(PyObject* value, const char* what, int depth, AttrValue* result) {
  if (value == Py_None)
    *result = AttrValue();
  else if (PyBool_Check(value))
    *result = AttrValue(value == Py_True);
  else if (PyLong_Check(value)) {
    const int64_t number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      raise(ErrorKind::kParam, {.input = what, .expected = "an integer of 64 bits", .given = short_repr(value)});
    }
    *result = AttrValue(number);
  } else if (PyFloat_Check(value))
    *result = AttrValue(PyFloat_AS_DOUBLE(value));
  else if (PyUnicode_Check(value)) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text == nullptr) throw PythonErrorIsSet();
    *result = AttrValue(std::string(text, static_cast<size_t>(size)));
  } else if (PyTuple_Check(value) || PyList_Check(value))
    *result = list_value(value, what, depth + 1);
  else
    return false;
  return true;
}

AttrValue nested_value(PyObject* value, const char* what, int depth) {
  AttrValue result;
  if (plain_value(value, what, depth, &result)) return result;
  if (value_simplifier != nullptr) {
    Owned simple = checked(PyObject_CallOneArg(value_simplifier, value));
    if (simple.get() != value && plain_value(simple.get(), what, depth, &result)) return result;
  }
  raise(ErrorKind::kType, {.input = what,
                           .expected = "a number, bool, str, None, tuple, list, dtype or Context",
                           .given = type_name(value) + " " + short_repr(value)});
}

}  // namespace

int OpInfo::find_input(PyObject* name) const { return find_name(input_names, name); }
const OpInfo& adapted_info(const OpInfo& info, PyObject* fixed, PyObject* renamed) {
  if (PyDict_GET_SIZE(fixed) == 0 && PyDict_GET_SIZE(renamed) == 0) return info;
  auto made = make_info(*info.op);
  const auto field_of = [&](PyObject* name) {
    if (const int field = info.find_field(name); field >= 0 && field < 64) return field;
    raise(ErrorKind::kParam,
          {.op = info.op->name, .input = short_repr(name), .message = "there is no parameter of this name"});
  };
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(fixed, &at, &name, &value);) {
    const int field = field_of(name);
    set_field(*made, made->prototype->data(), field, value);
    made->fixed_fields |= uint64_t{1} << field;
  }
  if (made->ready) {
    const Ref<Params> params = info.op->schema->copy(*made->prototype);
    info.op->schema->finish(params->data(), made->fixed_fields, info.op->name);
    made->ready = ParamsPtr(params.get());
  }
  for (Py_ssize_t at = 0; PyDict_Next(renamed, &at, &name, &value);) {
    PyObject* interned_name = Py_NewRef(value);
    PyUnicode_InternInPlace(&interned_name);
    made->field_names[static_cast<size_t>(field_of(name))] = interned_name;
  }
  return *made.release();
}

int OpInfo::find_field(PyObject* name) const { return find_name(field_names, name); }

ParamsPtr OpInfo::scalar_params(double value, bool is_int) const {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  ScalarEntry& entry = recent_scalars[(bits >> 52 ^ bits >> 44 ^ bits >> 20 ^ bits) & (recent_scalars.size() - 1)];
  if (entry.params && entry.bits == bits && entry.is_int == is_int) return entry.params;
  if (scalar_field < 0) raise(ErrorKind::kParam, {.op = op->name, .message = "takes no parameter 'scalar'"});
  Ref<Params> params = op->schema->copy(*prototype);
  member<double>(params->data(), op->schema->fields()[scalar_field]) = value;
  if (is_int_field >= 0) member<bool>(params->data(), op->schema->fields()[is_int_field]) = is_int;
  op->schema->finish(params->data(), ~uint64_t{0}, op->name);
  entry = {bits, is_int, ParamsPtr(params.get())};
  return entry.params;
}

const OpInfo& op_info(const Op& op) {
  // Never destroyed: OpFunction objects and operator tables point into it until the interpreter ends.
  static auto& infos = *new std::vector<std::unique_ptr<OpInfo>>;
  const auto index = static_cast<size_t>(op.id);
  if (index >= infos.size()) infos.resize(index + 64);
  if (!infos[index]) infos[index] = make_info(op);
  return *infos[index];
}

const OpInfo& op_info(std::string_view name) { return op_info(op_registry().at(name)); }

void set_field(const OpInfo& info, void* params, int field, PyObject* value) {
  const FieldInfo& described = info.op->schema->fields()[field];
  if (set_directly(described, params, value)) return;
  info.op->schema->set(params, field, to_attr_value(value, described.name.c_str()), info.op->name);
}

AttrValue to_attr_value(PyObject* value, const char* what) { return nested_value(value, what, 0); }

Owned from_attr_value(const AttrValue& value) {
  switch (value.value.index()) {
    case 1:
      return Owned(PyBool_FromLong(std::get<bool>(value.value)));
    case 2:
      return checked(PyLong_FromLongLong(std::get<int64_t>(value.value)));
    case 3:
      return checked(PyFloat_FromDouble(std::get<double>(value.value)));
    case 4: {
      const std::string& text = std::get<std::string>(value.value);
      return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
    }
    case 5: {
      const AttrValue::List& list = std::get<AttrValue::List>(value.value);
      Owned tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
      for (size_t i = 0; i < list.size(); ++i)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), from_attr_value(list[i]).release());
      return tuple;
    }
    default:
      return Owned::borrowed(Py_None);
  }
}

void set_value_simplifier(PyObject* callable) {
  Py_INCREF(callable);
  Py_XSETREF(value_simplifier, callable);
}

}  // namespace hybridnet::python
