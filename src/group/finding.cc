#include "group/finding.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace hybridnet::group {
namespace {

template <size_t N>
void copy_text(const std::string& text, char (&target)[N]) {
  std::memcpy(target, text.data(), std::min(text.size(), N - 1));
}

}  // namespace

Finding::Finding(Certainty how_certain, int of_rank, const std::string& message_text, const std::string& because_text,
                 const std::string& fix_text)
    : certainty(how_certain), rank(of_rank) {
  copy_text(message_text, message);
  copy_text(because_text, because);
  copy_text(fix_text, fix);
}

bool Finding::valid(int processes) const {
  return certainty >= kClosed && certainty <= kDisagreement && rank >= 0 && rank < processes &&
         message[sizeof message - 1] == '\0' && because[sizeof because - 1] == '\0' && fix[sizeof fix - 1] == '\0';
}

bool Finding::more_certain_than(const Finding& other) const {
  return std::tuple(certainty, -rank, std::string_view(message)) >
         std::tuple(other.certainty, -other.rank, std::string_view(other.message));
}

std::string seconds_text(std::chrono::steady_clock::duration time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

ErrorFields Finding::fields() const { return {.message = message, .because = because, .fix = fix}; }

}  // namespace hybridnet::group
