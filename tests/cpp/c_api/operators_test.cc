// Operators by name, gradients, and functions of models other than runs.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/front_end.h"
#include "hybridnet/c_api.h"

namespace {

#define EXPECT_OK(call) EXPECT_EQ(call, 0) << hn_last_error()

HnArray make(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  HnArray array = nullptr;
  EXPECT_OK(hn_array_create(shape.data(), static_cast<int>(shape.size()), HN_FLOAT32, values.data(), &array));
  return array;
}
std::vector<float> values_of(HnArray array) {
  int64_t size = 0;
  EXPECT_OK(hn_array_size(array, &size));
  std::vector<float> values(static_cast<size_t>(size));
  EXPECT_OK(hn_array_copy_to(array, values.data(), values.size() * sizeof(float)));
  return values;
}
using Pairs = std::vector<std::pair<const char*, const char*>>;

std::vector<HnArray> invoke(const char* name, const Pairs& attributes, const std::vector<HnArray>& inputs) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : attributes) keys.push_back(key), values.push_back(value);
  std::vector<HnArray> outputs(8);
  size_t count = outputs.size();
  EXPECT_OK(
      hn_invoke(name, keys.size(), keys.data(), values.data(), inputs.size(), inputs.data(), &count, outputs.data()));
  outputs.resize(count);
  return outputs;
}

TEST(COperators, RunByNameWithAttributesAsText) {
  HnArray x = make({1, 4}, {4, 1, 3, 2});
  EXPECT_EQ(values_of(invoke("relu", {}, {x})[0]), values_of(x));
  EXPECT_EQ(values_of(invoke("_plus_scalar", {{"scalar", "0.5"}}, {x})[0]), (std::vector<float>{4.5, 1.5, 3.5, 2.5}));
  const auto both = invoke("topk", {{"k", "2"}, {"ret_typ", "both"}}, {x});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(values_of(both[0]), (std::vector<float>{4, 3}));
  EXPECT_EQ(values_of(both[1]), (std::vector<float>{0, 2}));
  // A variadic operator counts its inputs, again at every call of a prepared operator.
  HnOp concat = nullptr;
  const char* const keys[] = {"dim"};
  const char* const values[] = {"0"};
  EXPECT_OK(hn_op_prepare("Concat", 1, keys, values, &concat));
  for (size_t n = 1; n < 5; ++n) {
    const std::vector<HnArray> inputs(n, x);
    HnArray joined = nullptr;
    size_t count = 1;
    EXPECT_OK(hn_op_call(concat, n, inputs.data(), &count, &joined));
    EXPECT_EQ(values_of(joined).size(), 4 * n);
  }
  EXPECT_OK(hn_op_free(concat));
}

TEST(COperators, WriteIntoArraysThatAreThereAndMayBeInputs) {
  HnArray x = make({3}, {1, -2, 3});
  EXPECT_OK(hn_invoke_into("negative", 0, nullptr, nullptr, 1, &x, 1, &x));
  EXPECT_EQ(values_of(x), (std::vector<float>{-1, 2, -3}));
  HnArray small = make({2}, {0, 0});
  EXPECT_EQ(hn_invoke_into("negative", 0, nullptr, nullptr, 1, &x, 1, &small), -1);
  EXPECT_STREQ(hn_last_error_kind(), "ShapeError");
}

