// NVRTC, NVIDIA's compiler for CUDA text, loaded when the first kernel is compiled. It needs no GPU and no driver.
// Owner:   a Compiler belongs to its backend; the library stays loaded until the process ends.
// Threads: any; several texts may be compiled at once.
// Throws:  DeviceError with the places that were searched, or with the first lines of the compiler's log and the text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/library_files.h"
#include "cuda/symbol.h"
#include "device/backend.h"

namespace hybridnet::cuda {

// The options that make results equal the CPU's bits: no contraction to fma, subnormal numbers stay, exact / and sqrt.
inline constexpr const char* kCompilerOptions[] = {
    "--std=c++17",     "--fmad=false",     "--ftz=false",
    "--prec-div=true", "--prec-sqrt=true", "--device-as-default-execution-space",
};

class Nvrtc {
  std::vector<Symbol*> table_;

 public:
  using Program = struct ProgramTag*;
  Nvrtc() = default;
  Nvrtc(const Nvrtc&) = delete;
  const std::vector<Symbol*>& table() const { return table_; }

  Function<Result(int* major, int* minor)> version{table_, "nvrtcVersion", 7000};
  Function<Result(Program* program, const char* text, const char* name, int count, const char* const* headers,
                  const char* const* header_names)>
      create{table_, "nvrtcCreateProgram", 7000};
  Function<Result(Program* program)> destroy{table_, "nvrtcDestroyProgram", 7000};
  Function<Result(Program program, int count, const char* const* options)> compile{table_, "nvrtcCompileProgram", 7000};
  Function<Result(Program program, size_t* bytes)> log_size{table_, "nvrtcGetProgramLogSize", 7000};
  Function<Result(Program program, char* log)> log{table_, "nvrtcGetProgramLog", 7000};
  Function<Result(Program program, size_t* bytes)> cubin_size{table_, "nvrtcGetCUBINSize", 11010};
  Function<Result(Program program, char* cubin)> cubin{table_, "nvrtcGetCUBIN", 11010};
  Function<Result(Program program, size_t* bytes)> ptx_size{table_, "nvrtcGetPTXSize", 7000, Need::kOptional};
  Function<Result(Program program, char* ptx)> ptx{table_, "nvrtcGetPTX", 7000, Need::kOptional};
  Function<Result(Program program, const char* expression)> add_name{table_, "nvrtcAddNameExpression", 8000,
                                                                     Need::kOptional};
  Function<Result(Program program, const char* expression, const char** name)> lowered_name{
      table_, "nvrtcGetLoweredName", 8000, Need::kOptional};
  Function<Result(int* count)> architecture_count{table_, "nvrtcGetNumSupportedArchs", 11020, Need::kOptional};
  Function<Result(int* architectures)> architectures{table_, "nvrtcGetSupportedArchs", 11020, Need::kOptional};
};

class Compiler {
 public:
  // Loads the first of these files that is an NVRTC; null, and the reason, if there is none.
  static std::unique_ptr<Compiler> load(const std::vector<std::string>& files, std::string* why_none);
  Compiler(const Compiler&) = delete;

  const std::string& version() const { return version_; }  // "13.0"
  const std::string& file() const { return file_; }
  // A text that changes with the compiler: nvrtc_identity() of its file, or the version of the tests' stand-in, which
  // says all that its images depend on.
  const std::string& identity() const { return identity_; }

  // The option --gpu-architecture for a device: its own architecture (the image is a cubin) or, if the device is newer
  // than the compiler, the newest that the compiler knows (the image is PTX, which the driver compiles).
  std::string target_for(std::string_view architecture) const;
  // kLinkedByDriver: the image is PTX in any case.
  std::string compile(std::string_view text, const std::string& target, const std::vector<device::HeaderText>& headers,
                      device::ImageKind kind = device::ImageKind::kFinished) const;
  // The same for a user's text, with the user's options in place of ours. Throws ValueError with the compiler's log and
  // the line that it names if the text does not compile.
  device::UserImage compile(const device::UserSource& source, const std::string& target,
                            const std::vector<device::HeaderText>& headers) const;

 private:
  Compiler() = default;
  void describe(bool is_stand_in);
  void add_exports(Nvrtc::Program program, const std::vector<std::string>& exports) const;
  std::string log_of(Nvrtc::Program program) const;
  std::string image_of(Nvrtc::Program program, bool as_ptx) const;

  Nvrtc nvrtc_;
  std::string version_, identity_, file_;
  std::vector<int> architectures_;  // ascending; empty: the library does not say
};

inline constexpr LibraryName kNvrtc{"NVRTC", "libnvrtc.so", "cuda_nvrtc"};
// Places where an NVRTC may be, as library_files() orders them. A compiler that is newer than the driver (1000 * major
// + 10 * minor) comes after older ones, because the driver may not read its images.
std::vector<std::string> nvrtc_files(const std::string& driver, const std::string& folders, int driver_version);

// The name and the size of a library's file, which differ between releases; empty if there is no such file.
std::string nvrtc_identity(const std::string& file);
// The identity of the compiler that Compiler::load() most likely takes, without loading it, which takes 0.1 s and more;
// empty if that cannot be known.
std::string expected_identity(const std::vector<std::string>& files);

}  // namespace hybridnet::cuda
