// The time of the engine and the pool per task and per block: the lower limit of every imperative operator.
#include <benchmark/benchmark.h>

#include <array>
#include <thread>

#include "hybridnet/engine.h"
#include "hybridnet/storage.h"

namespace hybridnet {
namespace {

void inline_run(benchmark::State& state) {
  const auto engine = make_threaded_engine();
  std::array<Var, 3> vars;
  const std::array<Var*, 2> reads{&vars[0], &vars[1]};
  const std::array<Var*, 1> writes{&vars[2]};
  const Engine::Access access{reads, writes};
  const Engine::Options options{.name = "add", .cost_ns = 100};
  for (auto _ : state) {
    if (!engine->try_begin_inline(access, options)) state.SkipWithError("refused");
    engine->finish_inline(access);
  }
}
BENCHMARK(inline_run)->Name("inline run, 2 reads, 1 write");

// Tasks that each wait for the previous one, pushed by one thread: push, run and end of one task in a full stream.
void queued_chain(benchmark::State& state) {
  const auto engine = make_threaded_engine();
  Var a, b;
  const std::array<Var*, 1> reads{&a};
  const std::array<Var*, 1> writes{&b};
  for (auto _ : state) {
    engine->push([](TaskContext&) {}, {reads, writes}, {.name = "add", .cost_ns = 100});
  }
  engine->wait_all();
}
BENCHMARK(queued_chain)->Name("push and run, chain")->UseRealTime();

void queued_independent(benchmark::State& state) {
  const auto engine = make_threaded_engine();
  std::array<Var, 64> vars;
  size_t next = 0;
  for (auto _ : state) {
    const std::array<Var*, 1> writes{&vars[next++ % vars.size()]};
    engine->push([](TaskContext&) {}, {{}, writes}, {.name = "add", .cost_ns = 100});
  }
  engine->wait_all();
}
BENCHMARK(queued_independent)->Name("push and run, independent")->UseRealTime();

// A single task and its wait: the time if each result is read at once.
void push_and_wait(benchmark::State& state) {
  const auto engine = make_threaded_engine();
  Var var;
  const std::array<Var*, 1> writes{&var};
  for (auto _ : state) {
    engine->push([](TaskContext&) {}, {{}, writes}, {.name = "add", .cost_ns = state.range(0)});
    engine->wait_to_read(var);
  }
}
BENCHMARK(push_and_wait)->Name("push and wait, cost ns")->Arg(0)->Arg(1'000)->Arg(5'000'000)->UseRealTime();

void allocate_and_free(benchmark::State& state) {
  const auto storage = make_cpu_storage(-1);
  for (auto _ : state) {
    const Storage::Block block = storage->allocate(state.range(0));
    benchmark::DoNotOptimize(block.data);
    storage->free(block);
  }
}
BENCHMARK(allocate_and_free)->Name("allocate and free")->Arg(64)->Arg(65'536)->Arg(1 << 20)->Arg(100 << 20);
BENCHMARK(allocate_and_free)->Name("allocate and free")->Arg(64)->Threads(4);

}  // namespace
}  // namespace hybridnet
