// The group of a process without a launcher: every sum is the array itself. Groups of several processes are tested by
// tests/python/group/test_languages.py.
#include "hybridnet/cpp/group.h"

#include <gtest/gtest.h>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/nd.h"
#include "hybridnet/cpp/trainer.h"

namespace hybridnet::cpp {
namespace {

Array ones(const Shape& shape) { return invoke("_ones", {}, {{"shape", shape}}); }

TEST(GroupOfOneProcess, HasItsPlace) {
  group::join();
  group::join();
  EXPECT_TRUE(group::is_joined());
  EXPECT_EQ(group::rank(), 0);
  EXPECT_EQ(group::size(), 1);
  EXPECT_EQ(group::virtual_shards(), 1);
  EXPECT_EQ(group::own_shards(), std::pair(0, 1));
}

TEST(GroupOfOneProcess, SumsAreTheArrays) {
  const Array x = Array::from<float>({3}, {1, 2, 3}), y = Array::zeros({3});
  EXPECT_EQ(group::sum(x, "x").to_vector<float>(), x.to_vector<float>());
  group::sum_into({x}, into(y));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  group::sum_into({x, y});
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  group::broadcast({x});
  group::barrier();
  const Array all = group::gather(x);
  EXPECT_EQ(all.shape(), (Shape{1, 3}));
  EXPECT_EQ(all.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(group::counters().bytes_sent, 0);
}

TEST(GroupOfOneProcess, TheGradientOfASumIsItsGradient) {
  const Array x = Array::from<float>({2}, {3, 4});
  x.attach_grad();
  Array loss;
  {
    const autograd::Recorder recorder;
    loss = nd::square(group::sum(x));
  }
  loss.backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{6, 8}));
}

TEST(GroupOfOneProcess, ATrainerThatSumsTrainsAsWithout) {
  std::vector<std::vector<float>> found;
  for (const bool sums : {false, true}) {
    const Array weight = ones({4});
    const Trainer trainer(std::map<std::string, Array>{{"w", weight}}, "sgd", {{"learning_rate", 0.1}});
    if (sums) trainer.sum_over_group();
    for (int step = 0; step < 3; ++step) {
      Array loss;
      {
        const autograd::Recorder recorder;
        loss = nd::square(weight);
      }
      loss.backward();
      trainer.step(1);
    }
    found.push_back(weight.to_vector<float>());
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST(GroupOfOneProcess, WrongCallsAreNamed) {
  const Array x = ones({2}), y = ones({3});
  EXPECT_THROW(group::sum_into({x}, into(y)), ShapeError);
  EXPECT_THROW(group::sum_into({x}, into()), ValueError);
  EXPECT_THROW(group::sum_into({x, Array::zeros({2}, HN_FLOAT64)}), DTypeError);
  EXPECT_THROW(group::broadcast({x}, 3), ValueError);
  EXPECT_THROW(group::join({.rank = 1, .size = 1}), ValueError);
  EXPECT_THROW(group::join({.size = 2, .meeting = "folder:/nowhere", .engine = "pigeons"}), ValueError);
}

TEST(GroupOfOneProcess, RunPassesExceptionsOn) {
  EXPECT_THROW(group::run([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(group::run([] { throw 7; }), int);
  EXPECT_THROW(group::run([] { throw GroupError("known"); }), GroupError);
  int calls = 0;
  group::run([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace hybridnet::cpp
