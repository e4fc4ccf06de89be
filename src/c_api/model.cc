#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "c_api/arrays.h"
#include "c_api/status.h"
#include "hybridnet/plan.h"
#include "hybridnet/sparse.h"

using namespace hybridnet;  // the functions below are C: they have no namespace of their own
using c_api::guarded;
using c_api::require;

struct HnModel_ {
  Symbol symbol;
  Ref<CachedOp> op;
  std::vector<NDArray> values;          // one per graph input; null where the caller provides it
  std::vector<size_t> input_positions;  // which of them the caller provides
  std::vector<std::string> input_names, output_names;
  std::map<std::string, TensorSpec> parameter_specs;
};

namespace {

std::string read_text(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    throw FileError({.input = path,
                     .message = std::string("cannot read the file: ") + std::strerror(errno),
                     .fix = "check the path and the working directory"});
  }
  return text.str();
}

// Names in the file are `arg:NAME`, `aux:NAME` or plain; matched by name alone.
std::map<std::string, NDArray> by_name(LoadedArrays loaded, const std::string& what) {
  if (!loaded.named && !loaded.arrays.empty()) {
    throw FormatError({.input = what,
                       .message = "the arrays in the file have no names",
                       .fix = "use the .params file that export() wrote"});
  }
  std::map<std::string, NDArray> result;
  for (size_t i = 0; i < loaded.arrays.size(); ++i) {
    std::string name = loaded.names[i];
    if (name.starts_with("arg:") || name.starts_with("aux:")) name = name.substr(4);
    if (loaded.arrays[i]) result[name] = to_dense(loaded.arrays[i]);
  }
  return result;
}

HnModel make_model(Symbol symbol, const std::map<std::string, NDArray>& parameters) {
  auto model = std::make_unique<HnModel_>();
  for (const NodePtr& variable : symbol.list_inputs()) {
    auto it = parameters.find(variable->name);
    if (it == parameters.end()) {
      model->input_positions.push_back(model->values.size());
      model->input_names.push_back(variable->name);
      model->values.emplace_back();
    } else {
      model->values.push_back(it->second);
      model->parameter_specs[variable->name] = it->second.spec();
    }
  }
  model->output_names = symbol.list_outputs();
  CachedOpConfig config;
  config.static_alloc = true;
  config.name = "model";
  model->op = make_ref<CachedOp>(symbol, config);
  model->symbol = std::move(symbol);
  return model.release();
}

const char* name_at(const std::vector<std::string>& names, size_t index, const char* function) {
  if (index >= names.size()) {
    throw IndexError({.op = function,
                      .input = "index",
                      .expected = "below " + std::to_string(names.size()),
                      .given = std::to_string(index)});
  }
  return names[index].c_str();
}

void check_count(size_t given, size_t expected, const char* function, const char* what,
                 const std::vector<std::string>& names) {
  if (given == expected) return;
  std::string list;
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  throw ValueError({.op = function,
                    .input = what,
                    .expected = std::to_string(expected),
                    .given = std::to_string(given),
                    .because = "the model has " + std::to_string(expected) + ": " + list});
}

}  // namespace

int hn_model_load(const char* symbol_path, const char* params_path, HnModel* out) {
  return guarded([&] {
    require(symbol_path, "hn_model_load", "symbol_path");
    require(out, "hn_model_load", "out");
    Symbol symbol = Symbol::from_json(read_text(symbol_path), symbol_path);
    std::map<std::string, NDArray> parameters;
    if (params_path) parameters = by_name(load_arrays(params_path), params_path);
    *out = make_model(std::move(symbol), parameters);
  });
}

int hn_model_load_from_memory(const char* json, size_t json_size, const void* params, size_t params_size,
                              HnModel* out) {
  return guarded([&] {
    require(json, "hn_model_load_from_memory", "json");
    require(out, "hn_model_load_from_memory", "out");
    Symbol symbol = Symbol::from_json({json, json_size}, "<memory>");
    std::map<std::string, NDArray> parameters;
    if (params)
      parameters =
          by_name(load_arrays_from_buffer({static_cast<const char*>(params), params_size}, "<memory>"), "<memory>");
    *out = make_model(std::move(symbol), parameters);
  });
}

