// Gradients in one or two bits for each value, as MXNet's kvstores send them: a value is the sign that the code stands
// for, and what the code leaves out is added to the next gradient (the residual).
// Format:  one word that is 1 if the gradient has a NaN or an infinity, else 0; then the codes, the first value in the
//          highest bits of the first byte, filled with zeros to a whole word of 4 bytes.
//          2 bits: 11 is +threshold, 10 -threshold, 00 is 0. 1 bit: 1 is +1, 0 is -1.
// Threads: any.
// Throws:  nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace hybridnet::group {

struct Codec {
  int bits = 2;  // 1 or 2
  float threshold = 0.5f;
  int64_t message_bytes(int64_t count) const;
  std::string str() const;  // "2bit codes, threshold 0.5"
};

// Writes message_bytes(gradient.size()) bytes. residual += gradient, minus the coded values; a gradient with a NaN or
// an infinity, or a sum that overflows, leaves the residual as it was.
void encode(const Codec& codec, std::span<const float> gradient, std::span<float> residual, char* message);
// out = the sum of the coded values, in the order of the messages; NaN if one of them was not finite. out must not be
// the memory of a message.
void add_codes(const Codec& codec, std::span<const char* const> messages, std::span<float> out);

}  // namespace hybridnet::group
