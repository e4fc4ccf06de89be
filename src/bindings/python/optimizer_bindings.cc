// The table of optimizers (src/optimizer) for Python's classes, whose attributes are the settings.
#include "casters.h"
#include "op_info.h"
#include "optimizer/update.h"
#include "python_errors.h"

namespace hybridnet::python {
namespace {

using optimizer::Operand;
using optimizer::Rule;
using optimizer::Settings;
using optimizer::UpdateItem;

py::object to_object(const AttrValue& value) {
  return py::reinterpret_steal<py::object>(from_attr_value(value).release());
}

class UpdateRule {
 public:
  explicit UpdateRule(const std::string& name) : rule_(optimizer::rule(name)) {
    const auto& fields = rule_.schema.fields();
    for (size_t i = 0; i < fields.size(); ++i) {
      // Passed with each update, after multipliers and schedules are applied.
      if (fields[i].name == "learning_rate" || fields[i].name == "wd") continue;
      fields_.push_back({static_cast<int>(i), py::str(rule_.attribute_of(fields[i].name))});
      PyUnicode_InternInPlace(&fields_.back().attribute.ptr());
    }
  }

  const Rule& rule() const { return rule_; }

  Settings settings(const py::object& owner) const {
    Settings result;
    for (const Field& field : fields_) {
      const auto value = py::reinterpret_steal<py::object>(PyObject_GetAttr(owner.ptr(), field.attribute.ptr()));
      if (!value) throw py::error_already_set();
      const FieldInfo& info = rule_.schema.fields()[static_cast<size_t>(field.index)];
      char* place = reinterpret_cast<char*>(&result) + info.offset;
      if (info.kind == FieldKind::kDouble && PyFloat_CheckExact(value.ptr()))
        *reinterpret_cast<double*>(place) = PyFloat_AS_DOUBLE(value.ptr());
      else if (info.kind == FieldKind::kBool && PyBool_Check(value.ptr()))
        *reinterpret_cast<bool*>(place) = value.ptr() == Py_True;
      else
        rule_.schema.set(&result, field.index, to_attr_value(value.ptr(), info.name.c_str()), rule_.name);
    }
    return result;
  }

  py::object make_state(const py::object& owner, const NDArray& weight) const {
    const Settings given = settings(owner);
    const std::vector<NDArray> made = optimizer::make_states(rule_, given, weight);
    if (!rule_.states(given).is_tuple) return py::cast(made[0]);
    py::tuple nest(made.size());
    for (size_t i = 0; i < made.size(); ++i) nest[i] = py::cast(made[i]);
    return nest;
  }

  // Each list has one item per weight. names and base_lr are for rules that adjust rates; `names` is empty otherwise.
  void update(const py::object& owner, bool has_master, const py::list& weights, const py::list& grads,
              const py::list& states, const py::list& lrs, const py::list& wds, const py::list& counts,
              const py::list& names, double base_lr) {
    Settings given = settings(owner);
    const optimizer::StateLayout layout = rule_.states(given);
    std::vector<UpdateItem> items(weights.size());
    for (size_t i = 0; i < items.size(); ++i) {
      UpdateItem& item = items[i];
      item.weight = py::handle(weights[i]).cast<NDArray>();
      item.grad = py::handle(grads[i]).cast<NDArray>();
      item.lr = py::handle(lrs[i]).cast<double>();
      item.wd = py::handle(wds[i]).cast<double>();
      item.t = py::handle(counts[i]).cast<int64_t>();
      if (!names.empty()) item.name = py::handle(names[i]).cast<std::string>();
      read_state(layout, py::object(states[i]), has_master, item);
    }
    const auto wait = [](const NDArray& array) {
      const py::gil_scoped_release release;
      array.wait_for_values();
    };
    optimizer::update(rule_, given, items, base_lr, wait, programs_);
    write_variables(owner, given);
  }

  // Returns the rows of the table of rates of a compiled step, for the weights that one update() would take.
  std::vector<std::vector<double>> rates(const py::object& owner, const std::vector<double>& lrs,
                                         const std::vector<double>& wds, const std::vector<int64_t>& counts,
                                         double base_lr) const {
    Settings given = settings(owner);
    if (rule_.begin) rule_.begin(given, base_lr);
    std::vector<std::vector<double>> rows;
    for (size_t i = 0; i < lrs.size(); ++i)
      rows.push_back(rule_.rates_of(given, {.lr = lrs[i], .wd = wds[i], .t = counts[i]}));
    write_variables(owner, given);
    return rows;
  }

  // Returns per weight the variant of the update program for its update number `counts[i]`.
  std::vector<int64_t> variants(const py::object& owner, const std::vector<std::string>& names,
                                const std::vector<int64_t>& counts) const {
    const Settings given = settings(owner);
    std::vector<int64_t> found;
    for (size_t i = 0; i < names.size(); ++i) found.push_back(rule_.variant_of(given, names[i], counts[i]));
    return found;
  }

