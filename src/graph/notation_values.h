// Values of constants as text: numbers if they keep every bit, else the bytes as hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

#include "hybridnet/base.h"

namespace hybridnet::notation {

// Returns "[1, 2.5]"; for many values, NaN, and dtypes without a number form the bytes in quotes.
std::string text_of_values(DType dtype, const std::string& bytes);
// Appends the bytes of one number of a list. Returns false if the text is no number of this dtype.
bool append_value(std::string& bytes, DType dtype, const std::string& text);
// Appends the bytes, each written as two digits. Returns false if the text is not such digits.
bool append_digits(std::string& bytes, std::string_view digits);

}  // namespace hybridnet::notation
