// Models: a graph with the values of its parameters.
#include "c_api/model.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "base/replace_file.h"
#include "c_api/model_parameters.h"
#include "c_api/status.h"
#include "hybridnet/sparse.h"

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::guarded;
using c_api::Pinned;
using c_api::require;

namespace hybridnet::c_api {
namespace {

[[noreturn, gnu::cold]] void throw_elsewhere(const NDArray& array, const std::string& name, Device device,
                                             const char* function) {
  throw ValueError({.op = function,
                    .input = name,
                    .expected = "an array on " + device.str() + ", where the model is",
                    .given = "one on " + array.device().str(),
                    .fix = "copy the array by hn_array_copy_to_device, or move the model by hn_model_to_device"});
}

}  // namespace

std::vector<NDArray> ModelHandle::with_inputs(size_t num_inputs, const HnArray* inputs, const char* function) const {
  check_inputs(num_inputs, inputs, function);
  Values all = values();
  put_inputs(inputs, all, function);
  return std::move(all.arrays);
}

void ModelHandle::check_inputs(size_t num_inputs, const HnArray* inputs, const char* function) const {
  check_count(num_inputs, input_names, function, "num_inputs");
  if (num_inputs > 0) require(inputs, function, "inputs");
}

void ModelHandle::put_inputs(const HnArray* inputs, Values& values, const char* function) const {
  for (size_t i = 0; i < input_positions.size(); ++i) {
    NDArray& array = values.arrays[input_positions[i]];
    array = array_of(inputs[i], function, input_names[i].c_str());
    if (!is_on(array, values.device)) [[unlikely]]
      throw_elsewhere(array, input_names[i], values.device, function);
  }
}

std::unique_ptr<ModelHandle::Arguments> ModelHandle::take_arguments() const {
  std::unique_ptr<Arguments> kept = arguments_.take();
  if (!kept) kept = std::make_unique<Arguments>();
  if (kept->version == version_.load(std::memory_order_acquire)) return kept;
  const std::lock_guard lock(mutex_);
  *kept = {version_.load(std::memory_order_relaxed), op_, values_};
  return kept;
}

std::vector<NDArray> ModelHandle::run(size_t num_inputs, const HnArray* inputs, std::span<const NDArray> out,
                                      const char* function) const {
  check_inputs(num_inputs, inputs, function);
  std::unique_ptr<Arguments> arguments = take_arguments();
  Values& values = arguments->values;
  put_inputs(inputs, values, function);
  require_on_device(out, output_names, values.device, function);
  std::vector<NDArray> results = arguments->op->call(values.arrays, out);
  for (const size_t position : input_positions) values.arrays[position] = NDArray();
  arguments_.give(arguments);
  return results;
}

void ModelHandle::make_op(const std::string& remat) {
  auto made = make_ref<GraphCallable>(symbol, CallOptions{.name = "model", .remat = remat, .static_alloc = true});
  const std::lock_guard lock(mutex_);
  op_ = std::move(made);
  drop_arguments();
}

void ModelHandle::set_values(Values values) {
  const std::lock_guard lock(mutex_);
  values_ = std::move(values);
  drop_arguments();
}

// Makes the next run of each thread fetch its arguments anew. Called under the mutex.
void ModelHandle::drop_arguments() {
  version_.fetch_add(1, std::memory_order_release);
  arguments_.sweep([](const Arguments&) { return false; });
}

void require_on_device(std::span<const NDArray> arrays, const std::vector<std::string>& names, Device device,
                       const char* function) {
  for (size_t i = 0; i < arrays.size(); ++i)
    if (!is_on(arrays[i], device)) throw_elsewhere(arrays[i], names[i], device, function);
}

void check_count(size_t given, const std::vector<std::string>& names, const char* function, const char* what) {
  if (given == names.size()) return;
  std::string list;
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  throw ValueError({.op = function,
                    .input = what,
                    .expected = std::to_string(names.size()),
                    .given = std::to_string(given),
                    .because = "the model has " + std::to_string(names.size()) + ": " + list});
}

namespace {

std::string read_text(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw_file_error(path, "read", "check the path and the working directory");
  return text.str();
}

void write_text(const char* path, const std::string& text) {
  replace_file(path, [&](std::FILE* file) { return std::fwrite(text.data(), 1, text.size(), file) == text.size(); });
}

// Returns a parameter of a file as a dense array. Throws FormatError if a sparse one would become far larger than its
// size in the file.
NDArray dense_loaded(const NDArray& array, const std::string& file) {
  constexpr int64_t kAlwaysFine = int64_t{64} << 20, kGrowth = 1000;
  if (array.is_sparse() && array.bytes() > kAlwaysFine) {
    const SparseStorage& parts = sparse_storage(array);
    if (array.bytes() / kGrowth > parts.data.bytes() + parts.indices.bytes())
      throw FormatError({.input = file,
                         .message = "a sparse array of shape " + array.shape().str() + " would take " +
                                    std::to_string(array.bytes() >> 20) + " MB as a parameter, and those are dense",
                         .because = "its values and indices take " +
                                    std::to_string(parts.data.bytes() + parts.indices.bytes()) + " bytes",
                         .fix = "read the file by hn_arrays_load, which keeps it sparse"});
  }
  return to_dense(array);
}

// Maps names to arrays. Names in the file are `arg:NAME`, `aux:NAME` or plain; the prefix does not matter.
std::map<std::string, NDArray> by_name(const LoadedArrays& loaded, const std::string& what) {
  if (!loaded.named && !loaded.arrays.empty())
    throw FormatError({.input = what,
                       .message = "the arrays in the file have no names",
                       .fix = "use the .params file that export() wrote"});
  std::map<std::string, NDArray> result;
  for (size_t i = 0; i < loaded.arrays.size(); ++i) {
    std::string name = loaded.names[i];
    if (name.starts_with("arg:") || name.starts_with("aux:")) name = name.substr(4);
    if (loaded.arrays[i]) result[name] = dense_loaded(loaded.arrays[i], what);
  }
  return result;
}

HnModel make_model(Symbol symbol, const std::map<std::string, NDArray>& parameters) {
  auto model = std::make_unique<ModelHandle>();
  const std::vector<std::string> states = symbol.list_auxiliary_states();
  const std::set<std::string> is_state(states.begin(), states.end());
  ModelHandle::Values values;
  for (const NodePtr& variable : symbol.list_inputs()) {
    const auto it = parameters.find(variable->name);
    const bool given = it == parameters.end();
    (given ? model->input_positions : model->parameter_positions).push_back(values.arrays.size());
    (given ? model->input_names : model->parameter_names).push_back(variable->name);
    if (given)
      model->input_specs.push_back(declared_spec(*variable));
    else
      model->parameter_is_state.push_back(is_state.contains(variable->name));
    values.arrays.push_back(given ? NDArray() : it->second);
  }
  model->set_values(std::move(values));
  model->output_names = symbol.list_outputs();
  model->symbol = std::move(symbol);
  model->make_op("auto");
  return static_cast<HnModel>(make_handle(std::move(model)));
}

const char* name_at(const std::vector<std::string>& names, size_t index, const char* function) {
  if (index >= names.size())
    throw IndexError({.op = function,
                      .input = "index",
                      .expected = "below " + std::to_string(names.size()),
                      .given = std::to_string(index)});
  return names[index].c_str();
}

using Names = std::vector<std::string> ModelHandle::*;

int count_of(Names names, HnModel model, size_t* out, const char* function) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, function, "model");
    require(out, function, "out");
    *out = ((*given).*names).size();
  });
}

