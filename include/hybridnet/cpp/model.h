// Runs an exported HybridNet model from C++. Header only; link with libhybridnet:
//
//   find_package(hybridnet REQUIRED)
//   target_link_libraries(app PRIVATE hybridnet::hybridnet)
//
//   hybridnet::cpp::Model model("digits-symbol.json", "digits-0000.params");
//   auto image = hybridnet::cpp::Array::from<float>({1, 1, 8, 8}, pixels);
//   std::vector<float> scores = model.run({image})[0].to_vector<float>();
//
// Failures throw hybridnet::cpp::Error, or a class of error.h that is derived from it, with the text that Python users
// see. Threads: one Model may be run by many threads at once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hybridnet/c_api.h"
#include "hybridnet/cpp/array.h"
#include "hybridnet/cpp/device.h"
#include "hybridnet/cpp/error.h"

namespace hybridnet::cpp {

// An exported network.
class Model {
 public:
  Model(const std::string& symbol_file, const std::string& params_file) {
    HnModel handle = nullptr;
    detail::check(hn_model_load(symbol_file.c_str(), params_file.c_str(), &handle));
    handle_ = {handle, &hn_model_free};
  }
  static Model from_memory(std::string_view json, std::span<const std::byte> params) {
    HnModel handle = nullptr;
    detail::check(hn_model_load_from_memory(json.data(), json.size(), params.data(), params.size(), &handle));
    Model model;
    model.handle_ = {handle, &hn_model_free};
    return model;
  }

  std::vector<std::string> input_names() const { return names(hn_model_num_inputs, hn_model_input_name); }
  std::vector<std::string> output_names() const { return names(hn_model_num_outputs, hn_model_output_name); }

  // Moves the model: its parameters become copies on the device, and runs take their inputs there from now on. A loaded
  // model is on the CPU. Copies of the Model move with it; arrays of parameters(), sessions, batchers and trainers that
  // were made before keep the parameters of before, so move it first.
  const Model& to(const Device& device) const {
    detail::check(hn_model_to_device(handle_.get(), device.type, device.id));
    return *this;
  }
  Device device() const {
    return detail::device_from([&](int* type, int* id) { return hn_model_device(handle_.get(), type, id); });
  }

  // Shapes of the outputs for inputs of these shapes.
  std::vector<std::vector<int64_t>> infer_shapes(const std::vector<std::vector<int64_t>>& inputs) const {
    std::vector<int> ndims;
    std::vector<const int64_t*> shapes;
    for (const auto& s : inputs) ndims.push_back(static_cast<int>(s.size())), shapes.push_back(s.data());
    size_t count = 0;
    const int* out_ndims = nullptr;
    const int64_t* const* out_shapes = nullptr;
    detail::check(hn_model_infer_shapes(handle_.get(), inputs.size(), ndims.data(), shapes.data(), &count, &out_ndims,
                                        &out_shapes));
    std::vector<std::vector<int64_t>> result;
    for (size_t i = 0; i < count; ++i) result.emplace_back(out_shapes[i], out_shapes[i] + out_ndims[i]);
    return result;
  }

  // Inputs in the order of input_names(), on the model's device; the outputs are there, too.
  std::vector<Array> run(const std::vector<Array>& inputs) const {
    const std::vector<HnArray> in = detail::handles(inputs);
    size_t count = 0;
    detail::check(hn_model_num_outputs(handle_.get(), &count));
    std::vector<HnArray> out(count, nullptr);
    detail::check(hn_model_run(handle_.get(), in.size(), in.data(), out.size(), out.data()));
    std::vector<Array> result;
    for (HnArray a : out) result.emplace_back(a);
    return result;
  }

  // The same into existing arrays.
  void run_into(const std::vector<Array>& inputs, const std::vector<Array>& outputs) const {
    const std::vector<HnArray> in = detail::handles(inputs), out = detail::handles(outputs);
    detail::check(hn_model_run_into(handle_.get(), in.size(), in.data(), out.size(), out.data()));
  }

  // Parameters, in the order of the graph. The model reads these arrays: values written into them take effect with the
  // next run, and attach_grad() makes them leaves.
  std::vector<std::string> parameter_names() const { return names(hn_model_num_parameters, hn_model_parameter_name); }
  std::vector<Array> parameters() const {
    std::vector<Array> result;
    for (size_t i = 0; i < parameter_names().size(); ++i) result.push_back(parameter(i));
    return result;
  }
  Array parameter(const std::string& name) const {
    const std::vector<std::string> all = parameter_names();
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] == name) return parameter(i);
    throw ValueError("the model has no parameter '" + name + "'");
  }

  // The parameters that are states, such as running means: runs in training update them, gradients do not reach them.
  std::vector<std::string> state_names() const {
    const std::vector<std::string> all = parameter_names();
    std::vector<std::string> result;
    for (size_t i = 0; i < all.size(); ++i) {
      int is_state = 0;
      detail::check(hn_model_parameter_is_state(handle_.get(), i, &is_state));
      if (is_state) result.push_back(all[i]);
    }
    return result;
  }
  // Shape and dtype of a parameter.
  HnTensorSpec parameter_spec(size_t index) const {
    HnTensorSpec spec{};
    detail::check(hn_model_parameter_spec(handle_.get(), index, &spec));
    return spec;
  }

  // Shape and dtype of an input in the file; -1: unknown.
  HnTensorSpec input_spec(size_t index) const {
    HnTensorSpec spec{};
    detail::check(hn_model_input_spec(handle_.get(), index, &spec));
    return spec;
  }

  // Writes the model like HybridBlock.export(), with the present values of its parameters.
  void save(const std::string& symbol_file, const std::string& params_file) const {
    detail::check(hn_model_save(handle_.get(), symbol_file.c_str(), params_file.c_str()));
  }

  HnModel get() const { return handle_.get(); }

  // Sets which values gradients compute again instead of keeping them: "auto", "none" or a number of bytes
  // (hn_model_set_remat); from the next run on.
  void set_remat(const std::string& remat) const { detail::check(hn_model_set_remat(handle_.get(), remat.c_str())); }

  // The plan of the latest run, instruction by instruction (docs/debugging.md); empty before the first run.
  std::string plan_text() const {
    const char* text = nullptr;
    detail::check(hn_model_plan_text(handle_.get(), &text));
    return text;
  }

 private:
  Model() = default;
  Array parameter(size_t index) const {
    HnArray handle = nullptr;
    detail::check(hn_model_parameter(handle_.get(), index, &handle));
    return Array(handle);
  }
  template <typename Count, typename Name>
  std::vector<std::string> names(Count count_of, Name name_of) const {
    size_t count = 0;
    detail::check(count_of(handle_.get(), &count));
    std::vector<std::string> result;
    for (size_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      detail::check(name_of(handle_.get(), i, &name));
      result.emplace_back(name);
    }
    return result;
  }
  std::shared_ptr<HnModel_> handle_;
};

}  // namespace hybridnet::cpp
