// Indices and labels outside their bounds that MXNet accepts without a word: the result stays MXNet's, and the operator
// says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hybridnet::kernels {

// Which input of which operator holds the index.
struct IndexUse {
  const char* op;
  const char* input;
};

// Warns, once for each operator and line of the program, that the index at this position of its tensor (counted in
// row-major order) is not in [0, size); outcome says what it does: "2 is used for it". With HYBRIDNET_STRICT=1 it
// throws IndexError instead.
[[gnu::cold]] void report_out_of_range(const IndexUse& use, std::string_view index, int64_t position, int64_t size,
                                       std::string_view outcome);

// False where that would do nothing, because it was said: asked first by callers whose texts take memory.
[[gnu::cold]] bool may_report_out_of_range(const IndexUse& use);

// The index as text; what Indices makes of NaN is "nan".
std::string index_text(int64_t index);

}  // namespace hybridnet::kernels
