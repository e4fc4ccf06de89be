// Text forms of attribute values as MXNet's JSON holds them: "True", "(2, 2)", "1e-05", "None", "(3L, 3L)".
#pragma once

#include <string>
#include <string_view>

#include "hybridnet/params.h"

namespace hybridnet {

// Each returns false when the text is not of that form; surrounding blanks are ignored.
bool parse_bool(std::string_view text, bool* out);       // True False true FALSE 1 0
bool parse_int(std::string_view text, int64_t* out);     // 2, -1, 3L, 2.0
bool parse_double(std::string_view text, double* out);   // also inf, nan
bool parse_list(std::string_view text, AttrValue* out);  // (…) or […], items may be None, numbers or nested lists
bool is_none_text(std::string_view text);

// The shortest text that reads back to the same double; python_float: in the format of Python's str (1.0, 1e-05).
std::string number_text(double value, bool python_float = false);
// The double with the fewest digits that rounds to this float: 0.1f gives 0.1, not 0.10000000149.
double shortest_double(float value);

}  // namespace hybridnet
