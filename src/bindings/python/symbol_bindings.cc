// Functions of the C++ Symbol for Python's Symbol class.
#include <map>
#include <tuple>

#include "casters.h"
#include "control_bodies.h"
#include "graph/control/closed_body.h"
#include "hybridnet/graph.h"
#include "hybridnet/imperative.h"
#include "symbol_arithmetic.h"

namespace hybridnet::python {
namespace {

py::object symbol_of_class(Symbol symbol, bool numpy) {
  PyTypeObject* type = numpy && numpy_symbol_class != nullptr ? numpy_symbol_class : symbol_class;
  PyObject* result = wrap_symbol(std::move(symbol), type);
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

py::object wrap(Symbol symbol, const py::handle& like) {
  PyObject* object = wrap_symbol(std::move(symbol), result_symbol_class(like.ptr()));
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

py::object spec_tuple(const TensorSpec& spec) {
  return py::make_tuple(py::cast(spec.shape), spec.dtype == DType::kUnknown ? py::none() : py::cast(spec.dtype));
}

py::list spec_list(const std::vector<TensorSpec>& specs) {
  py::list list;
  for (const TensorSpec& spec : specs) list.append(spec_tuple(spec));
  return list;
}

TensorSpec spec_from(const py::handle& pair) {
  if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2)
    raise(ErrorKind::kType, {.input = "known", .expected = "(shape, dtype)", .given = short_repr(pair.ptr())});
  const py::tuple t = py::reinterpret_borrow<py::tuple>(pair);
  return {t[0].cast<Shape>(), t[1].cast<DType>()};
}

py::tuple infer(const Symbol& symbol, const py::dict& known, bool partial) {
  std::map<std::string, TensorSpec> specs;
  for (const auto& [name, pair] : known) specs[name.cast<std::string>()] = spec_from(pair);
  const Symbol::Specs found = symbol.infer(specs, partial, autograd_state().training);
  return py::make_tuple(found.complete, spec_list(found.arguments), spec_list(found.outputs),
                        spec_list(found.auxiliaries));
}

const Node& single_node(const Symbol& symbol, const char* what) {
  if (symbol.outputs.empty()) raise(ErrorKind::kValue, {.message = std::string(what) + " of an empty Symbol"});
  for (const NodeEntry& e : symbol.outputs)
    if (e.node != symbol.outputs[0].node)
      raise(ErrorKind::kValue, {.message = std::string(what) + " of a group of several nodes"});
  return *symbol.outputs[0].node;
}

// Attributes that MXNet programs write with and without the enclosing underscores.
constexpr std::string_view kReserved[] = {"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"};

py::dict attributes_of(const Node& node, bool with_parameters) {
  py::dict d;
  if (with_parameters && node.op != nullptr)
    for (const auto& [key, value] : node.op->schema->print(node.params->data())) d[py::str(key)] = value;
  for (const auto& [key, value] : node.attrs) d[py::str(key)] = value;
  for (const std::string_view plain : kReserved) {
    const std::string key(plain), hidden = "__" + key + "__";
    if (const auto found = node.attrs.find(hidden); found != node.attrs.end()) d[py::str(key)] = found->second;
    if (const auto found = node.attrs.find(key); found != node.attrs.end()) d[py::str(hidden)] = found->second;
  }
  return d;
}

// Replaces variables by entries; nodes that depend on them are copied, others are shared.
class Substitution {
 public:
  explicit Substitution(std::unordered_map<const Node*, NodeEntry> replaced) : replaced_(std::move(replaced)) {}

  Symbol apply(const Symbol& symbol) {
    for (const Node* node : topological_order(symbol.outputs)) visit(*node);
    Symbol result;
    for (const NodeEntry& e : symbol.outputs) result.outputs.push_back(mapped(e));
    return result;
  }

 private:
  NodeEntry mapped(const NodeEntry& e) const {
    if (const auto found = replaced_.find(e.node.get()); found != replaced_.end()) return found->second;
    const auto copy = copies_.find(e.node.get());
    return copy == copies_.end() ? e : NodeEntry{copy->second, e.index};
  }

  void visit(const Node& node) {
    if (node.is_variable()) return;
    std::vector<NodeEntry> inputs;
    std::vector<NodePtr> control;
    for (const NodeEntry& e : node.inputs) inputs.push_back(mapped(e));
    for (const NodePtr& before : node.control) control.push_back(mapped({before, 0}).node);
    if (inputs == node.inputs && control == node.control) return;
    NodePtr copy = copy_of(node, std::move(inputs));
    copy->control = std::move(control);
    note_made_node(copy);  // by a block made of Symbols, the copy may be part of a loop's body
    infer_made_node(*copy);
    copies_[&node] = std::move(copy);
  }

  std::unordered_map<const Node*, NodeEntry> replaced_;
  std::unordered_map<const Node*, NodePtr> copies_;
};

// Composition by call: net(data=other), net(other) replace variables by the arguments.
Symbol composed(const Symbol& symbol, const std::vector<py::object>& positional, const py::dict& named) {
  std::unordered_map<const Node*, NodeEntry> replaced;
  const std::vector<NodePtr> inputs = symbol.list_inputs();
  if (positional.size() > inputs.size())
    raise(ErrorKind::kType,
          {.expected = std::to_string(inputs.size()) + " inputs", .given = std::to_string(positional.size())});
  for (size_t i = 0; i < positional.size(); ++i)
    replaced[inputs[i].get()] = entry_of(positional[i].ptr(), inputs[i]->name.c_str());
  for (const auto& [key, value] : named) {
    const std::string name = key.cast<std::string>();
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const NodePtr& n) { return n->name == name; });
    if (found == inputs.end())
      raise(ErrorKind::kValue, {.input = name, .message = "the Symbol has no variable of this name"});
    replaced[found->get()] = entry_of(value.ptr(), name.c_str());
  }
  for (const auto& [variable, value] : replaced) check_leaks({value});
  return Substitution(std::move(replaced)).apply(symbol);
}

Symbol renamed(const Symbol& symbol, const std::string& name) {
  const Node& node = single_node(symbol, "renaming");
  const NodePtr copy = copy_of(node, node.inputs);
  copy->name = name;
  copy->control = node.control;
  copy->specs = node.specs;
  note_made_node(copy);
  Symbol result;
  for (const NodeEntry& e : symbol.outputs) result.outputs.push_back({copy, e.index});
  return result;
}

void bind_making(py::module_& m) {
  m.def(
      "register_symbol_class", [](const py::object& cls, bool numpy) { register_symbol_class(cls.ptr(), numpy); },
      py::arg("cls"), py::arg("numpy") = false);
  m.def("set_symbol_scopes", [](const py::object& names, const py::object& attributes) {
    set_symbol_scopes(names.ptr(), attributes.ptr());
  });
  m.def("variable", [](const std::string& name, const std::map<std::string, std::string>& attrs) {
    NodePtr node = make_variable(name);
    node->attrs = AttrDict(attrs.begin(), attrs.end());
    node->block = trace_state().block;
    node->where = current_location();
    return Symbol{{{node, 0}}};
  });
  m.def(
      "traced_variable",
      [](const std::string& name, const Shape& shape, DType dtype, bool numpy) {
        return symbol_of_class(Symbol{{{make_traced_variable(name, {shape, dtype}), 0}}}, numpy);
      },
      py::arg("name"), py::arg("shape") = py::none(), py::arg("dtype") = py::none(), py::arg("numpy") = false,
      "A variable of a block that is being traced.");
  m.def(
      "symbol_of_class",
      [](const py::object& symbol, bool numpy) {
        return symbol_of_class(expect_symbol(symbol.ptr(), "symbol"), numpy);
      },
      "The same outputs as a Symbol of mx.sym.np, or of mx.sym.");
  m.def(
      "traced_constant", [](const py::object& array) { return Symbol{{entry_of(array.ptr(), "constant")}}; },
      "The array as a variable whose value is known.");
  m.def("group", [](const std::vector<Symbol>& parts) {
    Symbol all;
    for (const Symbol& part : parts) all.outputs.insert(all.outputs.end(), part.outputs.begin(), part.outputs.end());
    check_leaks(all.outputs);
    return all;
  });
  m.def("symbol_composed",
        [](const py::object& symbol, const std::vector<py::object>& positional, const py::dict& named) {
          return wrap(composed(expect_symbol(symbol.ptr(), "symbol"), positional, named), symbol);
        });
  m.def(
      "symbol_renamed",
      [](const py::object& symbol, const std::string& name) {
        return wrap(renamed(expect_symbol(symbol.ptr(), "symbol"), name), symbol);
      },
      "The same graph whose output node has another name.");
  m.def("symbol_binary", [](int kind, const py::object& left, const py::object& right) {
    if (kind < 0 || kind >= kBinaryCount) raise(ErrorKind::kIndex, {.message = "no such binary operator"});
    PyObject* result = symbol_binary_operation(static_cast<Binary>(kind), left.ptr(), right.ptr());
    if (result == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(result);
  });
  m.def("symbol_from_json",
        [](const std::string& text, const std::string& what) { return Symbol::from_json(text, what); });
}

// Returns the number of nodes that one line made in one block, for the line with the most nodes, and that line.
std::pair<int, std::string> busiest_line(const Symbol& symbol) {
  std::map<std::tuple<const char*, int32_t, std::string>, int> counts;
  std::pair<int, std::string> most{0, ""};
  for (const Node* node : topological_order(symbol.outputs)) {
    if (node->is_variable() || !node->where.known()) continue;
    const int count = ++counts[{node->where.file, node->where.line, node->block}];
    if (count > most.first) most = {count, node->where.str()};
  }
  return most;
}

void bind_asking(py::module_& m) {
  m.def("symbol_busiest_line", &busiest_line,
        "(number of nodes, line) of the line that made the most nodes in a block.");
  m.def("symbol_list_inputs", [](const Symbol& s) {
    std::vector<std::string> names;
    for (const NodePtr& node : s.list_inputs()) names.push_back(node->name);
    return names;
  });
  m.def("symbol_list_arguments", [](const Symbol& s) { return s.list_arguments(); });
  m.def("symbol_list_auxiliary_states", [](const Symbol& s) { return s.list_auxiliary_states(); });
  m.def("symbol_list_outputs", [](const Symbol& s) { return s.list_outputs(); });
  m.def("symbol_internals", [](const py::object& s) { return wrap(expect_symbol(s.ptr(), "symbol").internals(), s); });
  m.def("symbol_children", [](const py::object& s) { return wrap(expect_symbol(s.ptr(), "symbol").children(), s); });
  m.def("symbol_num_outputs", [](const py::object& s) { return expect_symbol(s.ptr(), "symbol").outputs.size(); });
  m.def("symbol_output", [](const py::object& s, size_t i) {
    const Symbol& symbol = expect_symbol(s.ptr(), "symbol");
    if (i >= symbol.outputs.size()) raise(ErrorKind::kIndex, {.message = "output index out of range"});
    return wrap(Symbol{{symbol.outputs[i]}}, s);
  });
  m.def("symbol_tojson", [](const Symbol& s) { return s.tojson(); });
  m.def("symbol_text", [](const Symbol& s) { return s.text(); });
  m.def("symbol_infer", &infer,
        "known: name -> (shape or None, dtype or None). Returns complete, arguments, outputs, auxiliaries.");
  m.def(
      "symbol_specs",
      [](const py::object& symbol) -> py::object {
        py::list specs;
        for (const NodeEntry& e : expect_symbol(symbol.ptr(), "symbol").outputs) {
          const TensorSpec* spec = traced_spec(e);
          if (spec == nullptr) return py::none();
          specs.append(spec_tuple(*spec));
        }
        return specs;
      },
      "(shape, dtype) of each output while tracing; None outside traces.");
  m.def(
      "symbol_input_specs",
      [](const Symbol& s) {
        py::dict specs;
        for (const NodePtr& node : s.list_inputs())
          if (!node->specs.empty()) specs[py::str(node->name)] = spec_tuple(node->specs[0]);
        return specs;
      },
      "name -> (shape, dtype) of the variables that a trace has made.");
  m.def(
      "symbol_constants",
      [](const Symbol& s) {
        py::dict values;
        for (const Node* node : topological_order(s.outputs))
          if (node->constant)
            values[py::str(node->name)] = NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node->constant.get())));
        return values;
      },
      "name -> array of the variables whose value is known.");
  m.def(
      "symbol_input_constants",
      [](const Symbol& s) {
        py::list values;
        for (const NodePtr& node : s.list_inputs()) {
          if (node->constant)
            values.append(NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node->constant.get()))));
          else
            values.append(py::none());
        }
        return values;
      },
      "One entry per list_inputs(): the array of a variable whose value is known, else None.");
}