TEST(COperators, WrongUsesNameOperatorAndArgument) {
  HnArray x = make({2}, {1, 2}), out[2] = {};
  size_t count = 2;
  const auto error_of = [&](const char* name, const Pairs& attributes, size_t num_inputs, size_t room) {
    std::vector<const char*> keys, values;
    for (const auto& [key, value] : attributes) keys.push_back(key), values.push_back(value);
    const std::vector<HnArray> inputs(num_inputs, x);
    count = room;
    EXPECT_EQ(hn_invoke(name, keys.size(), keys.data(), values.data(), num_inputs, inputs.data(), &count, out), -1);
    return std::string(hn_last_error_kind()) + ": " + hn_last_error();
  };
  EXPECT_NE(error_of("rellu", {}, 1, 1).find("relu"), std::string::npos);
  EXPECT_NE(error_of("relu", {{"slope", "1"}}, 1, 1).find("slope"), std::string::npos);
  EXPECT_NE(error_of("_plus_scalar", {{"scalar", "much"}}, 1, 1).find("ParamError"), std::string::npos);
  EXPECT_NE(error_of("FullyConnected", {}, 2, 1).find("ParamError: operator 'FullyConnected'"), std::string::npos);
  EXPECT_NE(error_of("relu", {}, 2, 1).find("expected 1, got 2"), std::string::npos);
  EXPECT_NE(error_of("relu", {}, 1, 0).find("num_outputs"), std::string::npos);
  EXPECT_NE(error_of("_foreach", {}, 1, 1).find("loops and branches"), std::string::npos);
  // Found by fuzzing: variadic operators trusted the attribute.
  for (const char* name : {"_npi_hstack", "_npi_vstack", "Concat", "stack", "add_n", "khatri_rao"}) {
    EXPECT_NE(error_of(name, {{"num_args", "3"}}, 0, 1).find("expected 3, got 0"), std::string::npos) << name;
    EXPECT_NE(error_of(name, {{"num_args", "1"}}, 2, 1).find("expected 1, got 2"), std::string::npos) << name;
    EXPECT_NE(error_of(name, {}, 0, 1).find("num_args"), std::string::npos) << name;
  }
  EXPECT_EQ(out[0], nullptr);
}

TEST(COperators, HowManyResultsThereAreCanBeAskedAndIsSaidWhereTheRoomIsTooSmall) {
  const char* const keys[] = {"num_outputs", "axis"};
  const char* const values[] = {"12", "0"};
  HnOp split = nullptr;
  EXPECT_OK(hn_op_prepare("SliceChannel", 2, keys, values, &split));
  size_t count = 0;
  EXPECT_OK(hn_op_num_outputs(split, 1, &count));
  EXPECT_EQ(count, 12u);
  EXPECT_EQ(hn_op_num_outputs(split, 3, &count), -1);
  EXPECT_NE(std::string(hn_last_error()).find("expected 1, got 3"), std::string::npos) << hn_last_error();
  HnArray x = make({12}, std::vector<float>(12, 1));
  for (const size_t room : {size_t{0}, size_t{11}}) {
    HnArray none[12] = {};
    count = room;
    EXPECT_EQ(hn_op_call(split, 1, &x, &count, none), -1);
    EXPECT_EQ(count, 12u);
    EXPECT_EQ(none[0], nullptr);
    const std::string text = hn_last_error();
    EXPECT_NE(text.find("room for 12 arrays, got " + std::to_string(room)), std::string::npos) << text;
  }
  std::vector<HnArray> results(count);
  EXPECT_OK(hn_op_call(split, 1, &x, &count, results.data()));
  EXPECT_EQ(values_of(results[11]), std::vector<float>{1});
  count = 0;
  EXPECT_EQ(hn_invoke("SliceChannel", 2, keys, values, 1, &x, &count, nullptr), -1);
  EXPECT_EQ(count, 12u);
  // Hidden outputs are not counted.
  HnOp norm = nullptr;
  EXPECT_OK(hn_op_prepare("BatchNorm", 0, nullptr, nullptr, &norm));
  EXPECT_OK(hn_op_num_outputs(norm, 5, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_OK(hn_op_free(split));
  EXPECT_OK(hn_op_free(norm));
}

TEST(COperators, ScalarsHaveNumpysShapeOnThreadsThatSaySo) {
  HnArray x = make({3}, {1, 2, 3});
  const auto ndim_of_sum = [&] {
    int ndim = -1;
    EXPECT_OK(hn_array_ndim(invoke("sum", {}, {x})[0], &ndim));
    return ndim;
  };
  EXPECT_EQ(ndim_of_sum(), 1);
  int before = -1, on = -1;
  EXPECT_OK(hn_set_np_shape(1, &before));
  EXPECT_EQ(before, 0);
  EXPECT_OK(hn_is_np_shape(&on));
  EXPECT_EQ(on, 1);
  EXPECT_EQ(ndim_of_sum(), 0);
  HnArray empty = make({0, 3}, {});
  const std::vector<HnArray> joined = invoke("Concat", {{"dim", "0"}}, {empty, empty});
  const int64_t* shape = nullptr;
  EXPECT_OK(hn_array_shape(joined[0], &shape));
  EXPECT_EQ(shape[0], 0);
  EXPECT_TRUE(values_of(joined[0]).empty());
  std::thread([&] {
    EXPECT_OK(hn_is_np_shape(&on));
    EXPECT_EQ(on, 0);
    EXPECT_EQ(ndim_of_sum(), 1);
  }).join();
  EXPECT_OK(hn_set_np_shape(before, nullptr));
  EXPECT_EQ(ndim_of_sum(), 1);
}

TEST(COperators, TheListHasEveryOperatorOnce) {
  size_t count = 0;
  EXPECT_OK(hn_op_count(&count));
  std::set<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    EXPECT_OK(hn_op_name(i, &name));
    names.insert(name);
  }
  EXPECT_EQ(names.size(), count);
  for (const char* known : {"FullyConnected", "Convolution", "sgd_update", "_foreach"}) EXPECT_TRUE(names.count(known));
}

TEST(COperators, StepsOfGradientsWhichTrustTheirArgumentsAreNeitherListedNorCalled) {
  // Found by fuzzing: rows and indices that do not fit the array caused reads out of bounds.
  const char *keys[] = {"outer", "rows", "inner", "count", "shape"}, *values[] = {"9", "9", "9", "9", "(9, 9, 9)"};
  const HnArray inputs[] = {make({2}, {1, 2}), make({2}, {7, 8})};
  HnArray output = nullptr;
  size_t room = 1;
  EXPECT_EQ(hn_invoke("_gather_along_axis", 5, keys, values, 2, inputs, &room, &output), -1);
  EXPECT_NE(std::strstr(hn_last_error(), "a step of a gradient"), nullptr) << hn_last_error();
  size_t count = 0;
  EXPECT_OK(hn_op_count(&count));
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    EXPECT_OK(hn_op_name(i, &name));
    EXPECT_STRNE(name, "_gather_along_axis");
  }
  for (HnArray input : inputs) EXPECT_OK(hn_array_free(input));
}

