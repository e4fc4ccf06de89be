#include "group/compression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace hybridnet::group {
namespace {

using Values = std::vector<float>;

std::string message_of(const Codec& codec, const Values& gradient, Values& residual) {
  std::string message(static_cast<size_t>(codec.message_bytes(static_cast<int64_t>(gradient.size()))), '\x7f');
  encode(codec, gradient, residual, message.data());
  return message;
}

TEST(Compression, TwoBitCodesBeginInTheHighestBitsOfTheFirstByte) {
  const Codec codec{2, 0.5f};
  Values residual(6);
  const std::string message = message_of(codec, {0.5f, 0.0f, -0.5f, 0.75f, -2.0f, 0.25f}, residual);
  EXPECT_EQ(message, std::string("\0\0\0\0\xcb\x80\0\0", 8));
  EXPECT_EQ(residual, (Values{0, 0, 0, 0.25f, -1.5f, 0.25f}));
}

TEST(Compression, OneBitCodesBeginInTheHighestBitOfTheFirstByte) {
  const Codec codec{1, 0.0f};
  Values residual(9);
  const std::string message = message_of(codec, {1, -1, 0, 2, -2, 1, 1, 1, 3}, residual);
  EXPECT_EQ(message, std::string("\0\0\0\0\x97\x80\0\0", 8));
  EXPECT_EQ(residual, (Values{0, 0, 1, 1, -1, 0, 0, 0, 2}));
}

TEST(Compression, MessagesHaveWholeWords) {
  for (const int64_t count : {0, 1, 15, 16, 17, 32, 33}) {
    EXPECT_EQ((Codec{2, 0.5f}.message_bytes(count)), 4 + (count + 15) / 16 * 4);
    EXPECT_EQ((Codec{1, 0.5f}.message_bytes(count)), 4 + (count + 31) / 32 * 4);
  }
}

TEST(Compression, SumsAreAddedInTheOrderOfTheMessages) {
  const Codec codec{2, 0.1f};
  Values residual(3), sum(3);
  const std::string plus = message_of(codec, {1, 1, 0}, residual);
  residual.assign(3, 0);
  const std::string minus = message_of(codec, {1, -1, -1}, residual);
  const std::vector<const char*> messages{plus.data(), minus.data(), plus.data()};
  add_codes(codec, messages, sum);
  EXPECT_EQ(sum, (Values{0.1f + 0.1f + 0.1f, 0.1f - 0.1f + 0.1f, -0.1f}));
}

TEST(Compression, OneValueThatIsNotFiniteMakesTheSumNaN) {
  const Codec codec{1, 0.5f};
  Values residual{0.25f, 0.25f}, sum(2);
  const std::string wrong = message_of(codec, {1, std::numeric_limits<float>::infinity()}, residual);
  EXPECT_EQ(residual, (Values{0.25f, 0.25f}));
  const std::string fine = message_of(codec, {1, 1}, residual);
  const std::vector<const char*> messages{fine.data(), wrong.data()};
  add_codes(codec, messages, sum);
  EXPECT_TRUE(std::isnan(sum[0]) && std::isnan(sum[1]));
}

}  // namespace
}  // namespace hybridnet::group
