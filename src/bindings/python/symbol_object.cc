#include "symbol_object.h"

#include <structmember.h>

#include <algorithm>
#include <optional>

#include "array_object.h"
#include "control_bodies.h"
#include "graph/control/control_flow.h"
#include "graph/default_initializers.h"
#include "hybridnet/imperative.h"
#include "location.h"
#include "symbol_arithmetic.h"
#include "text_of.h"
#include "traced_memory.h"
#include "traced_modes.h"

namespace hybridnet::python {

PyTypeObject* symbol_base_type = nullptr;
PyTypeObject* symbol_class = nullptr;
PyTypeObject* numpy_symbol_class = nullptr;

namespace {

// Thread-local objects of Python: their `value` is the name manager, or the attribute scope, in use.
PyObject *current_names = nullptr, *current_attributes = nullptr;

PyObject* interned(const char* text) { return checked(PyUnicode_InternFromString(text)).release(); }

Owned in_use(PyObject* current) {
  static PyObject* const value = interned("value");
  return checked(PyObject_GetAttr(current, value));
}

void symbol_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<SymbolObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  if (object->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  object->symbol.~Symbol();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* symbol_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError, "%s objects are made by hybridnet.sym.var and by operators, not by calling the class",
               type->tp_name);
  return nullptr;
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(SymbolObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

Py_hash_t identity_hash(PyObject* self) { return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self) >> 4); }

// ------------------------------------------------------------------------------------------- specs while tracing
bool refine(TensorSpec& known, const TensorSpec& found) {
  if (known == found) return false;
  known = found;
  return true;
}

// Runs inference of one node and stores new facts in the specs of its inputs; appends producers whose specs changed.
void infer_and_pass_on(const Node& node, std::vector<const Node*>& learned) {
  std::vector<TensorSpec> in;
  in.reserve(node.inputs.size());
  for (const NodeEntry& e : node.inputs) in.push_back(e.node->specs[e.index]);
  hybridnet::infer_node(node, in, node.specs, autograd_state().training);
  for (size_t i = 0; i < in.size(); ++i) {
    const NodeEntry& e = node.inputs[i];
    if (refine(e.node->specs[e.index], in[i]) && !e.node->is_variable()) learned.push_back(e.node.get());
  }
}

// ---------------------------------------------------------------------------------------------------- composing
bool ends_with_hidden_name(std::string_view keyword) {
  constexpr std::string_view kNames[] = {"lr_mult",         "wd_mult",      "ctx_group",
                                         "force_mirroring", "mirror_stage", "profiler_scope"};
  return std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view n) {
    return keyword == n ||
           (keyword.size() > n.size() + 1 && keyword.ends_with(n) && keyword[keyword.size() - n.size() - 1] == '_');
  });
}

std::string hidden_key(const std::string& keyword) {
  return keyword.starts_with("__") ? keyword : "__" + keyword + "__";
}

// True if the keyword is for one input, such as weight_lr_mult.
bool names_input(const Op& op, const std::string& keyword) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](const InputInfo& input) { return keyword.starts_with(input.name + "_"); });
}

// Sets a hidden attribute: weight_lr_mult on the input 'weight', lr_mult on the node and the variables made with it.
void set_hidden(Node& node, const std::string& keyword, const std::string& value) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const std::string prefix = node.op->input_name(node.params->data(), static_cast<int>(i)) + "_";
    if (!keyword.starts_with(prefix) || !node.inputs[i].node->is_variable()) continue;
    node.inputs[i].node->attrs["__" + keyword.substr(prefix.size()) + "__"] = value;
    return;
  }
  node.attrs[hidden_key(keyword)] = value;
}

int given_inputs(const std::vector<NodeEntry>& inputs) {
  return static_cast<int>(
      std::count_if(inputs.begin(), inputs.end(), [](const NodeEntry& e) { return static_cast<bool>(e.node); }));
}

[[noreturn]] void too_many(const Op& op, const std::string& name, int wanted, size_t given) {
  raise(ErrorKind::kParam, {.op = op.name,
                            .node = name,
                            .expected = std::to_string(wanted) + " inputs with these parameters",
                            .given = std::to_string(given)});
}

