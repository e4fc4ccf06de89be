#include "op_function.h"

#include <algorithm>
#include <array>
#include <vector>

#include "array_object.h"
#include "base/edit_distance.h"
#include "control_bodies.h"
#include "hybridnet/env.h"
#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"
#include "location.h"
#include "registry_function.h"
#include "symbol_object.h"
#include "traced_memory.h"

namespace hybridnet::python {
namespace {

struct OpFunctionObject : RegistryFunctionObject {
  const char* hint;  // lower-case public name: stem of node names
  bool symbolic;
  bool numpy;
  const std::vector<int>* order;  // may be null; kept for the life of the process, like the functions
};

constexpr int kOutPosition = -1;  // in `order`; other numbers are indices of parameters

PyTypeObject* op_function_type = nullptr;
PyObject* not_given = nullptr;
PyObject* numpy_fallback = nullptr;
PyObject *key_out = nullptr, *key_name = nullptr, *key_attr = nullptr;

// The arguments of one call. Inputs are borrowed references; null: slot not given.
struct Arguments {
  static constexpr int kInline = 8;
  std::array<PyObject*, kInline> few{};
  std::vector<PyObject*> many;  // when there are more than kInline
  Owned keep;
  int num_inputs = 0;
  bool any_symbol = false, any_array = false;
  Ref<Params> params;  // null: no parameter given
  uint64_t fields_given = 0;
  PyObject *out = nullptr, *name = nullptr, *attr = nullptr;
  std::vector<std::pair<std::string, std::string>> hidden_attrs;

  PyObject*& input(int i) { return num_inputs <= kInline ? few[static_cast<size_t>(i)] : many[static_cast<size_t>(i)]; }
  void reserve_inputs(int n) {
    num_inputs = n;
    if (n > kInline) many.assign(static_cast<size_t>(n), nullptr);
  }
};

bool absent(PyObject* value) { return value == Py_None || value == not_given; }

class CallParser {
 public:
  CallParser(const OpFunctionObject& function, Arguments& a)
      : function_(function), info_(*function.info), op_(*info_.op), a_(a) {}

  void parse(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    if (op_.variadic)
      parse_variadic(args, nargs);  // by value: keywords are found after the caller's own arguments
    else
      parse_positional(args, nargs);
    const Py_ssize_t num_keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t i = 0; i < num_keywords; ++i) parse_keyword(PyTuple_GET_ITEM(kwnames, i), args[nargs + i]);
    if (op_.variadic && !variadic_keywords_.empty()) append_variadic_keywords();
  }

 private:
  void set_input(int i, PyObject* value) {
    if (is_array(value))
      a_.any_array = true;
    else if (is_symbol(value))
      a_.any_symbol = true;
    else
      bad_input(i, value);
    a_.input(i) = value;
  }

  [[noreturn]] void bad_input(int i, PyObject* value) {
    const std::string input =
        op_.variadic ? op_.inputs[0].name + "[" + std::to_string(i) + "]" : op_.inputs[static_cast<size_t>(i)].name;
    raise(ErrorKind::kType, {.op = op_.name,
                             .input = input,
                             .expected = "an NDArray or a Symbol",
                             .given = type_name(value) + " " + short_repr(value),
                             .fix = "wrap the value in mx.nd.array(...), or pass a parameter by keyword"});
  }

  void parse_positional(PyObject* const* args, Py_ssize_t nargs) {
    const int declared = static_cast<int>(info_.input_names.size());
    a_.reserve_inputs(declared);
    const size_t behind = function_.order != nullptr ? function_.order->size() : info_.field_names.size();
    const auto limit = static_cast<Py_ssize_t>(declared + behind);
    if (nargs > limit)
      raise(ErrorKind::kType, {.op = op_.name,
                               .expected = "at most " + std::to_string(limit) + " positional arguments",
                               .given = std::to_string(nargs)});
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      if (args[i] == not_given) continue;
      if (i >= declared)
        set_behind_inputs(static_cast<int>(i) - declared, args[i]);
      else if (args[i] != Py_None)
        set_input(static_cast<int>(i), args[i]);
    }
  }

  void set_behind_inputs(int position, PyObject* value) {
    if (function_.order == nullptr) return set_parameter(position, value);
    const int what = (*function_.order)[static_cast<size_t>(position)];
    if (what != kOutPosition) return set_parameter(what, value);
    a_.out = absent(value) ? nullptr : value;
  }

