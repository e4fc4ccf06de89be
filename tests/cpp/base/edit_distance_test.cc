#include "base/edit_distance.h"

#include <gtest/gtest.h>

namespace hybridnet {
namespace {

TEST(EditDistance, CountsInsertedDeletedAndExchangedLetters) {
  EXPECT_EQ(edit_distance("relu", "relu"), 0u);
  EXPECT_EQ(edit_distance("", "relu"), 4u);
  EXPECT_EQ(edit_distance("relu", ""), 4u);
  EXPECT_EQ(edit_distance("rlu", "relu"), 1u);
  EXPECT_EQ(edit_distance("relu", "rely"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

}  // namespace
}  // namespace hybridnet
