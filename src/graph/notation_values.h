// Values of constants as text: numbers where they say every bit, else the bytes as digits.
#pragma once

#include <string>
#include <string_view>

#include "hybridnet/base.h"

namespace hybridnet::notation {

// "[1, 2.5]", or the bytes in quotes: of many values, of NaN, of types without numbers of their own.
std::string text_of_values(DType dtype, const std::string& bytes);
// Adds the bytes of one number of such a list. False: the text is no number of this type.
bool append_value(std::string& bytes, DType dtype, const std::string& text);
// Adds bytes of two digits each. False: they are no such digits.
bool append_digits(std::string& bytes, std::string_view digits);

}  // namespace hybridnet::notation