  // Inputs one by one, or all of them in a single list or tuple.
  void parse_variadic(PyObject* const* args, Py_ssize_t nargs) {
    if (function_.order != nullptr) {
      if (nargs > 1 + static_cast<Py_ssize_t>(function_.order->size()))
        raise(ErrorKind::kType, {.op = op_.name,
                                 .expected = "a sequence of arrays and at most " +
                                             std::to_string(function_.order->size()) + " arguments behind it",
                                 .given = std::to_string(nargs)});
      for (Py_ssize_t i = 1; i < nargs; ++i) set_behind_inputs(static_cast<int>(i) - 1, args[i]);
      nargs = std::min<Py_ssize_t>(nargs, 1);
    }
    if (nargs == 1 && (PyList_Check(args[0]) || PyTuple_Check(args[0]))) {
      a_.keep = checked(PySequence_Tuple(args[0]));  // a list could change while other arguments are converted
      nargs = PyTuple_GET_SIZE(a_.keep.get());
      args = PySequence_Fast_ITEMS(a_.keep.get());
    }
    a_.reserve_inputs(static_cast<int>(nargs));
    for (Py_ssize_t i = 0; i < nargs; ++i) set_input(static_cast<int>(i), args[i]);
  }

  void parse_keyword(PyObject* key, PyObject* value) {
    if (key == key_out) {
      a_.out = absent(value) ? nullptr : value;
      return;
    }
    if (key == key_name && info_.find_field(key) < 0) {
      a_.name = value;
      return;
    }
    if (key == key_attr) {
      a_.attr = absent(value) ? nullptr : value;
      return;
    }
    if (const int field = info_.find_field(key); field >= 0) {
      if (value != not_given) set_parameter(field, value);
      return;
    }
    if (const int input = info_.find_input(key); input >= 0) {
      if (!absent(value)) {
        if (a_.input(input) != nullptr) given_twice(key);
        set_input(input, value);
      }
      return;
    }
    rare_keyword(key, value);
  }

  void rare_keyword(PyObject* key, PyObject* value) {
    const char* text = PyUnicode_AsUTF8(key);
    if (text == nullptr) throw PythonErrorIsSet();
    const std::string name(text);
    if (name == "out") {
      a_.out = absent(value) ? nullptr : value;
      return;
    }
    if (name == "name") {
      a_.name = value;
      return;
    }
    if (name == "attr") {
      a_.attr = absent(value) ? nullptr : value;
      return;
    }
    if (op_.variadic && (is_array(value) || is_symbol(value))) {
      variadic_keywords_.emplace_back(name, value);
      return;
    }
    if (is_hidden_attribute(name)) {
      Owned value_text = checked(PyObject_Str(value));
      const char* utf8 = PyUnicode_AsUTF8(value_text.get());
      if (utf8 == nullptr) throw PythonErrorIsSet();
      a_.hidden_attrs.emplace_back(name, utf8);
      return;
    }
    if (absent(value) && (name == "ctx" || name == "stype")) return;
    if (has_no_parameters() && !is_array(value) && !is_symbol(value) && !environment().strict)
      warn_of_ignored(name);
    else
      unknown_keyword(name);
  }

  bool has_no_parameters() const {
    return std::ranges::all_of(op_.schema->fields(), [](const FieldInfo& field) { return field.hidden; });
  }

  // MXNet ignores keywords of operators without parameters, so working programs may contain such keywords.
  void warn_of_ignored(const std::string& name) {
    const std::string text =
        "operator '" + op_.name + "' has no argument '" + name +
        "': it is ignored, as in MXNet. Fix: leave it out. (HYBRIDNET_STRICT=1 makes it an error.)";
    warn_at_location(text);
  }

  // Concat(arg0=x, arg1=y): in the order of the numbers at the end of the names, else as written.
  void append_variadic_keywords() {
    std::stable_sort(variadic_keywords_.begin(), variadic_keywords_.end(), [](const auto& a, const auto& b) {
      const auto number = [](const std::string& s) {
        const size_t digits = s.find_last_not_of("0123456789") + 1;
        return digits < s.size() && s.size() - digits < 9 ? std::stoi(s.substr(digits)) : -1;
      };
      return number(a.first) < number(b.first);
    });
    std::vector<PyObject*> all;
    for (int i = 0; i < a_.num_inputs; ++i) all.push_back(a_.input(i));
    for (const auto& [name, value] : variadic_keywords_) all.push_back(value);
    a_.reserve_inputs(static_cast<int>(all.size()));
    for (size_t i = 0; i < all.size(); ++i) set_input(static_cast<int>(i), all[i]);
  }