TEST(COperators, SeedsGiveTheSameNumbersAgain) {
  std::vector<float> drawn[2];
  for (auto& values : drawn) {
    EXPECT_OK(hn_seed(7));
    values = values_of(invoke("_random_uniform", {{"shape", "(5,)"}}, {})[0]);
  }
  EXPECT_EQ(drawn[0], drawn[1]);
}

struct Recording {
  explicit Recording(int training = 1) {
    hn_autograd_set_recording(1, &recording_before);
    hn_autograd_set_training(training, &training_before);
  }
  ~Recording() {
    hn_autograd_set_recording(recording_before, nullptr);
    hn_autograd_set_training(training_before, nullptr);
  }
  int recording_before = 0, training_before = 0;
};

TEST(CGradients, ReachLeavesThroughOperatorsAndViews) {
  HnArray x = make({2, 2}, {1, 2, 3, 4}), gradient = nullptr, flat = nullptr, tail = nullptr;
  EXPECT_OK(hn_array_attach_grad(x, "write"));
  const int64_t four[] = {4};
  HnArray y = nullptr;
  {
    const Recording recording;
    int on = 0;
    EXPECT_OK(hn_autograd_is_recording(&on));
    EXPECT_EQ(on, 1);
    EXPECT_OK(hn_array_reshape(x, four, 1, &flat));
    EXPECT_OK(hn_array_slice(flat, 1, 4, &tail));
    y = invoke("square", {}, {tail})[0];
  }
  EXPECT_OK(hn_autograd_backward(1, &y, nullptr, 0, 1));
  EXPECT_OK(hn_array_grad(x, &gradient));
  EXPECT_EQ(values_of(gradient), (std::vector<float>{0, 4, 6, 8}));
  int on = 1;
  EXPECT_OK(hn_autograd_is_recording(&on));
  EXPECT_EQ(on, 0);
}

TEST(CGradients, OfHigherOrder) {
  HnArray x = make({2}, {2, 3}), first = nullptr, second = nullptr, third = nullptr;
  EXPECT_OK(hn_array_attach_grad(x, "write"));
  {
    const Recording recording;
    HnArray square = invoke("square", {}, {x})[0];
    HnArray fourth = invoke("square", {}, {square})[0];
    EXPECT_OK(hn_autograd_grad(1, &fourth, nullptr, 1, &x, 1, 1, 1, &first));
    EXPECT_OK(hn_autograd_grad(1, &first, nullptr, 1, &x, 1, 1, 1, &second));
    EXPECT_OK(hn_autograd_grad(1, &second, nullptr, 1, &x, 0, 0, 1, &third));
  }
  EXPECT_EQ(values_of(first), (std::vector<float>{32, 108}));
  EXPECT_EQ(values_of(second), (std::vector<float>{48, 108}));
  EXPECT_EQ(values_of(third), (std::vector<float>{48, 72}));
}

