// Scanner for the text of graphs. Unexpected characters throw a FormatError that shows the place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hybridnet/error.h"

namespace hybridnet {

class NotationScanner {
 public:
  explicit NotationScanner(std::string_view text) : text_(text) {}

  // Skips blanks, line ends, and comments from # to the end of the line.
  void skip();
  size_t at() const { return at_; }
  bool at_end() {
    skip();
    return at_ >= text_.size();
  }
  char peek_here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char peek() {
    skip();
    return peek_here();
  }
  bool starts_with(std::string_view piece) const { return text_.substr(at_).starts_with(piece); }
  void advance(size_t count) { at_ += count; }
  bool take_here(char c) {  // without blanks in front
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(char c) {
    skip();
    return take_here(c);
  }
  bool take_word(std::string_view word);
  void expect(char c, const char* what) {
    if (!take(c)) fail(what);
  }
  void expect_word(std::string_view word) {
    if (!take_word(word)) fail("'" + std::string(word) + "'");
  }
  std::string word(const char* what) {
    skip();
    return word_here(what);
  }
  std::string word_here(const char* what);
  std::string string(const char* what);  // in quotes
  std::string value();                   // without quotes: a number, a word, or a list of these in brackets
  int64_t integer(const char* what, int64_t low, int64_t high);
  // Items between brackets, separated by commas.
  template <typename Read>
  void list(char open, char close, const Read& read) {
    const std::string opening{'\'', open, '\''}, separator{'\'', ',', '\'', ' ', 'o', 'r', ' ', '\'', close, '\''};
    expect(open, opening.c_str());
    if (take(close)) return;
    for (;;) {
      skip();
      read();
      if (take(close)) return;
      expect(',', separator.c_str());
    }
  }

  [[noreturn]] void fail(const std::string& expected);  // at the next token
  [[noreturn]] void fail_at(size_t at, const std::string& expected, const std::string& given,
                            const std::string& because = "") const;
  // Calls `run`; an exception becomes a FormatError for the text at this place.
  template <typename Run>
  void guarded(size_t at, const Run& run) const {
    try {
      run();
    } catch (const std::exception& error) {
      fail_at(at, "", "", error.what());
    }
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace hybridnet