  // Returns [(operator, inputs, attributes, {attribute: column}, replaced operand, whether it is an update operator,
  // the result that holds the columns or None)]; operands are (kind, index).
  py::list program(const py::object& owner, DType dtype, bool has_master, std::vector<bool> has_state,
                   int64_t variant) const {
    const optimizer::UpdateProgram made = rule_.program(
        settings(owner),
        {.dtype = dtype, .has_master = has_master, .has_state = std::move(has_state), .variant = variant});
    py::list calls;
    for (const optimizer::UpdateCall& call : made.calls) {
      py::list inputs;
      for (const Operand& operand : call.inputs) inputs.append(describe(operand));
      py::dict attributes, rates;
      for (const auto& [name, value] : call.attributes) attributes[py::str(name)] = to_object(value);
      for (const auto& [name, rate] : call.rates) rates[py::str(name)] = py::str(rate);
      const py::object row = call.row ? py::object(describe(*call.row)) : py::none();
      calls.append(py::make_tuple(call.op, inputs, attributes, rates, describe(call.target), call.is_update, row));
    }
    return calls;
  }

  // Attributes of the Python class that steps change.
  std::vector<std::string> variables() const {
    std::vector<std::string> names;
    for (const std::string& name : rule_.variables) names.push_back(rule_.attribute_of(name));
    return names;
  }
  // Returns {setting: (attribute of the Python class, default)}, without the settings that steps change.
  py::dict defaults() const {
    py::dict found;
    for (const FieldInfo& field : rule_.schema.fields())
      if (!rule_.is_variable(field.name))
        found[py::str(field.name)] = py::make_tuple(rule_.attribute_of(field.name), to_object(field.default_attr));
    return found;
  }

 private:
  static py::tuple describe(const Operand& operand) {
    static constexpr const char* kKinds[] = {"weight", "grad", "state", "master", "result", "rates"};
    return py::make_tuple(kKinds[static_cast<size_t>(operand.kind)], operand.index);
  }

  [[noreturn]] void refuse_state(const std::string& expected, const py::object& given) const {
    throw TypeError({.op = rule_.name,
                     .input = "state",
                     .expected = expected,
                     .given = py::repr(given).cast<std::string>(),
                     .fix = "pass the state that create_state_multi_precision() returned"});
  }
  py::tuple as_tuple(const py::object& state, size_t size) const {
    if (!py::isinstance<py::tuple>(state) && !py::isinstance<py::list>(state))
      refuse_state("a tuple of " + std::to_string(size), state);
    py::tuple parts(state);
    if (parts.size() != size) refuse_state("a tuple of " + std::to_string(size), state);
    return parts;
  }
  NDArray as_array(const py::object& state) const {
    if (!state.is_none() && !is_array(state.ptr())) refuse_state("an array or None", state);
    return state.cast<NDArray>();
  }
  void read_state(const optimizer::StateLayout& layout, py::object state, bool has_master, UpdateItem& item) const {
    if (has_master) {
      const py::tuple both = as_tuple(state, 2);
      item.master = as_array(both[rule_.native_master ? 1 : 0]);
      state = both[rule_.native_master ? 0 : 1];
    }
    if (!layout.is_tuple) {
      item.states.push_back(as_array(state));
      return;
    }
    const py::tuple parts = as_tuple(state, layout.items.size());
    for (const py::handle part : parts) item.states.push_back(as_array(py::reinterpret_borrow<py::object>(part)));
  }
  void write_variables(const py::object& owner, const Settings& given) const {
    for (const std::string& name : rule_.variables)
      owner.attr(rule_.attribute_of(name).c_str()) = to_object(rule_.schema.get(&given, rule_.schema.find(name)));
  }

  struct Field {
    int index;
    py::str attribute;
  };
  const Rule& rule_;
  std::vector<Field> fields_;
  optimizer::LinkedPrograms programs_;
};

}  // namespace

void bind_optimizers(py::module_& m) {
  py::class_<UpdateRule>(m, "UpdateRule", "One optimizer: its settings, states and update.")
      .def(py::init<const std::string&>())
      .def_property_readonly("name", [](const UpdateRule& r) { return r.rule().name; })
      .def_property_readonly("doc", [](const UpdateRule& r) { return r.rule().doc; })
      .def_property_readonly("columns", [](const UpdateRule& r) { return py::tuple(py::cast(r.rule().columns)); })
      .def_property_readonly("aggregates", [](const UpdateRule& r) { return r.rule().aggregates; })
      .def_property_readonly("native_master", [](const UpdateRule& r) { return r.rule().native_master; })
      .def_property_readonly("adjusts", [](const UpdateRule& r) { return r.rule().variant || r.rule().begin; })
      .def_property_readonly("draws", [](const UpdateRule& r) { return r.rule().draws; })
      .def_property_readonly("variables", &UpdateRule::variables)
      .def_property_readonly("by_element", [](const UpdateRule& r) { return r.rule().by_element; })
      .def_property_readonly("rate_before_count", [](const UpdateRule& r) { return r.rule().rate_before_count; })
      .def_property_readonly("defaults", &UpdateRule::defaults)
      .def("make_state", &UpdateRule::make_state)
      .def("update", &UpdateRule::update)
      .def("rates", &UpdateRule::rates)
      .def("variants", &UpdateRule::variants)
      .def("program", &UpdateRule::program);
  m.def(
      "optimizer_names",
      [] {
        std::vector<std::string> names;
        for (const auto& rule : optimizer::rules()) names.push_back(rule->name);
        return names;
      },
      "Names of the optimizers of the table.");
}

}  // namespace hybridnet::python
