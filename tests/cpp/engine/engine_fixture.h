// Test fixture with both engines as parameter, and gates in place of sleeps.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "hybridnet/engine.h"

namespace hybridnet {

// Closed until open() is called; pass() blocks until then.
class Gate {
 public:
  void open() { promise_.set_value(); }
  void pass() const { future_.wait(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

using VarList = std::vector<Var*>;

// Short forms of frequent calls, with lists in place of spans.
class EngineUser {
 public:
  explicit EngineUser(std::unique_ptr<Engine> made) : engine(std::move(made)) {}

  void push(VarList reads, VarList writes, std::function<void()> work, Engine::Options options = {}) {
    engine->push([work = std::move(work)](TaskContext&) { work(); }, {reads, writes}, options);
  }
  bool begin(VarList reads, VarList writes, Engine::Options options = {}) {
    return engine->try_begin_inline({reads, writes}, options);
  }
  void finish(VarList reads, VarList writes) { engine->finish_inline({reads, writes}); }

  std::unique_ptr<Engine> engine;
};

// Pushes tasks from several threads, a few pending at a time, until it is stopped.
class PushRate {
 public:
  PushRate(EngineUser& user, int threads) {
    for (int t = 0; t < threads; ++t) {
      threads_.emplace_back([this, &user] {
        std::vector<Var> vars(4);
        while (!stop_) {
          for (Var& var : vars) {
            user.push({}, {&var}, [] { std::this_thread::sleep_for(std::chrono::microseconds(300)); });
          }
          user.engine->wait_for_var(vars[0]);
        }
        for (Var& var : vars) user.engine->wait_for_var(var);
      });
    }
  }
  ~PushRate() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

class BothEngines : public testing::TestWithParam<std::string>, public EngineUser {
 protected:
  BothEngines() : EngineUser(GetParam() == "serial" ? make_serial_engine() : make_threaded_engine()) {}
};

class ThreadedEngineTest : public testing::Test, public EngineUser {
 protected:
  explicit ThreadedEngineTest(int workers = 4) : EngineUser(make_threaded_engine(workers)) {}
};

}  // namespace hybridnet
