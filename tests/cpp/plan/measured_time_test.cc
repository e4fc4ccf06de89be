// If the estimate was wrong, the time of earlier calls decides if a call runs on a worker or on the calling thread.
#include "plan/measured_time.h"

#include "graph/build_graph.h"
#include "hybridnet/engine.h"
#include "hybridnet/plan.h"
#include "plan/graph_callable.h"

namespace hybridnet::graph_testing {
namespace {

TEST(MeasuredTime, TheGuessHoldsUntilARunWasMeasured) {
  MeasuredTime time;
  EXPECT_EQ(time.or_guess(1000), 1000);
  time.add(600);
  EXPECT_EQ(time.or_guess(1000), 600);
}

TEST(MeasuredTime, AShorterRunCountsAtOnceAndALongerOneByAPart) {
  MeasuredTime time;
  time.add(80'000);  // included packing of weights
  time.add(10'000);
  EXPECT_EQ(time.or_guess(20'000), 10'000);
  time.add(18'000);  // included waiting for a core
  EXPECT_EQ(time.or_guess(20'000), 11'000);
}

TEST(MeasuredTime, StaysWithinAFactorOfTheGuess) {
  MeasuredTime time;
  time.add(1);
  EXPECT_EQ(time.or_guess(8000), 1000);
  EXPECT_EQ(time.or_guess(INT64_MAX), INT64_MAX / 8);
  MeasuredTime long_one;
  long_one.add(1'000'000);
  EXPECT_EQ(long_one.or_guess(8000), 64'000);
  EXPECT_EQ(long_one.or_guess(INT64_MAX), INT64_MAX / 8);
}

TEST(MeasuredTime, ShortPlansAreNotMeasured) {
  MeasuredTime time;
  { const MeasuredTime::Scope run(time, 9'999); }
  EXPECT_EQ(time.or_guess(5), 5);
  { const MeasuredTime::Scope run(time, 10'000); }
  EXPECT_EQ(time.or_guess(INT64_MAX / 8) < INT64_MAX / 8, true);
}

// x = x x while its sum is below 100, 900 times at most: the estimate includes all 900 iterations.
constexpr char kLoop[] = R"model({
 "nodes": [
  {"op": "null", "name": "x", "inputs": []},
  {"op": "_while_loop", "name": "grow",
   "attrs": {"num_args": "1", "num_outputs": "1", "num_out_data": "0", "max_iterations": "900",
             "cond_input_locs": "(0,)", "func_input_locs": "(0,)", "func_var_locs": "(0,)"},
   "inputs": [[0, 0, 0]],
   "subgraphs": [
    {"nodes": [{"op": "null", "name": "v", "inputs": []}, {"op": "sum", "name": "s", "inputs": [[0, 0, 0]]},
               {"op": "_lesser_scalar", "name": "l", "attrs": {"scalar": "100"}, "inputs": [[1, 0, 0]]}],
     "arg_nodes": [0], "heads": [[2, 0, 0]]},
    {"nodes": [{"op": "null", "name": "v", "inputs": []},
               {"op": "dot", "name": "m", "inputs": [[0, 0, 0], [0, 0, 0]]}],
     "arg_nodes": [0], "heads": [[1, 0, 0]]}]}],
 "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})model";

// The number of queued calls (run by a worker or the waiting thread) out of 40 on an n x n matrix, each waited for.
uint64_t queued_of_40_calls(int64_t n) {
  Runtime::get();  // owns the registry
  const Ref<GraphCallable> op = make_ref<GraphCallable>(Symbol::from_json(kLoop, "loop"), CallOptions{});
  const NDArray ends_at_once = NDArray::empty(Shape{n, n}, DType::kFloat32);
  std::fill_n(static_cast<float*>(ends_at_once.data()), n * n, 100.0f);
  const auto call = [&] { values_of(op->call(std::vector<NDArray>{ends_at_once})[0]); };
  for (int i = 0; i < 3; ++i) call();
  const uint64_t before = engine().counters().queued;
  for (int i = 0; i < 40; ++i) call();
  return engine().counters().queued - before;
}

TEST(MeasuredTime, ACallThatTakesFarLessThanGuessedRunsOnTheCallingThread) {
  EXPECT_LT(queued_of_40_calls(8), 20u);  // none, unless other threads used the core in the middle of many runs
}

TEST(MeasuredTime, ALoopWhoseIterationsWouldTakeTheThreadTooLongNeverDoes) { EXPECT_EQ(queued_of_40_calls(64), 40u); }

}  // namespace
}  // namespace hybridnet::graph_testing
