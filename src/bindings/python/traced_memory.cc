#include "traced_memory.h"

#include <memory>
#include <unordered_map>
#include <utility>

#include "casters.h"
#include "control_bodies.h"
#include "location.h"
#include "text_of.h"
#include "traced_modes.h"

namespace hybridnet::python {
namespace {

const OpRef kBlockGrad{"BlockGrad"}, kCast{"Cast"}, kCopy{"_copy"}, kReshapeLike{"reshape_like"}, kSlice{"slice"},
    kSliceAssign{"_slice_assign"}, kTake{"take"}, kSetPositions{"_advanced_index_set"};

struct Memory {
  NodeEntry name;                 // the entry in its Symbols
  NodeEntry now;                  // the current value
  uint64_t version = 0;           // root: number of writes. View: the root's version when `now` was computed from it
  SourceLocation written;         // root: line of the last write
  Memory* base = nullptr;         // the viewed memory; null: a root
  std::vector<NodePtr> taken_by;  // the nodes that compute a view from its base, in their order
  bool detached = false;          // no gradient passes through the view
  bool listed = false;            // root: it is in TracedMemories::written
  int now_in = 0;                 // view: the body in which `now` was computed, 0 outside of bodies
  int carried_by = 0;             // root: the body in which a slot represents the array, so that it may write to it
  std::string undecided;          // root: the reason why it is not known which arrays share it
  Memory& root() { return base == nullptr ? *this : base->root(); }
};

// The state of a root outside of the body that carries it.
struct CarriedMemory {
  Memory* root = nullptr;
  NodeEntry now;
  int carried_by = 0;
};

struct TracedMemories {
  bool active = false;
  uint64_t first_array = 0;  // arrays of this thread with smaller numbers are older than the trace
  std::unordered_map<NodeEntry, std::unique_ptr<Memory>, NodeEntryHash> known;
  std::vector<Memory*> written;        // roots, in the order of their first writes
  bool views_by_shape = false;         // true if the sizes of this trace decide whether some index is a view
  std::string undecided;               // an index for which unknown sizes leave this open, with its line
  std::vector<CarriedMemory> carried;  // by the open bodies, in the order in which they began to carry them
  NodeEntry refused;                   // the root whose write inside a body was refused last
};

TracedMemories& memories() {
  thread_local TracedMemories state;
  return state;
}

Memory& memory_of(const NodeEntry& name) {
  std::unique_ptr<Memory>& memory = memories().known[name];
  if (!memory) {
    memory = std::make_unique<Memory>();
    memory->name = memory->now = name;
  }
  return *memory;
}

// --------------------------------------------------------------------------------------------------------- new nodes
NodeEntry finished(const NodePtr& node) {
  node->where = python_location();
  node->block = trace_state().block;
  note_made_node(node);
  infer_made_node(*node);
  return {node, 0};
}

NodeEntry made(const OpRef& op, ParamsPtr params, std::vector<NodeEntry> inputs) {
  std::string hint = op.name();
  hint.erase(0, hint.find_first_not_of('_'));
  return finished(make_node(op.op(), make_name(nullptr, hint.c_str()), std::move(params), std::move(inputs)));
}
NodeEntry made(const OpRef& op, std::vector<NodeEntry> inputs) {
  return made(op, op.op().default_params, std::move(inputs));
}

// Applies the operation of a node to another value; its other inputs, such as positions, stay the same.
NodeEntry again(const Node& node, const NodeEntry& input) {
  std::vector<NodeEntry> inputs(node.inputs.begin(), node.inputs.end());
  inputs.at(0) = input;
  const NodePtr copy = copy_of(node, std::move(inputs));
  copy->name = make_name(nullptr, "view");
  copy->specs.clear();
  return finished(copy);
}

// Returns whole after whole[..., positions, ...] = part, for a node that takes the part at the positions.
NodeEntry put_at_positions(const Node& take, const NodeEntry& whole, const NodeEntry& part) {
  AttrValue axis;
  const auto& fields = take.op->schema->fields();
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == "axis") axis = take.op->schema->get(take.params->data(), static_cast<int>(i));
  ParamsPtr params = kSetPositions.op().schema->parse({{"axis", axis}, {"num_args", int64_t{3}}}, kSetPositions.name());
  return made(kSetPositions, std::move(params), {whole, part, NodeEntry(take.inputs[1])});
}

ParamsPtr region_of(const Node& slice) {
  const auto& fields = slice.op->schema->fields();
  std::vector<std::pair<std::string, AttrValue>> region;
  for (size_t i = 0; i < fields.size(); ++i)
    if (!fields[i].hidden)
      region.emplace_back(fields[i].name, slice.op->schema->get(slice.params->data(), static_cast<int>(i)));
  return kSliceAssign.op().schema->parse(region, kSliceAssign.name());
}

// Returns `whole` with the part that `node` selects replaced by `part`.
NodeEntry put_back(const Node& node, const NodeEntry& whole, const NodeEntry& part) {
  if (node.op == &kBlockGrad.op() || node.op == &kCopy.op()) return part;
  if (node.op == &kTake.op()) return put_at_positions(node, whole, part);
  if (node.op == &kSlice.op()) return made(kSliceAssign, region_of(node), {whole, part});
  if (node.op->is_view) return made(kReshapeLike, {part, whole});
  raise(ErrorKind::kTrace, {.op = node.op->name,
                            .message = "a view that this operator makes is written to in place",
                            .fix = "make a new array instead, as in x = x + 1",
                            .where = python_location()});
}

// --------------------------------------------------------------------------------------------------- reading, writing
NodeEntry value_now(Memory& memory) {
  Memory& root = memory.root();
  if (memory.base == nullptr) return memory.now;
  // A value that was computed in a body exists as long as the body is open.
  if (memory.version == root.version && is_open_body(memory.now_in)) return memory.now;
  NodeEntry value = value_now(*memory.base);
  for (const NodePtr& node : memory.taken_by) value = again(*node, value);
  memory.now = value;
  memory.version = root.version;
  memory.now_in = innermost_body();
  return value;
}

[[noreturn]] void refuse_outside_of_body(const Memory& root, const std::string& body) {
  ErrorFields e;
  e.message = "an array from outside is written to in place inside " + body;
  e.because = "the function is traced once, so the array would be written once and not in each run of it";
  if (root.name.node->where.known()) e.because += "; the array is made at " + root.name.node->where.str();
  e.fix = "carry the array as a state, or return its new value";
  e.where = python_location();
  raise(ErrorKind::kTrace, std::move(e));
}

[[noreturn]] void refuse_undecided(const std::string& reason) {
  raise(ErrorKind::kTrace, {.message = "an array is written to in place, and " + reason,
                            .fix = "make a new array instead, as in x = x + 1",
                            .where = python_location()});
}

void check_root(const Memory& root) {
  TracedMemories& state = memories();
  const std::string* body = body_around(*root.name.node);
  if (body != nullptr && root.carried_by != innermost_body()) {
    state.refused = root.name;
    refuse_outside_of_body(root, *body);
  }
  if (!root.undecided.empty()) refuse_undecided(root.undecided);
  if (!state.undecided.empty())
    refuse_undecided("whether " + state.undecided +
                     " is a view of it depends on sizes that are not known before the graph runs");
  if (root.name.node->constant)
    raise(ErrorKind::kTrace, {.message = "an array that the graph holds as a constant is written to in place",
                              .fix = "make a new array instead, as in x = x + 1",
                              .where = python_location()});
}

bool is_detached(const Memory& memory) {
  return memory.detached || (memory.base != nullptr && is_detached(*memory.base));
}

// Applies a view node to a value, but skips nodes that stop the gradient.
NodeEntry part_of(const NodeEntry& value, const Node& node) {
  return node.op->stops_gradient ? value : again(node, value);
}

// Like value_now(), but gradients pass through detached views.
NodeEntry undetached(Memory& memory) {
  if (!is_detached(memory)) return value_now(memory);
  NodeEntry value = undetached(*memory.base);
  for (const NodePtr& node : memory.taken_by) value = part_of(value, *node);
  return value;
}

// Returns the root's value after a write of `value` to a view: inverts the view's nodes, then those of its bases.
NodeEntry root_with(Memory& view, NodeEntry value) {
  if (view.base == nullptr) return value;
  std::vector<NodeEntry> wholes{undetached(*view.base)};
  for (size_t i = 0; i + 1 < view.taken_by.size(); ++i) wholes.push_back(part_of(wholes.back(), *view.taken_by[i]));
  for (size_t i = view.taken_by.size(); i-- > 0;) value = put_back(*view.taken_by[i], wholes[i], value);
  return root_with(*view.base, value);
}

// constant_parts: gradients are already stopped in the parts of `value` that an unrecorded write made constant.
void write(Memory& memory, NodeEntry value, bool constant_parts) {
  TracedMemories& state = memories();
  Memory& root = memory.root();
  check_root(root);
  if (state.views_by_shape) trace_state().reads |= kReadShape;
  const bool detached = is_detached(memory);
  // A value written without recording is constant. Arrays behave the same.
  if (!constant_parts && (detached || trace_state().scopes.paused)) value = made(kBlockGrad, {value});
  root.now = root_with(memory, value);
  ++root.version;
  root.written = python_location();
  if (!root.listed && root.carried_by == 0) {
    root.listed = true;
    state.written.push_back(&root);
  }
  if (memory.base == nullptr || detached) return;
  memory.now = std::move(value);
  memory.version = root.version;
  memory.now_in = innermost_body();
}

bool sizes_differ(const Shape& a, const Shape& b) {
  if (!a.rank_known() || !b.rank_known()) return false;
  if (a.ndim() != b.ndim()) return true;
  for (int i = 0; i < a.ndim(); ++i)
    if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return true;
  return false;
}

NodeEntry converted(const NodeEntry& value, DType dtype) {
  return made(kCast, kCast.op().schema->parse({{"dtype", std::string(dtype_name(dtype))}}, kCast.name(), false),
              {value});
}

// Returns the value, cast to the dtype of the memory if allowed. Throws for differing shapes or dtypes.
NodeEntry fitting(NodeEntry value, const TensorSpec& held, bool converts) {
  const TensorSpec* given = traced_spec(value);
  if (given == nullptr)
    raise(ErrorKind::kTrace, {.message = "a Symbol from outside of the trace is written into a traced array"});
  if (sizes_differ(given->shape, held.shape))
    raise(ErrorKind::kShape, {.input = "the array that is written to",
                              .expected = "shape " + given->shape.str() + ", the shape of the result",
                              .given = held.shape.str(),
                              .fix = "make a new array instead of writing in place",
                              .where = python_location()});
  if (given->dtype == held.dtype || given->dtype == DType::kUnknown || held.dtype == DType::kUnknown) return value;
  if (converts && is_floating(given->dtype) && is_floating(held.dtype)) return converted(value, held.dtype);
  raise(ErrorKind::kDType, {.input = "the array that is written to",
                            .expected = "dtype " + std::string(dtype_name(given->dtype)) + ", the dtype of the result",
                            .given = std::string(dtype_name(held.dtype)),
                            .fix = "cast one side with astype",
                            .where = python_location()});
}

const NodeEntry& name_of(PyObject* symbol) {
  const Symbol& outputs = expect_symbol(symbol, "target");
  if (outputs.outputs.size() != 1)
    raise(ErrorKind::kType, {.input = "target",
                             .expected = "a Symbol with one output",
                             .given = std::to_string(outputs.outputs.size()) + " outputs",
                             .fix = "pick one by index, as in symbol[0]"});
  return outputs.outputs[0];
}

[[noreturn]] void refuse_plain_symbol(PyObject* target) {
  const Owned base = checked(PyImport_ImportModule("hybridnet.base"));
  const Owned error = checked(PyObject_CallMethod(
      base.get(), "no_values", "Oss", target, "Writing in place",
      "use the result of an operator, as in x = x + 1; arrays of hybridized blocks can be written to"));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  throw PythonErrorIsSet();
}

// ---------------------------------------------------------------------------------------------- functions for Python
PyObject* traced_write(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded<PyObject*>(nullptr, [&] {
    if (nargs < 2 || nargs > 4) raise(ErrorKind::kType, {.expected = "2 to 4 arguments"});
    // Copied to a new node, so that the value of this memory is not the name of another memory.
    const Owned value = checked(wrap_symbol(Symbol{{made(kCopy, {entry_of(args[1], "value")})}}, symbol_class));
    write_traced(args[0], value.get(), nargs > 2 && args[2] == Py_True, nargs > 3 && args[3] == Py_True);
    return Py_NewRef(args[0]);
  });
}

PyObject* traced_undetached(PyObject*, PyObject* symbol) {
  return guarded<PyObject*>(nullptr, [&] {
    const auto found = memories().known.find(name_of(symbol));
    if (found == memories().known.end() || !is_detached(*found->second)) return Py_NewRef(Py_None);
    return checked(wrap_symbol(Symbol{{undetached(*found->second)}}, result_symbol_class(symbol))).release();
  });
}

PyObject* set_traced_pause(PyObject*, PyObject* paused) {
  return PyBool_FromLong(std::exchange(trace_state().scopes.paused, paused == Py_True));
}

PyObject* traced_view(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded<PyObject*>(nullptr, [&] {
    if (nargs != 2) raise(ErrorKind::kType, {.expected = "2 arguments"});
    note_view(args[0], args[1]);
    return Py_NewRef(args[0]);
  });
}

PyObject* views_by_shape(PyObject*, PyObject* undecided) {
  return guarded<PyObject*>(nullptr, [&] {
    TracedMemories& state = memories();
    state.views_by_shape = true;
    if (undecided != Py_None && state.undecided.empty())
      state.undecided = text_of(undecided) + " (" + python_location().str() + ")";
    return Py_NewRef(Py_None);
  });
}

PyObject* traced_value(PyObject*, PyObject* symbol) {
  return guarded<PyObject*>(nullptr, [&] {
    expect_symbol(symbol, "symbol");
    return checked(wrap_symbol(current_symbol(symbol), result_symbol_class(symbol))).release();
  });
}

// Returns (variable, value, line of the last write) of each variable of the trace that was written to.
PyObject* written_variables(PyObject*, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    Owned list = checked(PyList_New(0));
    for (Memory* root : memories().written) {
      const NodePtr& node = root->name.node;
      if (!node->is_variable() || belongs_to_body(*node)) continue;
      const Owned variable = checked(wrap_symbol(Symbol{{root->name}}, symbol_class));
      const Owned value = checked(wrap_symbol(Symbol{{root->now}}, symbol_class));
      const Owned line = checked(PyUnicode_FromString(root->written.str().c_str()));
      const Owned item = checked(PyTuple_Pack(3, variable.get(), value.get(), line.get()));
      if (PyList_Append(list.get(), item.get()) < 0) throw PythonErrorIsSet();
    }
    return list.release();
  });
}

