#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace hybridnet {
namespace {

std::string hexadecimal(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// Test vectors of FIPS 180-4 and RFC 4231.
TEST(Sha256, HasTheDigestsOfTheStandard) {
  EXPECT_EQ(hexadecimal(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hexadecimal(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hexadecimal(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheBytesArrive) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t part : {size_t{1}, size_t{3}, size_t{63}, size_t{64}, size_t{65}, size_t{128}}) {
    Sha256 hash;
    for (size_t i = 0; i < text.size(); i += part) hash.add(text.data() + i, std::min(part, text.size() - i));
    EXPECT_EQ(hash.digest(), sha256(text)) << part;
  }
}

TEST(HmacSha256, HasTheCodesOfTheStandard) {
  EXPECT_EQ(hexadecimal(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      hexadecimal(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_FALSE(equal(hmac_sha256("a", "b"), hmac_sha256("b", "a")));
}

}  // namespace
}  // namespace hybridnet
