// Weights that predictions read through packed copies only: their values are released, and restored for every other
// reader.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "graph/build_graph.h"
#include "hybridnet/storage.h"
#include "kernels/isa.h"
#include "ndarray/dlpack.h"
#include "plan/bound_run.h"
#include "plan/graph_callable.h"

namespace hybridnet::graph_testing {
namespace {

constexpr int64_t kUnits = 512;  // packed for few rows on every machine that packs (kernels/dnnl/dense_choice.cc)
constexpr int64_t kRows = 8;

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}
std::vector<uint32_t> bits_of(const NDArray& array) { return bits_of(values_of(array)); }

bool is_released(const NDArray& array) {
  DerivedData* const derived = array.impl()->chunk->derived();
  const EvictableValues* evictable_values =
      derived ? derived->evictable_values() : nullptr;  // null: the memory was exported
  return evictable_values && evictable_values->is_released();
}

// The number of the array's whole pages in memory.
int64_t resident_pages(const NDArray& array) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const auto begin = reinterpret_cast<intptr_t>(array.address());
  const intptr_t first = (begin + page - 1) / page * page, last = (begin + array.bytes()) / page * page;
  std::vector<unsigned char> resident(static_cast<size_t>((last - first) / page));
  EXPECT_EQ(mincore(reinterpret_cast<void*>(first), static_cast<size_t>(last - first), resident.data()), 0);
  return std::count_if(resident.begin(), resident.end(), [](unsigned char state) { return state & 1; });
}

Ref<GraphCallable> dense_function(int64_t units = kUnits) {
  GraphDefinition definition;
  const NodeEntry x = var("x"), weight = var("weight");
  definition.inputs = {x.node, weight.node};
  definition.outputs = {
      use("FullyConnected", {x, weight}, {{"num_hidden", std::to_string(units)}, {"no_bias", "True"}})};
  return make_ref<GraphCallable>(std::move(definition), CallOptions{.name = "dense"});
}

// A dense layer whose weights are packed for predictions.
struct Dense {
  NDArray x = random_array({kRows, kUnits}, 1), weight = random_array({kUnits, kUnits}, 2);
  std::vector<float> values = values_of(weight);
  Ref<GraphCallable> function = dense_function();

  std::vector<float> predict() const {
    const std::vector<float> result = values_of(function->call(std::vector<NDArray>{x, weight}, {})[0]);
    engine().wait_all();
    return result;
  }
  // False if predictions on this machine read the weights themselves.
  bool packs() const {
    const Storage& memory = Runtime::get().storage({});
    const int64_t before = memory.statistics().derived;
    function->call(std::vector<NDArray>{x, weight.detached()}, {})[0].wait_to_read();
    return memory.statistics().derived > before;
  }
};

// Tried several times: a worker that still frees copies of an earlier test makes the total smaller meanwhile.
bool dense_layers_pack() {
  for (int tries = 0; tries < 5; ++tries) {
    engine().wait_all();
    if (Dense().packs()) return true;
  }
  return false;
}

class ReleasedValues : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!dense_layers_pack()) {
      ASSERT_LT(kernels::isa_in_force().level, kernels::Isa::kAvx2) << "from AVX2 on dense layers pack their weights";
      GTEST_SKIP() << "with SSE4 dense layers read their weights as they are";
    }
    first = net.predict();
    ASSERT_TRUE(is_released(net.weight));
  }
  void expect_values() const { EXPECT_EQ(bits_of(net.weight), bits_of(net.values)); }
  Dense net;
  std::vector<float> first;
};

TEST_F(ReleasedValues, LeaveTheMemoryAndPredictionsStayTheSame) {
  EXPECT_EQ(resident_pages(net.weight), 0);
  EXPECT_EQ(net.predict(), first);
  EXPECT_TRUE(is_released(net.weight));
  expect_values();
  EXPECT_FALSE(is_released(net.weight));
  EXPECT_GT(resident_pages(net.weight), 0);
  EXPECT_EQ(net.predict(), first);
  EXPECT_FALSE(is_released(net.weight));  // the weights may be read again soon
}

TEST_F(ReleasedValues, AreNoWrite) {
  EXPECT_EQ(net.weight.var().version(), random_array({kUnits, kUnits}, 2).var().version());
  EXPECT_EQ(net.weight.impl()->chunk->overwrites.load(), 1u);
}

TEST_F(ReleasedValues, AreSeenByViews) {
  const std::vector<float> row(net.values.begin() + 3 * kUnits, net.values.begin() + 4 * kUnits);
  EXPECT_EQ(bits_of(net.weight.at(3)), bits_of(row));
  expect_values();
}

