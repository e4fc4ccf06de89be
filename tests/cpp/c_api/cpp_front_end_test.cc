// The C++ headers: arrays with operators, functions of operators, gradients, exceptions by class.
#include <gtest/gtest.h>

#include <thread>

#include "hybridnet/cpp/autograd.h"
#include "hybridnet/cpp/model.h"
#include "hybridnet/cpp/nd.h"
#include "hybridnet/cpp/np_shape.h"

namespace {

using namespace hybridnet::cpp;
using Floats = std::vector<float>;

Array row(std::initializer_list<float> values) {
  return Array::from<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(CppArray, ArithmeticBroadcastsAndTakesNumbersOnBothSides) {
  const Array x = row({1, 2, 4}), two = row({2});
  EXPECT_EQ((x + two).to_vector<float>(), (Floats{3, 4, 6}));
  EXPECT_EQ((x - two * 2 + 1).to_vector<float>(), (Floats{-2, -1, 1}));
  EXPECT_EQ((8 / x - x / 2).to_vector<float>(), (Floats{7.5, 3, 0}));
  EXPECT_EQ((10 - -x).to_vector<float>(), (Floats{11, 12, 14}));
  const Array copy = x.copy();
  copy += x;
  copy *= 3;
  copy -= two;
  copy /= 2;
  EXPECT_EQ(copy.to_vector<float>(), (Floats{2, 5, 11}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2, 4}));
  EXPECT_EQ(x.astype(HN_INT64).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 4}));
}

TEST(CppArray, WrappedMemoryIsReleasedOnce) {
  float memory[] = {1, 2, 3, 4};
  int released = 0;
  {
    const Array array = Array::wrap(memory, {2, 2}, [&] { ++released; });
    memory[2] = 30;
    const Array tail = array.slice(1, 2);
    EXPECT_EQ(tail.to_vector<float>(), (Floats{30, 4}));
    const Array back = Array::from_dlpack(array.to_dlpack());
    back.copy_from(Floats{5, 6, 7, 8});
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(memory[3], 8);
}

TEST(CppArray, AnEmptyArrayIsAnErrorWhereverItIsUsed) {
  const Array none;
  EXPECT_FALSE(none);
  EXPECT_THROW(none.shape(), ValueError);
  EXPECT_THROW(none + 1, ValueError);
  EXPECT_THROW(nd::relu(none), ValueError);
}

TEST(CppNd, ParametersHaveTypesDefaultsAndNames) {
  const Array x = Array::from<float>({2, 3}, {1, -2, 3, -4, 5, -6}), w = Array::from<float>({1, 3}, {1, 1, 1});
  EXPECT_EQ(Array(nd::FullyConnected(x, w, {.num_hidden = 1, .no_bias = true})).to_vector<float>(), (Floats{2, -5}));
  EXPECT_EQ(nd::FullyConnected(x, w, row({10}), {.num_hidden = 1}).to_vector<float>(), (Floats{12, 5}));
  EXPECT_EQ(nd::Activation(x, {.act_type = "relu"}).to_vector<float>(), (Floats{1, 0, 3, 0, 5, 0}));
  EXPECT_EQ(nd::LeakyReLU(x, {.slope = 0.5}).to_vector<float>(), (Floats{1, -1, 3, -2, 5, -3}));
  EXPECT_EQ(nd::sum(x).to_vector<float>(), (Floats{-3}));
  EXPECT_EQ(nd::sum(x, {.axis = {1}}).to_vector<float>(), (Floats{2, -5}));
  EXPECT_EQ(nd::transpose(x).shape(), (Shape{3, 2}));
  EXPECT_EQ(nd::transpose(x, {.axes = {0, 1}}).shape(), (Shape{2, 3}));
  EXPECT_EQ(nd::reshape(x, {.shape = {3, -1}}).shape(), (Shape{3, 2}));
  EXPECT_EQ(nd::Concat({x, x, x}, {.dim = 0}).shape(), (Shape{6, 3}));
  EXPECT_EQ(nd::Cast(x, {.dtype = HN_FLOAT64}).dtype(), HN_FLOAT64);
  EXPECT_EQ(nd::clip(x, {.a_min = -1, .a_max = 2.5}).to_vector<float>(), (Floats{1, -1, 2.5, -1, 2.5, -1}));
  const Outputs both = nd::topk(x, {.k = 1, .ret_typ = "both"});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].to_vector<float>(), (Floats{3, 5}));
  EXPECT_THROW(Array(both).shape(), ValueError);
}