constexpr const char* kNet = R"json({"nodes": [
  {"op": "null", "name": "data", "attrs": {"__shape__": "(0, 3)", "__dtype__": "0"}, "inputs": []},
  {"op": "null", "name": "w", "inputs": []}, {"op": "null", "name": "gamma", "inputs": []},
  {"op": "null", "name": "beta", "inputs": []}, {"op": "null", "name": "mean", "inputs": []},
  {"op": "null", "name": "var", "inputs": []},
  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2", "no_bias": "True"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
  {"op": "BatchNorm", "name": "bn", "attrs": {"fix_gamma": "False", "momentum": "0.5", "eps": "0.001"},
   "inputs": [[6, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 1], [5, 0, 1]]}],
 "arg_nodes": [0, 1, 2, 3, 4, 5], "heads": [[7, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";

HnModel make_net() {
  const std::string path = testing::TempDir() + "operators_test.params";
  const HnArray arrays[] = {make({2, 3}, {1, 2, 3, 4, 5, 6}), make({2}, {1, 2}), make({2}, {0, 1}), make({2}, {0, 0}),
                            make({2}, {1, 1})};
  const char* const names[] = {"arg:w", "arg:gamma", "arg:beta", "aux:mean", "aux:var"};
  EXPECT_OK(hn_arrays_save(path.c_str(), 5, arrays, names));
  const std::string json = testing::TempDir() + "operators_test.json";
  std::FILE* file = std::fopen(json.c_str(), "wb");
  std::fwrite(kNet, 1, std::strlen(kNet), file);
  std::fclose(file);
  HnModel model = nullptr;
  EXPECT_OK(hn_model_load(json.c_str(), path.c_str(), &model));
  std::remove(path.c_str());
  std::remove(json.c_str());
  return model;
}

std::vector<float> run(HnModel model, HnArray data) {
  HnArray out = nullptr;
  EXPECT_OK(hn_model_run(model, 1, &data, 1, &out));
  return values_of(out);
}

TEST(CModels, SayWhatTheyTakeHoldAndGive) {
  HnModel model = make_net();
  size_t inputs = 0, parameters = 0;
  EXPECT_OK(hn_model_num_inputs(model, &inputs));
  EXPECT_OK(hn_model_num_parameters(model, &parameters));
  EXPECT_EQ(inputs, 1u);
  EXPECT_EQ(parameters, 5u);
  const char* name = nullptr;
  EXPECT_OK(hn_model_parameter_name(model, 3, &name));
  EXPECT_STREQ(name, "mean");
  HnTensorSpec spec{}, result{};
  EXPECT_OK(hn_model_input_spec(model, 0, &spec));
  EXPECT_EQ(spec.ndim, 2);
  EXPECT_EQ(spec.shape[1], 3);
  EXPECT_EQ(spec.dtype, HN_FLOAT32);
  spec.shape[0] = 7;
  EXPECT_OK(hn_model_infer(model, 1, &spec, 1, &result));
  EXPECT_EQ(result.ndim, 2);
  EXPECT_EQ(result.shape[0], 7);
  EXPECT_EQ(result.shape[1], 2);
  EXPECT_EQ(result.dtype, HN_FLOAT32);
  EXPECT_OK(hn_model_free(model));
}

TEST(CModels, RunIntoGivenArraysAndReadParametersThatWereChanged) {
  HnModel model = make_net();
  HnArray data = make({1, 3}, {1, 1, 1}), out = make({1, 2}, {0, 0}), w = nullptr;
  EXPECT_OK(hn_model_run_into(model, 1, &data, 1, &out));
  const std::vector<float> before = values_of(out);
  EXPECT_EQ(before, run(model, data));
  EXPECT_OK(hn_model_parameter(model, 0, &w));
  const std::vector<float> zeros(6);
  EXPECT_OK(hn_array_copy_from(w, zeros.data(), 24));
  EXPECT_EQ(run(model, data), (std::vector<float>{0, 1}));
  EXPECT_OK(hn_model_free(model));
}

TEST(CModels, LearnAndAreSavedWithWhatTheyLearned) {
  HnModel model = make_net();
  HnArray data = make({4, 3}, {1, 2, 3, 3, 2, 1, 0, 1, 0, 2, 2, 5});
  HnArray w = nullptr, gradient = nullptr, out = nullptr, loss = nullptr, mean = nullptr;
  EXPECT_OK(hn_model_parameter(model, 0, &w));
  EXPECT_OK(hn_model_parameter(model, 3, &mean));
  EXPECT_OK(hn_array_attach_grad(w, "write"));
  {
    const Recording recording;
    EXPECT_OK(hn_model_run(model, 1, &data, 1, &out));
    loss = invoke("sum", {}, {invoke("square", {}, {out})[0]})[0];
  }
  EXPECT_OK(hn_autograd_backward(1, &loss, nullptr, 0, 1));
  EXPECT_OK(hn_array_grad(w, &gradient));
  double total = 0;
  for (const float g : values_of(gradient)) total += g * g;
  EXPECT_GT(total, 0);
  EXPECT_NE(values_of(mean), (std::vector<float>{0, 0})) << "training updates the running mean";
  const HnArray update[] = {w, gradient};
  const char* const keys[] = {"lr"};
  const char* const values[] = {"0.1"};
  EXPECT_OK(hn_invoke_into("sgd_update", 1, keys, values, 2, update, 1, &w));

  const std::string json = testing::TempDir() + "saved-symbol.json", params = testing::TempDir() + "saved-0000.params";
  EXPECT_OK(hn_model_save(model, json.c_str(), params.c_str()));
  HnModel again = nullptr;
  EXPECT_OK(hn_model_load(json.c_str(), params.c_str(), &again));
  EXPECT_EQ(run(again, data), run(model, data));
  size_t count = 0;
  HnArray* loaded = nullptr;
  const char** names = nullptr;
  EXPECT_OK(hn_arrays_load(params.c_str(), &count, &loaded, &names));
  ASSERT_EQ(count, 5u);
  EXPECT_STREQ(names[0], "arg:w");
  EXPECT_STREQ(names[3], "aux:mean");
  EXPECT_OK(hn_arrays_free(count, loaded, names));
  EXPECT_OK(hn_model_free(again));
  EXPECT_OK(hn_model_free(model));
  std::remove(json.c_str());
  std::remove(params.c_str());
}

TEST(CModels, AModelThatIsFreedWhileThreadsRunItEndsInValuesOrErrors) {
  HnModel model = make_net();
  HnArray data = make({1, 3}, {1, 1, 1});
  const std::vector<float> expected = run(model, data);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        if (t == 3 && i == 50) hn_model_free(model);
        HnArray out = nullptr;
        if (hn_model_run(model, 1, &data, 1, &out) == 0) {
          wrong += values_of(out) != expected;
          hn_array_free(out);
        } else {
          wrong += std::string(hn_last_error()).find("freed") == std::string::npos;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CProcess, WarningsReachTheCallback) {
  std::string heard;
  EXPECT_OK(hn_set_log_callback([](const char* text, void* to) { *static_cast<std::string*>(to) += text; }, &heard));
  hybridnet::warn("something is odd");
  EXPECT_OK(hn_set_log_callback(nullptr, nullptr));
  hybridnet::warn("this goes to stderr");
  EXPECT_EQ(heard, "something is odd");
}

TEST(CProcess, ProfilesAreWritten) {
  EXPECT_EQ(hn_abi_version(), HN_ABI_VERSION);
  const char* engine = nullptr;
  int threads = 0;
  EXPECT_OK(hn_engine_type(&engine));
  EXPECT_OK(hn_num_threads(&threads));
  EXPECT_GE(threads, 1);
  const std::string path = testing::TempDir() + "profile.json";
  EXPECT_OK(hn_profiler_start());
  HnArray x = make({2}, {1, 2});
  values_of(invoke("relu", {}, {x})[0]);
  EXPECT_OK(hn_profiler_stop());
  EXPECT_OK(hn_profiler_save(path.c_str()));
  std::FILE* file = std::fopen(path.c_str(), "rb");
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  std::remove(path.c_str());
  EXPECT_NE(text.find("\"name\": \"relu\""), std::string::npos) << text;
  EXPECT_EQ(hn_profiler_save("/no/such/folder/profile.json"), -1);
  EXPECT_STREQ(hn_last_error_kind(), "FileError");
}

}  // namespace