  void set_parameter(int field, PyObject* value) {
    if (value == not_given) return;
    if (!a_.params) a_.params = op_.schema->copy(*info_.prototype);
    if (field < 64) {
      if (a_.fields_given >> field & 1) given_twice(info_.field_names[static_cast<size_t>(field)]);
      a_.fields_given |= uint64_t{1} << field;
    }
    if (field == info_.count_field && value == Py_None) return;
    set_field(info_, a_.params->data(), field, value);
  }

  [[noreturn]] void given_twice(PyObject* key) {
    const char* text = PyUnicode_AsUTF8(key);
    raise(ErrorKind::kType,
          {.op = op_.name, .input = text != nullptr ? text : "", .message = "got this argument twice"});
  }

  [[noreturn]] void unknown_keyword(const std::string& name) {
    std::string known;
    const auto add = [&](const std::string& n) { known += (known.empty() ? "" : ", ") + n; };
    for (const InputInfo& input : op_.inputs) add(input.name);
    for (const FieldInfo& field : op_.schema->fields())
      if (!field.hidden) add(field.name);
    std::string similar = most_similar(name);
    raise(ErrorKind::kParam, {.op = op_.name,
                              .input = name,
                              .expected = known.empty() ? "no arguments" : "one of: " + known,
                              .given = "'" + name + "'",
                              .because = "the operator has no argument of this name",
                              .fix = similar.empty() ? "" : "did you mean '" + similar + "'?"});
  }

  std::string most_similar(const std::string& name) const {
    std::string best;
    size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
    const auto consider = [&](const std::string& candidate) {
      const size_t distance = edit_distance(name, candidate);
      if (distance < best_distance) best = candidate, best_distance = distance;
    };
    for (const InputInfo& input : op_.inputs) consider(input.name);
    for (const FieldInfo& field : op_.schema->fields()) consider(field.name);
    return best;
  }

  const OpFunctionObject& function_;
  const OpInfo& info_;
  const Op& op_;
  Arguments& a_;
  std::vector<std::pair<std::string, PyObject*>> variadic_keywords_;
};

// Checks a given num_args (or similar parameter) against the number of inputs, because kernels rely on it. For Symbols
// missing inputs become variables. Operators with named inputs are checked later, when it is known which they have.
void check_count(const OpInfo& info, const Arguments& a, bool symbolic) {
  if (info.op->inputs.size() > 1) return;
  const AttrValue given = info.op->schema->get(a.params->data(), info.count_field);
  const int64_t* count = std::get_if<int64_t>(&given.value);
  if (count == nullptr || *count == a.num_inputs || (symbolic && *count > a.num_inputs)) return;
  raise(ErrorKind::kParam, {.op = info.op->name,
                            .input = info.op->count_param,
                            .expected = std::to_string(a.num_inputs) + ", the number of inputs",
                            .given = std::to_string(*count),
                            .fix = "leave it out"});
}

ParamsPtr final_params(const OpInfo& info, Arguments& a, bool symbolic) {
  const Op& op = *info.op;
  const bool counts = info.count_field >= 0 && !(a.fields_given >> info.count_field & 1);
  if (!a.params && !counts && info.ready) return info.ready;
  if (!a.params) a.params = op.schema->copy(*info.prototype);
  if (counts) {
    op.schema->set(a.params->data(), info.count_field, AttrValue(static_cast<int64_t>(a.num_inputs)), op.name);
    a.fields_given |= uint64_t{1} << info.count_field;
  }
  op.schema->finish(a.params->data(), a.fields_given | info.fixed_fields, op.name);
  if (info.count_field >= 0 && !counts) check_count(info, a, symbolic);
  return ParamsPtr(a.params.get());
}

// --------------------------------------------------------------------------------------------------- arrays: run
[[noreturn]] void missing_input(const Op& op, Arguments& a, int wanted, int given) {
  std::string missing;
  for (const bool optional : {false, true})
    for (size_t i = 0; i < op.inputs.size() && missing.empty(); ++i)
      if (op.inputs[i].optional == optional &&
          (static_cast<int>(i) >= a.num_inputs || a.input(static_cast<int>(i)) == nullptr))
        missing = op.inputs[i].name;
  raise(ErrorKind::kParam, {.op = op.name,
                            .input = given > wanted ? "" : missing,
                            .expected = std::to_string(wanted) + " inputs with these parameters",
                            .given = std::to_string(given)});
}