// Returns the memory of an array, or null if it is neither written to nor viewed so far.
Memory* known_memory(PyObject* symbol) {
  const auto found = memories().known.find(name_of(symbol));
  return found == memories().known.end() ? nullptr : found->second.get();
}

PyObject* carry_memory(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded<PyObject*>(nullptr, [&] {
    if (nargs != 2) raise(ErrorKind::kType, {.expected = "2 arguments"});
    Memory& root = memory_of(name_of(args[0])).root();
    memories().carried.push_back({&root, root.now, root.carried_by});
    root.now = name_of(args[1]);
    root.carried_by = innermost_body();
    ++root.version;
    return Py_NewRef(Py_None);
  });
}

PyObject* release_memory(PyObject*, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    const CarriedMemory outside = std::move(memories().carried.back());
    memories().carried.pop_back();
    outside.root->now = outside.now;
    outside.root->carried_by = outside.carried_by;
    ++outside.root->version;
    return Py_NewRef(Py_None);
  });
}

PyObject* refused_memory(PyObject*, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    const NodeEntry refused = std::exchange(memories().refused, {});
    return refused.node ? checked(wrap_symbol(Symbol{{refused}}, symbol_class)).release() : Py_NewRef(Py_None);
  });
}

PyObject* memory_root(PyObject*, PyObject* symbol) {
  return guarded<PyObject*>(nullptr, [&] {
    Memory* memory = known_memory(symbol);
    const NodeEntry name = memory == nullptr ? name_of(symbol) : memory->root().name;
    const Owned root = checked(wrap_symbol(Symbol{{name}}, symbol_class));
    const auto id = reinterpret_cast<uintptr_t>(name.node.get()) + name.index;
    const bool undecided = memory != nullptr && !memory->root().undecided.empty();
    return checked(Py_BuildValue("OKOO", root.get(), static_cast<unsigned long long>(id),
                                 body_around(*name.node) != nullptr ? Py_True : Py_False,
                                 undecided ? Py_True : Py_False))
        .release();
  });
}

