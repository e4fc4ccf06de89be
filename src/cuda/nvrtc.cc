#include "cuda/nvrtc.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <system_error>

#include "cuda/stand_in.h"
#include "hybridnet/error.h"

namespace hybridnet::cuda {
namespace {

constexpr const char* kInstall = "pip install nvidia-cuda-nvrtc (CUDA 13), or nvidia-cuda-nvrtc-cu12 for older drivers";

[[noreturn]] void throw_nvrtc(const char* function, Result result) {
  throw EngineError({.message = std::string("NVRTC: ") + function + " failed: error " + std::to_string(result),
                     .fix = std::string("reinstall NVRTC: ") + kInstall});
}

template <class... Parameters, class... Arguments>
void call(const Function<Result(Parameters...)>& function, Arguments... arguments) {
  if (const Result result = function(arguments...); result != 0) throw_nvrtc(function.name, result);
}

// "sm_90a": 90. 0 for a text without a number.
int number_of(std::string_view architecture) {
  const size_t at = architecture.find_first_of("0123456789");
  int number = 0;
  if (at != std::string_view::npos)
    std::from_chars(architecture.data() + at, architecture.data() + architecture.size(), number);
  return number;
}

std::string first_lines(std::string_view text, int count) {
  size_t end = 0;
  for (; count > 0 && end < text.size(); --count) end = std::min(text.find('\n', end), text.size() - 1) + 1;
  while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '\0')) --end;
  return std::string(text.substr(0, end));
}

[[noreturn]] void throw_compile_error(std::string_view text, const std::string& target, const std::string& log) {
  constexpr int kLogLines = 12, kTextLines = 60;
  throw EngineError({.message = "CUDA text does not compile for " + target + ":\n" + first_lines(log, kLogLines),
                     .because = "the text is:\n" + first_lines(text, kTextLines)});
}

// The number of the line that a log names first, as "kernel.cu(3)" or "kernel.cu:3"; 0: there is none.
int first_line_in(const std::string& log) {
  constexpr std::string_view kName = "kernel.cu";
  for (size_t at = log.find(kName); at != std::string::npos; at = log.find(kName, at + 1)) {
    const size_t digits = at + kName.size() + 1;
    int line = 0;
    if (digits < log.size() && std::from_chars(log.data() + digits, log.data() + log.size(), line).ec == std::errc())
      return line;
  }
  return 0;
}

std::string line_of(const std::string& text, int number) {
  std::istringstream rest(text);
  std::string line;
  for (int i = 0; i < number && std::getline(rest, line); ++i) continue;
  const size_t begin = line.find_first_not_of(" \t");
  return begin == std::string::npos ? std::string() : line.substr(begin);
}

[[noreturn]] void throw_user_error(const std::string& text, const std::string& target, const std::string& log) {
  constexpr int kLogLines = 12;
  const int line = first_line_in(log);
  std::string message = "the CUDA text does not compile for " + target;
  if (line > 0) message += "; line " + std::to_string(line) + ": " + line_of(text, line);
  throw ValueError({.message = message,
                    .because = "the compiler reports:\n" + first_lines(log, kLogLines),
                    .fix = "correct the text; kernel.cu is the name of the text in the report"});
}

// The options for a user's text. Functions without a word for their place are functions of the device, because those of
// the embedded standard headers have none.
std::vector<const char*> options_for(const device::UserSource& source, const std::string& architecture) {
  std::vector<const char*> options{architecture.c_str()};
  bool has_standard = false, has_place = false;
  for (const std::string& option : source.options) {
    options.push_back(option.c_str());
    has_standard = has_standard || option.starts_with("--std") || option.starts_with("-std");
    has_place = has_place || option == "-default-device" || option == "--device-as-default-execution-space";
  }
  if (!has_standard) options.push_back("--std=c++17");
  if (!has_place) options.push_back("--device-as-default-execution-space");
  return options;
}

class OwnedProgram {
 public:
  OwnedProgram(const Nvrtc& nvrtc, const std::string& text, const std::vector<device::HeaderText>& headers)
      : nvrtc_(nvrtc) {
    std::vector<std::string> texts;  // NVRTC needs a zero at the end
    std::vector<const char*> bodies, names;
    texts.reserve(headers.size());
    for (const device::HeaderText& header : headers) {
      bodies.push_back(texts.emplace_back(header.text).c_str());
      names.push_back(header.name);
    }
    call(nvrtc.create, &program_, text.c_str(), "kernel.cu", static_cast<int>(names.size()), bodies.data(),
         names.data());
  }
  ~OwnedProgram() { static_cast<void>(nvrtc_.destroy(&program_)); }
  OwnedProgram(const OwnedProgram&) = delete;
  Nvrtc::Program get() const { return program_; }

 private:
  const Nvrtc& nvrtc_;
  Nvrtc::Program program_ = nullptr;
};

}  // namespace

std::unique_ptr<Compiler> Compiler::load(const std::vector<std::string>& files, std::string* why_none) {
  std::unique_ptr<Compiler> compiler(new Compiler);
  const std::string file = load_first(kNvrtc, files, compiler->nvrtc_.table(), why_none);
  if (file.empty()) return nullptr;
  compiler->file_ = file_of(compiler->nvrtc_.version, file);
  compiler->describe(file == stand_in_library());
  return compiler;
}

