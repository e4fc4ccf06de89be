// Programs of one family of kernels, found by a number instead of by their text: a launch builds no string.
// Owner:   a static of the function that launches.
// Threads: any.
// Throws:  nothing of its own; the text's maker and Program::of may throw.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "device/program.h"
#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet::device {

template <int kCount>
class ProgramTable {
 public:
  // The program with this number; make_text() returns its text when it is needed for the first time.
  template <typename MakeText>
  Program& get(int number, const MakeText& make_text, ImageKind kind = ImageKind::kFinished) {
    std::atomic<Program*>& slot = programs_[static_cast<size_t>(number)];
    Program* program = slot.load(std::memory_order_acquire);
    if (!program) slot.store(program = &Program::of(make_text(), kind), std::memory_order_release);
    return *program;
  }

 private:
  std::array<std::atomic<Program*>, kCount> programs_{};
};

// The name of a dtype's element in the text of kernels (kernels/device/elements.cuh).
inline std::string element_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "double";
    case DType::kFloat16:
      return "hybridnet::device::float16";
    case DType::kBFloat16:
      return "hybridnet::device::bfloat16";
    case DType::kUInt8:
      return "uint8_t";
    case DType::kInt8:
      return "int8_t";
    case DType::kInt32:
      return "int32_t";
    case DType::kInt64:
      return "int64_t";
    case DType::kBool:
      return "bool";
    case DType::kFloat32:
      return "float";
    default:
      throw DTypeError({.expected = "a dtype that kernels of devices know", .given = dtype_name(dtype)});
  }
}

inline std::string include_line(const std::string& header) { return "#include \"kernels/device/" + header + "\"\n"; }

// `HN_KERNEL(entry, Arguments) { function(a); }`, names in namespace hybridnet::device.
inline std::string kernel_line(const std::string& entry, const std::string& arguments, const std::string& function) {
  return "HN_KERNEL(" + entry + ", hybridnet::device::" + arguments + ") { hybridnet::device::" + function + "(a); }\n";
}
// The same for a kernel whose threads share `count` values of type `type`.
inline std::string block_kernel_line(const std::string& entry, const std::string& arguments,
                                     const std::string& function, const std::string& type, const std::string& count) {
  return "HN_BLOCK_KERNEL(" + entry + ", hybridnet::device::" + arguments + ") {\n  HN_SHARED(" + type + ", room, " +
         count + ");\n  hybridnet::device::" + function + "(a, room);\n}\n";
}

}  // namespace hybridnet::device
