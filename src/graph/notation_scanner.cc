#include "graph/notation_scanner.h"

#include <algorithm>
#include <charconv>

#include "graph/notation.h"

namespace hybridnet {
namespace {

constexpr size_t kMaxShown = 80;  // characters of a line that an error shows on each side

bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }  // UTF-8

}  // namespace

void NotationScanner::skip() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

bool NotationScanner::take_word(std::string_view word) {
  skip();
  const size_t end = at_ + word.size();
  if (!starts_with(word) || (end < text_.size() && notation::is_word_char(text_[end]))) return false;
  at_ = end;
  return true;
}

std::string NotationScanner::word_here(const char* what) {
  const size_t start = at_;
  while (at_ < text_.size() && notation::is_word_char(text_[at_])) ++at_;
  if (at_ == start) fail(what);
  return std::string(text_.substr(start, at_ - start));
}

std::string NotationScanner::string(const char* what) {
  skip();
  const size_t start = at_;
  if (!take_here('"')) fail(what);
  std::string result;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
    if (!take_here('\\')) {
      result += text_[at_++];
      continue;
    }
    if (take_here('x')) {
      unsigned code = 0;
      const std::string_view digits = text_.substr(at_, 2);
      if (digits.size() < 2 || std::from_chars(digits.data(), digits.data() + 2, code, 16).ptr != digits.data() + 2)
        fail("two digits of a character behind \\x");
      result += static_cast<char>(code);
      at_ += 2;
    } else if (peek_here() == '"' || peek_here() == '\\') {
      result += text_[at_++];
    } else {
      fail("one of \\\", \\\\ and \\x0a");
    }
  }
  if (!take_here('"')) fail_at(start, "a quote that ends on its line", "no second quote");
  return result;
}

std::string NotationScanner::value() {
  skip();
  const size_t start = at_;
  int depth = 0;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '(') {
      ++depth;
    } else if (c == ')' && depth > 0) {
      --depth;
    } else if (!notation::is_value_char(c) && !(depth > 0 && (c == ',' || c == ' '))) {
      break;
    }
  }
  if (at_ == start || depth > 0) fail("a value: a number, a word, brackets, or a text in quotes");
  return std::string(text_.substr(start, at_ - start));
}

int64_t NotationScanner::integer(const char* what, int64_t low, int64_t high) {
  skip();
  const size_t start = at_;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
  if (end == text_.data() + at_) fail(what);
  at_ = static_cast<size_t>(end - text_.data());
  if (error != std::errc() || number < low || number > high)
    fail_at(start, std::string(what) + " from " + std::to_string(low) + " to " + std::to_string(high),
            std::string(text_.substr(start, std::min<size_t>(at_ - start, 24))));
  return number;
}

void NotationScanner::fail(const std::string& expected) {
  skip();
  if (at_ >= text_.size()) fail_at(at_, expected, "the end of the text");
  size_t end = at_ + 1;
  while (end < text_.size() && end - at_ < 24 && notation::is_word_char(text_[end - 1]) &&
         notation::is_word_char(text_[end]))
    ++end;
  while (end < text_.size() && is_inside_character(text_[end])) ++end;
  fail_at(at_, expected, "'" + std::string(text_.substr(at_, end - at_)) + "'");
}

void NotationScanner::fail_at(size_t at, const std::string& expected, const std::string& given,
                              const std::string& because) const {
  at = std::min(at, text_.size());
  const auto number = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const size_t before = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
  const size_t start = before == std::string_view::npos ? 0 : before + 1;
  const size_t end = std::min(text_.find('\n', at), text_.size());
  const auto columns = [&](size_t from, size_t to) {
    return static_cast<size_t>(std::count_if(text_.begin() + static_cast<std::ptrdiff_t>(from),
                                             text_.begin() + static_cast<std::ptrdiff_t>(to),
                                             [](char c) { return !is_inside_character(c); }));
  };
  size_t from = at - start > kMaxShown ? at - kMaxShown : start, to = std::min(end, at + kMaxShown);
  while (from > start && is_inside_character(text_[from])) --from;
  while (to < end && is_inside_character(text_[to])) ++to;
  std::string message = "line " + std::to_string(number) + ", column " + std::to_string(1 + columns(start, at));
  if (!expected.empty()) message += ": expected " + expected + ", got " + given;
  std::string shown(text_.substr(from, to - from));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  message += "\n    " + shown + "\n    " + std::string(columns(from, at), ' ') + "^ here.";
  throw FormatError({.message = std::move(message), .because = because});
}

}  // namespace hybridnet