// Returns the value of the parameter use_<name>: whether the op has the input <name>. nullopt if it has no such
// parameter.
std::optional<bool> asked_for(const Op& op, const void* params, const InputInfo& input) {
  const int field = op.schema->find("use_" + input.name);
  if (field < 0) return std::nullopt;
  const AttrValue value = op.schema->get(params, field);
  const bool* use = std::get_if<bool>(&value.value);
  return use != nullptr ? std::optional(*use) : std::nullopt;
}

// Returns the declared inputs that this use of the op has: the given ones, the non-optional ones, the ones that
// parameters select, then the first unused ones until there are enough.
std::vector<bool> used_slots(const Composition& c, int wanted) {
  const Op& op = *c.info->op;
  const size_t count = c.inputs.size();
  std::vector<bool> used(count);
  int missing = wanted;
  const auto use = [&](size_t i) {
    used[i] = true;
    --missing;
  };
  for (size_t i = 0; i < count; ++i)
    if (c.inputs[i].node) use(i);
  for (size_t i = 0; i < count && missing > 0; ++i)
    if (!used[i] && !op.inputs[i].optional) use(i);
  for (size_t i = 0; i < count && missing > 0; ++i)
    if (!used[i] && asked_for(op, c.params->data(), op.inputs[i]).value_or(false)) use(i);
  for (size_t i = 0; i < count && missing > 0; ++i)
    if (!used[i]) use(i);
  return used;
}

// Returns the number of inputs that the parameters require, which may be more than the given ones.
int wanted_of_variadic(const Op& op, const void* params, int given) {
  if (op.num_inputs_) return op.num_inputs(params);
  if (op.count_param.empty()) return given;
  const AttrValue count = op.schema->get(params, op.schema->find(op.count_param));
  const int64_t* number = std::get_if<int64_t>(&count.value);
  return number != nullptr ? static_cast<int>(*number) : given;
}

NodeEntry made_input(const Composition& c, const std::string& name, const AttrDict& attrs) {
  const NodeEntry entry{make_variable(name), 0};
  for (const auto& [key, value] : attrs)
    if (key.starts_with("__")) entry.node->attrs[key] = value;
  for (const auto& [keyword, value] : c.hidden_attrs)
    if (!names_input(*c.info->op, keyword)) entry.node->attrs[hidden_key(keyword)] = value;
  entry.node->where = python_location();
  if (trace_state().active) entry.node->specs.resize(1);
  return entry;
}

// Adds variables for trailing inputs that the call left out. Only for Symbols.
std::vector<NodeEntry> complete_variadic(const Composition& c, const std::string& name, const AttrDict& attrs) {
  const Op& op = *c.info->op;
  std::vector<NodeEntry> result = c.inputs;
  const int wanted = wanted_of_variadic(op, c.params->data(), static_cast<int>(result.size()));
  if (op.inputs.size() > 1 && static_cast<size_t>(wanted) < result.size()) too_many(op, name, wanted, result.size());
  while (result.size() < static_cast<size_t>(wanted)) {
    const size_t i = result.size();
    const bool named = op.inputs.size() > 1 && i < op.inputs.size();
    const std::string input = named ? op.inputs[i].name : op.input_name(c.params->data(), static_cast<int>(i));
    result.push_back(made_input(c, name + "_" + input, attrs));
  }
  if (!trace_state().active) set_default_initializers(op, result);
  return result;
}

std::vector<NodeEntry> complete_inputs(const Composition& c, const std::string& name, const AttrDict& attrs) {
  const Op& op = *c.info->op;
  if (op.variadic) return complete_variadic(c, name, attrs);
  const int wanted = op.num_inputs(c.params->data());
  const int given = given_inputs(c.inputs);
  if (given > wanted) too_many(op, name, wanted, static_cast<size_t>(given));
  std::vector<NodeEntry> result;
  const std::vector<bool> used = used_slots(c, wanted);
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (used[i])
      result.push_back(c.inputs[i].node ? c.inputs[i] : made_input(c, name + "_" + op.inputs[i].name, attrs));
  if (!trace_state().active) set_default_initializers(op, result);
  return result;
}

}  // namespace