std::vector<NDArray> out_arrays(PyObject* out) {
  std::vector<NDArray> arrays;
  if (!PyList_Check(out) && !PyTuple_Check(out)) return {expect_array(out, "out")};
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(out);
  for (Py_ssize_t i = 0; i < size; ++i) arrays.push_back(expect_array(PySequence_Fast_GET_ITEM(out, i), "out"));
  return arrays;
}

std::vector<NDArray> invoke_maybe_waiting(const Op& op, const ParamsPtr& params, std::span<const NDArray> in,
                                          std::span<const NDArray> out) {
  if (!op.data_dependent_shape && !op.opaque && !any_sparse(in) && !any_sparse(out)) return invoke(op, params, in, out);
  ReleaseGil release(true);  // the call waits for its inputs, for their values or for code of the user
  return invoke(op, params, in, out);
}

PyObject* run_on_arrays(const OpFunctionObject& function, Arguments& a, const ParamsPtr& params) {
  const Op& op = *function.info->op;
  std::array<NDArray, Arguments::kInline> few;
  std::vector<NDArray> many;
  const bool is_few = a.num_inputs <= Arguments::kInline;
  if (!is_few) many.resize(static_cast<size_t>(a.num_inputs));
  NDArray* inputs = is_few ? few.data() : many.data();
  int given = 0;
  bool sparse = false;
  PyObject* first = nullptr;
  for (int i = 0; i < a.num_inputs; ++i) {
    PyObject* input = a.input(i);
    if (input == nullptr) continue;
    if (first == nullptr) first = input;
    if (Py_TYPE(input) != Py_TYPE(first)) require_same_class(first, input, op.name);
    sparse |= array_of(input).is_sparse();
    inputs[given++] = array_of(input);
  }
  if (!op.variadic || op.num_inputs_) {
    const int wanted = op.num_inputs(params->data());
    if (given != wanted) missing_input(op, a, wanted, given);
  }
  const std::span<const NDArray> in(inputs, static_cast<size_t>(given));
  ArrayClass& cls = function.numpy ? np_class : first != nullptr ? result_class(first) : nd_class;
  const int visible = op.num_visible_outputs(params->data());
  if (a.out != nullptr) {
    const std::vector<NDArray> out = out_arrays(a.out);
    for (const NDArray& array : out) check_write_in_body(array);
    invoke_maybe_waiting(op, params, in, out);
    return Py_NewRef(a.out);
  }
  if (visible == 1 && is_few && !op.data_dependent_shape && !sparse) return wrap_array(invoke_one(op, params, in), cls);
  std::vector<NDArray> results = invoke_maybe_waiting(op, params, in, {});
  if (visible == 1) return wrap_array(std::move(results[0]), cls);
  Owned list = checked(PyList_New(visible));
  for (int i = 0; i < visible; ++i)
    PyList_SET_ITEM(list.get(), i, checked(wrap_array(std::move(results[static_cast<size_t>(i)]), cls)).release());
  return list.release();
}

// ----------------------------------------------------------------------------------------------- symbols: compose
// True if the trace writes the operator's new value of a state, so that later lines see it: the state is an
// optimizer's, not auxiliary. In a body, the graph writes to variables from outside.
bool is_written_by_trace(const Op& op, int input, PyObject* state) {
  const NodePtr now = current_symbol(state).outputs.at(0).node;
  if (!now->is_variable()) return true;
  const bool is_auxiliary = op.variadic ? op.opaque : op.inputs[static_cast<size_t>(input)].auxiliary;
  return !is_auxiliary && (body_around(*now) == nullptr || belongs_to_body(*now));
}

// Calls f(input, output, state) for each state that the operator updates and the trace writes.
template <typename F>
void for_each_traced_state(const Op& op, const void* params, Arguments& a, const F& f) {
  if (!op.has_writebacks()) return;
  if (op.writeback_active && !op.writeback_active(params, autograd_state().training)) return;
  for (int output = 0; output < op.num_outputs(params); ++output) {
    const int input = op.writeback_input(params, output);
    PyObject* state = input >= 0 && input < a.num_inputs ? a.input(input) : nullptr;
    if (state != nullptr && is_symbol(state) && is_written_by_trace(op, input, state)) f(input, output, state);
  }
}

