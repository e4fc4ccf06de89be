#include <gtest/gtest.h>

#include "hybridnet/imperative.h"
#include "hybridnet/runtime.h"

namespace hybridnet {
namespace {

class Tape : public testing::Test {
 protected:
  void SetUp() override {
    Runtime::get();
    autograd_state() = {};
  }
  void TearDown() override { autograd_state() = {}; }

  static NDArray array(std::vector<float> values) {
    NDArray a = NDArray::empty({static_cast<int64_t>(values.size())}, DType::kFloat32);
    a.copy_from(values.data());
    return a;
  }
  static NDArray variable(std::vector<float> values, GradReq req = GradReq::kWrite) {
    NDArray a = array(values);
    mark_variable(a, array(std::vector<float>(values.size(), 100.f)), req);
    return a;
  }
  static std::vector<float> values(const NDArray& a) {
    std::vector<float> v(static_cast<size_t>(a.size()));
    a.copy_to(v.data());
    return v;
  }
  static NDArray call(const char* name, std::vector<NDArray> inputs,
                      std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
    const Op& op = op_registry().at(name);
    return invoke_one(op, op.schema->parse(attrs, op.name), inputs);
  }
  static void back(const NDArray& head, bool retain = false) { backward({&head, 1}, {}, retain, true); }
  struct Recording {
    Recording() { autograd_state() = {true, true}; }
    ~Recording() { autograd_state() = {}; }
  };
};

TEST_F(Tape, GradientsReachTheLeaves) {
  NDArray x = variable({1, 2, 3}), y;
  {
    Recording on;
    y = call("elemwise_mul", {x, x});
  }
  back(y);
  EXPECT_EQ(values(grad_of(x)), (std::vector<float>{2, 4, 6}));
}

TEST_F(Tape, AddAccumulatesAndWriteReplaces) {
  NDArray w = variable({1}), a = variable({1}, GradReq::kAdd);
  for (int i = 0; i < 2; ++i) {
    NDArray y;
    {
      Recording on;
      y = call("elemwise_add", {w, a});
    }
    back(y);
  }
  EXPECT_EQ(values(grad_of(w)), std::vector<float>{1});
  EXPECT_EQ(values(grad_of(a)), std::vector<float>{102});
}

TEST_F(Tape, GradientBuffersOfTwoLeavesNeverShareMemory) {
  NDArray a = variable({1, 1}), b = variable({1, 1}), y;
  {
    Recording on;
    y = call("elemwise_add", {a, b});  // one array is the gradient of both
  }
  back(y);
  EXPECT_FALSE(grad_of(a).shares_memory(grad_of(b)));
}

TEST_F(Tape, AHeadGradientOfTheUserIsNotTakenOver) {
  NDArray a = variable({1, 1}), y, head = array({5, 6});
  {
    Recording on;
    y = call("_copy", {a});
  }
  backward({&y, 1}, {&head, 1}, false, true);
  EXPECT_EQ(values(grad_of(a)), (std::vector<float>{5, 6}));
  EXPECT_FALSE(grad_of(a).shares_memory(head));
}

TEST_F(Tape, SecondOrder) {
  NDArray x = variable({2, 3});
  std::vector<NDArray> first;
  {
    Recording on;
    NDArray y = call("elemwise_mul", {call("elemwise_mul", {x, x}), x});  // x^3
    first = grad({&y, 1}, {}, {&x, 1}, true, true, true);                 // 3 x^2
  }
  EXPECT_EQ(values(first[0]), (std::vector<float>{12, 27}));
  back(first[0]);
  EXPECT_EQ(values(grad_of(x)), (std::vector<float>{12, 18}));  // 6 x
}

TEST_F(Tape, OverwritingASavedArrayIsAnErrorThatNamesBothLines) {
  NDArray x = variable({1, 2}), y;
  set_current_location({intern_file("train.py"), 10});
  {
    Recording on;
    y = call("elemwise_mul", {x, x});
    set_current_location({intern_file("train.py"), 20});
    NDArray one = array({1, 1});
    const NDArray inputs[] = {x, one};
    autograd_state().recording = true;
    const Op& add = op_registry().at("elemwise_add");
    NDArray alias = x.detached();
    invoke(add, add.default_params, inputs, {&alias, 1});
  }
  set_current_location({});
  try {
    back(y);
    FAIL() << "no error";
  } catch (const GradientError& error) {
    EXPECT_NE(std::string(error.what()).find("train.py:10"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("train.py:20"), std::string::npos) << error.what();
  }
}

TEST_F(Tape, OverwritingWhatNoGradientReadsIsFine) {
  NDArray x = variable({1, 2}), c = array({1, 1}), y;
  {
    Recording on;
    y = call("elemwise_add", {x, c});
  }
  const std::vector<float> other{7, 7};
  c.copy_from(other.data());
  back(y);
  EXPECT_EQ(values(grad_of(x)), (std::vector<float>{1, 1}));
}

TEST_F(Tape, ASecondBackwardNeedsRetainGraph) {
  NDArray x = variable({1, 2}), y;
  {
    Recording on;
    y = call("elemwise_mul", {x, x});
  }
  back(y, true);
  back(y);
  EXPECT_THROW(back(y), GradientError);
}

TEST_F(Tape, WhatWasNotRecordedCannotBeDifferentiated) {
  NDArray x = variable({1});
  EXPECT_THROW(back(call("elemwise_mul", {x, x})), GradientError);
}

TEST_F(Tape, ALongTapeIsFreedWithoutRecursion) {
  NDArray x = variable({1}), y = x;
  {
    Recording on;
    for (int i = 0; i < 200000; ++i) y = call("negative", {y});
  }
  y = NDArray();  // a recursive destructor would overflow the stack here
  SUCCEED();
}

TEST_F(Tape, TheWrongNumberOfInputsIsAnError) { EXPECT_THROW(call("elemwise_mul", {array({1})}), TypeError); }

TEST_F(Tape, OutputsMayBeTheInputsWhereTheOpAllowsIt) {
  NDArray x = array({1, 2});
  const Op& add = op_registry().at("elemwise_add");
  const NDArray inputs[] = {x, x};
  invoke(add, add.default_params, inputs, {&x, 1});
  EXPECT_EQ(values(x), (std::vector<float>{2, 4}));
}

}  // namespace
}  // namespace hybridnet
