#include "hybridnet/params.h"

#include <gtest/gtest.h>

#include "op/attr_text.h"

namespace hybridnet {
namespace {

enum class Mode : int32_t { kValid, kFull };

struct PoolParams {
  Tuple kernel = Tuple::scalar(), stride = Tuple::scalar();
  Mode mode = Mode::kValid;
  double factor = 0;
  std::optional<int64_t> axis;
  std::optional<bool> flag;
  DType dtype = DType::kUnknown;
  OptionalInts begin;
  std::vector<double> weights;
  int32_t count = 0;

  static void describe(ParamSchema<PoolParams>& s) {
    s.field("kernel", &PoolParams::kernel);
    s.field("stride", &PoolParams::stride).default_value(AttrValue::List{}).at_least(1);
    s.field("mode", &PoolParams::mode).choice("valid", Mode::kValid).choice("full", Mode::kFull).default_value("valid");
    s.field("factor", &PoolParams::factor).default_value(0.5).range(0.0, 1.0);
    s.field("axis", &PoolParams::axis).none_by_default();
    s.field("flag", &PoolParams::flag).none_by_default();
    s.field("dtype", &PoolParams::dtype).default_value("float32");
    s.field("begin", &PoolParams::begin).default_value(AttrValue::List{});
    s.field("weights", &PoolParams::weights).default_value(AttrValue::List{});
    s.field("count", &PoolParams::count).default_value(1).at_least(1);
  }
};

using TextAttrs = std::vector<std::pair<std::string, std::string>>;

const PoolParams& parsed(ParamsPtr& keep, const TextAttrs& attrs) {
  static const ParamSchema<PoolParams> schema;
  keep = schema.parse(attrs, "Pooling", false);
  return keep->as<PoolParams>();
}

TEST(Params, EveryTextFormOfMxnetJsonIsRead) {
  ParamsPtr keep;
  EXPECT_EQ(parsed(keep, {{"kernel", "(2, 3)"}}).kernel, (Shape{2, 3}));
  EXPECT_EQ(parsed(keep, {{"kernel", "[2,3]"}}).kernel, (Shape{2, 3}));
  EXPECT_EQ(parsed(keep, {{"kernel", "(3L, 3L)"}}).kernel, (Shape{3, 3}));
  EXPECT_EQ(parsed(keep, {{"kernel", "(2,2,)"}}).kernel, (Shape{2, 2}));
  EXPECT_EQ(parsed(keep, {{"kernel", "7"}}).kernel, (Shape{7}));
  EXPECT_EQ(parsed(keep, {{"kernel", "()"}}).kernel.ndim(), 0);
  EXPECT_EQ(parsed(keep, {{"kernel", "None"}}).kernel.ndim(), 0);
  for (const char* yes : {"True", "true", "1", "TRUE"})
    EXPECT_EQ(parsed(keep, {{"kernel", "1"}, {"flag", yes}}).flag, true);
  for (const char* no : {"False", "false", "0"}) EXPECT_EQ(parsed(keep, {{"kernel", "1"}, {"flag", no}}).flag, false);
  EXPECT_EQ(parsed(keep, {{"kernel", "1"}, {"flag", "None"}}).flag, std::nullopt);
  EXPECT_EQ(parsed(keep, {{"kernel", "1"}, {"factor", "1e-05"}}).factor, 1e-5);
  EXPECT_EQ(parsed(keep, {{"kernel", "1"}, {"axis", "-1"}}).axis, -1);
  EXPECT_EQ(parsed(keep, {{"kernel", "1"}, {"mode", "full"}}).mode, Mode::kFull);
  EXPECT_EQ(parsed(keep, {{"kernel", "1"}, {"dtype", "float16"}}).dtype, DType::kFloat16);
  EXPECT_EQ(parsed(keep, {{"kernel", "1"}, {"begin", "(None, 1, -2)"}}).begin, (OptionalInts{std::nullopt, 1, -2}));
  EXPECT_EQ(parsed(keep, {{"kernel", "1"}, {"weights", "(0.5, 1)"}}).weights, (std::vector<double>{0.5, 1}));
}

TEST(Params, PrintingWhatWasParsedGivesItBack) {
  static const ParamSchema<PoolParams> schema;
  const TextAttrs attrs{{"kernel", "(2, 2)"}, {"stride", "(1, 2)"},   {"mode", "full"},
                        {"factor", "0.25"},   {"axis", "-1"},         {"flag", "True"},
                        {"dtype", "float16"}, {"begin", "(None, 1)"}, {"weights", "(0.1, 2.0)"}};
  ParamsPtr first = schema.parse(attrs, "Pooling", false);
  EXPECT_EQ(schema.print(first->data()), attrs);
  ParamsPtr second = schema.parse(schema.print(first->data()), "Pooling", false);
  EXPECT_TRUE(schema.equal(first->data(), second->data()));
  EXPECT_EQ(schema.hash(first->data()), schema.hash(second->data()));
}

TEST(Params, DefaultsAreNotPrintedAndRequiredFieldsAre) {
  static const ParamSchema<PoolParams> schema;
  ParamsPtr p = schema.parse(TextAttrs{{"kernel", "(1,)"}, {"factor", "0.5"}}, "Pooling", false);
  EXPECT_EQ(schema.print(p->data()), (TextAttrs{{"kernel", "(1,)"}}));
}

std::string error_of(const TextAttrs& attrs) {
  ParamsPtr keep;
  try {
    parsed(keep, attrs);
  } catch (const ParamError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Params, ErrorsNameOperatorFieldExpectationAndFix) {
  EXPECT_NE(error_of({}).find("'Pooling'"), std::string::npos);
  EXPECT_NE(error_of({}).find("pass kernel=..."), std::string::npos);
  EXPECT_NE(error_of({{"kernel", "1"}, {"mode", "fool"}}).find("one of 'valid', 'full', got 'fool'"),
            std::string::npos);
  EXPECT_NE(error_of({{"kernel", "1"}, {"factor", "1.5"}}).find("in [0, 1]"), std::string::npos);
  EXPECT_NE(error_of({{"kernel", "1"}, {"stride", "(1, 0)"}}).find(">= 1"), std::string::npos);
  EXPECT_NE(error_of({{"kernel", "(1, x)"}}).find("a tuple of ints"), std::string::npos);
  EXPECT_NE(error_of({{"kernal", "1"}}).find("did you mean 'kernel'?"), std::string::npos);
  EXPECT_NE(error_of({{"kernel", "1"}, {"count", "99999999999"}}).find("an int"), std::string::npos);
}

TEST(Params, MalformedListsAreRejectedNotMisread) {
  AttrValue v;
  for (const char* bad : {"(1, 2", "1, 2)", "(1,,2)", "((1)", "(1)2", "[1, 2)", ""})
    EXPECT_FALSE(parse_list(bad, &v)) << bad;
  EXPECT_FALSE(parse_list(std::string(100, '('), &v));
}

TEST(Params, FloatsPrintWithTheFewestDigitsThatReadBack) {
  EXPECT_EQ(number_text(shortest_double(0.1f)), "0.1");
  EXPECT_EQ(number_text(1.0, true), "1.0");
  EXPECT_EQ(number_text(1e-5, true), "1e-05");
}

}  // namespace
}  // namespace hybridnet
