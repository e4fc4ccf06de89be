// The text form of graphs, which can be read back: Graph::text() writes it (docs/rewriting.md shows the notation).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

// The folder graph/ does not depend on arrays: these functions read and make the values of constants, in row-major
// order.
using BytesOfConstant = std::function<std::string(const Object& array)>;
using MakeConstant = std::function<Ref<Object>(const TensorSpec& spec, std::string_view bytes)>;

// bytes: if null, values of constants are left out; the text of a graph with constants cannot be read back then.
std::string write_notation(const Graph& graph, const BytesOfConstant& bytes);

// Returns the graph that the text describes. Specs of operators may be left out if inference finds them. Throws
// FormatError with line, column and the expected token. Any text gives either a graph or this error.
Graph parse_notation(std::string_view text, const MakeConstant& make);

// Returns a hash that is equal in every process for graphs of equal structure, bodies and values of constants
// included. Names, source locations and the order of nodes do not count. (Graph::fingerprint() is faster, and
// compares bodies and constants by address.)
uint64_t structure_hash(const Graph& graph, const BytesOfConstant& bytes);

namespace notation {
// Words that the writer and the parser share.
struct LoopWords {
  std::string_view word, length;  // "loop", and the parameter in its brackets
};
inline constexpr LoopWords kForeachWords{"loop", "length"}, kWhileWords{"while", "max_iterations"};
inline constexpr std::string_view kBranchWord = "branch";
inline constexpr std::string_view kLoopRegions[] = {"test", "do"};
inline constexpr std::string_view kBranchRegions[] = {"pred", "then", "else"};
// True for parameters of loops and branches that follow from the slots, so the text leaves them out.
bool is_told_by_slots(std::string_view param);
inline bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
// True for characters of values without quotes, brackets excluded.
inline bool is_value_char(char c) { return is_word_char(c) || c == '.' || c == '+' || c == '-'; }
}  // namespace notation

}  // namespace hybridnet
