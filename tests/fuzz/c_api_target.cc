// The C ABI as a state machine: calls in any order, on handles that are valid, freed, of another kind, or null.
#include <fuzzer/FuzzedDataProvider.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>

#include "c_api/handles.h"
#include "fuzz.h"

namespace {

constexpr const char* kDense = R"json({"nodes": [
  {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2", "no_bias": "True"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
  {"op": "tanh", "name": "y", "inputs": [[2, 0, 0]]}],
 "arg_nodes": [0, 1], "heads": [[3, 0, 0], [2, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";
constexpr const char* kOperators[] = {"relu",          "dot",       "sum",  "split",  "Dropout",
                                      "broadcast_add", "BatchNorm", "topk", "_zeros", "sparse_retain"};
constexpr const char* kKeys[] = {"axis", "num_outputs", "p", "transpose_b", "k", "shape", "no_such"};
constexpr const char* kTexts[] = {"0", "-1", "2", "True", "(2, 3)", "0.5", "nonsense", "nan", "None"};
constexpr const char* kStorages[] = {"default", "row_sparse", "csr", "sideways"};
constexpr const char* kOptimizers[] = {"sgd", "Adam", "nag", "lamb", "GroupAdaGrad", "LBSGD", "Ftrl", "none"};
constexpr const char* kSettings[] = {"learning_rate", "momentum", "wd", "multi_precision", "clip_gradient", "no_such"};
constexpr const char* kSchedules[] = {"FactorScheduler", "CosineScheduler", "PolyScheduler", "none"};
constexpr const char* kArguments[] = {"step", "factor", "max_update", "warmup_steps", "no_such"};

// In memory: files in /tmp may be written to a disk, which takes longer than all calls of a program.
std::string temporary(const char* ending) { return "/dev/shm/hybridnet-fuzz-" + std::to_string(getpid()) + ending; }

// A .params file with the weight of kDense.
const std::string& weight() {
  static const std::string bytes = [] {
    const std::string path = temporary(".params");
    const int64_t shape[] = {2, 3};
    const char* name = "arg:w";
    fuzz::Array array;
    hn_array_create(shape, 2, HN_FLOAT32, nullptr, array.out());
    const HnArray handle = array.get();
    hn_arrays_save(path.c_str(), 1, &handle, &name);
    std::ifstream file(path, std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(file), {}};
    std::remove(path.c_str());
    return content;
  }();
  return bytes;
}

using hybridnet::c_api::HandleKind;

// The kind of object that a handle was created for: the upper bits of the handle.
HandleKind kind_of(const void* handle) { return static_cast<HandleKind>(reinterpret_cast<uintptr_t>(handle) >> 56); }

template <typename Handle>
constexpr HandleKind kKindOf = std::is_same_v<Handle, HnArray>     ? HandleKind::kArray
                               : std::is_same_v<Handle, HnModel>   ? HandleKind::kModel
                               : std::is_same_v<Handle, HnOp>      ? HandleKind::kOp
                               : std::is_same_v<Handle, HnSession> ? HandleKind::kSession
                               : std::is_same_v<Handle, HnTrainer> ? HandleKind::kTrainer
                               : std::is_same_v<Handle, HnBatcher> ? HandleKind::kBatcher
                                                                   : HandleKind::kNone;

void free_as(HandleKind kind, void* handle) {
  switch (kind) {
    case HandleKind::kModel:
      hn_model_free(static_cast<HnModel>(handle));
      return;
    case HandleKind::kOp:
      hn_op_free(static_cast<HnOp>(handle));
      return;
    case HandleKind::kSession:
      hn_session_free(static_cast<HnSession>(handle));
      return;
    case HandleKind::kTrainer:
      hn_trainer_free(static_cast<HnTrainer>(handle));
      return;
    case HandleKind::kBatcher:
      hn_batcher_free(static_cast<HnBatcher>(handle));
      return;
    default:
      hn_array_free(static_cast<HnArray>(handle));
  }
}

// Handles that the program holds or has held, so that freed ones are used again, and each kind is passed for each
// other.
class Program {
 public:
  Program(const uint8_t* data, size_t size) : in_(data, size) {}
  void run() {
    for (int step = 0; step < 100 && in_.remaining_bytes() > 0; ++step) one_call();
    hn_autograd_set_recording(0, nullptr);
    hn_autograd_set_training(0, nullptr);
    hn_set_np_shape(0, nullptr);
    hn_wait_all();
    // Some have been freed, and freeing them again is only an error.
    for (void* handle : handles_) free_as(kind_of(handle), handle);
  }

 private:
  // Mostly returns a handle of the requested kind, if there is one: otherwise calls would end with an error early on.
  template <typename T>
  T handle() {
    const size_t first = in_.ConsumeIntegralInRange<size_t>(0, handles_.size() - 1);
    if (kKindOf<T> != HandleKind::kNone && draw(0, 7) != 0)
      for (size_t i = 0; i < handles_.size(); ++i)
        if (void* given = handles_[(first + i) % handles_.size()]; kind_of(given) == kKindOf<T>)
          return static_cast<T>(given);
    return static_cast<T>(handles_[first]);
  }
  void keep(void* made) {
    void*& place = handles_[in_.ConsumeIntegralInRange<size_t>(1, handles_.size() - 1)];
    free_as(kind_of(place), place);
    place = made;
  }
  int draw(int low, int high) { return in_.ConsumeIntegralInRange(low, high); }
  // Few sizes, so that shapes often fit.
  HnTensorSpec spec() {
    HnTensorSpec spec{};
    spec.ndim = draw(-1, 3);
    for (int i = 0; i < spec.ndim; ++i) spec.shape[i] = draw(0, 15) == 0 ? in_.ConsumeIntegral<int64_t>() : draw(0, 3);
    const int kind = draw(0, 7);
    spec.dtype = kind == 0 ? draw(-2, 40) : kind == 1 ? HN_INT64 : HN_FLOAT32;
    return spec;
  }
  std::array<HnArray, 3> arrays() { return {handle<HnArray>(), handle<HnArray>(), handle<HnArray>()}; }

  void one_call() {
    switch (draw(0, 8)) {
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
      case 5:
        return make_trainer_or_batcher();
      case 6:
        return train();
      case 7:
        return derive();
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
        // Larger than the memory: such an array must not be read.
        if (made && bytes_of(static_cast<HnArray>(made)) > sizeof(memory_)) {
          hn_array_free(static_cast<HnArray>(made));
          made = nullptr;
        }
        break;
      case 2:
        hn_model_load_from_memory(kDense, std::strlen(kDense), weight().data(), in_.ConsumeBool() ? weight().size() : 0,
                                  reinterpret_cast<HnModel*>(&made));
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

  void make_trainer_or_batcher() {
    void* made = nullptr;
    const char *key = in_.PickValueInArray(kSettings), *text = in_.PickValueInArray(kTexts);
    const char* optimizer = in_.PickValueInArray(kOptimizers);
    const auto settings = static_cast<size_t>(draw(0, 1)), count = static_cast<size_t>(draw(0, 3));
    switch (draw(0, 2)) {
      case 0: {
        const char* const names[] = {"w", in_.ConsumeBool() ? "v" : "w", "u"};
        const auto parameters = arrays();
        hn_trainer_create(count, names, parameters.data(), optimizer, settings, &key, &text,
                          reinterpret_cast<HnTrainer*>(&made));
        break;
      }
      case 1:
        hn_trainer_create_for_model(handle<HnModel>(), optimizer, settings, &key, &text,
                                    reinterpret_cast<HnTrainer*>(&made));
        break;
      default: {
        const HnTensorSpec inputs[] = {spec(), spec(), spec()};
        const HnBatcherOptions options{sizeof(options), draw(-1, 4), draw(-1, 1), draw(-1, 4), draw(-1, 2)};
        hn_batcher_create(handle<HnModel>(), count, inputs, in_.ConsumeBool() ? &options : nullptr,
                          reinterpret_cast<HnBatcher*>(&made));
      }
    }
    if (made) keep(made);
  }

  void train() {
    const auto trainer = handle<HnTrainer>();
    const char *key = in_.PickValueInArray(kSettings), *text = in_.PickValueInArray(kTexts);
    const char* answer = nullptr;
    int64_t updates = 0;
    double rate = 0;
    switch (draw(0, 7)) {
      case 0:
        hn_trainer_step(trainer, in_.ConsumeFloatingPointInRange(-1.0, 4.0), draw(0, 1));
        return;
      case 1:
        hn_trainer_num_updates(trainer, &updates);
        hn_trainer_learning_rate(trainer, &rate);
        hn_trainer_setting(trainer, key, &answer);
        return;
      case 2:
        hn_trainer_set_learning_rate(trainer, in_.ConsumeFloatingPoint<double>());
        return;
      case 3: {
        const char* argument = in_.PickValueInArray(kArguments);
        hn_trainer_set_schedule(trainer, in_.ConsumeBool() ? in_.PickValueInArray(kSchedules) : nullptr,
                                static_cast<size_t>(draw(0, 1)), &argument, &text);
        return;
      }
      case 4:
        hn_trainer_set_setting(trainer, key, text);
        return;
      case 5:
        hn_trainer_set_multipliers(trainer, in_.ConsumeBool() ? "w" : "no_such", in_.ConsumeFloatingPoint<double>(),
                                   draw(-1, 2));
        return;
      case 6:
        hn_trainer_save_states(trainer, states_.c_str());
        hn_trainer_load_states(handle<HnTrainer>(), states_.c_str());
        std::remove(states_.c_str());
        return;
      default: {
        HnArray results[3] = {};
        const auto inputs = arrays();
        const size_t outputs = static_cast<size_t>(draw(0, 3));
        const auto batcher = handle<HnBatcher>();
        if (hn_batcher_run(batcher, static_cast<size_t>(draw(0, 3)), inputs.data(), outputs, results) == 0)
          for (size_t i = 0; i < outputs; ++i) keep(results[i]);
        if (draw(0, 7) == 0) hn_batcher_close(batcher);
      }
    }
  }

  // Makes arrays from arrays: parts, other storages, other libraries' tensors.
  void derive() {
    HnArray made = nullptr;
    const HnTensorSpec shape = spec();
    const auto parts = arrays();
    const char* storage = in_.PickValueInArray(kStorages);
    switch (draw(0, 6)) {
      case 0:
        hn_array_create_sparse(storage, shape.shape, shape.ndim, parts[0], parts[1],
                               in_.ConsumeBool() ? parts[2] : nullptr, &made);
        break;
      case 1: {
        static constexpr const char* kParts[] = {"data", "indices", "indptr", "none"};
        hn_array_part(parts[0], in_.PickValueInArray(kParts), &made);
        break;
      }
      case 2:
        if (bytes_of(parts[0]) <= sizeof(memory_)) hn_array_cast_storage(parts[0], storage, &made);
        break;
      case 3:
        hn_array_attach_grad_in(parts[0], in_.ConsumeBool() ? "write" : "add", storage);
        return;
      case 4:
        hn_array_detach(parts[0], &made);
        break;
      case 5: {
        void* tensor = nullptr;
        if (hn_array_to_dlpack(parts[0], &tensor) == 0 && hn_array_from_dlpack(tensor, &made) != 0) abort();
        break;
      }
      default:
        hn_model_set_remat(handle<HnModel>(), in_.PickValueInArray(kTexts));
        return;
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
    const auto index = static_cast<size_t>(draw(0, 3));
    switch (draw(0, 5)) {
      case 0: {
        const auto array = handle<HnArray>();
        hn_array_ndim(array, &number);
        hn_array_shape(array, &shape);
        hn_array_dtype(array, &number);
        hn_array_size(array, &size);
        hn_array_storage(array, &text);
        return;
      }
      case 1:
        hn_array_data(handle<HnArray>(), &data);
        return;
      case 2:
        hn_array_copy_to(handle<HnArray>(), memory_, static_cast<size_t>(draw(0, 64)));
        return;
      case 3: {
        const auto model = handle<HnModel>();
        hn_model_num_inputs(model, &count);
        hn_model_input_name(model, index, &text);
        hn_model_input_spec(model, index, &given);
        return;
      }
      case 4: {
        const auto model = handle<HnModel>();
        hn_model_parameter_spec(model, index, &given);
        hn_model_plan_text(model, &text);
        return;
      }
      default:
        hn_op_num_outputs(handle<HnOp>(), index, &count);
    }
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
    // Any array may be a head gradient: with another dtype, shape or storage, or a gradient buffer.
    const auto heads = arrays(), gradients = arrays();
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
        hn_autograd_backward(static_cast<size_t>(draw(0, 3)), heads.data(), draw(0, 1) ? gradients.data() : nullptr,
                             draw(0, 1), draw(0, 1));
        return;
      case 4: {
        const size_t count = static_cast<size_t>(draw(0, 3));
        const auto variables = arrays();
        if (hn_autograd_grad(1, heads.data(), draw(0, 1) ? gradients.data() : nullptr, count, variables.data(),
                             draw(0, 1), draw(0, 1), 1, made) == 0)
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
    switch (draw(0, 5)) {
      case 0:
        hn_array_copy_from(handle<HnArray>(), memory_, static_cast<size_t>(draw(0, 64)));
        return;
      case 1:
        hn_array_free(handle<HnArray>());  // its number stays among the handles: later uses get an error
        return;
      case 2:
        hn_model_free(handle<HnModel>());
        return;
      case 3:
        hn_set_np_shape(draw(0, 1), nullptr);
        return;
      case 4:
        free_as(static_cast<HandleKind>(draw(0, 7)), handle<void*>());
        return;
      default:
        hn_session_free(handle<HnSession>());
    }
  }

  FuzzedDataProvider in_;
  const std::string states_ = temporary(".states");
  alignas(64) uint8_t memory_[512] = {};
  std::array<void*, 12> handles_{};  // the first is always NULL
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Program(data, size).run();
  return 0;
}
