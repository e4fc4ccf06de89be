#include "fuzz.h"

#include <algorithm>
#include <cstring>

namespace fuzz {

Draws::Draws(const uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; ++i) state_ = (state_ ^ data[i]) * 0x100000001b3u;  // FNV-1a
}

uint64_t Draws::next() {  // splitmix64
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

namespace {

int64_t size_of(int dtype) {
  size_t size = 0;
  hn_dtype_size(dtype, &size);
  return static_cast<int64_t>(size);
}

bool is_floating(int dtype) {
  return dtype == HN_FLOAT32 || dtype == HN_FLOAT64 || dtype == HN_FLOAT16 || dtype == HN_BFLOAT16;
}

// The number of elements of the shape; -1: negative dimensions, or too many elements.
int64_t count(const HnTensorSpec& spec) {
  int64_t elements = 1;
  if (spec.ndim < 0 || spec.ndim > HN_MAX_NDIM) return -1;
  for (int i = 0; i < spec.ndim; ++i) {
    if (spec.shape[i] < 0 || spec.shape[i] > kMaxElements) return -1;
    elements *= spec.shape[i];
    if (elements > kMaxElements) return -1;
  }
  return elements;
}

// A spec that the input may have: dimensions and dtype that the graph leaves open are filled in.
HnTensorSpec completed(HnTensorSpec spec, Draws& draws) {
  if (spec.dtype < 0) spec.dtype = HN_FLOAT32;
  if (spec.ndim < 0) {
    spec.ndim = 1 + draws.below(4);
    std::fill(spec.shape, spec.shape + spec.ndim, -1);
  }
  for (int i = 0; i < spec.ndim; ++i)
    if (spec.shape[i] < 0) spec.shape[i] = 1 + draws.below(4);
  return spec;
}

void read(HnArray array) {
  int64_t size = 0;
  const void* data = nullptr;
  if (hn_array_wait(array) != 0 || hn_array_size(array, &size) != 0 || hn_array_data(array, &data) != 0) return;
  int dtype = 0;
  hn_array_dtype(array, &dtype);
  uint8_t sum = 0;  // reads every byte, so that the sanitizer checks each
  const auto* bytes = static_cast<const uint8_t*>(data);
  for (int64_t i = 0; i < size * size_of(dtype); ++i) sum = static_cast<uint8_t>(sum ^ bytes[i]);
  static volatile uint8_t sink;
  sink = sum;
}

}  // namespace

Array make_array(const HnTensorSpec& spec, Draws& draws) {
  const int64_t elements = count(spec);
  Array array;
  if (elements < 0 || spec.dtype < 0) return array;
  std::vector<uint8_t> bytes(static_cast<size_t>(elements * size_of(spec.dtype)));
  for (int64_t i = 0; i < elements; ++i) {
    const float value = static_cast<float>(draws.below(9) - 4) / 2;
    uint8_t* at = bytes.data() + i * size_of(spec.dtype);
    if (spec.dtype == HN_FLOAT32) {
      std::memcpy(at, &value, sizeof(value));
    } else if (spec.dtype == HN_FLOAT64) {
      const double wide = value;
      std::memcpy(at, &wide, sizeof(wide));
    } else {
      *at = static_cast<uint8_t>(draws.below(3));
    }
  }
  hn_array_create(spec.shape, spec.ndim, spec.dtype, bytes.data(), array.out());
  return array;
}

namespace {

bool bind(HnModel model, Draws& draws, std::vector<Array>& arrays) {
  size_t inputs = 0;
  if (hn_model_num_inputs(model, &inputs) != 0 || inputs > 64) return false;
  for (size_t i = 0; i < inputs; ++i) {
    HnTensorSpec spec;
    const char* name = nullptr;
    hn_model_input_name(model, i, &name);
    if (hn_model_input_spec(model, i, &spec) != 0) return false;
    arrays.push_back(make_array(completed(spec, draws), draws));
    if (!arrays.back().get()) return false;
  }
  return true;
}

void attach(HnArray array) {
  int dtype = 0;
  if (array && hn_array_dtype(array, &dtype) == 0 && is_floating(dtype)) hn_array_attach_grad(array, "write");
}

void run(HnModel model, const std::vector<HnArray>& inputs, size_t outputs, bool train) {
  std::vector<HnArray> results(outputs, nullptr);
  hn_autograd_set_recording(train, nullptr);
  hn_autograd_set_training(train, nullptr);
  const bool ran = hn_model_run(model, inputs.size(), inputs.data(), outputs, results.data()) == 0;
  hn_autograd_set_recording(0, nullptr);
  hn_autograd_set_training(0, nullptr);
  std::vector<Array> owned;
  for (HnArray result : results) owned.emplace_back(result);
  if (!ran) return;
  if (train) hn_autograd_backward(outputs, results.data(), nullptr, 0, 1);
  for (const Array& result : owned) read(result.get());
  hn_wait_all();
}

// Runs a step of training with the current gradients.
void step(HnModel model, Draws& draws) {
  constexpr const char* kOptimizers[] = {"sgd", "adam", "lars", "dcasgd"};
  Trainer trainer;
  if (hn_trainer_create_for_model(model, kOptimizers[draws.below(4)], 0, nullptr, nullptr, trainer.out()) != 0) return;
  hn_trainer_step(trainer.get(), 1, 1);
  hn_wait_all();
}

// Runs a batcher with the bound inputs.
void batch(HnModel model, const std::vector<HnTensorSpec>& specs, const std::vector<HnArray>& inputs, size_t outputs) {
  Batcher batcher;
  std::vector<HnArray> results(outputs, nullptr);
  if (hn_batcher_create(model, specs.size(), specs.data(), nullptr, batcher.out()) != 0 ||
      hn_batcher_run(batcher.get(), inputs.size(), inputs.data(), outputs, results.data()) != 0)
    return;
  for (HnArray result : results) read(Array(result).get());
}

}  // namespace

void use(HnModel model, Draws& draws) {
  std::vector<Array> arrays;
  size_t outputs = 0, parameters = 0;
  if (!bind(model, draws, arrays) || hn_model_num_outputs(model, &outputs) != 0 || outputs > 64) return;
  std::vector<HnArray> inputs;
  std::vector<HnTensorSpec> specs(arrays.size()), results(outputs);
  for (size_t i = 0; i < arrays.size(); ++i) {
    inputs.push_back(arrays[i].get());
    hn_array_ndim(inputs[i], &specs[i].ndim);
    const int64_t* shape = nullptr;
    hn_array_shape(inputs[i], &shape);
    std::copy(shape, shape + specs[i].ndim, specs[i].shape);
    hn_array_dtype(inputs[i], &specs[i].dtype);
  }
  if (hn_model_infer(model, specs.size(), specs.data(), outputs, results.data()) != 0) return;
  for (const HnTensorSpec& result : results)
    if (result.ndim >= 0 && count(result) < 0 && std::count(result.shape, result.shape + result.ndim, -1) == 0) return;
  hn_model_num_parameters(model, &parameters);
  for (size_t i = 0; i < parameters; ++i) {
    Array parameter;
    if (hn_model_parameter(model, i, parameter.out()) == 0) attach(parameter.get());
  }
  for (HnArray input : inputs) attach(input);
  if (draws.below(4) == 0) hn_model_set_remat(model, "0");
  run(model, inputs, outputs, true);
  step(model, draws);
  run(model, inputs, outputs, false);
  const char* text = nullptr;
  hn_model_plan_text(model, &text);
  Session session;
  if (hn_session_create(model, inputs.size(), inputs.data(), 0, nullptr, session.out()) == 0)
    for (int i = 0; i < 2; ++i) hn_session_run(session.get());
  batch(model, specs, inputs, outputs);
  hn_wait_all();
}

}  // namespace fuzz