int hn_model_free(HnModel model) {
  return guarded([&] { delete model; });
}

int hn_model_num_inputs(HnModel model, size_t* out) {
  return guarded([&] {
    require(model, "hn_model_num_inputs", "model");
    require(out, "hn_model_num_inputs", "out");
    *out = model->input_names.size();
  });
}

int hn_model_input_name(HnModel model, size_t index, const char** out) {
  return guarded([&] {
    require(model, "hn_model_input_name", "model");
    require(out, "hn_model_input_name", "out");
    *out = name_at(model->input_names, index, "hn_model_input_name");
  });
}

int hn_model_num_outputs(HnModel model, size_t* out) {
  return guarded([&] {
    require(model, "hn_model_num_outputs", "model");
    require(out, "hn_model_num_outputs", "out");
    *out = model->output_names.size();
  });
}

int hn_model_output_name(HnModel model, size_t index, const char** out) {
  return guarded([&] {
    require(model, "hn_model_output_name", "model");
    require(out, "hn_model_output_name", "out");
    *out = name_at(model->output_names, index, "hn_model_output_name");
  });
}

int hn_model_infer_shapes(HnModel model, size_t num_inputs, const int* input_ndims, const int64_t* const* input_shapes,
                          size_t* num_outputs, const int** ndims, const int64_t* const** shapes) {
  return guarded([&] {
    require(model, "hn_model_infer_shapes", "model");
    require(num_outputs, "hn_model_infer_shapes", "num_outputs");
    require(ndims, "hn_model_infer_shapes", "ndims");
    require(shapes, "hn_model_infer_shapes", "shapes");
    check_count(num_inputs, model->input_names.size(), "hn_model_infer_shapes", "num_inputs", model->input_names);
    std::map<std::string, TensorSpec> known = model->parameter_specs;
    for (size_t i = 0; i < num_inputs; ++i) {
      require(input_ndims, "hn_model_infer_shapes", "input_ndims");
      require(input_shapes, "hn_model_infer_shapes", "input_shapes");
      if (input_ndims[i] < 0 || input_ndims[i] > kMaxDims)
        throw ShapeError({.op = "hn_model_infer_shapes",
                          .input = model->input_names[i],
                          .expected = "0 to 16 dimensions",
                          .given = std::to_string(input_ndims[i])});
      if (input_ndims[i] > 0) require(input_shapes[i], "hn_model_infer_shapes", "input_shapes");
      const Shape shape(std::span<const int64_t>(input_shapes[i], static_cast<size_t>(input_ndims[i])));
      if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; }))
        throw ShapeError({.op = "hn_model_infer_shapes",
                          .input = model->input_names[i],
                          .expected = "sizes of 0 or more",
                          .given = std::to_string(*std::min_element(shape.begin(), shape.end()))});
      known[model->input_names[i]].shape = shape;
    }
    struct Result {
      std::vector<TensorSpec> specs;
      std::vector<int> ndims;
      std::vector<const int64_t*> shapes;
    };
    thread_local Result result;
    result = {model->symbol.infer(known, false).outputs, {}, {}};
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
    require(model, "hn_model_run", "model");
    check_count(num_inputs, model->input_names.size(), "hn_model_run", "num_inputs", model->input_names);
    check_count(num_outputs, model->output_names.size(), "hn_model_run", "num_outputs", model->output_names);
    require(outputs, "hn_model_run", "outputs");
    if (num_inputs > 0) require(inputs, "hn_model_run", "inputs");
    std::vector<NDArray> arrays = model->values;
    for (size_t i = 0; i < num_inputs; ++i) {
      require(inputs[i], "hn_model_run", model->input_names[i].c_str());
      arrays[model->input_positions[i]] = inputs[i]->array;
    }
    const std::vector<NDArray> results = model->op->call(arrays);
    for (size_t i = 0; i < results.size(); ++i) outputs[i] = new HnArray_{results[i]};
  });
}

int hn_model_plan_text(HnModel model, const char** out) {
  return guarded([&] {
    require(model, "hn_model_plan_text", "model");
    require(out, "hn_model_plan_text", "out");
    thread_local std::string text;
    text = model->op->plan_text();
    *out = text.c_str();
  });
}