void bind_attributes(py::module_& m) {
  m.def("symbol_name", [](const py::object& symbol) -> py::object {
    const Symbol& s = expect_symbol(symbol.ptr(), "symbol");
    if (s.outputs.empty()) return py::none();
    for (const NodeEntry& e : s.outputs)
      if (e.node != s.outputs[0].node) return py::none();
    return py::str(s.outputs[0].node->name);
  });
  m.def("symbol_op", [](const Symbol& s) -> py::object {
    const Node& node = single_node(s, "operator");
    return node.op == nullptr ? py::none() : py::object(py::str(node.op->name));
  });
  m.def("symbol_attr", [](const Symbol& s, const std::string& key) -> py::object {
    const Node& node = single_node(s, "attribute");
    const bool hidden = key.size() > 4 && key.starts_with("__") && key.ends_with("__");
    for (const std::string& k : {key, "__" + key + "__", hidden ? key.substr(2, key.size() - 4) : key})
      if (const auto found = node.attrs.find(k); found != node.attrs.end()) return py::str(found->second);
    if (node.op != nullptr)
      for (const auto& [k, value] : node.op->schema->print(node.params->data()))
        if (k == key) return py::str(value);
    return py::none();
  });
  m.def("symbol_set_attr", [](const Symbol& s, const std::string& key, const std::string& value) {
    for (const NodeEntry& e : s.outputs) e.node->attrs[key] = value;
  });
  m.def("symbol_list_attr", [](const Symbol& s) { return attributes_of(single_node(s, "attributes"), true); });
  m.def("symbol_attr_dict", [](const Symbol& s) {
    py::dict all;
    for (const Node* node : topological_order(s.outputs)) {
      py::dict attrs = attributes_of(*node, true);
      if (!attrs.empty()) all[py::str(node->name)] = attrs;
    }
    return all;
  });
}

}  // namespace

void bind_symbols(py::module_& m) {
  bind_making(m);
  bind_asking(m);
  bind_attributes(m);
}

}  // namespace hybridnet::python
