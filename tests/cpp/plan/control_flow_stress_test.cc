// Many threads that randomly run, differentiate, fail, drop and wait for models with loops and branches, concurrently.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "plan/control_flow_models.h"

namespace hybridnet {
namespace {

constexpr int kThreads = 6;
constexpr auto kDuration = std::chrono::milliseconds(1500);

class ControlFlowStress : public ControlFlow {
 protected:
  using Random = std::mt19937_64;

  // Until the time is over, repeats on each thread one random action of a user.
  void run_all() {
    const auto end = std::chrono::steady_clock::now() + kDuration;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t, end] {
        Random random(static_cast<uint64_t>(t) + 1);
        while (std::chrono::steady_clock::now() < end) do_something(random);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void do_something(Random& random) {
    switch (random() % 8) {
      case 0:
        return differentiate(random);
      case 1:
        return fail(random);
      case 2:
        return wait_for_all();
      case 3:
        return drop(random);
      case 4:
        return pause_workers(random);
      case 5:
        return map(random);
      default:
        return loop(random);
    }
  }

  // Pushes a task of random length on the array, so that runs that read it are queued behind it.
  static void delay(const NDArray& array, Random& random) {
    if (random() % 2 == 0) return;
    Var* const writes[] = {&array.var()};
    const auto time = std::chrono::microseconds(random() % 200);
    engine().push([array, time](TaskContext&) { std::this_thread::sleep_for(time); }, {{}, writes},
                  {.name = "delay", .cost_ns = random() % 2 == 0 ? 0 : 30'000});
  }

  void expect(bool right) { wrong_ += right ? 0 : 1; }

  void loop(Random& random) {
    const auto start = static_cast<float>(random() % 1000);
    const NDArray inputs[] = {array({1, -1, 3, -1}), array({start})};
    delay(inputs[random() % 2], random);
    std::vector<NDArray> out = loop_->call(inputs);
    const NDArray more[] = {array({2}), out[1]};
    if (random() % 2 == 0) out = loop_->call(more);  // waits for the first call's output
    const float once = ((start + 1) * 2 + 3) * 2;
    const float last = values(out[1])[0];
    expect(last == once || last == once + 2);
    ++runs_;
  }

  void map(Random& random) {
    const NDArray inputs[] = {array({3, 1, 90, 20}).reshaped(Shape{2, 2}), array({2, 0}), array({5, 6, 7})};
    delay(inputs[random() % 3], random);
    const std::vector<NDArray> out = map_->call(inputs);
    expect(values(out[0]) == std::vector<float>({96, 32, 90, 20}));
    expect(values(out[1]) == std::vector<float>({7, 5}));
    ++runs_;
  }

  void differentiate(Random& random) {
    const NDArray x = array({1, -1, 3}), start = array({5}), grad_x = array({0, 0, 0}), grad_start = array({0});
    mark_variable(x, grad_x, GradReq::kWrite);
    mark_variable(start, grad_start, GradReq::kWrite);
    delay(x, random);
    autograd_state() = {true, true};
    const NDArray inputs[] = {x, start};
    const std::vector<NDArray> out = loop_->call(inputs);
    autograd_state() = {};
    const NDArray heads[] = {out[1]};
    backward(heads, {}, false, true);
    expect(values(grad_x) == std::vector<float>({2, 0, 1}));
    expect(values(grad_start) == std::vector<float>({2}));
    ++runs_;
  }

  // The index in iteration 1 is out of range. Another thread's wait_all() may have reported it before this thread does.
  void fail(Random& random) {
    const NDArray inputs[] = {array({3, 1, 90, 20}).reshaped(Shape{2, 2}), array({2, 9}), array({5, 6, 7})};
    delay(inputs[random() % 3], random);
    try {
      const std::vector<NDArray> out = map_->call(inputs);
      const NDArray more[] = {out[0], array({0, 0}), array({5, 6, 7})};
      const std::vector<NDArray> behind = map_->call(more);
      behind[random() % 2].wait_to_read();
    } catch (const Error& error) {
      expect(is_the_failure(error));
    }
    ++runs_;
  }

  void wait_for_all() {
    try {
      engine().wait_all();
    } catch (const Error& error) {
      expect(is_the_failure(error));
    }
  }

  static bool is_the_failure(const Error& error) {
    return error.kind() == ErrorKind::kIndex && std::string(error.what()).find("map, iteration 1") != std::string::npos;
  }

  void drop(Random& random) {  // the results are never read
    for (int i = 0; i < 5; ++i) {
      const NDArray inputs[] = {array({1, -1, 3, -1}), array({1})};
      delay(inputs[1], random);
      loop_->call(inputs);
    }
  }

  static void pause_workers(Random& random) {  // like a fork
    if (random() % 8 != 0) return;
    engine().stop_workers();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    engine().start_workers();
  }

  const Ref<GraphCallable> loop_ = model();
  const Ref<GraphCallable> map_ = make_ref<GraphCallable>(Symbol::from_json(kMap, "map"), CallOptions{});
  std::atomic<int> wrong_{0};
  std::atomic<int> runs_{0};
};

TEST_F(ControlFlowStress, ThreadsThatRunFailDropAndWaitAtRandomGetTheirOwnResultsAndEnd) {
  run_all();
  wait_for_all();
  EXPECT_EQ(wrong_, 0);
  EXPECT_GT(runs_, kThreads);
  const NDArray inputs[] = {array({1, -1, 3, -1}), array({5})};
  EXPECT_EQ(values(loop_->call(inputs)[1]), (std::vector<float>{30}));  // no failure has lasting effects
}

}  // namespace
}  // namespace hybridnet
