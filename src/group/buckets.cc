#include "group/buckets.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace hybridnet::group {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

struct OpenBucket {
  DType dtype;
  std::vector<size_t> members;
  int64_t bytes = 0;
};

}  // namespace

std::vector<std::vector<size_t>> buckets_of(std::span<const BucketItem> arrays, int processes) {
  std::vector<std::vector<size_t>> complete;
  std::vector<OpenBucket> open;  // one for each dtype, in the order of their first arrays
  int64_t limit = kMegabyte;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const DType dtype = arrays[i].dtype;
    auto bucket = std::find_if(open.begin(), open.end(), [&](const OpenBucket& each) { return each.dtype == dtype; });
    if (bucket == open.end()) bucket = open.insert(open.end(), {dtype, {}});
    bucket->members.push_back(i);
    bucket->bytes += arrays[i].bytes;
    if (bucket->bytes < limit) continue;
    complete.push_back(std::exchange(bucket->members, {}));
    bucket->bytes = 0;
    limit = std::clamp(processes * kMegabyte, 4 * kMegabyte, 25 * kMegabyte);
  }
  for (OpenBucket& bucket : open)
    if (!bucket.members.empty()) complete.push_back(std::move(bucket.members));
  return complete;
}

std::string gradients_kind(double divisor) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), divisor);
  return "gradients (divided by " + std::string(text, end) + ")";
}

std::string bucket_label(const std::string& kind, std::span<const std::string> names) {
  const std::string first = kind + " '" + (names.empty() ? std::string() : names.front()) + "'";
  return names.size() < 2 ? first : first + "..'" + names.back() + "'";
}

}  // namespace hybridnet::group
