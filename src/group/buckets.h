// How arrays are split into messages. All front ends use this rule, so that processes of different languages make the
// same calls.
// Threads: any.
// Throws:  nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hybridnet/base.h"

namespace hybridnet::group {

struct BucketItem {
  int64_t bytes = 0;
  DType dtype = DType::kUnknown;
};

// Returns the positions of the arrays of each message, in order; the arrays of a message have one dtype. The first
// message is complete at 1 MB, so that the processes begin to send early; the others at 1 MB for each process, from 4
// to 25 MB: small messages leave little to send after the last gradient, but each one costs a latency for each process.
std::vector<std::vector<size_t>> buckets_of(std::span<const BucketItem> arrays, int processes);

// The kind of a message of gradients that the update divides by `divisor`, as in "gradients (divided by 64)". Processes
// that divide by other numbers would end with other parameters; so their messages have other names.
std::string gradients_kind(double divisor);
// The name of a message in errors: "gradients 'dense0_bias'", "gradients 'dense1_weight'..'dense0_bias'".
std::string bucket_label(const std::string& kind, std::span<const std::string> names);

}  // namespace hybridnet::group
