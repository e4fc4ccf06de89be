// A collective call: all processes of a group make it together, each with the same arguments.
#pragma once

#include <cstdint>
#include <string>

#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet::group {

struct Call {
  enum class Kind : uint8_t { kSum, kGather, kBroadcast, kSumScatter, kGatherParts, kBarrier };
  Kind kind = Kind::kBarrier;
  DType dtype = DType::kUnknown;
  int64_t count = 0;    // elements in each process
  int root = 0;         // the process that sends, in a broadcast
  int shards = 0;       // parts of a sum; 0: one for each process
  uint64_t shapes = 0;  // hash of the shapes
  std::string label;    // for texts: "gradients 'conv0_weight'..'bn1_beta'", "float32(3, 4)"
  void add_shape(const Shape& shape);
  std::string str() const;  // "sum of gradients 'conv0_weight'..'bn1_beta'"
};

// The label of a call without a name: what it is of, and the line of the program that makes it, if it is known. So two
// unnamed calls of equal arrays that are swapped in one process are a difference.
std::string unnamed_label(const std::string& arrays, const SourceLocation& where);

// The message that begins a call: its sender's call. It has a fixed size, so that processes that disagree can still
// read each other's.
struct Frame {
  uint64_t magic = 0;
  uint64_t number = 0;  // the number of the call
  int64_t count = 0;
  uint64_t shapes = 0;
  int32_t rank = 0;
  int32_t root = 0;
  int32_t shards = 0;
  int8_t dtype = 0;
  uint8_t kind = 0;
  uint8_t padding[2] = {};
  char label[208] = {};  // ends with a zero; a longer one ends with its hash

  static Frame of(const Call& call, uint64_t number, int rank);
  bool valid(uint64_t expected_number, int expected_rank) const;
  bool same_call(const Frame& other) const;
  Call call() const;
};
static_assert(sizeof(Frame) == 256);

}  // namespace hybridnet::group