void infer_made_node(const Node& node) {
  for (const NodeEntry& e : node.inputs)
    if (e.node->specs.size() <= e.index) return;  // not traced: specs are inferred later, when all inputs are known
  node.specs.resize(static_cast<size_t>(node.num_outputs()));
  std::vector<const Node*> pending{&node};
  while (!pending.empty()) {
    const Node* next = pending.back();
    pending.pop_back();
    try {
      infer_and_pass_on(*next, pending);
    } catch (Error& error) {
      ErrorFields context;
      context.node = next->name;
      context.block = next->block;
      context.where = next->where;
      error.add_context(context);
      throw;
    }
  }
}

TraceState& trace_state() {
  thread_local TraceState state;
  return state;
}

int init_symbol_type(PyObject* module) {
  static std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(symbol_dealloc)},
      {Py_tp_new, reinterpret_cast<void*>(symbol_new)},
      {Py_tp_hash, reinterpret_cast<void*>(identity_hash)},
      {Py_tp_members, members},
      {Py_tp_doc, const_cast<char*>("Graph handle: the base that hybridnet.Symbol builds on.")},
  };
  add_symbol_arithmetic_slots(slots);
  slots.push_back({0, nullptr});
  static PyType_Spec spec = {"hybridnet._core.SymbolBase", sizeof(SymbolObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots.data()};
  symbol_base_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (symbol_base_type == nullptr) return -1;
  symbol_class = symbol_base_type;
  return PyModule_AddObjectRef(module, "SymbolBase", reinterpret_cast<PyObject*>(symbol_base_type));
}

void register_symbol_class(PyObject* cls, bool numpy) {
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), symbol_base_type))
    raise(ErrorKind::kType, {.expected = "a subclass of SymbolBase", .given = short_repr(cls)});
  Py_INCREF(cls);
  (numpy ? numpy_symbol_class : symbol_class) = reinterpret_cast<PyTypeObject*>(cls);
}

Symbol& expect_symbol(PyObject* object, const char* what) {
  if (!is_symbol(object)) raise(ErrorKind::kType, {.input = what, .expected = "a Symbol", .given = type_name(object)});
  return symbol_of(object);
}

PyTypeObject* result_symbol_class(PyObject* object) {
  return numpy_symbol_class != nullptr && PyObject_TypeCheck(object, numpy_symbol_class) ? numpy_symbol_class
                                                                                         : symbol_class;
}

PyObject* wrap_symbol(Symbol symbol, PyTypeObject* type) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  new (&symbol_of(self)) Symbol(std::move(symbol));
  return self;
}

// In a trace constants have consecutive numbers: a block that runs twice starts its own names from the beginning.
static std::string constant_name() {
  TraceState& state = trace_state();
  if (!state.active) return make_name(nullptr, "constant");
  return "constant" + std::to_string(state.constants++);
}

static void hold_constant(const NDArray& array) {
  Chunk& chunk = *array.impl()->chunk;
  watch_overwrites(chunk);
  TraceState& state = trace_state();
  if (!state.active) return;
  state.held.push_back({array, chunk.overwrites.load(std::memory_order_relaxed), python_location()});
}

void check_held_constants() {
  for (const TraceState::Held& held : trace_state().held) {
    const Chunk& chunk = *held.array.impl()->chunk;
    if (chunk.overwrites.load(std::memory_order_relaxed) == held.overwrites) continue;
    ErrorFields e;
    e.message = "an array that the graph reads as a constant is written to in place while the graph is being made";
    e.because = "the graph holds the array itself" +
                (held.where.known() ? ", and reads it at " + held.where.str() : std::string()) +
                ": that read would see later writes, and no iteration would write again";
    e.fix = "make a new array instead, as in c = c + 1 or mx.nd.where(...)";
    e.where = {chunk.overwrite_file.load(std::memory_order_relaxed),
               chunk.overwrite_line.load(std::memory_order_relaxed)};
    raise(ErrorKind::kTrace, std::move(e));
  }
}

