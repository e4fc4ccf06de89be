#include "op/pointwise_program.h"

#include <gtest/gtest.h>

#include "../ops/op_samples.h"

namespace hybridnet::testing {
namespace {

const Op& fused() { return Runtime::get().ops().at("_fused_elementwise"); }

ParamsPtr parsed(const std::string& program, int inputs = 2) {
  return fused().schema->parse(TextAttrs{{"num_args", std::to_string(inputs)}, {"program", program}}, "_fused", false);
}

TEST(PointwiseProgram, IsWrittenAsItIsRead) {
  for (const char* text : {"tanh(0); broadcast_mul(2, 1); _plus_scalar(3, scalar=1.5) -> 4@0, 2", "relu(1) -> 2",
                           "clip(0, a_min=-1.0, a_max=1.0); elemwise_add(2, 1) -> 3@1"}) {
    const ParamsPtr params = parsed(text);
    std::string written;
    for (const auto& [name, value] : fused().schema->print(params->data()))
      if (name == "program") written = value;
    const ParamsPtr again = parsed(written);
    EXPECT_TRUE(fused().schema->equal(params->data(), again->data())) << text << " became " << written;
    EXPECT_EQ(fused().schema->hash(params->data()), fused().schema->hash(again->data()));
  }
}

TEST(PointwiseProgram, DiffersByStepsParametersAndOutputs) {
  const ParamsPtr params = parsed("tanh(0); _plus_scalar(2, scalar=1.0) -> 3");
  for (const char* other :
       {"tanh(1); _plus_scalar(2, scalar=1.0) -> 3", "tanh(0); _plus_scalar(2, scalar=2.0) -> 3",
        "tanh(0); _plus_scalar(2, scalar=1.0) -> 2, 3", "relu(0); _plus_scalar(2, scalar=1.0) -> 3"})
    EXPECT_FALSE(fused().schema->equal(params->data(), parsed(other)->data())) << other;
}

TEST(PointwiseProgram, WhatIsNoProgramIsRejected) {
  for (const char* text : {"",
                           "tanh(0)",
                           "-> 1",
                           "tanh -> 2",
                           "tanh() -> 2",
                           "tanh(0, 1) -> 2",
                           "tanh(2) -> 2",
                           "tanh(-1) -> 2",
                           "tanh(x) -> 2",
                           "tanh(0) -> 0",
                           "tanh(0) -> 3",
                           "tanh(0) -> 2, 2",
                           "tanh(0) -> 2@2",
                           "tanh(0) ->",
                           "Convolution(0, 1) -> 2",
                           "nothing(0) -> 2",
                           "tanh(0, scalar=1) -> 2",
                           "_plus_scalar(0, scalar=x) -> 2",
                           "tanh(0); tanh(0) -> 2@0, 3",
                           "tanh(0); relu(2) -> 2@0, 3@0",
                           ";; -> 2",
                           "tanh(0; relu(2)) -> 3",
                           "tanh(99999999999999999999) -> 2"})
    EXPECT_THROW(parsed(text), ParamError) << text;
  EXPECT_THROW(parsed("relu(0) -> 0", 0), ParamError);
  EXPECT_THROW(parsed("relu(0) -> 25", 25), ParamError);
}

TEST(PointwiseProgram, StepsOfOtherDtypesAreRejected) {
  const NDArray x = random_array({3, 4}, 1, DType::kFloat32), whole = random_array({3, 4}, 1, DType::kBool);
  const auto run = [&](const char* program, const NDArray& a, const NDArray& b) {
    return invoke(fused(), parsed(program), std::vector<NDArray>{a, b});
  };
  EXPECT_THROW(run("Cast(0, dtype=float64) -> 2", x, x), Error);
  EXPECT_THROW(run("tanh(0) -> 2", whole, whole), Error);
  EXPECT_THROW(run("tanh(0) -> 2", x, whole), DTypeError);
  EXPECT_THROW(run("elemwise_add(0, 1) -> 2", x, random_array({2, 4}, 1, DType::kFloat32)), ShapeError);
  EXPECT_THROW(run("broadcast_add(0, 1) -> 2@1", x, random_array({1, 4}, 1, DType::kFloat32)), ShapeError);
  EXPECT_EQ(run("broadcast_add(0, 1) -> 2@0", x, random_array({1, 4}, 1, DType::kFloat32))[0].shape(), (Shape{3, 4}));
}

}  // namespace
}  // namespace hybridnet::testing