int name_of(Names names, HnModel model, size_t index, const char** out, const char* function) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, function, "model");
    require(out, function, "out");
    *out = name_at((*given).*names, index, function);
  });
}

// Infers all specs of the model for these inputs.
Symbol::Specs infer(const ModelHandle& model, const std::vector<TensorSpec>& inputs) {
  std::map<std::string, TensorSpec> known;
  for (size_t i = 0; i < model.parameter_names.size(); ++i) known[model.parameter_names[i]] = model.parameter(i).spec();
  for (size_t i = 0; i < inputs.size(); ++i) known[model.input_names[i]] = inputs[i];
  return model.symbol.infer(known, false);
}

}  // namespace
}  // namespace hybridnet::c_api

using c_api::check_count;
using c_api::ModelHandle;

int hn_model_load(const char* symbol_path, const char* params_path, HnModel* out) {
  return guarded([&] {
    require(symbol_path, "hn_model_load", "symbol_path");
    require(out, "hn_model_load", "out");
    Symbol symbol = Symbol::from_json(c_api::read_text(symbol_path), symbol_path);
    std::map<std::string, NDArray> parameters;
    if (params_path) {
      parameters = c_api::by_name(load_arrays(params_path, true), params_path);
      c_api::require_parameters_of(symbol, parameters, params_path);
    }
    *out = c_api::make_model(std::move(symbol), parameters);
  });
}