NodeEntry entry_of(PyObject* object, const char* what) {
  if (is_symbol(object)) {
    const Symbol& symbol = symbol_of(object);
    if (symbol.outputs.size() == 1) return current_entry(symbol.outputs[0]);
    raise(ErrorKind::kType, {.input = what,
                             .expected = "a Symbol with one output",
                             .given = std::to_string(symbol.outputs.size()) + " outputs",
                             .fix = "pick one by index, as in symbol[0]"});
  }
  if (is_array(object)) {
    const NDArray& array = array_of(object);
    NodePtr node = make_traced_variable(constant_name(), array.spec());
    node->constant = Ref<Object>(array.impl());
    hold_constant(array);
    return {node, 0};
  }
  raise(ErrorKind::kType, {.input = what, .expected = "a Symbol", .given = type_name(object)});
}

bool is_hidden_attribute(std::string_view keyword) {
  return (keyword.size() > 4 && keyword.starts_with("__") && keyword.ends_with("__")) || ends_with_hidden_name(keyword);
}

void set_symbol_scopes(PyObject* names, PyObject* attributes) {
  Py_INCREF(names);
  Py_INCREF(attributes);
  Py_XSETREF(current_names, names);
  Py_XSETREF(current_attributes, attributes);
}

std::string make_name(PyObject* name, const char* hint) {
  if (name == nullptr) name = Py_None;
  if (current_names == nullptr) return name == Py_None ? std::string(hint) : text_of(name);
  static PyObject* const get = interned("get");
  const Owned manager = in_use(current_names), text = checked(PyUnicode_FromString(hint));
  return text_of(checked(PyObject_CallMethodObjArgs(manager.get(), get, name, text.get(), nullptr)).get());
}

// Returns attr merged with the attributes of the scope in use.
static Owned attributes_in_scope(PyObject* attr) {
  if (current_attributes == nullptr) return Owned::borrowed(attr);
  static PyObject *const own = interned("_attr"), *const get = interned("get");
  const Owned scope = in_use(current_attributes);
  const Owned attributes = checked(PyObject_GetAttr(scope.get(), own));
  if (PyDict_Check(attributes.get()) && PyDict_GET_SIZE(attributes.get()) == 0) return Owned::borrowed(attr);
  return checked(PyObject_CallMethodObjArgs(scope.get(), get, attr == nullptr ? Py_None : attr, nullptr));
}

AttrDict make_attributes(PyObject* attr) {
  AttrDict result;
  Owned dict = attributes_in_scope(attr);
  if (!dict || dict.get() == Py_None) return result;
  if (!PyDict_Check(dict.get()))
    raise(ErrorKind::kType, {.input = "attr", .expected = "a dict", .given = type_name(dict.get())});
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict.get(), &position, &key, &value)) result[text_of(key)] = text_of(value);
  return result;
}

NodePtr make_traced_variable(std::string name, TensorSpec spec) {
  NodePtr node = make_variable(std::move(name));
  node->specs.push_back(spec);
  node->where = python_location();
  node->block = trace_state().block;
  return node;
}

const TensorSpec* traced_spec(const NodeEntry& entry) {
  return entry.index < entry.node->specs.size() ? &entry.node->specs[entry.index] : nullptr;
}

PyObject* compose(Composition c) {
  const Op& op = *c.info->op;
  const std::string name = make_name(c.name, c.hint);
  AttrDict attrs = make_attributes(c.attr);
  NodePtr node = make_node(op, name, params_in_scope(op, c.params), complete_inputs(c, name, attrs));
  node->where = python_location();
  node->block = trace_state().block;
  node->attrs = std::move(attrs);
  for (const auto& [keyword, value] : c.hidden_attrs) set_hidden(*node, keyword, value);
  note_made_node(node);
  infer_made_node(*node);
  Symbol symbol;
  const int visible = node->num_visible_outputs();
  for (int i = 0; i < visible; ++i) symbol.outputs.push_back({node, static_cast<uint32_t>(i)});
  symbol = without_gradient_in_pause(std::move(symbol));
  return wrap_symbol(std::move(symbol), c.result != nullptr ? c.result : symbol_class);
}

}  // namespace hybridnet::python
