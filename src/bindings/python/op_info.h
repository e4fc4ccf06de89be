// Data that the binding caches per operator: interned argument names and ready-made parameters.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hybridnet/op.h"
#include "python_errors.h"

namespace hybridnet::python {

struct OpInfo {
  const Op* op = nullptr;
  std::vector<PyObject*> input_names;  // interned; empty for variadic ops
  std::vector<PyObject*> field_names;  // interned
  Ref<Params> prototype;               // parameters with defaults, copied for each call that sets some
  ParamsPtr ready;                     // for calls that set no parameter; null: some parameter is required
  uint64_t fixed_fields = 0;           // bits of parameters whose default a function has changed
  int scalar_field = -1;               // field "scalar" of kind double, of binary operators with a number
  int is_int_field = -1;
  int count_field = -1;  // field that receives the number of variadic inputs

  // Parameters of recent calls with a number on one side: x + 1 in a loop makes them only once.
  struct ScalarEntry {
    uint64_t bits = 0;
    bool is_int = false;
    ParamsPtr params;
  };
  mutable std::array<ScalarEntry, 16> recent_scalars;
  ParamsPtr scalar_params(double value, bool is_int) const;

  int find_input(PyObject* name) const;  // index or -1; interned names are found by identity
  int find_field(PyObject* name) const;
};

// Made on first use, kept for the life of the process. Needs the GIL.
const OpInfo& op_info(const Op& op);
const OpInfo& op_info(std::string_view name);  // throws ParamError for an unknown name

// Returns a variant of the operator's info for one function: with other defaults of some parameters (name: value), and
// with other names for some (name: public name). Kept for the life of the process.
const OpInfo& adapted_info(const OpInfo& info, PyObject* fixed, PyObject* renamed);

// Stores a Python value in a parameter: common kinds directly, others through the schema. Throws ParamError.
void set_field(const OpInfo& info, void* params, int field, PyObject* value);
// Converts a Python value for the schema. Throws TypeError naming `what` for values that no parameter accepts.
AttrValue to_attr_value(PyObject* value, const char* what);
Owned from_attr_value(const AttrValue& value);

// Registered by hybridnet.base: converts objects that C++ does not know (Context, numpy.dtype, ...) to plain Python
// values.
void set_value_simplifier(PyObject* callable);

}  // namespace hybridnet::python
