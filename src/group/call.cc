#include "group/call.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/hash.h"

namespace hybridnet::group {
namespace {

constexpr uint64_t kMagic = 0x3146'7075'6f72'4748;  // "HGroupF1"

const char* name_of(Call::Kind kind) {
  switch (kind) {
    case Call::Kind::kSum:
      return "sum";
    case Call::Kind::kGather:
      return "gathering";
    case Call::Kind::kBroadcast:
      return "broadcast";
    case Call::Kind::kBarrier:
      return "barrier";
  }
  return "unknown call";
}

}  // namespace

void Call::add_shape(const Shape& shape) {
  shapes = mix_hash(shapes, static_cast<uint64_t>(shape.ndim()) + 1);
  for (const int64_t dim : shape) shapes = mix_hash(shapes, static_cast<uint64_t>(dim));
}

std::string Call::str() const {
  std::string text = name_of(kind);
  if (!label.empty()) text += " of " + label;
  return text;
}

Frame Frame::of(const Call& call, uint64_t number, int rank) {
  Frame frame;
  frame.magic = kMagic;
  frame.number = number;
  frame.count = call.count;
  frame.shapes = call.shapes;
  frame.rank = rank;
  frame.root = call.root;
  frame.shards = call.shards;
  frame.dtype = static_cast<int8_t>(call.dtype);
  frame.kind = static_cast<uint8_t>(call.kind);
  std::memcpy(frame.label, call.label.data(), std::min(call.label.size(), sizeof frame.label - 1));
  return frame;
}

bool Frame::valid(uint64_t expected_number, int expected_rank) const {
  return magic == kMagic && number == expected_number && rank == expected_rank && label[sizeof label - 1] == '\0' &&
         kind <= static_cast<uint8_t>(Call::Kind::kBarrier);
}

bool Frame::same_call(const Frame& other) const {
  return kind == other.kind && dtype == other.dtype && count == other.count && shapes == other.shapes &&
         root == other.root && shards == other.shards && std::string_view(label) == other.label;
}

Call Frame::call() const {
  Call call;
  call.kind = static_cast<Call::Kind>(kind);
  call.count = count;
  call.label = label;
  return call;
}

}  // namespace hybridnet::group
