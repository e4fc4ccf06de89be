// Tasks queued ahead of the workers hold no memory for their results.
#include <gtest/gtest.h>

#include <cmath>
#include <latch>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/runtime.h"
#include "hybridnet/storage.h"

namespace hybridnet {
namespace {

constexpr int64_t kElements = 1 << 18;
constexpr int64_t kBytes = kElements * 4;

NDArray ones() {
  Runtime::get();
  const NDArray array = NDArray::empty(Shape{kElements}, DType::kFloat32);
  const std::vector<float> values(kElements, 1.0f);
  array.copy_from(values.data());
  return array;
}

NDArray twice(const NDArray& x) {
  const Op& add = op_registry().at("elemwise_add");
  const NDArray both[] = {x, x};
  return invoke_one(add, add.default_params, both);
}

TEST(DeferredMemory, ResultsTakeTheirMemoryWhenTheyAreComputed) {
  NDArray x = ones();
  std::latch gate(1);
  const NDArray writes[] = {x};
  run_task("held", {}, writes, int64_t{1} << 40, [&](TaskContext&) { gate.wait(); });
  const int64_t before = storage({}).statistics().in_use;
  constexpr int kSteps = 50;
  for (int i = 0; i < kSteps; ++i) x = twice(x);
  EXPECT_LT(storage({}).statistics().in_use - before, kBytes);
  storage({}).reset_peak();
  gate.count_down();
  x.wait_to_read();
  EXPECT_LT(storage({}).statistics().peak_in_use - before, 5 * kBytes);
  float first = 0;
  x.at(0).copy_to(&first);
  EXPECT_EQ(first, std::ldexp(1.0f, kSteps));
}

TEST(DeferredMemory, AViewOfAResultIsPossibleBeforeItsMemoryIsThere) {
  NDArray x = ones();
  std::latch gate(1);
  const NDArray writes[] = {x};
  run_task("held", {}, writes, int64_t{1} << 40, [&](TaskContext&) { gate.wait(); });
  const NDArray y = twice(x);
  const NDArray tail = y.sliced(kElements - 2, kElements);
  gate.count_down();
  float values[2] = {};
  tail.copy_to(values);
  EXPECT_EQ(values[0], 2.0f);
  EXPECT_EQ(values[1], 2.0f);
}

TEST(DeferredMemory, AnArrayWhoseTaskFailedCanStillBeTouched) {
  Runtime::get();
  const NDArray y = NDArray::deferred({Shape{4}, DType::kFloat32});
  const NDArray writes[] = {y};
  run_task("fails", {}, writes, int64_t{1} << 40, [](TaskContext&) { throw ValueError({.message = "no"}); });
  EXPECT_THROW(y.wait_to_read(), ValueError);
  float values[4];
  y.copy_to(values);  // the error was reported; the values are arbitrary now
  const float known[] = {1, 2, 3, 4};
  y.copy_from(known);
  y.copy_to(values);
  EXPECT_EQ(values[3], 4.0f);
}

TEST(DeferredMemory, ASizeThatIsNotThereFailsWhereItIsAsked) {
  Runtime::get();
  EXPECT_THROW(NDArray::deferred({Shape{int64_t{1} << 50}, DType::kFloat32}), OutOfMemoryError);
}

}  // namespace
}  // namespace hybridnet
