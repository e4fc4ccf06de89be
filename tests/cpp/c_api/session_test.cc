#include "hybridnet/cpp/session.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>
#include <thread>

#include "c_api/model.h"
#include "hybridnet/cpp/nd.h"

namespace {

using namespace hybridnet::cpp;
using Floats = std::vector<float>;

// y = relu(x * w), z = y reshaped to one axis: two outputs that share one value.
constexpr const char* kNet = R"json({"nodes": [
  {"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
  {"op": "broadcast_mul", "name": "product", "inputs": [[0, 0, 0], [1, 0, 0]]},
  {"op": "relu", "name": "y", "inputs": [[2, 0, 0]]},
  {"op": "Reshape", "name": "z", "attrs": {"shape": "(-1,)"}, "inputs": [[3, 0, 0]]}],
 "arg_nodes": [0, 1], "heads": [[3, 0, 0], [4, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";

Model net() { return Model::from_memory(kNet, {}); }
Array row(std::initializer_list<float> values) {
  return Array::from<float>({1, static_cast<int64_t>(values.size())}, values);
}

TEST(CppSession, ReadsAndWritesTheBoundArrays) {
  const Session session(net(), {row({1, -2, 3}), row({2, 2, 2})});
  session.run();
  EXPECT_EQ(session.output(0).to_vector<float>(), (Floats{2, 0, 6}));
  EXPECT_EQ(session.output(1).to_vector<float>(), (Floats{2, 0, 6}));
  EXPECT_EQ(session.output(1).shape(), (Shape{3}));
  session.input(0).copy_from(Floats{5, 5, -5});
  session.run();
  EXPECT_EQ(session.output(0).to_vector<float>(), (Floats{10, 10, 0}));
}

TEST(CppSession, SharesThePlanOfItsModel) {
  HnModel model = nullptr;
  ASSERT_EQ(hn_model_load_from_memory(kNet, std::strlen(kNet), nullptr, 0, &model), 0) << hn_last_error();
  const Array x = row({1, -2, 3}), w = row({2, 2, 2});
  const HnArray inputs[] = {x.get(), w.get()};
  HnArray outputs[2] = {};
  ASSERT_EQ(hn_model_run(model, 2, inputs, 2, outputs), 0) << hn_last_error();
  HnSession session = nullptr;
  ASSERT_EQ(hn_session_create(model, 2, inputs, 0, nullptr, &session), 0) << hn_last_error();
  ASSERT_EQ(hn_session_run(session), 0) << hn_last_error();
  {
    const hybridnet::c_api::Pinned<hybridnet::c_api::ModelHandle> handle(model, "SharesThePlanOfItsModel", "model");
    EXPECT_EQ(handle->op()->counts().rewritten, 1U);
    EXPECT_EQ(handle->op()->counts().linked, 1U);
  }
  for (const HnArray output : outputs) hn_array_free(output);
  hn_session_free(session);
  hn_model_free(model);
}

TEST(CppSession, WritesIntoGivenArraysAlsoWhereTheyAreInputsOrTheSame) {
  float memory[6] = {};
  const Array y = Array::wrap(memory, {1, 3}), z = Array::wrap(memory + 3, {3});
  const Session session(net(), {row({1, -2, 3}), row({2, 2, 2})}, {y, z});
  session.run();
  EXPECT_EQ(Floats(memory, memory + 6), (Floats{2, 0, 6, 2, 0, 6}));

  const Array x = row({1, -2, 3}), w = row({2, 2, 2});
  const Session in_place(net(), {x, w}, {x, z});
  in_place.run();
  EXPECT_EQ(x.to_vector<float>(), (Floats{2, 0, 6}));
  in_place.run();
  EXPECT_EQ(x.to_vector<float>(), (Floats{4, 0, 12}));
  EXPECT_EQ(z.to_vector<float>(), (Floats{4, 0, 12}));
}

TEST(CppSession, WaitsForInputsThatAreBeingComputed) {
  const Array x = Array::zeros({300, 300}), w = Array::zeros({300, 300});
  const Session session(net(), {x, w});
  for (int i = 1; i < 20; ++i) {
    nd::internal::full({.shape = {300, 300}, .value = static_cast<double>(i)}, into(x));
    nd::internal::full({.shape = {300, 300}, .value = 2}, into(w));
    session.run();
    EXPECT_EQ(session.output(1).values<float>()[89999], 2.f * static_cast<float>(i));
  }
}

TEST(CppSession, OutlivesTheModelAndServesThreadsOneByOne) {
  std::unique_ptr<Session> session;
  {
    const Model model = net();
    session = std::make_unique<Session>(model, std::vector<Array>{row({1, -2, 3}), row({2, 2, 2})});
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) session->run();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(session->output(0).to_vector<float>(), (Floats{2, 0, 6}));
}

TEST(CppSession, RunsOnAThreadThatIsBoundToACore) {
  std::thread([] {
    const Session session(net(), {row({1, -2, 3}), row({2, 2, 2})});
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    int core = 0;
    while (!CPU_ISSET(core, &allowed)) ++core;
    pin_thread({core});
    session.run();
    EXPECT_EQ(sched_getcpu(), core);
    EXPECT_EQ(session.output(0).to_vector<float>(), (Floats{2, 0, 6}));
    EXPECT_THROW(pin_thread({core, core}), ValueError);
    EXPECT_THROW(pin_thread({-1}), ValueError);
    pin_thread({});
    cpu_set_t now;
    ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
    EXPECT_TRUE(CPU_EQUAL(&now, &allowed));
  }).join();
}

TEST(CppSession, WhatDoesNotFitIsAnError) {
  EXPECT_THROW(Session(net(), {row({1, 2})}), ValueError);
  EXPECT_THROW(Session(net(), {row({1, 2}), row({1, 2, 3})}), ShapeError);
  EXPECT_THROW(Session(net(), {row({1, 2}), row({1, 2})}, {row({1, 2, 3}), row({1})}), ShapeError);
  EXPECT_THROW(Session(net(), {row({1, 2}), row({1, 2})}, {Array::zeros({1, 2}, HN_FLOAT64), Array::zeros({2})}),
               DTypeError);
  constexpr const char* kDynamic = R"json({"nodes": [
    {"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "m", "inputs": []},
    {"op": "_contrib_boolean_mask", "name": "rows", "inputs": [[0, 0, 0], [1, 0, 0]]}],
   "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";
  const Model dynamic = Model::from_memory(kDynamic, {});
  EXPECT_THROW(Session(dynamic, {Array::zeros({3, 2}), Array::zeros({3})}), UnsupportedError);
}

}  // namespace
