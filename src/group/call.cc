#include "group/call.h"

#include <cstdio>
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
    case Call::Kind::kSumScatter:
      return "sum by parts";
    case Call::Kind::kGatherParts:
      return "gathering of parts";
    case Call::Kind::kBarrier:
      return "barrier";
  }
  return "unknown call";
}

// Cuts a long text; its end is then a hash, so that two texts with equal beginnings differ.
std::string fitting(const std::string& text, size_t capacity) {
  if (text.size() <= capacity) return text;
  char hash[24];
  const int length = std::snprintf(hash, sizeof hash, "... #%016llx", static_cast<unsigned long long>(hash_text(text)));
  size_t kept = capacity - static_cast<size_t>(length);
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80) --kept;  // whole characters of UTF-8
  return text.substr(0, kept) + hash;
}

}  // namespace

std::string unnamed_label(const std::string& arrays, const SourceLocation& where) {
  if (!where.known()) return arrays;
  const std::string_view file(where.file);
  return arrays + " at " + std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(where.line);
}

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
  const std::string label = fitting(call.label, sizeof frame.label - 1);
  std::memcpy(frame.label, label.data(), label.size());
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