TEST_F(ReleasedValues, AreSeenByOperators) {
  const Op& copy = Runtime::get().ops().at("_copy");
  EXPECT_EQ(bits_of(invoke_one(copy, copy.default_params, {&net.weight, 1})), bits_of(net.values));
}

TEST_F(ReleasedValues, AreSeenByOtherGraphs) {
  GraphDefinition definition;
  const NodeEntry weight = var("weight");
  definition.inputs = {weight.node};
  definition.outputs = {use("negative", {weight})};
  const auto negative = make_ref<GraphCallable>(std::move(definition), CallOptions{.name = "negative"});
  std::vector<float> expected = net.values;
  for (float& v : expected) v = -v;
  EXPECT_EQ(bits_of(negative->call(std::vector<NDArray>{net.weight}, {})[0]), bits_of(expected));
}

TEST_F(ReleasedValues, AreSavedToFiles) {
  const std::string file = save_arrays_to_buffer({net.weight}, {"weight"}, false);
  EXPECT_EQ(bits_of(load_arrays_from_buffer(file, "test").arrays[0]), bits_of(net.values));
}

TEST_F(ReleasedValues, AreThereForThoseWhoTakeThePointer) {
  net.weight.wait_to_read();
  const auto* data = static_cast<const float*>(net.weight.data());
  EXPECT_EQ(bits_of(std::vector<float>(data, data + net.values.size())), bits_of(net.values));
  net.predict();
  EXPECT_EQ(bits_of(std::vector<float>(data, data + net.values.size())), bits_of(net.values));
}

TEST_F(ReleasedValues, OutliveThePackedCopyOfTheNetwork) {
  net.function = nullptr;
  EXPECT_TRUE(is_released(net.weight));
  expect_values();
}

TEST_F(ReleasedValues, AreKeptWhereAnotherNetworkPacksThemAnew) {
  net.function = dense_function();
  EXPECT_EQ(net.predict(), first);
  expect_values();
}

TEST_F(ReleasedValues, AreReplacedByAWrite) {
  const std::vector<float> now = values_of(random_array({kUnits, kUnits}, 3));
  net.weight.copy_from(now.data());
  EXPECT_EQ(bits_of(net.weight), bits_of(now));
  Dense other;
  other.weight.copy_from(now.data());
  EXPECT_EQ(net.predict(), other.predict());
  EXPECT_EQ(bits_of(net.weight), bits_of(now));
}

TEST_F(ReleasedValues, AreThereForOperatorsThatWriteInPlace) {
  const Op& add = Runtime::get().ops().at("_plus_scalar");
  const ParamsPtr one = add.schema->parse({{"scalar", "1"}}, add.name, false);
  invoke(add, one, {&net.weight, 1}, {&net.weight, 1});
  for (float& v : net.values) v += 1;
  expect_values();
  Dense other;
  other.weight.copy_from(net.values.data());
  EXPECT_EQ(net.predict(), other.predict());
}

TEST_F(ReleasedValues, SurviveALimitThatLeavesNoRoomForCopies) {
  DerivedBudget& budget = Runtime::get().storage({}).derived_budget();
  const int64_t before = budget.limit();
  budget.set_limit(0);
  EXPECT_EQ(net.predict(), first);
  net.function = dense_function();
  EXPECT_EQ(net.predict(), first);
  EXPECT_FALSE(is_released(net.weight));
  budget.set_limit(before);
  expect_values();
}

