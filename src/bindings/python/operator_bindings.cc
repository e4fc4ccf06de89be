// The Python interface of the operator registry: names, declarations, callable objects.
#include "binary_function.h"
#include "c_api/library.h"
#include "casters.h"
#include "direct_function.h"
#include "hybridnet/op.h"
#include "op_function.h"
#include "op_info.h"

namespace hybridnet::python {
namespace {

const char* kind_text(FieldKind kind) {
  switch (kind) {
    case FieldKind::kBool:
      return "bool";
    case FieldKind::kInt32:
    case FieldKind::kInt64:
      return "int";
    case FieldKind::kFloat:
    case FieldKind::kDouble:
      return "float";
    case FieldKind::kString:
      return "str";
    case FieldKind::kEnum:
      return "choice";
    case FieldKind::kTuple:
      return "tuple of int";
    case FieldKind::kDType:
      return "dtype";
    case FieldKind::kOptBool:
      return "bool or None";
    case FieldKind::kOptInt32:
    case FieldKind::kOptInt64:
      return "int or None";
    case FieldKind::kOptFloat:
    case FieldKind::kOptDouble:
      return "float or None";
    case FieldKind::kOptTuple:
      return "tuple of int or None";
    case FieldKind::kOptDType:
      return "dtype or None";
    case FieldKind::kOptEnum:
      return "choice or None";
    case FieldKind::kDoubles:
      return "tuple of float";
    case FieldKind::kOptionalInts:
      return "tuple of int or None items";
    case FieldKind::kOptString:
      return "str or None";
  }
  return "value";
}

py::dict describe_field(const FieldInfo& field) {
  py::dict d;
  d["name"] = field.name;
  d["kind"] = kind_text(field.kind);
  d["required"] = field.required;
  d["doc"] = field.doc;
  py::list choices;
  for (const auto& [name, value] : field.choices) choices.append(name);
  d["choices"] = choices;
  d["minimum"] = field.minimum;
  d["maximum"] = field.maximum;
  d["default"] =
      field.required ? py::none() : py::reinterpret_steal<py::object>(from_attr_value(field.default_attr).release());
  d["hidden"] = field.hidden;
  return d;
}

py::dict describe_sample(const Sample& sample) {
  py::dict d;
  d["shapes"] = sample.inputs;
  py::dict attrs;
  for (const auto& [key, value] : sample.attrs) attrs[py::str(key)] = value;
  d["attrs"] = attrs;
  d["low"] = sample.low;
  d["high"] = sample.high;
  py::list dtypes;
  for (const DType dtype : sample.dtypes)
    dtypes.append(dtype == DType::kUnknown ? py::none() : py::object(py::str(dtype_name(dtype))));
  d["dtypes"] = dtypes;
  d["integer_valued"] = sample.integer_valued;
  d["check_gradient"] = sample.check_gradient;
  d["note"] = sample.note;
  return d;
}

const char* amp_text(AmpType type) {
  switch (type) {
    case AmpType::kHalf:
      return "half";
    case AmpType::kFloat:
      return "float";
    case AmpType::kWidest:
    case AmpType::kProduct:
      return "widest";
    case AmpType::kAny:
      break;
  }
  return "any";
}

// (parameter, choices) for which an operator runs in its type for mixed precision; empty: each use does.
py::list describe_amp_choices(const Op& op) {
  py::list found;
  if (!op.amp_when) return found;
  for (const FieldInfo& field : op.schema->fields()) {
    py::list choices;
    for (const auto& [choice, number] : field.choices) {
      const ParamsPtr params = op.schema->parse({{field.name, AttrValue(choice)}}, op.name);
      if (op.amp_when(params->data())) choices.append(choice);
    }
    if (!choices.empty()) found.append(py::make_tuple(field.name, choices));
  }
  return found;
}

py::dict describe_op(const std::string& name) {
  const Op& op = op_registry().at(name);
  py::dict d;
  d["name"] = op.name;
  d["doc"] = op.doc;
  d["aliases"] = op.aliases;
  py::list inputs, outputs, fields, samples, dtypes;
  for (const InputInfo& input : op.inputs) {
    py::dict i;
    i["name"] = input.name;
    i["doc"] = input.doc;
    i["optional"] = input.optional;
    i["auxiliary"] = input.auxiliary;
    inputs.append(i);
  }
  for (const OutputInfo& output : op.outputs) outputs.append(py::make_tuple(output.name, output.doc));
  for (const FieldInfo& field : op.schema->fields()) fields.append(describe_field(field));
  for (const Sample& sample : op.samples) samples.append(describe_sample(sample));
  for (int code = 0; code < kDTypeCodes; ++code)
    if (dtype_valid_code(code) && op.dtypes.has(static_cast<DType>(code)))
      dtypes.append(dtype_name(static_cast<DType>(code)));
  d["inputs"] = inputs;
  d["outputs"] = outputs;
  d["fields"] = fields;
  d["samples"] = samples;
  d["dtypes"] = dtypes;
  d["variadic"] = op.variadic;
  d["count_param"] = op.count_param;
  d["differentiable"] = op.differentiable() || (op.composed() && op.dtypes.has(DType::kFloat32));
  d["any_device"] = static_cast<bool>(op.any_device);
  d["waits_on_gpu"] = op.waits_on_gpu;
  d["random"] = op.random;
  d["internal"] = op.hidden;
  d["composed"] = op.composed();
  d["stops_gradient"] = op.stops_gradient;
  d["pointwise"] = op.pointwise != nullptr;
  d["train_sensitive"] = op.train_sensitive;
  d["amp"] = amp_text(op.amp);
  d["amp_choices"] = describe_amp_choices(op);
  d["written_input"] = op.written_input;
  d["predicts"] = op.predicts;
  d["names_its_input"] = op.names_its_input;
  d["data_dependent_shape"] = op.data_dependent_shape;
  d["variable_outputs"] = static_cast<bool>(op.num_outputs_);
  d["num_visible"] =
      op.num_outputs_ ? static_cast<int>(op.outputs.size()) : op.num_visible_outputs(op_info(op).prototype->data());
  d["writebacks"] = op.writebacks.size();
  d["subgraphs"] = op.subgraph_names;
  return d;
}

// Describes one use of an operator: the facts that depend on its parameters.
py::dict describe_use(const std::string& name, const py::dict& attrs) {
  const Op& op = op_registry().at(name);
  std::vector<std::pair<std::string, AttrValue>> values;
  for (const auto& [key, value] : attrs) values.emplace_back(py::str(key), to_attr_value(value.ptr(), "attrs"));
  const ParamsPtr params = op.schema->parse(values, op.name);
  const void* p = params->data();
  py::dict d;
  py::list inputs, outputs, writebacks;
  for (int i = 0; i < op.num_inputs(p); ++i) inputs.append(op.input_name(p, i));
  for (int i = 0; i < op.num_outputs(p); ++i) {
    outputs.append(op.output_name(p, i));
    writebacks.append(op.writeback_input(p, i));
  }
  d["inputs"] = inputs;
  d["outputs"] = outputs;
  d["num_visible"] = op.num_visible_outputs(p);
  d["writebacks"] = writebacks;  // per output: the input that it replaces, or -1
  d["attrs"] = op.schema->print(p);
  return d;
}

using SpecPair = std::pair<Shape, std::string>;  // shape, name of the dtype; a shape of unknown rank is None

// Returns the specs of the outputs of one use, hidden ones included, as far as they follow from those of the inputs.
py::list infer_use(const std::string& name, const py::dict& attrs, const std::vector<SpecPair>& inputs, bool train) {
  const Op& op = op_registry().at(name);
  std::vector<std::pair<std::string, AttrValue>> values;
  for (const auto& [key, value] : attrs) values.emplace_back(py::str(key), to_attr_value(value.ptr(), "attrs"));
  const ParamsPtr params = op.schema->parse(values, op.name);
  const int expected = op.num_inputs(params->data());
  if (static_cast<size_t>(expected) != inputs.size() && !op.variadic)
    throw ParamError({.op = op.name,
                      .input = "inputs",
                      .expected = std::to_string(expected) + " specs",
                      .given = std::to_string(inputs.size())});
  std::vector<TensorSpec> in, out(static_cast<size_t>(op.num_outputs(params->data())));
  for (const auto& [shape, dtype] : inputs) in.push_back({shape, dtype_from_name(dtype)});
  InferContext context(op, in, out, train);
  op.infer(params->data(), context);
  py::list specs;
  for (const TensorSpec& spec : out)
    specs.append(py::make_tuple(
        spec.shape, spec.dtype == DType::kUnknown ? py::none() : py::object(py::str(dtype_name(spec.dtype)))));
  return specs;
}

}  // namespace

void bind_operators(py::module_& m) {
  m.def("op_names", [] {
    py::list names;  // (primary name, aliases, internal)
    for (const Op* op : op_registry().all()) names.append(py::make_tuple(op->name, op->aliases, op->hidden));
    return names;
  });
  m.def(
      "load_library",
      [](const std::string& path) {
        const c_api::LibraryContents contents = c_api::load_library(path);
        return std::make_pair(contents.operators, contents.rules);
      },
      py::call_guard<py::gil_scoped_release>(),
      "Registers the operators and rules of a shared object; returns their names.");
  m.def("describe_op", &describe_op, "The declaration of an operator as plain values.");
  m.def(
      "op_function",
      [](const std::string& op, const std::string& name, const std::string& module, bool symbolic, bool numpy,
         const std::vector<std::string>& order, const py::dict& fixed, const py::dict& renamed) {
        return py::reinterpret_steal<py::object>(
            make_op_function(op, name, module, symbolic, numpy, order, fixed.ptr(), renamed.ptr()).release());
      },
      py::arg("op"), py::arg("name"), py::arg("module"), py::arg("symbolic") = false, py::arg("numpy") = false,
      py::arg("order") = std::vector<std::string>(), py::arg("fixed") = py::dict(), py::arg("renamed") = py::dict());
  m.def(
      "binary_function",
      [](const std::string& name, const std::string& module, const std::string& arrays, const std::string& scalar,
         const std::string& reverse) {
        return py::reinterpret_steal<py::object>(make_binary_function(name, module, arrays, scalar, reverse).release());
      },
      "A function of mx.np on operators for two arrays, an array and a number, a number and an array.");
  m.def(
      "direct_function",
      [](const py::object& function, const py::object& op, Py_ssize_t inputs, const py::tuple& names, Py_ssize_t needed,
         bool tuple) {
        return py::reinterpret_steal<py::object>(
            make_direct_function(function.ptr(), op.ptr(), inputs, names.ptr(), needed, tuple).release());
      },
      "A function of Python that is an operator for arrays by position.");
  m.def("set_symbolic_calls", &set_symbolic_calls);
  m.def("set_numpy_fallback", [](const py::object& f) { set_numpy_fallback(f.ptr()); });
  m.def("set_not_given", [](const py::object& o) { set_not_given(o.ptr()); });
  m.def("set_value_simplifier", [](const py::object& f) { set_value_simplifier(f.ptr()); });
  m.def("describe_use", &describe_use, py::arg("name"), py::arg("attrs"),
        "Inputs, outputs and attributes of an operator with these parameters.");
  m.def("infer_use", &infer_use, py::arg("name"), py::arg("attrs"), py::arg("inputs"), py::arg("train") = false,
        "(shape, dtype) per output of an operator for inputs of these shapes and dtypes; unknown sizes are -1.");
}

}  // namespace hybridnet::python
