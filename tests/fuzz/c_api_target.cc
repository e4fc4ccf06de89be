// The C ABI as a state machine: calls in any order, on handles that are good, freed, of another kind, or none.
#include <fuzzer/FuzzedDataProvider.h>

#include <array>
#include <cstring>
#include <string>

#include "fuzz.h"

namespace {

constexpr const char* kDense = R"json({"nodes": [
  {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2", "no_bias": "True"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
  {"op": "tanh", "name": "y", "inputs": [[2, 0, 0]]}],
 "arg_nodes": [0, 1], "heads": [[3, 0, 0], [2, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";
constexpr const char* kOperators[] = {"relu",          "dot",       "sum",  "split", "Dropout",
                                      "broadcast_add", "BatchNorm", "topk", "_zeros"};
constexpr const char* kKeys[] = {"axis", "num_outputs", "p", "transpose_b", "k", "shape", "no_such"};
constexpr const char* kTexts[] = {"0", "-1", "2", "True", "(2, 3)", "0.5", "nonsense"};

// Handles that the program holds or has held, so that freed ones come back, and every kind stands for every other.
class Program {
 public:
  Program(const uint8_t* data, size_t size) : in_(data, size) {}
  void run() {
    for (int step = 0; step < 100 && in_.remaining_bytes() > 0; ++step) one_call();
    hn_autograd_set_recording(0, nullptr);
    hn_autograd_set_training(0, nullptr);
    hn_set_np_shape(0, nullptr);
    hn_wait_all();
    // Once more, of any kind: most are freed by now, and freeing them again is an error and no more.
    for (void* handle : handles_) {
      hn_array_free(static_cast<HnArray>(handle));
      hn_op_free(static_cast<HnOp>(handle));
      hn_session_free(static_cast<HnSession>(handle));
      hn_model_free(static_cast<HnModel>(handle));
    }
  }

 private:
  template <typename T>
  T handle() {
    return static_cast<T>(handles_[in_.ConsumeIntegralInRange<size_t>(0, handles_.size() - 1)]);
  }
  void keep(void* made) {
    void*& place = handles_[in_.ConsumeIntegralInRange<size_t>(1, handles_.size() - 1)];
    hn_array_free(static_cast<HnArray>(place));
    hn_op_free(static_cast<HnOp>(place));
    hn_session_free(static_cast<HnSession>(place));
    hn_model_free(static_cast<HnModel>(place));
    place = made;
  }
  int draw(int low, int high) { return in_.ConsumeIntegralInRange(low, high); }
  // Few sizes, so that shapes often fit.
  HnTensorSpec spec() {
    HnTensorSpec spec{};
    spec.ndim = draw(-1, 3);
    for (int i = 0; i < spec.ndim; ++i) spec.shape[i] = draw(0, 15) == 0 ? in_.ConsumeIntegral<int64_t>() : draw(0, 3);
    spec.dtype = draw(0, 7) == 0 ? draw(-2, 40) : HN_FLOAT32;
    return spec;
  }
  std::array<HnArray, 3> arrays() { return {handle<HnArray>(), handle<HnArray>(), handle<HnArray>()}; }

  void one_call() {
    switch (draw(0, 5)) {
      case 0:
        return make();
      case 1:
        return ask();
      case 2:
        return operate();
      case 3:
        return differentiate();
      case 4:
        return use_model();
      default:
        return change();
    }
  }

  void make() {
    void* made = nullptr;
    const HnTensorSpec shape = spec();
    switch (draw(0, 7)) {
      case 0:
        hn_array_create(shape.shape, shape.ndim, shape.dtype, nullptr, reinterpret_cast<HnArray*>(&made));
        break;
      case 1:
        hn_array_wrap(memory_, shape.shape, shape.ndim, shape.dtype, nullptr, nullptr,
                      reinterpret_cast<HnArray*>(&made));
        // Larger than the memory: nobody may look at it.
        if (made && bytes_of(static_cast<HnArray>(made)) > sizeof(memory_)) {
          hn_array_free(static_cast<HnArray>(made));
          made = nullptr;
        }
        break;
      case 2:
        hn_model_load_from_memory(kDense, std::strlen(kDense), nullptr, 0, reinterpret_cast<HnModel*>(&made));
        break;
      case 3: {
        const char *key = in_.PickValueInArray(kKeys), *text = in_.PickValueInArray(kTexts);
        const size_t count = static_cast<size_t>(draw(0, 1));
        hn_op_prepare(in_.PickValueInArray(kOperators), count, &key, &text, reinterpret_cast<HnOp*>(&made));
        break;
      }
      case 4: {
        const auto inputs = arrays();
        hn_session_create(handle<HnModel>(), static_cast<size_t>(draw(0, 3)), inputs.data(), 0, nullptr,
                          reinterpret_cast<HnSession*>(&made));
        break;
      }
      case 5:
        hn_array_share(handle<HnArray>(), reinterpret_cast<HnArray*>(&made));
        break;
      case 6:
        hn_array_slice(handle<HnArray>(), draw(-3, 5), draw(-3, 5), reinterpret_cast<HnArray*>(&made));
        break;
      default:
        hn_array_reshape(handle<HnArray>(), shape.shape, shape.ndim, reinterpret_cast<HnArray*>(&made));
    }
    if (made) keep(made);
  }

  static size_t bytes_of(HnArray array) {
    int64_t size = 0;
    return hn_array_size(array, &size) == 0 ? static_cast<size_t>(size) * 8 : 0;
  }

  void ask() {
    int number = 0;
    int64_t size = 0;
    size_t count = 0;
    const int64_t* shape = nullptr;
    const char* text = nullptr;
    const void* data = nullptr;
    HnTensorSpec given;
    const auto model = handle<HnModel>();
    const auto array = handle<HnArray>();
    hn_array_ndim(array, &number);
    hn_array_shape(array, &shape);
    hn_array_dtype(array, &number);
    hn_array_size(array, &size);
    hn_array_storage(array, &text);
    hn_array_data(array, &data);
    hn_array_copy_to(array, memory_, static_cast<size_t>(draw(0, 64)));
    hn_model_num_inputs(model, &count);
    hn_model_input_name(model, static_cast<size_t>(draw(0, 3)), &text);
    hn_model_input_spec(model, static_cast<size_t>(draw(0, 3)), &given);
    hn_model_parameter_spec(model, static_cast<size_t>(draw(0, 3)), &given);
    hn_model_plan_text(model, &text);
    hn_op_num_outputs(handle<HnOp>(), static_cast<size_t>(draw(0, 3)), &count);
  }

  void operate() {
    HnArray results[4] = {};
    size_t room = static_cast<size_t>(draw(0, 4));
    const auto inputs = arrays();
    const size_t count = static_cast<size_t>(draw(0, 3));
    const char *key = in_.PickValueInArray(kKeys), *text = in_.PickValueInArray(kTexts);
    int status = -1;
    switch (draw(0, 3)) {
      case 0:
        status = hn_op_call(handle<HnOp>(), count, inputs.data(), &room, results);
        break;
      case 1:
        status = hn_invoke(in_.PickValueInArray(kOperators), static_cast<size_t>(draw(0, 1)), &key, &text, count,
                           inputs.data(), &room, results);
        break;
      case 2: {
        const HnArray target = handle<HnArray>();
        hn_op_call_into(handle<HnOp>(), count, inputs.data(), 1, &target);
        return;
      }
      default: {
        const HnArray target = handle<HnArray>();
        hn_invoke_into(in_.PickValueInArray(kOperators), static_cast<size_t>(draw(0, 1)), &key, &text, count,
                       inputs.data(), 1, &target);
        return;
      }
    }
    if (status == 0)
      for (size_t i = 0; i < room; ++i) keep(results[i]);
  }

  void differentiate() {
    const auto heads = arrays();
    HnArray made[3] = {};
    switch (draw(0, 5)) {
      case 0:
        hn_autograd_set_recording(draw(0, 1), nullptr);
        return;
      case 1:
        hn_autograd_set_training(draw(0, 1), nullptr);
        return;
      case 2:
        hn_array_attach_grad(handle<HnArray>(), in_.ConsumeBool() ? "write" : in_.ConsumeBool() ? "add" : "sideways");
        return;
      case 3:
        hn_autograd_backward(static_cast<size_t>(draw(0, 3)), heads.data(), nullptr, draw(0, 1), draw(0, 1));
        return;
      case 4: {
        const size_t count = static_cast<size_t>(draw(0, 3));
        const auto variables = arrays();
        if (hn_autograd_grad(1, heads.data(), nullptr, count, variables.data(), draw(0, 1), draw(0, 1), 1, made) == 0)
          for (size_t i = 0; i < count; ++i) keep(made[i]);
        return;
      }
      default:
        if (hn_array_grad(handle<HnArray>(), made) == 0 && made[0]) keep(made[0]);
    }
  }

  void use_model() {
    const auto model = handle<HnModel>();
    const auto inputs = arrays();
    HnArray results[3] = {};
    const size_t outputs = static_cast<size_t>(draw(0, 3));
    switch (draw(0, 3)) {
      case 0:
        if (hn_model_run(model, static_cast<size_t>(draw(0, 3)), inputs.data(), outputs, results) == 0)
          for (size_t i = 0; i < outputs; ++i) keep(results[i]);
        return;
      case 1: {
        const auto targets = arrays();
        hn_model_run_into(model, static_cast<size_t>(draw(0, 3)), inputs.data(), outputs, targets.data());
        return;
      }
      case 2:
        hn_session_run(handle<HnSession>());
        return;
      default:
        if (hn_session_output(handle<HnSession>(), static_cast<size_t>(draw(0, 3)), results) == 0) keep(results[0]);
    }
  }

  void change() {
    switch (draw(0, 4)) {
      case 0:
        hn_array_copy_from(handle<HnArray>(), memory_, static_cast<size_t>(draw(0, 64)));
        return;
      case 1:
        hn_array_free(handle<HnArray>());  // its number stays among the handles: whoever uses it gets an error
        return;
      case 2:
        hn_model_free(handle<HnModel>());
        return;
      case 3:
        hn_set_np_shape(draw(0, 1), nullptr);
        return;
      default:
        hn_session_free(handle<HnSession>());
    }
  }

  FuzzedDataProvider in_;
  alignas(64) uint8_t memory_[512] = {};
  std::array<void*, 12> handles_{};  // the first is always NULL
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Program(data, size).run();
  return 0;
}