void Compiler::describe(bool is_stand_in) {
  int major = 0, minor = 0, count = 0;
  call(nvrtc_.version, &major, &minor);
  version_ = std::to_string(major) + "." + std::to_string(minor);
  if (!is_stand_in) identity_ = nvrtc_identity(file_);
  if (identity_.empty()) identity_ = version_;
  if (!nvrtc_.architecture_count || !nvrtc_.architectures) return;
  call(nvrtc_.architecture_count, &count);
  architectures_.resize(static_cast<size_t>(std::max(count, 0)));
  if (count > 0) call(nvrtc_.architectures, architectures_.data());
  std::sort(architectures_.begin(), architectures_.end());
}

std::string Compiler::target_for(std::string_view architecture) const {
  const int wanted = number_of(architecture);
  const auto after = std::upper_bound(architectures_.begin(), architectures_.end(), wanted);
  if (architectures_.empty() || (after != architectures_.begin() && after[-1] == wanted))
    return std::string(architecture);
  if (after != architectures_.begin() && nvrtc_.ptx && nvrtc_.ptx_size) return "compute_" + std::to_string(after[-1]);
  throw EngineError({.expected = "sm_" + std::to_string(architectures_.front()) + " or newer",
                     .given = std::string(architecture),
                     .message = "NVRTC " + version_ + " does not know the GPU",
                     .fix = "install the NVRTC of an older CUDA: pip install nvidia-cuda-nvrtc-cu12"});
}

std::string Compiler::compile(std::string_view text, const std::string& target,
                              const std::vector<device::HeaderText>& headers, device::ImageKind kind) const {
  const bool as_ptx = kind == device::ImageKind::kLinkedByDriver || target.starts_with("compute_");
  if (as_ptx && (!nvrtc_.ptx || !nvrtc_.ptx_size))
    throw UnsupportedError({.message = "NVRTC " + version_ + " makes no PTX"});
  const OwnedProgram program(nvrtc_, std::string(text), headers);
  const std::string architecture = "--gpu-architecture=" + target;
  std::vector<const char*> options(std::begin(kCompilerOptions), std::end(kCompilerOptions));
  options.push_back(architecture.c_str());
  constexpr Result kCompilation = 6;  // NVRTC_ERROR_COMPILATION
  const Result result = nvrtc_.compile(program.get(), static_cast<int>(options.size()), options.data());
  if (result == kCompilation) throw_compile_error(text, target, log_of(program.get()));
  if (result != 0) {
    const std::string log = log_of(program.get());
    if (!log.empty()) throw_compile_error(text, target, log);
    throw_nvrtc(nvrtc_.compile.name, result);
  }
  return image_of(program.get(), as_ptx);
}

void Compiler::add_exports(Nvrtc::Program program, const std::vector<std::string>& exports) const {
  if (!exports.empty() && (!nvrtc_.add_name || !nvrtc_.lowered_name))
    throw UnsupportedError({.message = "NVRTC " + version_ + " has no names of C++ functions",
                            .fix = "declare the kernels extern \"C\" and pass no exports"});
  for (const std::string& name : exports) call(nvrtc_.add_name, program, name.c_str());
}

device::UserImage Compiler::compile(const device::UserSource& source, const std::string& target,
                                    const std::vector<device::HeaderText>& headers) const {
  const OwnedProgram program(nvrtc_, source.text, headers);
  add_exports(program.get(), source.exports);
  const std::string architecture = "--gpu-architecture=" + target;
  const std::vector<const char*> options = options_for(source, architecture);
  const Result result = nvrtc_.compile(program.get(), static_cast<int>(options.size()), options.data());
  if (result != 0) {
    const std::string log = log_of(program.get());
    if (log.empty()) throw_nvrtc(nvrtc_.compile.name, result);
    throw_user_error(source.text, target, log);
  }
  device::UserImage image{image_of(program.get(), target.starts_with("compute_")), {}};
  for (const std::string& name : source.exports) {
    const char* symbol = nullptr;
    call(nvrtc_.lowered_name, program.get(), name.c_str(), &symbol);
    image.symbols.emplace_back(symbol);
  }
  return image;
}

std::string Compiler::log_of(Nvrtc::Program program) const {
  size_t bytes = 0;
  if (nvrtc_.log_size(program, &bytes) != 0 || bytes <= 1) return {};
  std::string log(bytes, '\0');
  if (nvrtc_.log(program, log.data()) != 0) return {};
  log.resize(std::min(log.find('\0'), log.size()));
  return log;
}

std::string Compiler::image_of(Nvrtc::Program program, bool as_ptx) const {
  size_t bytes = 0;
  call(as_ptx ? nvrtc_.ptx_size : nvrtc_.cubin_size, program, &bytes);
  std::string image(bytes, '\0');
  call(as_ptx ? nvrtc_.ptx : nvrtc_.cubin, program, image.data());
  return image;
}

}  // namespace hybridnet::cuda