int hn_model_load_from_memory(const char* json, size_t json_size, const void* params, size_t params_size,
                              HnModel* out) {
  return guarded([&] {
    require(json, "hn_model_load_from_memory", "json");
    require(out, "hn_model_load_from_memory", "out");
    Symbol symbol = Symbol::from_json({json, json_size}, "<memory>");
    std::map<std::string, NDArray> parameters;
    if (params) {
      parameters = c_api::by_name(load_arrays_from_buffer({static_cast<const char*>(params), params_size}, "<memory>"),
                                  "<memory>");
      c_api::require_parameters_of(symbol, parameters, "<memory>");
    }
    *out = c_api::make_model(std::move(symbol), parameters);
  });
}

int hn_model_free(HnModel model) {
  return guarded([&] { c_api::free_handle<ModelHandle>(model, "hn_model_free"); });
}

int hn_model_num_inputs(HnModel model, size_t* out) {
  return c_api::count_of(&ModelHandle::input_names, model, out, "hn_model_num_inputs");
}

int hn_model_input_name(HnModel model, size_t index, const char** out) {
  return c_api::name_of(&ModelHandle::input_names, model, index, out, "hn_model_input_name");
}

int hn_model_input_spec(HnModel model, size_t index, HnTensorSpec* out) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_input_spec", "model");
    require(out, "hn_model_input_spec", "out");
    c_api::name_at(given->input_names, index, "hn_model_input_spec");
    c_api::give_spec(given->input_specs[index], out);
  });
}

int hn_model_num_outputs(HnModel model, size_t* out) {
  return c_api::count_of(&ModelHandle::output_names, model, out, "hn_model_num_outputs");
}

int hn_model_output_name(HnModel model, size_t index, const char** out) {
  return c_api::name_of(&ModelHandle::output_names, model, index, out, "hn_model_output_name");
}

int hn_model_num_parameters(HnModel model, size_t* out) {
  return c_api::count_of(&ModelHandle::parameter_names, model, out, "hn_model_num_parameters");
}

int hn_model_parameter_name(HnModel model, size_t index, const char** out) {
  return c_api::name_of(&ModelHandle::parameter_names, model, index, out, "hn_model_parameter_name");
}

int hn_model_parameter_is_state(HnModel model, size_t index, int* out) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_parameter_is_state", "model");
    require(out, "hn_model_parameter_is_state", "out");
    c_api::name_at(given->parameter_names, index, "hn_model_parameter_is_state");
    *out = given->parameter_is_state[index];
  });
}

int hn_model_parameter_spec(HnModel model, size_t index, HnTensorSpec* out) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_parameter_spec", "model");
    require(out, "hn_model_parameter_spec", "out");
    c_api::name_at(given->parameter_names, index, "hn_model_parameter_spec");
    c_api::give_spec(given->parameter(index).spec(), out);
  });
}

int hn_model_parameter(HnModel model, size_t index, HnArray* out) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_parameter", "model");
    require(out, "hn_model_parameter", "out");
    c_api::name_at(given->parameter_names, index, "hn_model_parameter");
    *out = c_api::give_array(given->parameter(index));
  });
}

