#include "hybridnet/error.h"

#include <gtest/gtest.h>

namespace hybridnet {
namespace {

TEST(Error, SaysWhoWhatWhyAndHowToFixIt) {
  const ShapeError error({.op = "FullyConnected",
                          .node = "dense0_fwd",
                          .block = "net.body.0",
                          .input = "weight",
                          .expected = "shape (4, 5)",
                          .given = "(4, 3)",
                          .because = "data has shape (2, 5), so there are 5 input features",
                          .fix = "build the block with in_units=5.",
                          .where = {intern_file("train.py"), 17}});
  EXPECT_STREQ(error.what(),
               "operator 'FullyConnected' (node 'dense0_fwd', block 'net.body.0'), input 'weight': "
               "expected shape (4, 5), got (4, 3).\n"
               "  Because: data has shape (2, 5), so there are 5 input features.\n"
               "  Fix: build the block with in_units=5.\n"
               "  At: train.py:17");
  EXPECT_EQ(error.kind(), ErrorKind::kShape);
  EXPECT_STREQ(kind_name(error.kind()), "ShapeError");
}

TEST(Error, LeavesOutWhatIsNotKnown) {
  EXPECT_STREQ(ParamError({.op = "Pad", .given = "-1"}).what(), "operator 'Pad': got -1.");
  EXPECT_STREQ(ParamError({.node = "n", .block = "b", .expected = "1"}).what(), "node 'n' (block 'b'): expected 1.");
  EXPECT_STREQ(ShapeError({.input = "data", .message = "is empty"}).what(), "input 'data': is empty.");
  EXPECT_STREQ(FileError({.message = "no such file: a.params"}).what(), "no such file: a.params.");
  EXPECT_STREQ(EngineError({}).what(), "EngineError.");
  EXPECT_STREQ(EngineError({.op = "dot"}).what(), "operator 'dot': failed.");
}

TEST(Error, MessageStandsInFrontOfExpectedAndGiven) {
  EXPECT_STREQ(ValueError({.expected = "0 or 1", .given = "'x'", .message = "bad flag"}).what(),
               "bad flag: expected 0 or 1, got 'x'.");
}

TEST(Error, LaterLinesOfAPartStayUnderTheirLabel) {
  EXPECT_STREQ(ValueError({.message = "bad", .because = "first\nsecond"}).what(),
               "bad.\n  Because: first\n    second.");
}

TEST(Error, ContextFillsWhatIsMissingAndKeepsWhatIsSet) {
  ShapeError error({.op = "dot", .message = "sizes differ"});
  error.add_context({.op = "outer", .block = "net.0", .where = {intern_file("a.py"), 3}});
  error.add_context({.block = "other", .where = {intern_file("b.py"), 4}});
  EXPECT_STREQ(error.what(), "operator 'dot' (block 'net.0'): sizes differ.\n  At: a.py:3");
}

TEST(Error, EveryKindHasItsOwnName) {
  std::string seen;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::kUnsupported); ++kind) {
    const std::string name = std::string("|") + kind_name(static_cast<ErrorKind>(kind)) + "|";
    EXPECT_EQ(seen.find(name), std::string::npos) << name;
    seen += name;
  }
}

TEST(SourceLocation, InternedNamesAreOnePointerEach) {
  const std::string name = "some/file.py";
  EXPECT_EQ(intern_file(name), intern_file("some/file.py"));
  EXPECT_NE(intern_file(name), intern_file("other.py"));
  EXPECT_STREQ(intern_file(name), "some/file.py");
}

TEST(SourceLocation, ProbeAnswersOnlyWhenNothingWasSet) {
  set_location_probe([] { return SourceLocation{"probed.py", 9}; });
  EXPECT_EQ(current_location().str(), "probed.py:9");
  set_current_location({"set.py", 2});
  EXPECT_EQ(current_location().str(), "set.py:2");
  set_current_location({});
  set_location_probe(nullptr);
  EXPECT_FALSE(current_location().known());
}

}  // namespace
}  // namespace hybridnet
