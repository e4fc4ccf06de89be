// Batchers: each thread of a shared call gets its own rows, errors reach the thread that caused them, and closing loses
// no request.
#include "hybridnet/cpp/batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace {

using namespace hybridnet::cpp;
using Floats = std::vector<float>;
using namespace std::chrono_literals;

Model graph(const std::string& nodes, const std::string& arguments, const std::string& heads) {
  const std::string json = R"({"nodes": [)" + nodes + R"(], "arg_nodes": [)" + arguments + R"(], "heads": [)" + heads +
                           R"(], "attrs": {"mxnet_version": ["int", 10901]}})";
  return Model::from_memory(json, {});
}

// Returns a model that computes y = relu(3 x), s = the sums of the rows of x.
Model rows() {
  return graph(R"({"op": "null", "name": "x", "inputs": []},
    {"op": "_mul_scalar", "name": "m", "attrs": {"scalar": "3"}, "inputs": [[0, 0, 0]]},
    {"op": "relu", "name": "y", "inputs": [[1, 0, 0]]},
    {"op": "sum", "name": "s", "attrs": {"axis": "1"}, "inputs": [[0, 0, 0]]})",
               "0", "[2, 0, 0], [3, 0, 0]");
}
const HnTensorSpec kRow = {{1, 3}, 2, HN_FLOAT32};

// Returns a model that fails for indices beyond its table.
Model lookup() {
  return graph(R"({"op": "null", "name": "i", "inputs": []},
    {"op": "_arange", "name": "table", "attrs": {"start": "0", "stop": "8"}, "inputs": []},
    {"op": "take", "name": "y", "attrs": {"mode": "raise"}, "inputs": [[1, 0, 0], [0, 0, 0]]})",
               "0", "[2, 0, 0]");
}
const HnTensorSpec kIndex = {{1}, 1, HN_INT32};