// Returns a copy of a variable: the operator updates the copy, and the trace writes the variable.
NodeEntry copied_state(const NodeEntry& state) {
  if (!state.node->is_variable()) return state;
  Composition copy;
  copy.info = &op_info("_copy");
  copy.params = copy.info->op->default_params;
  copy.inputs = {state};
  copy.hint = "copy";
  const Owned made = checked(compose(std::move(copy)));
  return symbol_of(made.get()).outputs.at(0);
}

void write_states(const Op& op, Arguments& a, PyObject* made) {
  const NodePtr node = symbol_of(made).outputs[0].node;
  if (node->op != &op) return;
  for_each_traced_state(op, node->params->data(), a, [&](int, int output, PyObject* state) {
    const Owned value = checked(wrap_symbol(Symbol{{{node, static_cast<uint32_t>(output)}}}, symbol_class));
    write_traced(state, value.get(), false);
  });
}

// Returns the sizes in a call of an operator without inputs if one of them is 0; else an empty list. States of
// recurrent cells, which have a layout, are excluded: their 0 leaves the batch size open.
std::vector<int64_t> sizes_with_zero(const Composition& c) {
  const Op& op = *c.info->op;
  const auto is_layout = [](const auto& attribute) { return attribute.first == "__layout__"; };
  if (is_np_shape() || !c.inputs.empty() || std::ranges::any_of(c.hidden_attrs, is_layout)) return {};
  for (const char* name : {"shape", "size"}) {
    const int field = op.schema->find(name);
    if (field < 0) continue;
    const AttrValue given = op.schema->get(c.params->data(), field);
    const auto* list = std::get_if<AttrValue::List>(&given.value);
    std::vector<int64_t> sizes;
    for (size_t i = 0; list != nullptr && i < list->size(); ++i)
      if (const auto* size = std::get_if<int64_t>(&(*list)[i].value)) sizes.push_back(*size);
    if (std::ranges::count(sizes, 0) > 0) return sizes;
  }
  return {};
}

// Composes an array with sizes of 0 as an empty slice of an array with size 1 there: in graphs with MXNet's shapes, and
// in files, a size of 0 means "not known yet".
PyObject* compose_without_elements(Composition c, const std::vector<int64_t>& sizes) {
  const Op& op = *c.info->op;
  AttrValue::List whole, begin(sizes.size(), AttrValue(0)), end;
  for (const int64_t size : sizes) {
    whole.emplace_back(std::max<int64_t>(size, 1));
    end.emplace_back(size);
  }
  const int field = std::max(op.schema->find("shape"), op.schema->find("size"));
  const Ref<Params> params = op.schema->copy(*c.params);
  op.schema->set(params->data(), field, AttrValue(std::move(whole)), op.name);
  c.params = ParamsPtr(params.get());
  PyTypeObject* const result = c.result;
  const Owned made = checked(compose(std::move(c)));
  Composition rows;
  rows.info = &op_info("slice");
  rows.params = rows.info->op->schema->parse(
      std::vector<std::pair<std::string, AttrValue>>{{"begin", AttrValue(std::move(begin))},
                                                     {"end", AttrValue(std::move(end))}},
      "slice");
  rows.inputs = {symbol_of(made.get()).outputs.at(0)};
  rows.hint = "slice";
  rows.result = result;
  return compose(std::move(rows));
}

PyObject* compose_traced(Composition c) {
  const std::vector<int64_t> sizes = sizes_with_zero(c);
  return sizes.empty() ? compose(std::move(c)) : compose_without_elements(std::move(c), sizes);
}