TEST_F(ReleasedValues, AreReadByManyThreadsWhilePredictionsRun) {
  const std::vector<uint32_t> expected = bits_of(net.values);
  for (int round = 0; round < 20; ++round) {
    Dense fresh;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 3; ++k)
          wrong += values_of(fresh.function->call(std::vector<NDArray>{fresh.x, fresh.weight}, {})[0]) != first;
      });
      threads.emplace_back([&, i] {
        for (int k = 0; k < 3; ++k) wrong += bits_of(i == 0 ? fresh.weight : fresh.weight.detached()) != expected;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST_F(ReleasedValues, OfBoundCallsAreReleasedToo) {
  Dense fresh;
  BoundRun bound(fresh.function, {fresh.x, fresh.weight}, {}, BoundRun::Calls::kMany);
  for (int i = 0; i < 3; ++i) {
    bound.run();
    EXPECT_EQ(values_of(bound.outputs()[0]), first);
    EXPECT_TRUE(is_released(fresh.weight));
  }
  EXPECT_EQ(bits_of(fresh.weight), bits_of(fresh.values));
  bound.run();
  EXPECT_EQ(values_of(bound.outputs()[0]), first);
}

TEST_F(ReleasedValues, OfAPartOfAnArrayLeaveTheOtherPartAlone) {
  const NDArray both = random_array({2 * kUnits, kUnits}, 5);
  const std::vector<float> values = values_of(both);
  net.weight = both.sliced(kUnits, 2 * kUnits);
  const std::vector<float> result = net.predict();
  EXPECT_TRUE(is_released(both));
  EXPECT_EQ(bits_of(both), bits_of(values));
  EXPECT_EQ(net.predict(), result);
}

TEST_F(ReleasedValues, KeepBitsThatProductsDoNotSee) {
  using Limits = std::numeric_limits<float>;
  net.values[0] = -0.0f;
  net.values[1] = Limits::denorm_min();
  net.values[2] = Limits::infinity();
  const uint32_t signaling = 0x7f800123, quiet = 0xffc00456;
  std::memcpy(&net.values[3], &signaling, sizeof(signaling));
  std::memcpy(&net.values[4], &quiet, sizeof(quiet));
  net.weight = NDArray::empty({kUnits, kUnits}, DType::kFloat32);
  net.weight.copy_from(net.values.data());
  net.predict();
  EXPECT_TRUE(is_released(net.weight));
  expect_values();
}

// A field of this process's status, in bytes.
int64_t status(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  return -1;
}

TEST_F(ReleasedValues, AndCopiesOfAllLayersAreNotInMemoryTogether) {
  constexpr int kLayers = 8;
  constexpr int64_t kWide = 1024, kLayerBytes = kWide * kWide * 4;
  GraphDefinition definition;
  NodeEntry last = var("x");
  definition.inputs = {last.node};
  std::vector<NDArray> inputs{random_array({kRows, kWide}, 1)};
  for (int i = 0; i < kLayers; ++i) {
    const NodeEntry weight = var("weight" + std::to_string(i));
    definition.inputs.push_back(weight.node);
    inputs.push_back(random_array({kWide, kWide}, 2));
    last = use("FullyConnected", {last, weight}, {{"num_hidden", std::to_string(kWide)}, {"no_bias", "True"}});
  }
  definition.outputs = {last};
  const auto function = make_ref<GraphCallable>(std::move(definition), CallOptions{.name = "layers"});
  Runtime::get().storage({}).release_pool();
  const bool forgets_peak = static_cast<bool>(std::ofstream("/proc/self/clear_refs") << "5" << std::flush);
  const int64_t before = status("VmRSS");
  function->call(inputs, {})[0].wait_to_read();
  engine().wait_all();
  for (int i = 1; i <= kLayers; ++i) EXPECT_TRUE(is_released(inputs[static_cast<size_t>(i)])) << i;
  if (!forgets_peak) GTEST_SKIP() << "the peak of memory cannot be measured: /proc/self/clear_refs cannot be written";
  EXPECT_LT(status("VmHWM") - before, kLayers / 2 * kLayerBytes);
}

// One array as two inputs: read first through a packed copy, and then directly.
TEST_F(ReleasedValues, AreThereForAnInputThatSharesTheMemory) {
  GraphDefinition definition;
  const NodeEntry x = var("x"), weight = var("weight"), same = var("same");
  definition.inputs = {x.node, weight.node, same.node};
  const NodeEntry product =
      use("FullyConnected", {x, weight}, {{"num_hidden", std::to_string(kUnits)}, {"no_bias", "True"}});
  definition.outputs = {use("broadcast_add", {use("sum", {product}), same})};
  const auto function = make_ref<GraphCallable>(std::move(definition), CallOptions{.name = "twice"});
  const NDArray array = random_array({kUnits, kUnits}, 2);
  const auto predict = [&](const NDArray& other) {
    return bits_of(function->call(std::vector<NDArray>{net.x, array, other}, {})[0]);
  };
  const std::vector<uint32_t> first = predict(array.detached());  // this call packs
  EXPECT_EQ(first, predict(random_array({kUnits, kUnits}, 2)));
}

TEST(ReleasedValuesOf, SharedMemoryStay) {
  Dense net;
  auto* shared = dlpack::export_array(net.weight);
  net.predict();
  EXPECT_FALSE(is_released(net.weight));
  const auto* data = static_cast<const float*>(shared->dl_tensor.data);
  EXPECT_EQ(bits_of(std::vector<float>(data, data + net.values.size())), bits_of(net.values));
  shared->deleter(shared);
}

// Sizes that leave the last block of columns partly empty.
TEST(ReleasedValuesOf, EverySizeComeBack) {
  for (const int64_t units : {int64_t{131}, int64_t{260}, int64_t{513}}) {
    Dense net;
    net.weight = random_array({units, kUnits}, 7);
    net.values = values_of(net.weight);
    net.function = dense_function(units);
    net.predict();
    EXPECT_EQ(bits_of(net.weight), bits_of(net.values)) << units;
  }
}

}  // namespace
}  // namespace hybridnet::graph_testing
