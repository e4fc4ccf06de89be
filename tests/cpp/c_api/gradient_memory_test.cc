// Gradients of C programs take memory at their first use, not when they are attached.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hybridnet/cpp/trainer.h"
#include "hybridnet/storage.h"

namespace {

using hybridnet::cpp::Array;

constexpr int64_t kElements = int64_t{1} << 22;  // 16 MiB
constexpr int64_t kBytes = kElements * 4;

int64_t in_use() { return hybridnet::storage(hybridnet::Device{}).statistics().in_use; }

TEST(CGradients, AskingForOneTakesNoMemory) {
  const Array weight = Array::zeros({kElements});
  const int64_t before = in_use();
  weight.attach_grad();
  const Array gradient = weight.grad();
  EXPECT_LT(in_use() - before, kBytes / 2);
  EXPECT_EQ(gradient.values<float>()[kElements - 1], 0.f);
  EXPECT_GE(in_use() - before, kBytes);
}

TEST(CGradients, ATrainerTakesNoMemoryBeforeBackward) {
  const Array weight = Array::from<float>({kElements}, std::vector<float>(kElements, 1.f));
  const int64_t before = in_use();
  const hybridnet::cpp::Trainer trainer({{"w", weight}}, "sgd", {{"learning_rate", 0.5}});
  EXPECT_LT(in_use() - before, kBytes / 2);
  hn_autograd_set_recording(1, nullptr);
  const Array loss = weight * weight;
  hn_autograd_set_recording(0, nullptr);
  loss.backward();
  trainer.step(1);
  EXPECT_EQ(weight.values<float>()[kElements - 1], 0.f);  // 1 - 0.5 * 2
}

TEST(CGradients, OnesThatAddBeginWithZeros) {
  const Array weight = Array::from<float>({2}, {3, 4});
  weight.attach_grad("add");
  for (int round = 1; round <= 2; ++round) {
    hn_autograd_set_recording(1, nullptr);
    const Array loss = weight * weight;
    hn_autograd_set_recording(0, nullptr);
    loss.backward();
    EXPECT_EQ(weight.grad().to_vector<float>(), (std::vector<float>{6.f * round, 8.f * round}));
  }
}

}  // namespace