TEST(CppNd, OperatorsMayHaveAnyNumberOfResults) {
  const Array x = Array::zeros({100, 2});
  EXPECT_EQ(nd::SliceChannel(x, {.num_outputs = 100, .axis = 0}).size(), 100u);
  const Operator split("SliceChannel", {{"num_outputs", 100}, {"axis", 0}});
  EXPECT_EQ(split.num_outputs(1), 100u);
  EXPECT_EQ(split({x}).size(), 100u);
}

TEST(CppNd, NumpysShapesLastAsLongAsTheirScope) {
  const Array x = row({1, 2, 3});
  {
    const NumpyShapes shapes;
    EXPECT_TRUE(has_numpy_shapes());
    EXPECT_EQ(Array(nd::sum(x)).shape(), Shape{});
    const NumpyShapes off(false);
    EXPECT_EQ(Array(nd::sum(x)).shape(), Shape{1});
  }
  EXPECT_FALSE(has_numpy_shapes());
  EXPECT_EQ(Array(nd::sum(x)).shape(), Shape{1});
}

TEST(CppNd, ResultsGoIntoArraysThatAreThere) {
  const Array w = row({1, 2}), g = row({1, 1}), m = row({0, 0});
  nd::sgd_mom_update(w, g, m, {.lr = 0.5, .momentum = 0.9}, into(w));
  EXPECT_EQ(w.to_vector<float>(), (Floats{0.5, 1.5}));
  EXPECT_EQ(m.to_vector<float>(), (Floats{-0.5, -0.5}));
}

TEST(CppNd, NamespacesHoldWhatTheirNamesSay) {
  seed(3);
  const Array a = nd::random::uniform({.shape = {4}});
  seed(3);
  const Array b = nd::random::uniform({.shape = {4}});
  EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
  const Array m = Array::from<float>({2, 2}, {2, 0, 0, 3});
  EXPECT_EQ(nd::linalg::gemm2(m, m).to_vector<float>(), (Floats{4, 0, 0, 9}));
  EXPECT_EQ(nd::internal::plus_scalar(m, {.scalar = 1}).to_vector<float>(), (Floats{3, 1, 1, 4}));
}

TEST(CppOperator, IsPreparedOnceAndCalledFromManyThreads) {
  const Operator softmax("softmax", {{"axis", 1}});
  const Array x = Array::from<float>({1, 2}, {1, 1});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) wrong += Array(softmax({x})).to_vector<float>() != Floats{0.5, 0.5};
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CppAutograd, RecordsInItsScopeAndGivesGradientsOfGradients) {
  const Array x = row({1, 2, 3});
  x.attach_grad();
  EXPECT_FALSE(autograd::is_recording());
  Array loss;
  {
    const autograd::Recorder recorder;
    EXPECT_TRUE(autograd::is_recording());
    EXPECT_TRUE(autograd::is_training());
    loss = nd::sum(nd::square(x) * x);
    {
      const autograd::Pause pause;
      EXPECT_FALSE(autograd::is_recording());
    }
    const Array first = autograd::grad({loss}, {x}, {}, true)[0];
    const Array second = autograd::grad({first}, {x}, {row({1, 1, 2})}, true)[0];
    EXPECT_EQ(first.to_vector<float>(), (Floats{3, 12, 27}));
    EXPECT_EQ(second.to_vector<float>(), (Floats{6, 12, 36}));
  }
  loss.backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{3, 12, 27}));
}

template <typename Kind>
void expect_kind(const char* name, auto&& f) {
  try {
    f();
    FAIL() << "expected " << name;
  } catch (const Kind& error) {
    EXPECT_EQ(error.kind(), name);
    EXPECT_STRNE(error.what(), "");
  }
}

TEST(CppErrors, HaveTheClassesOfPython) {
  const Array x = row({1, 2});
  expect_kind<ParamError>("ParamError", [&] { invoke("no_such_operator", {x}); });
  expect_kind<ParamError>("ParamError", [&] { nd::Activation(x, {.act_type = "really"}); });
  expect_kind<ShapeError>("ShapeError", [&] { nd::reshape(x, {.shape = {3}}); });
  expect_kind<DTypeError>("DTypeError", [&] { x.values<double>(); });
  expect_kind<ValueError>("ValueError", [&] { x.item<float>(); });
  expect_kind<FileError>("FileError", [&] { load_arrays("missing.params"); });
  expect_kind<FormatError>("FormatError", [&] { Model::from_memory("{", {}); });
  expect_kind<GradientError>("GradientError", [&] { x.grad(); });
  expect_kind<IndexError>("IndexError", [&] { x.slice(1, 7); });
  EXPECT_THROW(x.grad(), Error);
}

}  // namespace
