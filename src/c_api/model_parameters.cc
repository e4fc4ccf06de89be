#include "c_api/model_parameters.h"

#include <algorithm>
#include <set>
#include <vector>

namespace hybridnet::c_api {
namespace {

// HybridBlock.export, also MXNet's, writes these attributes for parameters and for no other variables.
bool is_marked_as_parameter(const Node& variable) {
  return variable.attrs.contains("__lr_mult__") || variable.attrs.contains("__wd_mult__") ||
         variable.attrs.contains("__init__");
}

// Returns "a, b, c, ...".
std::string first_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > kShown ? text + ", ..." : text;
}

[[noreturn]] void missing_parameter(const std::string& name, const std::map<std::string, NDArray>& arrays,
                                    const std::vector<std::string>& extra, const std::string& file) {
  const std::vector<std::string>* shown = &extra;
  std::vector<std::string> all;
  if (extra.empty()) {
    for (const auto& [given, array] : arrays) all.push_back(given);
    shown = &all;
  }
  throw FormatError(
      {.input = file,
       .given = all.empty() && extra.empty() ? "an empty file" : first_of(*shown),
       .message = "the parameter '" + name + "' of the graph is not in the file",
       .because = extra.empty() ? "" : "the graph does not read these: the file belongs to another network",
       .fix = "load the .params file that was exported with this graph"});
}

void require_names(const std::vector<NodePtr>& variables, const std::set<std::string>& states,
                   const std::map<std::string, NDArray>& arrays, const std::string& file) {
  std::set<std::string> known;
  for (const NodePtr& variable : variables) known.insert(variable->name);
  std::vector<std::string> extra;
  for (const auto& [name, array] : arrays)
    if (!known.contains(name)) extra.push_back(name);
  for (const NodePtr& variable : variables)
    if ((is_marked_as_parameter(*variable) || states.contains(variable->name)) && !arrays.contains(variable->name))
      missing_parameter(variable->name, arrays, extra, file);
  if (!extra.empty())
    throw FormatError(
        {.input = file,
         .given = first_of(extra),
         .message = "the graph has no variable '" + extra.front() + "'",
         .because = "an array that the graph does not read shows that the file belongs to another network",
         .fix = "load the .params file that was exported with this graph, or save those arrays alone that "
                "the graph reads (hn_arrays_load, hn_arrays_save)"});
}

void require_declared_shape(const Node& variable, const NDArray& array, const std::string& file) {
  const Shape declared = declared_spec(variable).shape;
  if (!declared.rank_known()) return;
  const Shape& given = array.shape();
  bool agrees = declared.ndim() == given.ndim();
  for (int i = 0; agrees && i < declared.ndim(); ++i) agrees = declared[i] == kUnknownDim || declared[i] == given[i];
  if (!agrees)
    throw ShapeError({.input = variable.name,
                      .expected = "shape " + declared.str(),
                      .given = given.str(),
                      .message = "the parameter has another shape in '" + file + "' than in the graph",
                      .fix = "load the .params file that was exported with this graph"});
}

// True if the error is about an array of the file. With unknown inputs, rules between inputs may see contradictions
// that do not exist, for example in branches and in rows that broadcast.
bool concerns_parameter(const ErrorFields& error, const Symbol& symbol, const std::map<std::string, NDArray>& arrays) {
  for (const Node* node : topological_order(symbol.outputs)) {
    if (node->is_variable() || node->name != error.node) continue;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Node& producer = *node->inputs[i].node;
      if (producer.is_variable() && arrays.contains(producer.name) &&
          node->op->input_name(node->params->data(), static_cast<int>(i)) == error.input)
        return true;
    }
  }
  return false;
}

// Runs inference with the arrays of the file and unknown inputs. Throws if an array contradicts the graph.
void require_specs(const Symbol& symbol, const std::map<std::string, NDArray>& arrays, const std::string& file) {
  std::map<std::string, TensorSpec> known;
  for (const auto& [name, array] : arrays) known[name] = array.spec();
  try {
    symbol.infer(known, true);
  } catch (Error& error) {
    if (!concerns_parameter(error.fields(), symbol, arrays)) return;
    error.add_context({.message = "the arrays of '" + file + "' contradict the graph"});
    throw;
  }
}

}  // namespace

void require_parameters_of(const Symbol& symbol, const std::map<std::string, NDArray>& arrays,
                           const std::string& file) {
  const std::vector<NodePtr> variables = symbol.list_inputs();
  const std::vector<std::string> states = symbol.list_auxiliary_states();
  require_names(variables, {states.begin(), states.end()}, arrays, file);
  for (const NodePtr& variable : variables)
    if (const auto at = arrays.find(variable->name); at != arrays.end())
      require_declared_shape(*variable, at->second, file);
  require_specs(symbol, arrays, file);
}

}  // namespace hybridnet::c_api