Array numbers(int64_t count, float first) {
  Floats values(static_cast<size_t>(3 * count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return Array::from<float>({count, 3}, values);
}

bool is_right(const std::vector<Array>& found, const Array& x) {
  const Floats in = x.to_vector<float>(), y = found[0].to_vector<float>(), s = found[1].to_vector<float>();
  for (size_t i = 0; i < in.size(); ++i)
    if (y[i] != std::max(0.f, 3 * in[i])) return false;
  for (size_t i = 0; i < s.size(); ++i)
    if (s[i] != in[3 * i] + in[3 * i + 1] + in[3 * i + 2]) return false;
  return found[0].shape() == x.shape() && s.size() * 3 == in.size();
}

TEST(CppBatcher, ThreadsGetTheRowsOfTheirOwnRequests) {
  for (const Batcher::Options options :
       {Batcher::Options{}, Batcher::Options{.max_rows = 1}, Batcher::Options{.max_rows = 7, .calls = 3},
        Batcher::Options{.max_rows = 16, .max_wait_us = 50}}) {
    const Batcher batcher(rows(), options, {kRow});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 1000; ++i) {
          const Array x = numbers(1 + (t + i) % 4, static_cast<float>((t * 31 + i) % 1000) - 500);
          wrong += !is_right(batcher.run({x}), x);
        }
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(CppBatcher, WhatIsWrongWithARequestFailsItAlone) {
  const Batcher batcher(lookup(), {.max_rows = 64, .max_wait_us = 300}, {kIndex});
  std::atomic<int> wrong{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const int32_t index = t == 5 ? 1000 : (t + i) % 8;
        const Array x = Array::from<int32_t>({1}, std::vector<int32_t>{index});
        try {
          wrong += batcher.run({x})[0].to_vector<float>() != Floats{static_cast<float>(index)};
        } catch (const Error&) {
          refused += t == 5;
          wrong += t != 5;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(refused, 100);
}

// Two requests share a call as soon as both wait.
TEST(CppBatcher, ASharedCallThatFailsIsToldOncePerBatcher) {
  std::vector<std::string> heard;
  hn_set_log_callback(
      [](const char* text, void* to) { static_cast<std::vector<std::string>*>(to)->emplace_back(text); }, &heard);
  for (int made = 1; made <= 2; ++made) {
    const Batcher batcher(lookup(), {.max_rows = 2, .max_wait_us = 60'000'000}, {kIndex});
    for (int round = 0; round < 2; ++round) {
      std::thread good([&] { EXPECT_EQ(batcher.run({Array::from<int32_t>({1}, {3})})[0].item<float>(), 3.f); });
      EXPECT_THROW(batcher.run({Array::from<int32_t>({1}, {99})}), Error);
      good.join();
    }
    ASSERT_EQ(heard.size(), static_cast<size_t>(made));
    EXPECT_NE(heard.back().find("2 requests shared failed"), std::string::npos) << heard.back();
    EXPECT_NE(heard.back().find("99"), std::string::npos) << heard.back();
  }
  hn_set_log_callback(nullptr, nullptr);
}

TEST(CppBatcher, ARequestOfManyRowsHasACallOfItsOwn) {
  const Batcher batcher(rows(), {.max_rows = 2}, {kRow});
  const Array x = numbers(100, -40);
  EXPECT_TRUE(is_right(batcher.run({x}), x));
}

TEST(CppBatcher, WrongRequestsSayWhatWasExpected) {
  const Batcher batcher(rows(), {}, {kRow});
  EXPECT_THROW(batcher.run({}), ValueError);
  EXPECT_THROW(batcher.run({Array::zeros({2, 4})}), ShapeError);
  EXPECT_THROW(batcher.run({Array::zeros({3})}), ShapeError);
  EXPECT_THROW(batcher.run({Array::zeros({0, 3})}), ShapeError);
  EXPECT_THROW(batcher.run({Array::zeros({1, 3}, HN_FLOAT64)}), DTypeError);
  const Array x = numbers(1, 0);
  EXPECT_TRUE(is_right(batcher.run({x}), x));
}

TEST(CppBatcher, ModelsWhoseRowsAreNotApartAreRefused) {
  const auto error_of = [](const Model& model) {
    try {
      const Batcher batcher(model, {}, {kRow});
    } catch (const Error& error) {
      return error.kind() + ": " + error.what();
    }
    return std::string("none");
  };
  const std::string x = R"({"op": "null", "name": "x", "inputs": []},)";
  EXPECT_NE(error_of(graph(x + R"({"op": "sum", "name": "s", "inputs": [[0, 0, 0]]})", "0", "[1, 0, 0]"))
                .find("expected 3 rows for inputs of 3 rows"),
            std::string::npos);
  EXPECT_NE(error_of(graph(x + R"({"op": "softmax", "name": "s", "attrs": {"axis": "0"}, "inputs": [[0, 0, 0]]})", "0",
                           "[1, 0, 0]"))
                .find("rows that do not depend on each other"),
            std::string::npos);
  EXPECT_EQ(error_of(graph(x + R"({"op": "softmax", "name": "s", "inputs": [[0, 0, 0]]})", "0", "[1, 0, 0]")), "none");
  EXPECT_EQ(
      error_of(graph(x + R"({"op": "_random_uniform_like", "name": "s", "inputs": [[0, 0, 0]]})", "0", "[1, 0, 0]")),
      "none");
}

TEST(CppBatcher, TooManyThatWaitAreRefusedAtOnceAndAnEndAnswersThoseThatDo) {
  const Batcher batcher(rows(), {.max_rows = 64, .max_wait_us = 3'000'000'000, .max_waiting = 4}, {kRow});
  std::atomic<int> right{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 7; ++t)
    threads.emplace_back([&, t] {
      const Array x = numbers(1, static_cast<float>(t));
      try {
        right += is_right(batcher.run({x}), x);
      } catch (const EngineError& error) {
        refused += std::string(error.what()).find("4 requests wait") != std::string::npos;
      }
    });
  while (refused < 3) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(right, 0);
  batcher.close();  // ends the waits of an hour
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 4);
  EXPECT_THROW(batcher.run({numbers(1, 0)}), EngineError);
  batcher.close();
}

TEST(CppBatcher, FreeingItWhileThreadsCallAnswersThem) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    HnBatcher handle = nullptr;
    ASSERT_EQ(hn_batcher_create(rows().get(), 1, &kRow, nullptr, &handle), 0) << hn_last_error();
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const Array x = numbers(1, 7);
        const HnArray in[] = {x.get()};
        HnArray out[2] = {};
        while (hn_batcher_run(handle, 1, in, 2, out) == 0)
          wrong += !is_right({Array(out[0]), Array(out[1])}, x);  // the Arrays free the handles
        wrong += std::string(hn_last_error_kind()) != "ValueError";
      });
    std::this_thread::sleep_for(1ms);
    EXPECT_EQ(hn_batcher_free(handle), 0);
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