PyObject* make_node_from(const OpFunctionObject& function, Arguments& a, ParamsPtr params) {
  const Op& op = *function.info->op;
  Composition c;
  c.info = function.info;
  c.params = std::move(params);
  c.name = a.name;
  c.attr = a.attr;
  c.hint = function.hint;
  c.hidden_attrs = std::move(a.hidden_attrs);
  c.result = function.numpy ? numpy_symbol_class : nullptr;
  c.inputs.resize(static_cast<size_t>(a.num_inputs));
  for (int i = 0; i < a.num_inputs; ++i) {
    PyObject* input = a.input(i);
    if (input == nullptr) continue;
    c.inputs[static_cast<size_t>(i)] =
        entry_of(input, op.inputs[op.variadic ? 0 : static_cast<size_t>(i)].name.c_str());
    if (!function.numpy && is_symbol(input)) c.result = result_symbol_class(input);
  }
  if (!trace_state().active) return compose(std::move(c));
  for_each_traced_state(op, c.params->data(), a, [&](int input, int, PyObject*) {
    NodeEntry& state = c.inputs[static_cast<size_t>(input)];
    state = copied_state(state);
  });
  Owned made = checked(compose_traced(std::move(c)));
  if (op.has_writebacks()) write_states(op, a, made.get());
  return is_symbol_or_symbols(a.out) ? write_outputs(a.out, std::move(made), op.name.starts_with("_npi_"))
                                     : made.release();
}

thread_local bool symbolic_calls = false;

bool is_array_or_arrays(PyObject* out) {
  if (out == nullptr || is_array(out)) return out != nullptr;
  return (PyList_Check(out) || PyTuple_Check(out)) && PySequence_Fast_GET_SIZE(out) > 0 &&
         is_array(PySequence_Fast_GET_ITEM(out, 0));
}

// Throws TraceError: results of traced inputs have no values to write into an array.
void refuse_writing_into_array(const Op& op) {
  raise(ErrorKind::kTrace, {.op = op.name,
                            .input = "out",
                            .expected = "no array",
                            .given = "an NDArray",
                            .because = "the inputs have no values while the graph is being built",
                            .fix = "use the array that the call returns"});
}

// True if the call has a keyword that only NumPy's universal functions have (where, casting, ...): operators without
// parameters are such functions, and mx.np checks these keywords.
bool has_ufunc_keywords(const OpInfo& info, PyObject* kwnames) {
  if (kwnames == nullptr || !info.field_names.empty()) return false;
  const auto known = [&](PyObject* key) {
    const auto is = [key](PyObject* name) { return key == name || PyUnicode_Compare(key, name) == 0; };
    return is(key_out) || is(key_name) || is(key_attr) || info.find_input(key) >= 0;
  };
  PyObject** const keys = PySequence_Fast_ITEMS(kwnames);
  return !std::all_of(keys, keys + PyTuple_GET_SIZE(kwnames), known);
}

// True for a call of mx.np with a positional input that is neither an array nor a Symbol, or with a keyword that only
// NumPy has. Inputs by keyword are rare and not checked.
bool needs_conversion(const OpFunctionObject& function, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (!function.numpy) return false;
  if (has_ufunc_keywords(*function.info, kwnames)) return true;
  const auto foreign = [](PyObject* value) { return !absent(value) && !is_array(value) && !is_symbol(value); };
  if (function.info->op->variadic) {
    if (function.order == nullptr) return false;
    if (nargs == 0 || (!PyList_Check(args[0]) && !PyTuple_Check(args[0]))) return true;
    PyObject** const parts = PySequence_Fast_ITEMS(args[0]);
    return std::any_of(parts, parts + PySequence_Fast_GET_SIZE(args[0]), foreign);
  }
  const auto inputs = std::min<Py_ssize_t>(nargs, static_cast<Py_ssize_t>(function.info->input_names.size()));
  return std::any_of(args, args + inputs, foreign);
}

PyObject* op_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const auto& function = *reinterpret_cast<OpFunctionObject*>(self);
  return guarded<PyObject*>(nullptr, [&] {
    if (needs_conversion(function, args, PyVectorcall_NARGS(nargsf), kwnames))
      return call_numpy_fallback(self, args, PyVectorcall_NARGS(nargsf), kwnames);
    Arguments a;
    CallParser(function, a).parse(args, PyVectorcall_NARGS(nargsf), kwnames);
    const bool only_symbols = !a.any_array && (a.any_symbol || function.symbolic);
    ParamsPtr params = final_params(*function.info, a, only_symbols);
    const bool writes = is_array_or_arrays(a.out);
    if (writes && a.any_symbol) refuse_writing_into_array(*function.info->op);
    // Writes into an array (c[:] = 0) are executed at once, also in a trace.
    const bool tracing = trace_state().active && !writes;
    const bool symbolic = a.any_symbol || (!a.any_array && (function.symbolic || tracing || symbolic_calls)) ||
                          (tracing && (function.info->op->random || is_symbol_or_symbols(a.out)));
    if (symbolic) return make_node_from(function, a, std::move(params));
    return run_on_arrays(function, a, params);
  });
}

