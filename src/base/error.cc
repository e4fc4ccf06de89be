#include "hybridnet/error.h"

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

namespace hybridnet {
namespace {

// "operator 'X' (node 'n', block 'b'), input 'w'": the names that are known.
std::string subject_of(const ErrorFields& f) {
  std::string text;
  std::string inside;
  auto name = [&](const char* what, const std::string& value) {
    if (value.empty()) return;
    const std::string part = std::string(what) + " '" + value + "'";
    if (text.empty()) {
      text = part;
    } else {
      inside += (inside.empty() ? "" : ", ") + part;
    }
  };
  name("operator", f.op);
  name("node", f.node);
  name("block", f.block);
  if (!inside.empty()) text += " (" + inside + ")";
  if (!f.input.empty()) text += std::string(text.empty() ? "" : ", ") + "input '" + f.input + "'";
  return text;
}

std::string as_sentence(std::string text) {
  if (!text.empty() && std::string_view(".!?").find(text.back()) == std::string_view::npos) text += '.';
  return text;
}

std::string expected_and_given(const ErrorFields& f) {
  std::string text;
  if (!f.expected.empty()) text = "expected " + f.expected;
  if (!f.given.empty()) text += (text.empty() ? "got " : ", got ") + f.given;
  return text;
}

std::string first_line(ErrorKind kind, const ErrorFields& f) {
  const std::string subject = subject_of(f);
  const std::string compared = expected_and_given(f);
  std::string text = f.message;
  if (!compared.empty()) {
    if (!text.empty() && text.back() == '.') text.pop_back();
    text += (text.empty() ? "" : ": ") + compared;
  }
  if (text.empty()) text = subject.empty() ? kind_name(kind) : "failed";
  return as_sentence(subject.empty() ? text : subject + ": " + text);
}

void append_line(std::string& text, const char* label, const std::string& value) {
  if (value.empty()) return;
  text += "\n  ";
  text += label;
  for (char c : value) {
    text += c;
    if (c == '\n') text += "    ";  // further lines of a part are indented under its label
  }
}

std::string compose(ErrorKind kind, const ErrorFields& f) {
  std::string text = first_line(kind, f);
  append_line(text, "Because: ", as_sentence(f.because));
  append_line(text, "Fix: ", as_sentence(f.fix));
  append_line(text, "At: ", f.where.str());
  return text;
}

bool fill(std::string& inner, const std::string& outer) {
  if (!inner.empty() || outer.empty()) return false;
  inner = outer;
  return true;
}

thread_local SourceLocation thread_location;
thread_local bool thread_asks_probe = true;
std::atomic<LocationProbe> location_probe{nullptr};

}  // namespace

const char* kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kError:
      return "HybridNetError";
    case ErrorKind::kParam:
      return "ParamError";
    case ErrorKind::kShape:
      return "ShapeError";
    case ErrorKind::kDType:
      return "DTypeError";
    case ErrorKind::kType:
      return "TypeError";
    case ErrorKind::kValue:
      return "ValueError";
    case ErrorKind::kIndex:
      return "IndexError";
    case ErrorKind::kFormat:
      return "FormatError";
    case ErrorKind::kFile:
      return "FileError";
    case ErrorKind::kGradient:
      return "GradientError";
    case ErrorKind::kTrace:
      return "TraceError";
    case ErrorKind::kDeferredInit:
      return "DeferredInitializationError";
    case ErrorKind::kEngine:
      return "EngineError";
    case ErrorKind::kMemory:
      return "OutOfMemoryError";
    case ErrorKind::kUnsupported:
      return "UnsupportedError";
    case ErrorKind::kGroup:
      return "GroupError";
  }
  return "HybridNetError";
}

std::string SourceLocation::str() const { return known() ? std::string(file) + ":" + std::to_string(line) : ""; }

Error::Error(ErrorKind kind, ErrorFields fields)
    : kind_(kind), fields_(std::move(fields)), text_(compose(kind_, fields_)) {}

void Error::add_context(const ErrorFields& outer) {
  bool changed = fill(fields_.op, outer.op);
  changed |= fill(fields_.node, outer.node);
  changed |= fill(fields_.block, outer.block);
  changed |= fill(fields_.input, outer.input);
  changed |= fill(fields_.expected, outer.expected);
  changed |= fill(fields_.given, outer.given);
  changed |= fill(fields_.message, outer.message);
  changed |= fill(fields_.because, outer.because);
  changed |= fill(fields_.fix, outer.fix);
  if (!fields_.where.known() && outer.where.known()) {
    fields_.where = outer.where;
    changed = true;
  }
  if (changed) text_ = compose(kind_, fields_);
}

const char* Error::what() const noexcept { return text_.c_str(); }

SourceLocation current_location() {
  if (thread_location.known() || !thread_asks_probe) return thread_location;
  const LocationProbe probe = location_probe.load(std::memory_order_acquire);
  return probe == nullptr ? SourceLocation{} : probe();
}

SourceLocation set_current_location(SourceLocation where) { return std::exchange(thread_location, where); }

LocationScope::LocationScope(SourceLocation where)
    : before_(set_current_location(where)), probing_before_(std::exchange(thread_asks_probe, false)) {}

LocationScope::~LocationScope() {
  thread_location = before_;
  thread_asks_probe = probing_before_;
}

void set_location_probe(LocationProbe probe) { location_probe.store(probe, std::memory_order_release); }

const char* intern_file(std::string_view file) {
  // Never destroyed: interned names must outlive every use, uses while the process ends included.
  static auto& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  auto found = names.find(file);
  if (found == names.end()) found = names.emplace(file).first;
  return found->c_str();
}

}  // namespace hybridnet
