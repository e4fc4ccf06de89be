// How close the results of an operator on a GPU are to those of the CPU: the promise of docs/gpu.md ("Numbers").
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hybridnet/op.h"

namespace hybridnet {

struct Agreement {
  enum class Kind : uint8_t {
    kSameBits,
    kFewUlps,   // each element within 4 units in the last place: the functions of two mathematical libraries
    kRedrawn,   // the same, but for a few elements: the last bit of a logarithm decides whether a number is drawn again
    kRounding,  // within `tolerance` times the largest magnitude: sums in another order
  };
  Kind kind = Kind::kSameBits;
  double tolerance = 0;
  bool is_product = false;  // TF32 may be allowed after linking: share() asks

  double share() const;  // the tolerance now, relative to the largest magnitude

  std::string text() const;  // "the same bits"
};

// The agreement of an output of this dtype of a use.
Agreement agreement_of(const Op& op, const LinkContext& c, DType dtype);

// The largest magnitude of a tensor's finite elements; 0 if it has none, and for integers.
double largest_magnitude(const TensorRef& tensor);

// The largest finite difference of an element; 0 for integers. The tensors have one shape and dtype.
double largest_change(const TensorRef& from, const TensorRef& to);

struct Difference {
  int64_t element;
  std::string found, expected;
};
// The first element that is further from the expected one than agreed; `largest`: the magnitude for kRounding.
std::optional<Difference> first_difference(const TensorRef& found, const TensorRef& expected,
                                           const Agreement& agreement, double largest);

}  // namespace hybridnet
