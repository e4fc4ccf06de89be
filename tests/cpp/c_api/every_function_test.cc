// Every function of c_api.h that takes a handle or a pointer must refuse invalid ones with a text that names function
// and argument, and must not crash.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "hybridnet/c_api.h"
#include "hybridnet/cpp/model.h"

namespace {

constexpr const char* kDense = R"json({"nodes": [
  {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2", "no_bias": "True"}, "inputs": [[0, 0, 0], [1, 0, 0]]}],
 "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";

HnArray make_array() {
  const int64_t shape[] = {2, 3};
  HnArray array = nullptr;
  EXPECT_EQ(hn_array_create(shape, 2, HN_FLOAT32, nullptr, &array), 0) << hn_last_error();
  return array;
}
HnOp make_op() {
  HnOp op = nullptr;
  EXPECT_EQ(hn_op_prepare("relu", 0, nullptr, nullptr, &op), 0) << hn_last_error();
  return op;
}
HnModel make_model() {
  HnModel model = nullptr;
  EXPECT_EQ(hn_model_load_from_memory(kDense, std::strlen(kDense), nullptr, 0, &model), 0) << hn_last_error();
  return model;
}

HnSession make_session() {
  const int64_t two_three[] = {2, 3};
  HnModel model = make_model();
  HnArray inputs[2] = {};
  HnSession session = nullptr;
  for (HnArray& input : inputs) EXPECT_EQ(hn_array_create(two_three, 2, HN_FLOAT32, nullptr, &input), 0);
  EXPECT_EQ(hn_session_create(model, 2, inputs, 0, nullptr, &session), 0) << hn_last_error();
  for (HnArray input : inputs) EXPECT_EQ(hn_array_free(input), 0);
  EXPECT_EQ(hn_model_free(model), 0);
  return session;
}

HnBatcher make_batcher() {
  constexpr const char* kRelu = R"json({"nodes": [{"op": "null", "name": "data", "inputs": []},
    {"op": "relu", "name": "y", "inputs": [[0, 0, 0]]}],
   "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";
  const HnTensorSpec spec = {{1, 3}, 2, HN_FLOAT32};
  HnModel model = nullptr;
  HnBatcher batcher = nullptr;
  EXPECT_EQ(hn_model_load_from_memory(kRelu, std::strlen(kRelu), nullptr, 0, &model), 0) << hn_last_error();
  EXPECT_EQ(hn_batcher_create(model, 1, &spec, nullptr, &batcher), 0) << hn_last_error();
  EXPECT_EQ(hn_model_free(model), 0);
  return batcher;
}

HnTrainer make_trainer() {
  const char* const names[] = {"w"};
  HnArray weight = make_array();
  HnTrainer trainer = nullptr;
  EXPECT_EQ(hn_trainer_create(1, names, &weight, "sgd", 0, nullptr, nullptr, &trainer), 0) << hn_last_error();
  EXPECT_EQ(hn_array_free(weight), 0);
  return trainer;
}

enum Kind { kArray, kOp, kModel, kSession, kBatcher, kTrainer, kKinds };

void* make(Kind kind) {
  switch (kind) {
    case kArray:
      return make_array();
    case kOp:
      return make_op();
    case kSession:
      return make_session();
    case kBatcher:
      return make_batcher();
    case kTrainer:
      return make_trainer();
    default:
      return make_model();
  }
}
int free_of(Kind kind, void* handle) {
  switch (kind) {
    case kArray:
      return hn_array_free(static_cast<HnArray>(handle));
    case kOp:
      return hn_op_free(static_cast<HnOp>(handle));
    case kSession:
      return hn_session_free(static_cast<HnSession>(handle));
    case kBatcher:
      return hn_batcher_free(static_cast<HnBatcher>(handle));
    case kTrainer:
      return hn_trainer_free(static_cast<HnTrainer>(handle));
    default:
      return hn_model_free(static_cast<HnModel>(handle));
  }
}

// A call with valid arguments except one handle.
struct TakesHandle {
  const char* name;
  Kind kind;
  int (*call)(void* handle);
  bool frees = false;
};

// Storage for all kinds of results of a call.
struct Out {
  int number = 0;
  int64_t size = 0;
  size_t count = 1;
  double real = 0;
  const char* text = nullptr;
  const void* data = nullptr;
  void* managed = nullptr;
  const int64_t* shape = nullptr;
  const int* ndims = nullptr;
  const int64_t* const* shapes = nullptr;
  HnTensorSpec spec{};
  HnArray array = nullptr, arrays[4] = {};
  HnArray* list = nullptr;
  const char** names = nullptr;
};
thread_local Out out;
float memory[6];
const int64_t kShape[] = {3, 2};
const int kNdim = 2;
const int64_t* const kShapes[] = {kShape};
const HnTensorSpec kSpec = {{1, 3}, 2, HN_FLOAT32};

HnArray a(void* h) { return static_cast<HnArray>(h); }
HnOp o(void* h) { return static_cast<HnOp>(h); }
HnModel m(void* h) { return static_cast<HnModel>(h); }
HnSession s(void* h) { return static_cast<HnSession>(h); }
HnBatcher b(void* h) { return static_cast<HnBatcher>(h); }
HnTrainer t(void* h) { return static_cast<HnTrainer>(h); }
// Returns an array of one handle, valid until the next call.
const HnArray* one(void* h) {
  static thread_local HnArray list[1];
  list[0] = a(h);
  return list;
}
HnArray good_array() {
  static HnArray array = make_array();
  return array;
}
HnOp good_op() {
  static HnOp op = make_op();
  return op;
}
HnTrainer good_trainer() {
  static HnTrainer trainer = make_trainer();
  return trainer;
}
HnTrainer trainer_out = nullptr;
const char* const kNames[] = {"w"};
const char* const kNoNames[] = {nullptr};
HnModel good_model() {
  static HnModel model = make_model();
  return model;
}

HnSession good_session() {
  static HnSession session = make_session();
  return session;
}
HnBatcher good_batcher() {
  static HnBatcher batcher = make_batcher();
  return batcher;
}
HnBatcher batcher_out = nullptr;
const HnBatcherOptions kWrongOptions[] = {{1, 0, 0, 0, 0},
                                          {sizeof(HnBatcherOptions), -1, 0, 0, 0},
                                          {sizeof(HnBatcherOptions), 0, -1, 0, 0},
                                          {sizeof(HnBatcherOptions), 0, 0, -1, 0},
                                          {sizeof(HnBatcherOptions), 0, 0, 0, 1 << 20}};
// Another size; ranks out of range; a timeout below zero; a meeting that is no address; no token; fewer shards.
const HnGroupSettings kWrongSettings[] = {
    {1, 0, 1, 0, "folder:/nowhere", nullptr, nullptr, nullptr, nullptr, 0},
    {sizeof(HnGroupSettings), 2, 2, 0, "folder:/nowhere", nullptr, nullptr, nullptr, nullptr, 0},
    {sizeof(HnGroupSettings), -1, 2, 0, "folder:/nowhere", nullptr, nullptr, nullptr, nullptr, 0},
    {sizeof(HnGroupSettings), 0, 2, 0, "folder:/nowhere", nullptr, nullptr, nullptr, nullptr, -1},
    {sizeof(HnGroupSettings), 0, 2, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 1},
    {sizeof(HnGroupSettings), 0, 2, 0, "folder:/nowhere", "/nowhere/token", nullptr, nullptr, nullptr, 1},
    {sizeof(HnGroupSettings), 0, 2, 1, "folder:/nowhere", nullptr, nullptr, nullptr, nullptr, 1}};
const HnTensorSpec kTwoSpecs[] = {{{1, 3}, 2, HN_FLOAT32}, {{2, 3}, 2, HN_FLOAT32}};
const HnArray* two() {
  static const HnArray list[] = {good_array(), good_array()};
  return list;
}
HnSession session_out = nullptr;

const TakesHandle kTakesHandle[] = {
    {"hn_array_free", kArray, [](void* h) { return hn_array_free(a(h)); }, true},
    {"hn_array_share", kArray, [](void* h) { return hn_array_share(a(h), &out.array); }},
    {"hn_array_copy", kArray, [](void* h) { return hn_array_copy(a(h), &out.array); }},
    {"hn_array_ndim", kArray, [](void* h) { return hn_array_ndim(a(h), &out.number); }},
    {"hn_array_shape", kArray, [](void* h) { return hn_array_shape(a(h), &out.shape); }},
    {"hn_array_dtype", kArray, [](void* h) { return hn_array_dtype(a(h), &out.number); }},
    {"hn_array_size", kArray, [](void* h) { return hn_array_size(a(h), &out.size); }},
    {"hn_array_device", kArray, [](void* h) { return hn_array_device(a(h), &out.number, &out.number); }},
    {"hn_array_storage", kArray, [](void* h) { return hn_array_storage(a(h), &out.text); }},
    {"hn_array_create_sparse", kArray,
     [](void* h) { return hn_array_create_sparse("row_sparse", kShape, 2, a(h), good_array(), nullptr, &out.array); }},
    {"hn_array_part", kArray, [](void* h) { return hn_array_part(a(h), "data", &out.array); }},
    {"hn_array_cast_storage", kArray, [](void* h) { return hn_array_cast_storage(a(h), "default", &out.array); }},
    {"hn_array_attach_grad_in", kArray, [](void* h) { return hn_array_attach_grad_in(a(h), "write", "row_sparse"); }},
    {"hn_array_copy_to_device", kArray, [](void* h) { return hn_array_copy_to_device(a(h), HN_CPU, 0, &out.array); }},
    {"hn_array_wait", kArray, [](void* h) { return hn_array_wait(a(h)); }},
    {"hn_array_data", kArray, [](void* h) { return hn_array_data(a(h), &out.data); }},
    {"hn_array_copy_to", kArray, [](void* h) { return hn_array_copy_to(a(h), memory, sizeof memory); }},
    {"hn_array_copy_from", kArray, [](void* h) { return hn_array_copy_from(a(h), memory, sizeof memory); }},
    {"hn_array_reshape", kArray, [](void* h) { return hn_array_reshape(a(h), kShape, 2, &out.array); }},
    {"hn_array_slice", kArray, [](void* h) { return hn_array_slice(a(h), 0, 1, &out.array); }},
    {"hn_array_detach", kArray, [](void* h) { return hn_array_detach(a(h), &out.array); }},
    {"hn_array_to_dlpack", kArray, [](void* h) { return hn_array_to_dlpack(a(h), &out.managed); }},
    {"hn_array_attach_grad", kArray, [](void* h) { return hn_array_attach_grad(a(h), "write"); }},
    {"hn_array_grad", kArray, [](void* h) { return hn_array_grad(a(h), &out.array); }},
    {"hn_arrays_save", kArray, [](void* h) { return hn_arrays_save("/dev/null", 1, one(h), nullptr); }},
    {"hn_invoke", kArray,
     [](void* h) {
       out.count = 1;
       return hn_invoke("relu", 0, nullptr, nullptr, 1, one(h), &out.count, out.arrays);
     }},
    {"hn_invoke_into", kArray,
     [](void* h) { return hn_invoke_into("relu", 0, nullptr, nullptr, 1, one(h), 1, one(h)); }},
    {"hn_op_free", kOp, [](void* h) { return hn_op_free(o(h)); }, true},
    {"hn_op_num_outputs", kOp, [](void* h) { return hn_op_num_outputs(o(h), 1, &out.count); }},
    {"hn_op_call", kOp,
     [](void* h) {
       out.count = 1;
       const HnArray in[] = {good_array()};
       return hn_op_call(o(h), 1, in, &out.count, out.arrays);
     }},
    {"hn_op_call", kArray,
     [](void* h) {
       out.count = 1;
       return hn_op_call(good_op(), 1, one(h), &out.count, out.arrays);
     }},
    {"hn_op_call_into", kOp,
     [](void* h) {
       const HnArray in[] = {good_array()};
       return hn_op_call_into(o(h), 1, in, 1, in);
     }},
    {"hn_op_call_into", kArray, [](void* h) { return hn_op_call_into(good_op(), 1, one(h), 1, one(h)); }},
    {"hn_autograd_backward", kArray, [](void* h) { return hn_autograd_backward(1, one(h), nullptr, 0, 1); }},
    {"hn_autograd_grad", kArray,
     [](void* h) { return hn_autograd_grad(1, one(h), nullptr, 1, one(h), 0, 0, 1, out.arrays); }},
    {"hn_model_free", kModel, [](void* h) { return hn_model_free(m(h)); }, true},
    {"hn_model_save", kModel, [](void* h) { return hn_model_save(m(h), "/dev/null", "/dev/null"); }},
    {"hn_model_num_inputs", kModel, [](void* h) { return hn_model_num_inputs(m(h), &out.count); }},
    {"hn_model_input_name", kModel, [](void* h) { return hn_model_input_name(m(h), 0, &out.text); }},
    {"hn_model_input_spec", kModel, [](void* h) { return hn_model_input_spec(m(h), 0, &out.spec); }},
    {"hn_model_num_outputs", kModel, [](void* h) { return hn_model_num_outputs(m(h), &out.count); }},
    {"hn_model_output_name", kModel, [](void* h) { return hn_model_output_name(m(h), 0, &out.text); }},
    {"hn_model_num_parameters", kModel, [](void* h) { return hn_model_num_parameters(m(h), &out.count); }},
    {"hn_model_parameter_name", kModel, [](void* h) { return hn_model_parameter_name(m(h), 0, &out.text); }},
    {"hn_model_to_device", kModel, [](void* h) { return hn_model_to_device(m(h), HN_CPU, 0); }},
    {"hn_model_device", kModel, [](void* h) { return hn_model_device(m(h), &out.number, &out.number); }},
    {"hn_model_parameter", kModel, [](void* h) { return hn_model_parameter(m(h), 0, &out.array); }},
    {"hn_model_parameter_is_state", kModel, [](void* h) { return hn_model_parameter_is_state(m(h), 0, &out.number); }},
    {"hn_model_parameter_spec", kModel, [](void* h) { return hn_model_parameter_spec(m(h), 0, &out.spec); }},
    {"hn_model_infer", kModel, [](void* h) { return hn_model_infer(m(h), 1, &kSpec, 1, &out.spec); }},
    {"hn_model_infer_shapes", kModel,
     [](void* h) { return hn_model_infer_shapes(m(h), 1, &kNdim, kShapes, &out.count, &out.ndims, &out.shapes); }},
    {"hn_model_run", kModel,
     [](void* h) {
       const HnArray in[] = {good_array(), good_array()};
       return hn_model_run(m(h), 2, in, 1, out.arrays);
     }},
    {"hn_model_run", kArray,
     [](void* h) {
       const HnArray in[] = {a(h), a(h)};
       return hn_model_run(good_model(), 2, in, 1, out.arrays);
     }},
    {"hn_model_run_into", kModel,
     [](void* h) {
       const HnArray in[] = {good_array(), good_array()};
       return hn_model_run_into(m(h), 2, in, 1, in);
     }},
    {"hn_model_run_into", kArray,
     [](void* h) {
       const HnArray in[] = {good_array(), good_array()};
       return hn_model_run_into(good_model(), 2, in, 1, one(h));
     }},
    {"hn_session_create", kModel,
     [](void* h) {
       const HnArray in[] = {good_array(), good_array()};
       return hn_session_create(m(h), 2, in, 0, nullptr, &session_out);
     }},
    {"hn_session_create", kArray,
     [](void* h) {
       const HnArray in[] = {a(h), good_array()};
       return hn_session_create(good_model(), 2, in, 0, nullptr, &session_out);
     }},
    {"hn_session_create", kArray,
     [](void* h) {
       const HnArray in[] = {good_array(), good_array()};
       return hn_session_create(good_model(), 2, in, 1, one(h), &session_out);
     }},
    {"hn_session_free", kSession, [](void* h) { return hn_session_free(s(h)); }, true},
    {"hn_session_output", kSession, [](void* h) { return hn_session_output(s(h), 0, &out.array); }},
    {"hn_session_run", kSession, [](void* h) { return hn_session_run(s(h)); }},
    {"hn_trainer_create", kArray,
     [](void* h) { return hn_trainer_create(1, kNames, one(h), "sgd", 0, nullptr, nullptr, &trainer_out); }},
    {"hn_trainer_create_for_model", kModel,
     [](void* h) { return hn_trainer_create_for_model(m(h), "sgd", 0, nullptr, nullptr, &trainer_out); }},
    {"hn_trainer_free", kTrainer, [](void* h) { return hn_trainer_free(t(h)); }, true},
    {"hn_trainer_step", kTrainer, [](void* h) { return hn_trainer_step(t(h), 1, 1); }},
    {"hn_trainer_sum_over_group", kTrainer, [](void* h) { return hn_trainer_sum_over_group(t(h)); }},
    {"hn_group_sum", kArray, [](void* h) { return hn_group_sum(a(h), nullptr, &out.array); }},
    {"hn_group_sum_into", kArray, [](void* h) { return hn_group_sum_into(1, one(h), nullptr, nullptr, 0); }},
    {"hn_group_sum_into", kArray, [](void* h) { return hn_group_sum_into(1, two(), one(h), nullptr, 0); }},
    {"hn_group_gather", kArray, [](void* h) { return hn_group_gather(a(h), nullptr, &out.array); }},
    {"hn_group_broadcast", kArray, [](void* h) { return hn_group_broadcast(1, one(h), 0, nullptr); }},
    {"hn_trainer_num_updates", kTrainer, [](void* h) { return hn_trainer_num_updates(t(h), &out.size); }},
    {"hn_trainer_learning_rate", kTrainer, [](void* h) { return hn_trainer_learning_rate(t(h), &out.real); }},
    {"hn_trainer_set_learning_rate", kTrainer, [](void* h) { return hn_trainer_set_learning_rate(t(h), 1); }},
    {"hn_trainer_set_schedule", kTrainer,
     [](void* h) { return hn_trainer_set_schedule(t(h), nullptr, 0, nullptr, nullptr); }},
    {"hn_trainer_setting", kTrainer, [](void* h) { return hn_trainer_setting(t(h), "wd", &out.text); }},
    {"hn_trainer_set_setting", kTrainer, [](void* h) { return hn_trainer_set_setting(t(h), "wd", "0"); }},
    {"hn_trainer_set_multipliers", kTrainer, [](void* h) { return hn_trainer_set_multipliers(t(h), "w", 1, 1); }},
    {"hn_trainer_save_states", kTrainer, [](void* h) { return hn_trainer_save_states(t(h), "/nowhere/states"); }},
    {"hn_trainer_load_states", kTrainer, [](void* h) { return hn_trainer_load_states(t(h), "/nowhere/states"); }},
    {"hn_batcher_create", kModel, [](void* h) { return hn_batcher_create(m(h), 2, kTwoSpecs, nullptr, &batcher_out); }},
    {"hn_batcher_free", kBatcher, [](void* h) { return hn_batcher_free(b(h)); }, true},
    {"hn_batcher_run", kBatcher,
     [](void* h) {
       const HnArray in[] = {good_array()};
       return hn_batcher_run(b(h), 1, in, 1, out.arrays);
     }},
    {"hn_batcher_run", kArray, [](void* h) { return hn_batcher_run(good_batcher(), 1, one(h), 1, out.arrays); }},
    {"hn_batcher_close", kBatcher, [](void* h) { return hn_batcher_close(b(h)); }},
    {"hn_model_set_remat", kModel, [](void* h) { return hn_model_set_remat(m(h), "none"); }},
    {"hn_model_plan_text", kModel, [](void* h) { return hn_model_plan_text(m(h), &out.text); }},
};

// A call with valid handles but an invalid other argument, mostly NULL for a required pointer.
struct TakesPointer {
  const char* name;
  int (*call)();
};
#define HN_REFUSES(function, ...)                   \
  {                                                 \
#function, [] { return function(__VA_ARGS__); } \
  }
const TakesPointer kTakesPointer[] = {
    HN_REFUSES(hn_engine_type, nullptr),
    HN_REFUSES(hn_num_threads, nullptr),
    HN_REFUSES(hn_set_num_threads, 0),
    HN_REFUSES(hn_pin_thread, 1, nullptr),
    HN_REFUSES(hn_is_np_shape, nullptr),
    HN_REFUSES(hn_profiler_save, nullptr),
    HN_REFUSES(hn_array_create, nullptr, 2, HN_FLOAT32, nullptr, &out.array),
    HN_REFUSES(hn_array_create, kShape, 2, HN_FLOAT32, nullptr, nullptr),
    HN_REFUSES(hn_array_create, kShape, 99, HN_FLOAT32, nullptr, &out.array),
    HN_REFUSES(hn_array_create, kShape, 2, 99, nullptr, &out.array),
    HN_REFUSES(hn_array_wrap, nullptr, kShape, 2, HN_FLOAT32, nullptr, nullptr, &out.array),
    HN_REFUSES(hn_array_wrap, memory, nullptr, 2, HN_FLOAT32, nullptr, nullptr, &out.array),
    HN_REFUSES(hn_array_wrap, memory, kShape, 2, HN_FLOAT32, nullptr, nullptr, nullptr),
    HN_REFUSES(hn_array_wrap, reinterpret_cast<char*>(memory) + 1, kShape, 2, HN_FLOAT32, nullptr, nullptr, &out.array),
    HN_REFUSES(hn_dtype_size, HN_FLOAT32, nullptr),
    HN_REFUSES(hn_dtype_size, 99, &out.count),
    HN_REFUSES(hn_array_create_sparse, nullptr, kShape, 2, good_array(), good_array(), nullptr, &out.array),
    HN_REFUSES(hn_array_create_sparse, "default", kShape, 2, good_array(), good_array(), nullptr, &out.array),
    HN_REFUSES(hn_array_create_sparse, "row_sparse", nullptr, 2, good_array(), good_array(), nullptr, &out.array),
    HN_REFUSES(hn_array_create_sparse, "row_sparse", kShape, 2, nullptr, good_array(), nullptr, &out.array),
    HN_REFUSES(hn_array_create_sparse, "row_sparse", kShape, 2, good_array(), nullptr, nullptr, &out.array),
    HN_REFUSES(hn_array_create_sparse, "row_sparse", kShape, 2, good_array(), good_array(), nullptr, &out.array),
    HN_REFUSES(hn_array_create_sparse, "row_sparse", kShape, 2, good_array(), good_array(), good_array(), &out.array),
    HN_REFUSES(hn_array_create_sparse, "csr", kShape, 2, good_array(), good_array(), nullptr, &out.array),
    HN_REFUSES(hn_array_create_sparse, "row_sparse", kShape, 2, good_array(), good_array(), nullptr, nullptr),
    HN_REFUSES(hn_array_part, good_array(), "data", &out.array),  // the array is dense
    HN_REFUSES(hn_array_part, good_array(), nullptr, &out.array),
    HN_REFUSES(hn_array_part, good_array(), "data", nullptr),
    HN_REFUSES(hn_array_cast_storage, good_array(), nullptr, &out.array),
    HN_REFUSES(hn_array_cast_storage, good_array(), "thin", &out.array),
    HN_REFUSES(hn_array_cast_storage, good_array(), "default", nullptr),
    HN_REFUSES(hn_array_attach_grad_in, good_array(), nullptr, "row_sparse"),
    HN_REFUSES(hn_array_attach_grad_in, good_array(), "write", nullptr),
    HN_REFUSES(hn_array_attach_grad_in, good_array(), "write", "thin"),
    HN_REFUSES(hn_num_gpus, nullptr),
    HN_REFUSES(hn_why_no_gpu, nullptr),
    HN_REFUSES(hn_gpu_memory, -1, &out.size, &out.size),
    HN_REFUSES(hn_gpu_memory, 0, nullptr, &out.size),
    HN_REFUSES(hn_gpu_memory, 0, &out.size, nullptr),
    HN_REFUSES(hn_array_create_on, HN_CPU, 0, kShape, 2, HN_FLOAT32, nullptr, nullptr),
    HN_REFUSES(hn_array_create_on, HN_CPU, 0, nullptr, 2, HN_FLOAT32, nullptr, &out.array),
    HN_REFUSES(hn_array_create_on, 9, 0, kShape, 2, HN_FLOAT32, nullptr, &out.array),
    HN_REFUSES(hn_array_create_on, HN_CPU, -1, kShape, 2, HN_FLOAT32, nullptr, &out.array),
    HN_REFUSES(hn_array_copy_to_device, good_array(), HN_CPU, 0, nullptr),
    HN_REFUSES(hn_array_copy_to_device, good_array(), 0, 0, &out.array),
    HN_REFUSES(hn_model_to_device, good_model(), 3, 0),
    HN_REFUSES(hn_model_to_device, good_model(), HN_GPU, -1),
    HN_REFUSES(hn_model_device, good_model(), nullptr, &out.number),
    HN_REFUSES(hn_model_device, good_model(), &out.number, nullptr),
    HN_REFUSES(hn_array_share, good_array(), nullptr),
    HN_REFUSES(hn_array_copy, good_array(), nullptr),
    HN_REFUSES(hn_array_ndim, good_array(), nullptr),
    HN_REFUSES(hn_array_shape, good_array(), nullptr),
    HN_REFUSES(hn_array_dtype, good_array(), nullptr),
    HN_REFUSES(hn_array_size, good_array(), nullptr),
    HN_REFUSES(hn_array_device, good_array(), nullptr, &out.number),
    HN_REFUSES(hn_array_device, good_array(), &out.number, nullptr),
    HN_REFUSES(hn_array_storage, good_array(), nullptr),
    HN_REFUSES(hn_array_data, good_array(), nullptr),
    HN_REFUSES(hn_array_copy_to, good_array(), nullptr, sizeof memory),
    HN_REFUSES(hn_array_copy_to, good_array(), memory, 1),
    HN_REFUSES(hn_array_copy_from, good_array(), nullptr, sizeof memory),
    HN_REFUSES(hn_array_copy_from, good_array(), memory, 1),
    HN_REFUSES(hn_array_reshape, good_array(), nullptr, 2, &out.array),
    HN_REFUSES(hn_array_reshape, good_array(), kShape, 2, nullptr),
    HN_REFUSES(hn_array_slice, good_array(), 0, 1, nullptr),
    HN_REFUSES(hn_array_detach, good_array(), nullptr),
    HN_REFUSES(hn_array_to_dlpack, good_array(), nullptr),
    HN_REFUSES(hn_array_from_dlpack, nullptr, &out.array),
    HN_REFUSES(hn_array_from_dlpack, memory, nullptr),
    HN_REFUSES(hn_arrays_load, nullptr, &out.count, &out.list, &out.names),
    HN_REFUSES(hn_arrays_load, "x", nullptr, &out.list, &out.names),
    HN_REFUSES(hn_arrays_load, "x", &out.count, nullptr, &out.names),
    HN_REFUSES(hn_arrays_load, "x", &out.count, &out.list, nullptr),
    HN_REFUSES(hn_arrays_load_from_memory, nullptr, 0, &out.count, &out.list, &out.names),
    HN_REFUSES(hn_arrays_load_from_memory, "x", 1, nullptr, &out.list, &out.names),
    HN_REFUSES(hn_arrays_load_from_memory, "x", 1, &out.count, nullptr, &out.names),
    HN_REFUSES(hn_arrays_load_from_memory, "x", 1, &out.count, &out.list, nullptr),
    HN_REFUSES(hn_arrays_save, nullptr, 0, nullptr, nullptr),
    HN_REFUSES(hn_arrays_save, "/dev/null", 1, nullptr, nullptr),
    HN_REFUSES(hn_op_count, nullptr),
    HN_REFUSES(hn_op_name, 0, nullptr),
    HN_REFUSES(hn_op_name, 1 << 20, &out.text),
    HN_REFUSES(hn_op_prepare, nullptr, 0, nullptr, nullptr, nullptr),
    HN_REFUSES(hn_op_prepare, "relu", 0, nullptr, nullptr, nullptr),
    HN_REFUSES(hn_op_num_outputs, good_op(), 1, nullptr),
    HN_REFUSES(hn_op_num_outputs, good_op(), 2, &out.count),
    HN_REFUSES(hn_op_call, good_op(), 1, nullptr, &out.count, out.arrays),
    HN_REFUSES(hn_op_call, good_op(), 1, one(good_array()), nullptr, out.arrays),
    HN_REFUSES(hn_op_call, good_op(), 1, one(good_array()), &(out.count = 1), nullptr),
    HN_REFUSES(hn_op_call_into, good_op(), 1, one(good_array()), 1, nullptr),
    HN_REFUSES(hn_invoke, nullptr, 0, nullptr, nullptr, 1, one(good_array()), &out.count, out.arrays),
    HN_REFUSES(hn_invoke, "relu", 1, nullptr, nullptr, 1, one(good_array()), &out.count, out.arrays),
    HN_REFUSES(hn_invoke_into, nullptr, 0, nullptr, nullptr, 1, one(good_array()), 1, one(good_array())),
    HN_REFUSES(hn_invoke_into, "relu", 0, nullptr, nullptr, 1, nullptr, 1, one(good_array())),
    HN_REFUSES(hn_autograd_is_recording, nullptr),
    HN_REFUSES(hn_autograd_is_training, nullptr),
    HN_REFUSES(hn_array_attach_grad, good_array(), nullptr),
    HN_REFUSES(hn_array_attach_grad, good_array(), "sometimes"),
    HN_REFUSES(hn_array_grad, good_array(), nullptr),
    HN_REFUSES(hn_array_grad, good_array(), &out.array),  // the array has no gradient
    HN_REFUSES(hn_autograd_backward, 1, nullptr, nullptr, 0, 1),
    HN_REFUSES(hn_autograd_backward, 0, nullptr, nullptr, 0, 1),
    HN_REFUSES(hn_autograd_grad, 1, one(good_array()), nullptr, 0, nullptr, 0, 0, 1, out.arrays),
    HN_REFUSES(hn_autograd_grad, 1, one(good_array()), nullptr, 1, one(good_array()), 0, 0, 1, nullptr),
    HN_REFUSES(hn_model_load, nullptr, nullptr, nullptr),
    HN_REFUSES(hn_model_load_from_memory, nullptr, 0, nullptr, 0, nullptr),
    HN_REFUSES(hn_model_load_from_memory, kDense, 0, nullptr, 0, nullptr),
    HN_REFUSES(hn_model_save, good_model(), nullptr, "x"),
    HN_REFUSES(hn_model_save, good_model(), "x", nullptr),
    HN_REFUSES(hn_model_num_inputs, good_model(), nullptr),
    HN_REFUSES(hn_model_input_name, good_model(), 0, nullptr),
    HN_REFUSES(hn_model_input_name, good_model(), 9, &out.text),
    HN_REFUSES(hn_model_input_spec, good_model(), 0, nullptr),
    HN_REFUSES(hn_model_input_spec, good_model(), 9, &out.spec),
    HN_REFUSES(hn_model_num_outputs, good_model(), nullptr),
    HN_REFUSES(hn_model_output_name, good_model(), 0, nullptr),
    HN_REFUSES(hn_model_output_name, good_model(), 9, &out.text),
    HN_REFUSES(hn_model_num_parameters, good_model(), nullptr),
    HN_REFUSES(hn_model_parameter_name, good_model(), 0, &out.text),  // the model has no parameters
    HN_REFUSES(hn_model_parameter, good_model(), 0, &out.array),
    HN_REFUSES(hn_model_parameter_is_state, good_model(), 0, nullptr),
    HN_REFUSES(hn_model_parameter_is_state, good_model(), 0, &out.number),
    HN_REFUSES(hn_model_parameter_spec, good_model(), 0, nullptr),
    HN_REFUSES(hn_model_parameter_spec, good_model(), 0, &out.spec),
    HN_REFUSES(hn_model_infer, good_model(), 2, nullptr, 1, &out.spec),
    HN_REFUSES(hn_model_infer, good_model(), 1, &kSpec, 1, &out.spec),
    HN_REFUSES(hn_model_infer_shapes, good_model(), 2, nullptr, nullptr, &out.count, &out.ndims, &out.shapes),
    HN_REFUSES(hn_model_run, good_model(), 2, nullptr, 1, out.arrays),
    HN_REFUSES(hn_model_run, good_model(), 1, one(good_array()), 1, out.arrays),
    HN_REFUSES(hn_model_run_into, good_model(), 2, nullptr, 1, one(good_array())),
    HN_REFUSES(hn_model_plan_text, good_model(), nullptr),
    HN_REFUSES(hn_model_set_remat, good_model(), nullptr),
    HN_REFUSES(hn_model_set_remat, good_model(), "some"),
    HN_REFUSES(hn_session_create, good_model(), 2, two(), 2, nullptr, &session_out),
    HN_REFUSES(hn_session_create, good_model(), 2, two(), 0, two(), &session_out),
    HN_REFUSES(hn_session_create, good_model(), 2, nullptr, 0, nullptr, &session_out),
    HN_REFUSES(hn_session_create, good_model(), 1, one(good_array()), 0, nullptr, &session_out),
    HN_REFUSES(hn_session_output, good_session(), 0, nullptr),
    HN_REFUSES(hn_session_output, good_session(), 9, &out.array),
    HN_REFUSES(hn_batcher_create, good_model(), 2, kTwoSpecs, nullptr, nullptr),
    HN_REFUSES(hn_batcher_create, good_model(), 2, nullptr, nullptr, &batcher_out),
    HN_REFUSES(hn_batcher_create, good_model(), 1, kTwoSpecs, nullptr, &batcher_out),
    HN_REFUSES(hn_batcher_create, good_model(), 0, nullptr, nullptr, &batcher_out),    // the file has no shapes
    HN_REFUSES(hn_batcher_create, good_model(), 2, kTwoSpecs, nullptr, &batcher_out),  // the weight has no rows
    HN_REFUSES(hn_batcher_create, good_model(), 2, kTwoSpecs, kWrongOptions, &batcher_out),
    HN_REFUSES(hn_batcher_create, good_model(), 2, kTwoSpecs, kWrongOptions + 1, &batcher_out),
    HN_REFUSES(hn_batcher_create, good_model(), 2, kTwoSpecs, kWrongOptions + 2, &batcher_out),
    HN_REFUSES(hn_batcher_create, good_model(), 2, kTwoSpecs, kWrongOptions + 3, &batcher_out),
    HN_REFUSES(hn_batcher_create, good_model(), 2, kTwoSpecs, kWrongOptions + 4, &batcher_out),
    HN_REFUSES(hn_batcher_run, good_batcher(), 1, nullptr, 1, out.arrays),
    HN_REFUSES(hn_batcher_run, good_batcher(), 1, one(good_array()), 1, nullptr),
    HN_REFUSES(hn_batcher_run, good_batcher(), 2, two(), 1, out.arrays),
    HN_REFUSES(hn_batcher_run, good_batcher(), 1, one(good_array()), 2, out.arrays),
    HN_REFUSES(hn_optimizer_count, nullptr),
    HN_REFUSES(hn_optimizer_name, 0, nullptr),
    HN_REFUSES(hn_optimizer_name, 999, &out.text),
    HN_REFUSES(hn_trainer_create, 1, nullptr, one(good_array()), "sgd", 0, nullptr, nullptr, &trainer_out),
    HN_REFUSES(hn_trainer_create, 1, kNoNames, one(good_array()), "sgd", 0, nullptr, nullptr, &trainer_out),
    HN_REFUSES(hn_trainer_create, 1, kNames, nullptr, "sgd", 0, nullptr, nullptr, &trainer_out),
    HN_REFUSES(hn_trainer_create, 1, kNames, one(good_array()), nullptr, 0, nullptr, nullptr, &trainer_out),
    HN_REFUSES(hn_trainer_create, 1, kNames, one(good_array()), "none", 0, nullptr, nullptr, &trainer_out),
    HN_REFUSES(hn_trainer_create, 1, kNames, one(good_array()), "sgd", 1, nullptr, kNames, &trainer_out),
    HN_REFUSES(hn_trainer_create, 1, kNames, one(good_array()), "sgd", 1, kNames, kNames, &trainer_out),
    HN_REFUSES(hn_trainer_create, 1, kNames, one(good_array()), "sgd", 0, nullptr, nullptr, nullptr),
    HN_REFUSES(hn_trainer_create_for_model, good_model(), nullptr, 0, nullptr, nullptr, &trainer_out),
    HN_REFUSES(hn_trainer_create_for_model, good_model(), "sgd", 1, kNames, nullptr, &trainer_out),
    HN_REFUSES(hn_trainer_create_for_model, good_model(), "sgd", 0, nullptr, nullptr, nullptr),
    HN_REFUSES(hn_trainer_step, good_trainer(), 0, 1),
    HN_REFUSES(hn_trainer_num_updates, good_trainer(), nullptr),
    HN_REFUSES(hn_trainer_learning_rate, good_trainer(), nullptr),
    HN_REFUSES(hn_trainer_set_schedule, good_trainer(), "none", 0, nullptr, nullptr),
    HN_REFUSES(hn_trainer_set_schedule, good_trainer(), "FactorScheduler", 1, kNoNames, kNames),
    HN_REFUSES(hn_trainer_setting, good_trainer(), nullptr, &out.text),
    HN_REFUSES(hn_trainer_setting, good_trainer(), "none", &out.text),
    HN_REFUSES(hn_trainer_setting, good_trainer(), "wd", nullptr),
    HN_REFUSES(hn_trainer_set_setting, good_trainer(), nullptr, "0"),
    HN_REFUSES(hn_trainer_set_setting, good_trainer(), "wd", nullptr),
    HN_REFUSES(hn_trainer_set_setting, good_trainer(), "wd", "much"),
    HN_REFUSES(hn_trainer_set_multipliers, good_trainer(), nullptr, 1, 1),
    HN_REFUSES(hn_trainer_set_multipliers, good_trainer(), "none", 1, 1),
    HN_REFUSES(hn_trainer_save_states, good_trainer(), nullptr),
    HN_REFUSES(hn_trainer_load_states, good_trainer(), nullptr),
    HN_REFUSES(hn_group_join, kWrongSettings),
    HN_REFUSES(hn_group_join, kWrongSettings + 1),
    HN_REFUSES(hn_group_join, kWrongSettings + 2),
    HN_REFUSES(hn_group_join, kWrongSettings + 3),
    HN_REFUSES(hn_group_join, kWrongSettings + 4),
    HN_REFUSES(hn_group_join, kWrongSettings + 5),
    HN_REFUSES(hn_group_join, kWrongSettings + 6),
    HN_REFUSES(hn_group_is_joined, nullptr),
    HN_REFUSES(hn_group_rank, nullptr),
    HN_REFUSES(hn_group_size, nullptr),
    HN_REFUSES(hn_group_virtual_shards, nullptr),
    HN_REFUSES(hn_group_own_shards, nullptr, &out.number),
    HN_REFUSES(hn_group_own_shards, &out.number, nullptr),
    HN_REFUSES(hn_group_counters, nullptr, &out.size),
    HN_REFUSES(hn_group_counters, &out.size, nullptr),
    HN_REFUSES(hn_group_sum, good_array(), nullptr, nullptr),
    HN_REFUSES(hn_group_sum_into, 1, nullptr, nullptr, nullptr, 0),
    HN_REFUSES(hn_group_gather, good_array(), nullptr, nullptr),
    HN_REFUSES(hn_group_broadcast, 1, nullptr, 0, nullptr),
    HN_REFUSES(hn_group_broadcast, 1, two(), 1, nullptr),  // there is no process 1
    HN_REFUSES(hn_rule_register, nullptr),
    HN_REFUSES(hn_rule_unregister, nullptr),
    HN_REFUSES(hn_operator_register, nullptr),
    HN_REFUSES(hn_library_load, nullptr),
};
#undef HN_REFUSES

// Functions that cannot fail, or that have no argument that could be wrong.
const std::set<std::string> kTakesNothing = {"hn_last_error",
                                             "hn_last_error_kind",
                                             "hn_abi_version",
                                             "hn_dtype_name",
                                             "hn_version",
                                             "hn_isa",
                                             "hn_wait_all",
                                             "hn_shutdown",
                                             "hn_seed",
                                             "hn_profiler_start",
                                             "hn_profiler_stop",
                                             "hn_arrays_free",
                                             "hn_group_barrier",
                                             "hn_group_leave",
                                             "hn_autograd_set_recording",
                                             "hn_autograd_set_training",
                                             "hn_allow_tf32",
                                             "hn_set_np_shape",
                                             "hn_set_log_callback"};

void expect_refusal(const char* function, int status, const std::string& what) {
  EXPECT_EQ(status, -1) << function << " with " << what;
  EXPECT_STRNE(hn_last_error(), "") << function << " with " << what;
}

TEST(CApi, EveryFunctionStandsInATableOfThisTest) {
  std::ifstream file(std::string(HYBRIDNET_SOURCE_DIR) + "/include/hybridnet/c_api.h");
  std::stringstream text;
  text << file.rdbuf();
  const std::string header = text.str();
  std::set<std::string> declared, tested(kTakesNothing);
  const std::regex declaration(R"(HN_API(?:_\d+)? [a-z_ ]+[ *]+(hn_\w+)\()");
  for (std::sregex_iterator it(header.begin(), header.end(), declaration), end; it != end; ++it)
    declared.insert((*it)[1]);
  for (const TakesHandle& row : kTakesHandle) tested.insert(row.name);
  for (const TakesPointer& row : kTakesPointer) tested.insert(row.name);
  EXPECT_GT(declared.size(), 50u);
  for (const std::string& name : declared) EXPECT_TRUE(tested.count(name)) << name << " is not tested";
  for (const std::string& name : tested) EXPECT_TRUE(declared.count(name)) << name << " is not declared";
}

TEST(CApi, NoFunctionTakesAHandleThatIsNone) {
  int local = 0;
  for (const TakesHandle& row : kTakesHandle) {
    if (!row.frees) {
      expect_refusal(row.name, row.call(nullptr), "NULL");
      EXPECT_NE(std::string(hn_last_error()).find(row.name), std::string::npos) << hn_last_error();
    }
    for (void* nonsense :
         {reinterpret_cast<void*>(0x1234), static_cast<void*>(&local), reinterpret_cast<void*>(~uintptr_t{0}),
          reinterpret_cast<void*>(uintptr_t{1} << 56 | 0xffffff)})
      expect_refusal(row.name, row.call(nonsense), "nonsense");
  }
}

TEST(CApi, NoFunctionTakesAHandleOfAnotherKind) {
  for (const TakesHandle& row : kTakesHandle) {
    for (int other = 0; other < kKinds; ++other) {
      if (other == row.kind) continue;
      void* handle = make(static_cast<Kind>(other));
      expect_refusal(row.name, row.call(handle), "another kind");
      EXPECT_EQ(free_of(static_cast<Kind>(other), handle), 0) << row.name << " has freed it";
    }
  }
}

TEST(CApi, NoFunctionTakesAFreedHandleAlsoWhenItsPlaceIsTakenAgain) {
  for (const TakesHandle& row : kTakesHandle) {
    void* handle = make(row.kind);
    ASSERT_EQ(free_of(row.kind, handle), 0);
    expect_refusal(row.name, row.call(handle), "a freed handle");
    void* next = make(row.kind);  // in the same slot
    expect_refusal(row.name, row.call(handle), "a freed handle whose place is taken");
    EXPECT_NE(std::string(hn_last_error()).find("freed"), std::string::npos) << hn_last_error();
    EXPECT_EQ(free_of(row.kind, next), 0);
  }
}

TEST(CApi, NoFunctionTakesNullOrNonsenseForWhatItNeeds) {
  for (const TakesPointer& row : kTakesPointer) expect_refusal(row.name, row.call(), "NULL or nonsense");
}

TEST(CApi, FreeingNullIsAllowed) {
  EXPECT_EQ(hn_array_free(nullptr), 0);
  EXPECT_EQ(hn_op_free(nullptr), 0);
  EXPECT_EQ(hn_trainer_free(nullptr), 0);
  EXPECT_EQ(hn_model_free(nullptr), 0);
  EXPECT_EQ(hn_session_free(nullptr), 0);
  EXPECT_EQ(hn_batcher_free(nullptr), 0);
  EXPECT_EQ(hn_arrays_free(0, nullptr, nullptr), 0);
}

TEST(CApi, ThreadsThatUseAndFreeOneHandleGetValuesOrErrors) {
  for (int round = 0; round < 200; ++round) {
    HnArray array = make_array();
    std::atomic<int> freed{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        float values[6];
        for (int i = 0; i < 50; ++i) hn_array_copy_to(array, values, sizeof values);
        if (t % 2 == 0) freed += hn_array_free(array) == 0;
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(freed, 1);
  }
}

}  // namespace