PyObject* leave_sharing_undecided(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded<PyObject*>(nullptr, [&] {
    if (nargs != 2) raise(ErrorKind::kType, {.expected = "2 arguments"});
    memory_of(name_of(args[0])).root().undecided = text_of(args[1]);
    return Py_NewRef(Py_None);
  });
}

PyMethodDef functions[] = {
    {"traced_write", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(traced_write)), METH_FASTCALL,
     "traced_write(target, value, converts=False, constant_parts=False)\n--\n\nIn a trace: target and all that shares "
     "its memory have the values of value from now on. constant_parts: value has the parts as constants that an "
     "unrecorded write makes constant. Returns target."},
    {"traced_undetached", traced_undetached, METH_O,
     "traced_undetached(symbol)\n--\n\nThe values of a detached view with their gradient; None of other arrays."},
    {"set_traced_pause", set_traced_pause, METH_O,
     "set_traced_pause(paused)\n--\n\nSets whether the trace is in a pause(). Returns the previous value."},
    {"traced_view", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(traced_view)), METH_FASTCALL,
     "traced_view(view, base)\n--\n\nview, just composed of base, shows the memory of base. Returns view."},
    {"traced_views_by_shape", views_by_shape, METH_O,
     "traced_views_by_shape(undecided)\n--\n\nWhether an index of this trace is a view depends on sizes. undecided: "
     "the index if the sizes are unknown, else None."},
    {"carry_memory", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(carry_memory)), METH_FASTCALL,
     "carry_memory(array, slot)\n--\n\nIn the open body, slot holds the values of the memory of array, which the body "
     "may write to, until release_memory()."},
    {"release_memory", release_memory, METH_NOARGS,
     "release_memory()\n--\n\nEnds the most recent carry_memory(): the array has its values of before again."},
    {"refused_memory", refused_memory, METH_NOARGS,
     "refused_memory()\n--\n\nThe array from outside whose write inside a body was refused last; None if there is "
     "none since the last call."},
    {"memory_root", memory_root, METH_O,
     "memory_root(symbol)\n--\n\n(array that owns the memory of symbol, its number, whether it is made outside of the "
     "open body, whether leave_sharing_undecided() was called for it)."},
    {"leave_sharing_undecided", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(leave_sharing_undecided)),
     METH_FASTCALL,
     "leave_sharing_undecided(symbol, reason)\n--\n\nRefuses later writes into the memory of symbol: which arrays "
     "share it is known only when the graph runs."},
    {"traced_value", traced_value, METH_O,
     "traced_value(symbol)\n--\n\nThe current value of a traced array, which later writes do not change."},
    {"traced_written_variables", written_variables, METH_NOARGS,
     "traced_written_variables()\n--\n\n(variable, value, line of the last write) of each variable that the trace "
     "wrote."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void begin_traced_memory() {
  memories() = {};
  memories().active = true;
  memories().first_array = detail::next_chunk_id();
}

void end_traced_memory() { memories() = {}; }

NodeEntry current_entry(const NodeEntry& name) {
  const auto& known = memories().known;
  if (known.empty()) return name;
  const auto found = known.find(name);
  return found == known.end() ? name : value_now(*found->second);
}

Symbol current_symbol(PyObject* object) {
  Symbol symbol = symbol_of(object);
  if (!memories().known.empty())
    for (NodeEntry& entry : symbol.outputs) entry = current_entry(entry);
  return symbol;
}

void note_view(PyObject* view, PyObject* base) {
  if (!memories().active || view == base) return;
  const NodeEntry name = name_of(view), shown = name_of(base), from = current_entry(shown);
  if (name == shown || name == from || traced_spec(name) == nullptr) return;
  std::vector<NodePtr> taken_by;
  for (NodeEntry entry = name; !(entry == from); entry = NodeEntry(entry.node->inputs[0])) {
    if (entry.node->is_variable() || entry.node->inputs.empty()) return;  // not computed from `shown`
    taken_by.insert(taken_by.begin(), entry.node);
  }
  Memory& shows = memory_of(shown);
  Memory& memory = memory_of(name);
  memory.base = &shows;
  memory.version = shows.root().version;
  memory.now_in = innermost_body();
  for (const NodePtr& node : taken_by) memory.detached = memory.detached || node->op->stops_gradient;
  memory.taken_by = std::move(taken_by);
}

void write_traced(PyObject* target, PyObject* value, bool converts, bool constant_parts) {
  const NodeEntry name = name_of(target);
  const TensorSpec* held = traced_spec(name);
  if (!memories().active || held == nullptr) refuse_plain_symbol(target);
  const NodeEntry given = entry_of(value, "value");
  write(memory_of(name), fitting(given, *held, converts), constant_parts);
}

bool is_symbol_or_symbols(PyObject* out) {
  if (out == nullptr || is_symbol(out)) return out != nullptr;
  return (PyList_Check(out) || PyTuple_Check(out)) && PySequence_Fast_GET_SIZE(out) > 0 &&
         is_symbol(PySequence_Fast_GET_ITEM(out, 0));
}

PyObject* write_outputs(PyObject* out, Owned results, bool converts) {
  const Symbol made = symbol_of(results.get());
  const bool several = PyList_Check(out) || PyTuple_Check(out);
  const size_t count = several ? static_cast<size_t>(PySequence_Fast_GET_SIZE(out)) : 1;
  if (count != made.outputs.size())
    raise(
        ErrorKind::kType,
        {.input = "out", .expected = std::to_string(made.outputs.size()) + " arrays", .given = std::to_string(count)});
  for (size_t i = 0; i < count; ++i) {
    const Owned part = checked(wrap_symbol(Symbol{{made.outputs[i]}}, symbol_class));
    write_traced(several ? PySequence_Fast_GET_ITEM(out, static_cast<Py_ssize_t>(i)) : out, part.get(), converts);
  }
  return Py_NewRef(out);
}

void check_write_in_trace(const NDArray& target) {
  const TracedMemories& state = memories();
  if (!state.active || target.impl()->chunk->id >= state.first_array) return;
  ErrorFields e;
  e.message = "an array from outside is written to in place while the block is traced";
  e.because = "forward runs once for the graph, so later calls would not write the array again";
  e.fix =
      "make the array a parameter (self.params.get_constant or gluon.Parameter with grad_req='null'), which a graph "
      "can write to, or return the new values";
  e.block = trace_state().block;
  e.where = python_location();
  raise(ErrorKind::kTrace, std::move(e));
}

int init_traced_memory(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace hybridnet::python
