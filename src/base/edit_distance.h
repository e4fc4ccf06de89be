// Distance between two names, for "did you mean".
#pragma once

#include <cstddef>
#include <string_view>

namespace hybridnet {

// Number of letters to insert, delete or exchange (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace hybridnet