// ------------------------------------------------------------------------------------------------------ the type
PyObject* bind_as_method(PyObject* self, PyObject* instance, PyObject*) {
  return instance == nullptr || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

PyObject* get_order(PyObject* self, void*) {
  const auto* function = reinterpret_cast<OpFunctionObject*>(self);
  if (function->order == nullptr) return Py_NewRef(Py_None);
  return guarded<PyObject*>(nullptr, [&] {
    const auto& order = *function->order;
    Owned names = checked(PyTuple_New(static_cast<Py_ssize_t>(order.size())));
    for (size_t i = 0; i < order.size(); ++i)
      PyTuple_SET_ITEM(
          names.get(), static_cast<Py_ssize_t>(i),
          Py_NewRef(order[i] == kOutPosition ? key_out : function->info->field_names[static_cast<size_t>(order[i])]));
    return names.release();
  });
}
PyObject* get_symbolic(PyObject* self, void*) {
  return PyBool_FromLong(reinterpret_cast<OpFunctionObject*>(self)->symbolic);
}

PyGetSetDef getset[] = {
    {"order", get_order, nullptr, "Names of the positional arguments after the inputs; None: the declared order.",
     nullptr},
    {"symbolic", get_symbolic, nullptr, "Whether a call without inputs makes a Symbol.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

int init_op_function_type(PyObject* module) {
  key_out = PyUnicode_InternFromString("out");
  key_name = PyUnicode_InternFromString("name");
  key_attr = PyUnicode_InternFromString("attr");
  PyType_Slot slots[] = {
      {Py_tp_descr_get, reinterpret_cast<void*>(bind_as_method)},
      {Py_tp_getset, getset},
      {0, nullptr},
  };
  PyType_Spec spec = {"hybridnet._core.OpFunction", sizeof(OpFunctionObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
  op_function_type = make_registry_function_type(module, spec);
  return op_function_type == nullptr ? -1 : 0;
}

namespace {

// Converts names of parameters to their indices.
const std::vector<int>* positions_of(const OpInfo& info, const std::vector<std::string>& order) {
  if (order.empty()) return nullptr;
  std::vector<int> positions;
  for (const std::string& name : order) {
    const Owned key = checked(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    const int field = name == "out" ? kOutPosition : info.find_field(key.get());
    if (name != "out" && field < 0)
      raise(ErrorKind::kParam, {.op = info.op->name, .input = name, .message = "there is no parameter of this name"});
    positions.push_back(field);
  }
  return new std::vector<int>(std::move(positions));
}

}  // namespace

Owned make_op_function(const std::string& op_name, const std::string& public_name, const std::string& module,
                       bool symbolic, bool numpy, const std::vector<std::string>& order, PyObject* fixed,
                       PyObject* renamed) {
  const OpInfo& plain = op_info(op_name);
  const OpInfo& info = fixed != nullptr ? adapted_info(plain, fixed, renamed) : plain;
  const std::vector<int>* positions = positions_of(info, order);
  Owned self = make_registry_function(op_function_type, op_call, info, public_name, module);
  auto* function = reinterpret_cast<OpFunctionObject*>(self.get());
  function->symbolic = symbolic;
  function->numpy = numpy;
  function->order = positions;
  std::string hint = public_name;
  std::transform(hint.begin(), hint.end(), hint.begin(), [](unsigned char c) { return std::tolower(c); });
  function->hint = intern_file(hint);  // any string that outlives the object
  return self;
}

void set_numpy_fallback(PyObject* callable) {
  Py_INCREF(callable);
  Py_XSETREF(numpy_fallback, callable);
}

PyObject* call_numpy_fallback(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  Owned positional = checked(PyTuple_New(nargs));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  Owned keywords = checked(PyDict_New());
  const Py_ssize_t num_keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < num_keywords; ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) < 0) throw PythonErrorIsSet();
  return PyObject_CallFunctionObjArgs(numpy_fallback, self, positional.get(), keywords.get(), nullptr);
}

bool set_symbolic_calls(bool on) { return std::exchange(symbolic_calls, on); }

void set_not_given(PyObject* object) {
  Py_INCREF(object);
  Py_XSETREF(not_given, object);
}

}  // namespace hybridnet::python
