// Graphs as text that can be read back: what Graph::text() writes (docs/rewriting.md shows the notation).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

// The graph room knows no arrays: these read and make the values of constants, rows one after the other.
using BytesOfConstant = std::function<std::string(const Object& array)>;
using MakeConstant = std::function<Ref<Object>(const TensorSpec& spec, std::string_view bytes)>;

// bytes: null: values of constants are left out, and the text cannot be read back where there are any.
std::string write_notation(const Graph& graph, const BytesOfConstant& bytes);

// The graph that a text describes. Specs of operators may be left out where inference finds them. Throws FormatError
// with line, column, and what was expected there; whatever the text is, it ends in a graph or in that error.
Graph parse_notation(std::string_view text, const MakeConstant& make);

// Equal for graphs of one structure, bodies and values of constants included, in every process; names, places and the
// order of nodes do not count. (Graph::fingerprint() is faster, and takes bodies and constants for what they are in
// memory.)
uint64_t structure_hash(const Graph& graph, const BytesOfConstant& bytes);

namespace notation {
// Words that both directions share.
struct LoopWords {
  std::string_view word, length;  // "loop", and the parameter that stands in its brackets
};
inline constexpr LoopWords kForeachWords{"loop", "length"}, kWhileWords{"while", "max_iterations"};
inline constexpr std::string_view kBranchWord = "branch";
inline constexpr std::string_view kLoopRegions[] = {"test", "do"};
inline constexpr std::string_view kBranchRegions[] = {"pred", "then", "else"};
// Parameters of loops and branches that their slots tell.
bool is_told_by_slots(std::string_view param);
inline bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
// Characters of values that stand without quotes, beside brackets.
inline bool is_value_char(char c) { return is_word_char(c) || c == '.' || c == '+' || c == '-'; }
}  // namespace notation

}  // namespace hybridnet