int hn_model_infer(HnModel model, size_t num_inputs, const HnTensorSpec* inputs, size_t num_outputs,
                   HnTensorSpec* outputs) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_infer", "model");
    check_count(num_inputs, given->input_names, "hn_model_infer", "num_inputs");
    check_count(num_outputs, given->output_names, "hn_model_infer", "num_outputs");
    if (num_inputs > 0) require(inputs, "hn_model_infer", "inputs");
    if (num_outputs > 0) require(outputs, "hn_model_infer", "outputs");
    std::vector<TensorSpec> specs;
    for (size_t i = 0; i < num_inputs; ++i) {
      const char* name = given->input_names[i].c_str();
      specs.push_back({c_api::shape_of(inputs[i].shape, inputs[i].ndim, "hn_model_infer", name),
                       c_api::dtype_of(inputs[i].dtype, "hn_model_infer", name)});
    }
    const Symbol::Specs found = c_api::infer(*given, specs);
    for (size_t i = 0; i < num_outputs; ++i) c_api::give_spec(found.outputs[i], outputs + i);
  });
}

int hn_model_infer_shapes(HnModel model, size_t num_inputs, const int* input_ndims, const int64_t* const* input_shapes,
                          size_t* num_outputs, const int** ndims, const int64_t* const** shapes) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_infer_shapes", "model");
    require(num_outputs, "hn_model_infer_shapes", "num_outputs");
    require(ndims, "hn_model_infer_shapes", "ndims");
    require(shapes, "hn_model_infer_shapes", "shapes");
    check_count(num_inputs, given->input_names, "hn_model_infer_shapes", "num_inputs");
    if (num_inputs > 0) {
      require(input_ndims, "hn_model_infer_shapes", "input_ndims");
      require(input_shapes, "hn_model_infer_shapes", "input_shapes");
    }
    std::vector<TensorSpec> specs;
    for (size_t i = 0; i < num_inputs; ++i)
      specs.push_back(
          {c_api::shape_of(input_shapes[i], input_ndims[i], "hn_model_infer_shapes", given->input_names[i].c_str()),
           DType::kUnknown});
    struct Result {
      std::vector<TensorSpec> specs;
      std::vector<int> ndims;
      std::vector<const int64_t*> shapes;
    };
    thread_local Result result;
    result = {c_api::infer(*given, specs).outputs, {}, {}};
    for (const TensorSpec& s : result.specs) {
      result.ndims.push_back(s.shape.ndim());
      result.shapes.push_back(s.shape.begin());
    }
    *num_outputs = result.specs.size();
    *ndims = result.ndims.data();
    *shapes = result.shapes.data();
  });
}

int hn_model_run(HnModel model, size_t num_inputs, const HnArray* inputs, size_t num_outputs, HnArray* outputs) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_run", "model");
    check_count(num_outputs, given->output_names, "hn_model_run", "num_outputs");
    require(outputs, "hn_model_run", "outputs");
    c_api::give_arrays(given->run(num_inputs, inputs, {}, "hn_model_run"), outputs);
  });
}

int hn_model_run_into(HnModel model, size_t num_inputs, const HnArray* inputs, size_t num_outputs,
                      const HnArray* outputs) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_run_into", "model");
    check_count(num_outputs, given->output_names, "hn_model_run_into", "num_outputs");
    const std::vector<NDArray> out = c_api::arrays_of(num_outputs, outputs, "hn_model_run_into", "outputs");
    given->run(num_inputs, inputs, out, "hn_model_run_into");
  });
}

int hn_model_save(HnModel model, const char* symbol_path, const char* params_path) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_save", "model");
    require(symbol_path, "hn_model_save", "symbol_path");
    require(params_path, "hn_model_save", "params_path");
    std::vector<NDArray> arrays;
    std::vector<std::string> names;
    for (size_t i = 0; i < given->parameter_names.size(); ++i) {
      names.push_back((given->parameter_is_state[i] ? "aux:" : "arg:") + given->parameter_names[i]);
      arrays.push_back(given->parameter(i));
    }
    c_api::write_text(symbol_path, given->symbol.tojson());
    save_arrays(params_path, arrays, names, false);
  });
}

int hn_model_set_remat(HnModel model, const char* remat) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_set_remat", "model");
    require(remat, "hn_model_set_remat", "remat");
    given->make_op(remat);
  });
}

int hn_model_plan_text(HnModel model, const char** out) {
  return guarded([&] {
    const Pinned<ModelHandle> given(model, "hn_model_plan_text", "model");
    require(out, "hn_model_plan_text", "out");
    thread_local std::string text;
    text = given->op()->plan_text();
    *out = text.c_str();
  });
}
