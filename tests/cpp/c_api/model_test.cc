#include "hybridnet/cpp/model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <set>
#include <thread>

#include "hybridnet/cpp/autograd.h"

namespace {

namespace hn = hybridnet::cpp;

constexpr const char* kDense = R"json({"nodes": [
  {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "w", "inputs": []}, {"op": "null", "name": "b", "inputs": []},
  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2"}, "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]}],
 "arg_nodes": [0, 1, 2], "heads": [[3, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";

// Returns the bytes of a .params file with w = [[1, 2, 3], [4, 5, 6]], b = [10, 20].
std::string parameters() {
  const std::string path = testing::TempDir() + "model_test.params";
  const auto w = hn::Array::from<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const auto b = hn::Array::from<float>({2}, std::vector<float>{10, 20});
  const HnArray arrays[] = {w.get(), b.get()};
  const char* const names[] = {"arg:w", "arg:b"};
  EXPECT_EQ(hn_arrays_save(path.c_str(), 2, arrays, names), 0) << hn_last_error();
  std::FILE* file = std::fopen(path.c_str(), "rb");
  std::string bytes(4096, '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  std::remove(path.c_str());
  return bytes;
}

hn::Model dense() {
  const std::string bytes = parameters();
  return hn::Model::from_memory(kDense, std::as_bytes(std::span(bytes.data(), bytes.size())));
}

TEST(CppModel, RunsAndNamesItsInputsAndOutputs) {
  const hn::Model model = dense();
  EXPECT_EQ(model.input_names(), std::vector<std::string>{"data"});
  EXPECT_EQ(model.output_names(), std::vector<std::string>{"fc_output"});
  const auto out = model.run({hn::Array::from<float>({1, 3}, std::vector<float>{1, 1, 1})});
  EXPECT_EQ(out[0].to_vector<float>(), (std::vector<float>{16, 35}));
  EXPECT_EQ(model.infer_shapes({{7, 3}}), (std::vector<std::vector<int64_t>>{{7, 2}}));
}

TEST(CppModel, NegativeSizesAreNoShapesToInferFrom) { EXPECT_THROW(dense().infer_shapes({{-5, 3}}), hn::Error); }

TEST(CppModel, RematBoundsWhatGradientsKeep) {
  constexpr const char* kTwoLayers = R"json({"nodes": [
    {"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "w", "inputs": []}, {"op": "null", "name": "b", "inputs": []},
    {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2"}, "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]},
    {"op": "Activation", "name": "act", "attrs": {"act_type": "softrelu"}, "inputs": [[3, 0, 0]]},
    {"op": "elemwise_mul", "name": "square", "inputs": [[4, 0, 0], [4, 0, 0]]}],
   "arg_nodes": [0, 1, 2], "heads": [[5, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";
  const std::string bytes = parameters();
  const hn::Model model = hn::Model::from_memory(kTwoLayers, std::as_bytes(std::span(bytes.data(), bytes.size())));
  const hn::Array data = hn::Array::from<float>({1, 3}, std::vector<float>{1, -1, 0.5});
  data.attach_grad();
  const hn::Array weight = model.parameters().at(0);
  weight.attach_grad();
  const auto gradient = [&](const char* remat) {
    model.set_remat(remat);
    std::vector<hn::Array> out;
    {
      const hn::autograd::Recorder recording;
      out = model.run({data});
    }
    out[0].backward();
    return weight.grad().to_vector<float>();
  };
  EXPECT_EQ(gradient("none"), gradient("auto"));
  EXPECT_EQ(gradient("none"), gradient("8"));  // the bytes of the layer's output
  EXPECT_THROW(gradient("0"), hn::Error);  // the layer reads its bias, which may be written before the gradient runs
  EXPECT_THROW(model.set_remat("some"), hn::Error);
}

TEST(CppModel, StatesAreToldFromWeights) {
  constexpr const char* kNorm = R"json({"nodes": [
    {"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "gamma", "inputs": []},
    {"op": "null", "name": "beta", "inputs": []}, {"op": "null", "name": "mean", "inputs": []},
    {"op": "null", "name": "var", "inputs": []},
    {"op": "BatchNorm", "name": "norm", "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]]}],
   "arg_nodes": [0, 1, 2, 3, 4], "heads": [[5, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";
  const std::string path = testing::TempDir() + "states.params";
  const char* const names[] = {"arg:gamma", "arg:beta", "aux:mean", "var"};
  std::vector<HnArray> arrays;
  const hn::Array three = hn::Array::zeros({3}), wide = hn::Array::zeros({3}, HN_FLOAT64);
  for (int i = 0; i < 4; ++i) arrays.push_back(i == 3 ? wide.get() : three.get());
  ASSERT_EQ(hn_arrays_save(path.c_str(), 4, arrays.data(), names), 0) << hn_last_error();
  const std::string graph = testing::TempDir() + "states-symbol.json";
  std::ofstream(graph) << kNorm;
  const hn::Model model(graph, path);
  EXPECT_EQ(model.parameter_names(), (std::vector<std::string>{"gamma", "beta", "mean", "var"}));
  EXPECT_EQ(model.state_names(), (std::vector<std::string>{"mean", "var"}));
  const HnTensorSpec spec = model.parameter_spec(3);
  EXPECT_EQ(spec.ndim, 1);
  EXPECT_EQ(spec.shape[0], 3);
  EXPECT_EQ(spec.dtype, HN_FLOAT64);
  EXPECT_EQ(model.parameter_spec(0).dtype, HN_FLOAT32);
  EXPECT_THROW(model.parameter_spec(4), hn::IndexError);
  std::remove(path.c_str());
  std::remove(graph.c_str());
}

TEST(CppModel, ManyThreadsRunOneModel) {
  const hn::Model model = dense();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const float x = static_cast<float>(t * 1000 + i);
        const auto out = model.run({hn::Array::from<float>({1, 3}, std::vector<float>{x, 0, 0})})[0].to_vector<float>();
        wrong += out != std::vector<float>{x + 10, 4 * x + 20};
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CppModel, WhatGradientsKeepChangesWhileThreadsRun) {
  const hn::Model model = dense();
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const hn::Array x = hn::Array::from<float>({1, 3}, std::vector<float>{5, 0, 0});
      while (!stop) wrong += model.run({x})[0].to_vector<float>() != std::vector<float>{15, 40};
    });
  }
  for (int i = 0; i < 50; ++i) model.set_remat(i % 2 == 0 ? "none" : "auto");
  stop = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CppModel, KeepsNoInputOfARun) {
  const hn::Model model = dense();
  static std::atomic<int> freed{0};
  static float values[3] = {1, 2, 3};
  {
    HnArray lent = nullptr;
    const int64_t shape[] = {1, 3};
    const auto count = [](void*) { ++freed; };
    ASSERT_EQ(hn_array_wrap(values, shape, 2, HN_FLOAT32, count, nullptr, &lent), 0) << hn_last_error();
    const hn::Array x(lent);
    model.run({x})[0].wait();
    EXPECT_EQ(freed, 0);
  }
  hn::wait_all();
  EXPECT_EQ(freed, 1);
}

TEST(CApi, HandlesThatOneThreadMadeAreFreedByAnother) {
  constexpr size_t kHandles = 10'000;
  std::vector<HnArray> handles(kHandles);
  const hn::Array array = hn::Array::zeros({2});
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> makers;
    for (size_t t = 0; t < 4; ++t) {
      makers.emplace_back([&, t] {
        for (size_t i = t; i < kHandles; i += 4) ASSERT_EQ(hn_array_copy(array.get(), &handles[i]), 0);
      });
    }
    for (std::thread& t : makers) t.join();
    std::set<HnArray> distinct(handles.begin(), handles.end());
    EXPECT_EQ(distinct.size(), kHandles);
    std::thread([&] {
      for (HnArray handle : handles) ASSERT_EQ(hn_array_free(handle), 0);
    }).join();
    int ndim = 0;
    for (size_t i = 0; i < kHandles; i += 1000) EXPECT_NE(hn_array_ndim(handles[i], &ndim), 0);
  }
}

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const hn::Error& error) {
    return error.kind() + ": " + error.what();
  }
  return "no error";
}

TEST(CppModel, ErrorsSayWhatToDo) {
  const hn::Model model = dense();
  EXPECT_NE(error_of([&] { model.run({}); }).find("expected 1, got 0"), std::string::npos);
  const std::string shape = error_of([&] {
    model.run({hn::Array::from<float>({1, 4}, std::vector<float>(4))})[0].to_vector<float>();
  });
  EXPECT_NE(shape.find("ShapeError"), std::string::npos) << shape;
  EXPECT_NE(shape.find("FullyConnected"), std::string::npos) << shape;
  EXPECT_NE(error_of([] { hn::Model("missing-symbol.json", "missing.params"); }).find("FileError"), std::string::npos);
  EXPECT_NE(error_of([&] {
              model.run({hn::Array::zeros({1, 3})})[0].to_vector<double>();
            }).find("DTypeError"),
            std::string::npos);
}

TEST(CApi, NullAndNonsenseArgumentsAreErrorsNotCrashes) {
  EXPECT_EQ(hn_array_create(nullptr, 2, HN_FLOAT32, nullptr, nullptr), -1);
  HnArray a = nullptr;
  EXPECT_EQ(hn_array_create(nullptr, 2, HN_FLOAT32, nullptr, &a), -1);
  const int64_t negative[] = {-1};
  EXPECT_EQ(hn_array_create(negative, 1, HN_FLOAT32, nullptr, &a), -1);
  const int64_t huge[] = {int64_t{1} << 62, 4};
  EXPECT_EQ(hn_array_create(huge, 2, HN_FLOAT32, nullptr, &a), -1);
  EXPECT_EQ(hn_array_create(negative, 0, 99, nullptr, &a), -1);
  EXPECT_STREQ(hn_last_error_kind(), "DTypeError");
  EXPECT_EQ(hn_array_free(nullptr), 0);
  EXPECT_EQ(hn_model_free(nullptr), 0);
  EXPECT_EQ(hn_model_run(nullptr, 0, nullptr, 0, nullptr), -1);
  const int64_t two[] = {2};
  ASSERT_EQ(hn_array_create(two, 1, HN_FLOAT32, nullptr, &a), 0);
  float room[2];
  EXPECT_EQ(hn_array_copy_to(a, room, 4), -1);
  EXPECT_EQ(hn_array_copy_to(a, room, 8), 0);
  EXPECT_EQ(room[1], 0.f);
  hn_array_free(a);
}

}  // namespace
