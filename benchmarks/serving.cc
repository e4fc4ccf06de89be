// The C++ programs of benchmarks/serving.py, which compiles this file and defines the words below.
//
//   serving first SYMBOL PARAMS SIZE...            predicts once
//   serving latency SYMBOL PARAMS CALLS SIZE...    median and 99.9th percentile, in nanoseconds, of session runs and of
//                                                  as many loops of arithmetic that take about as long
//   serving threads SYMBOL PARAMS THREADS SECONDS WAIT SIZE...   requests per second: Model::run, then a Batcher
#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include "hybridnet/cpp/batcher.h"
#include "hybridnet/cpp/session.h"

using namespace hybridnet::cpp;
using Clock = std::chrono::steady_clock;

namespace {

Array input_of(const std::vector<std::string>& sizes) {
  Shape shape;
  int64_t count = 1;
  for (const std::string& size : sizes) {
    shape.push_back(std::stoll(size));
    count *= shape.back();
  }
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 101;
  return Array::from<float>(shape, values);
}

// Median and 99.9th percentile in nanoseconds.
template <typename Call>
std::pair<int64_t, int64_t> percentiles(size_t calls, const Call& call) {
  std::vector<int64_t> times(calls);
  for (size_t i = 0; i < calls / 10 + 10; ++i) call();
  for (int64_t& time : times) {
    const auto begin = Clock::now();
    call();
    time = (Clock::now() - begin).count();
  }
  std::sort(times.begin(), times.end());
  return {times[calls / 2], times[calls * 999 / 1000]};
}

void count_up(int64_t steps) {
  volatile int64_t count = 0;
  for (int64_t i = 1; i <= steps; ++i) count = i;
}

// Prints the times of a loop on one core, too: the scheduler's part of the percentiles.
void print_latency(const Model& model, const Array& input, size_t calls) {
  const Session session(model, {input});
  const auto [median, late] = percentiles(calls, [&] { session.run(); });
  constexpr int64_t kSteps = 10'000;
  const int64_t steps = std::max<int64_t>(1, kSteps * median / percentiles(100, [] { count_up(kSteps); }).first);
  const auto [null_median, null_late] = percentiles(calls, [steps] { count_up(steps); });
  std::cout << median << " " << late << " " << null_median << " " << null_late << "\n";
}

template <typename Call>
double per_second(int threads, double seconds, const Call& call) {
  std::atomic<bool> stop{false};
  std::atomic<long> done{0};
  std::vector<std::thread> running;
  const auto begin = Clock::now();
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&] {
      long count = 0;
      for (; !stop; ++count) call();
      done += count;
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& t : running) t.join();
  return static_cast<double>(done) / std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 5) return 2;
  const Model model(words[1], words[2]);
  if (words[0] == "first") {
    const Array scores = model.run({input_of({words.begin() + 3, words.end()})})[0];
    std::cout << scores.values<float>()[0] << "\n";
  } else if (words[0] == "latency") {
    print_latency(model, input_of({words.begin() + 4, words.end()}), std::stoul(words[3]));
  } else {
    const Array input = input_of({words.begin() + 6, words.end()});
    const Shape sizes = input.shape();
    HnTensorSpec row = {{}, static_cast<int>(sizes.size()), HN_FLOAT32};
    std::copy(sizes.begin(), sizes.end(), row.shape);
    const Batcher batcher(model, {.max_wait_us = std::stol(words[5])}, {row});
    const int threads = std::stoi(words[3]);
    const double seconds = std::stod(words[4]);
    std::cout << per_second(threads, seconds, [&] { model.run({input})[0].wait(); }) << " "
              << per_second(threads, seconds, [&] { batcher.run({input}); }) << "\n";
  }
  return 0;
} catch (const Error& error) {
  std::cerr << error.kind() << ": " << error.what() << "\n";
  return 1;
}
