// Questions about sizes keep their answers, and tell for which other sizes the answers are the same.
#include "passes/control/size_questions.h"

#include <gtest/gtest.h>

#include "hybridnet/pass.h"

namespace hybridnet {
namespace {

const TensorSpec kSmall{Shape{2, 3}, DType::kFloat32}, kLarge{Shape{4, 3}, DType::kFloat32},
    kDoubles{Shape{2, 3}, DType::kFloat64};

ByteCount bytes_of(std::initializer_list<const TensorSpec*> specs) {
  ByteCount count;
  for (const TensorSpec* spec : specs) count.add(*spec);
  return count;
}

// Maps the two shapes to these.
auto become(const Shape& small, const Shape& large) {
  return [=](const Shape& shape) { return shape == kSmall.shape ? &small : shape == kLarge.shape ? &large : nullptr; };
}

TEST(SizeQuestions, AnswersAreRememberedInAScope) {
  SizeQuestions questions;
  EXPECT_TRUE(ask_fewer_bytes(bytes_of({&kSmall}), bytes_of({&kLarge})));
  EXPECT_EQ(questions.size(), 0u);
  {
    const SizeQuestionScope scope(&questions);
    EXPECT_TRUE(ask_fewer_bytes(bytes_of({&kSmall}), bytes_of({&kLarge})));
    EXPECT_FALSE(ask_fewer_bytes(bytes_of({&kLarge}), bytes_of({&kSmall})));
    EXPECT_TRUE(ask_sizes({kLarge.shape}, [](std::span<const Shape> shapes) { return shapes[0].size() > 10; }));
  }
  ask_sizes({kSmall.shape}, [](std::span<const Shape>) { return true; });
  EXPECT_EQ(questions.size(), 3u);
}

TEST(SizeQuestions, BodiesOfLoopsDoNotCount) {
  SizeQuestions questions;
  const SizeQuestionScope scope(&questions);
  const PipelineScope body({.place = "body of 'loop'"});
  ask_fewer_bytes(bytes_of({&kSmall}), bytes_of({&kLarge}));
  EXPECT_EQ(questions.size(), 0u);
}

TEST(SizeQuestions, SumsAreComparedForOtherSizes) {
  SizeQuestions questions;
  questions.add_fewer(bytes_of({&kSmall, &kSmall}), bytes_of({&kLarge, &kDoubles}));  // 48 bytes, 96
  EXPECT_TRUE(questions.same_answers(become(Shape{5, 3}, Shape{4, 3})));
  EXPECT_TRUE(questions.same_answers(become(Shape{500, 3}, Shape{1, 1})));  // doubles grow with their shape
  SizeQuestions others;
  others.add_fewer(bytes_of({&kSmall, &kSmall}), bytes_of({&kLarge}));
  EXPECT_FALSE(ask_fewer_bytes(bytes_of({&kSmall, &kSmall}), bytes_of({&kLarge})));  // equal
  EXPECT_TRUE(others.same_answers(become(Shape{3, 3}, Shape{6, 3})));
  EXPECT_FALSE(others.same_answers(become(Shape{3, 3}, Shape{7, 3})));
}

TEST(SizeQuestions, QuestionsAreAskedAgain) {
  SizeQuestions questions;
  const SizeQuestionScope scope(&questions);
  ask_sizes({kSmall.shape, kLarge.shape}, [](std::span<const Shape> s) { return s[0][0] + s[1][0] > 5; });
  EXPECT_TRUE(questions.same_answers(become(Shape{3, 3}, Shape{3, 3})));
  EXPECT_FALSE(questions.same_answers(become(Shape{3, 3}, Shape{2, 3})));
}

TEST(SizeQuestions, AShapeThatNobodyKnowsHasNoAnswer) {
  SizeQuestions questions;
  questions.add(
      {Shape{7}}, [](std::span<const Shape>) { return true; }, true);
  EXPECT_FALSE(questions.same_answers(become(kSmall.shape, kLarge.shape)));
}

}  // namespace
}  // namespace hybridnet
