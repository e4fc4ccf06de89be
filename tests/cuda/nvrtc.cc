// NVRTC's functions by g++: the image of a program ("cubin") is a shared library with one descriptor for each kernel
// (host_interface.h). HNSTANDIN_CXX names the compiler; HNSTANDIN_FAST=1 turns the checks of shared memory off;
// HNSTANDIN_KEEP=1 keeps the folder of texts and prints its path.
// Threads: programs may be compiled side by side.
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "embedded_headers.h"
#include "host_interface.h"
#include "recording.h"

extern char** environ;

namespace {

constexpr int kSuccess = 0, kInvalidInput = 3, kInvalidProgram = 4, kCompilation = 6, kInternalError = 11;

struct Program {
  std::string text, name;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string log, image;
  std::vector<std::string> expressions, lowered;  // names of C++ functions, and their symbols
};

bool fast() {
  const char* value = std::getenv("HNSTANDIN_FAST");
  return value && *value && std::strcmp(value, "0") != 0;
}

std::string compiler() {
  const char* value = std::getenv("HNSTANDIN_CXX");
  return value && *value ? value : "g++";
}

// g++ has these headers itself: texts that NVRTC needs for them are not for g++.
bool is_standard(const std::string& header) {
  static const std::set<std::string> with_suffix{"stdint.h", "stddef.h", "math.h",   "string.h", "float.h",
                                                 "limits.h", "stdio.h",  "stdlib.h", "assert.h"};
  return header.find_first_of("./") == std::string::npos || with_suffix.count(header) != 0;
}

bool write_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  return static_cast<bool>(out.flush());
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A folder that is removed in the end.
class Folder {
 public:
  Folder() {
    std::error_code ignored;
    std::string pattern = (std::filesystem::temp_directory_path(ignored) / "hnstandin-XXXXXX").string();
    if (mkdtemp(pattern.data())) path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (std::getenv("HNSTANDIN_KEEP"))
      std::fprintf(stderr, "hnstandin: kept %s\n", path_.c_str());
    else if (!path_.empty())
      std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Most texts need milliseconds of code generation: more optimization takes longer than it saves.
std::vector<std::string> compiler_words(const std::vector<std::string>& defines) {
  std::vector<std::string> words{compiler(), "-std=c++17", "-O1", "-w", "-fPIC",
                                 // A typed pool of device memory has no types that the compiler could rely on, and
                                 // integers wrap on a GPU.
                                 "-fno-strict-aliasing", "-fwrapv", "-fno-gnu-unique", "-fvisibility=hidden",
                                 "-ffp-contract=off", "-fno-math-errno", "-fno-exceptions", "-fno-rtti"};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    words.insert(words.end(), {"-mavx2", "-mfma", "-mf16c"});
#endif
  if (fast()) words.push_back("-DHN_UNCHECKED_SHARED");
  words.insert(words.end(), defines.begin(), defines.end());
  return words;
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Runs a command; its output goes to a file. Returns its status, or -1 if it could not be started.
int run(const std::vector<std::string>& words, const std::filesystem::path& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<char*> environment;  // with messages in English, whatever the user's language is
  for (char** each = environ; *each; ++each)
    if (std::strncmp(*each, "LC_", 3) != 0 && std::strncmp(*each, "LANG", 4) != 0) environment.push_back(*each);
  environment.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// -D and -U reach the compiler; the other options concern the GPU or are given already.
std::vector<std::string> kept_options(int count, const char* const* options) {
  std::vector<std::string> kept;
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i];
    if (option.rfind("-D", 0) == 0 || option.rfind("-U", 0) == 0) kept.push_back(option);
    if (option.rfind("--define-macro=", 0) == 0) kept.push_back("-D" + option.substr(15));
  }
  return kept;
}

// The header that comes before each text: the words of kernels, and the headers that most texts include.
std::string prelude(const Program& program) {
  std::string text = "#include \"host_kernels.h\"\n";
  for (const char* often : {"kernels/device/map.cuh", "kernels/elementwise/vector_math.h"})
    for (const auto& [name, ignored] : program.headers)
      if (name == often) text += "#include \"" + name + "\"\n";
  return text;
}

bool write_headers(const Program& program, const std::filesystem::path& folder) {
  bool written = !folder.empty() && write_file(folder / "prelude.h", prelude(program));
  for (const auto& [name, text] : program.headers)
    if (!is_standard(name)) written = written && write_file(folder / name, text);
  for (const auto& header : standin::embedded_headers())
    written = written && write_file(folder / header.name, header.text);
  return written;
}

// True if the folder is ours alone: others must not be able to put headers there.
bool is_own_folder(const std::filesystem::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & 077) == 0;
}

// The folder of a program's headers, with the prelude compiled: programs and processes with the same headers share it.
// It is made under another name and renamed, so that it is complete where it exists. Empty: it cannot be made.
std::filesystem::path shared_headers(const Program& program, const std::vector<std::string>& words) {
  size_t hash = 0;
  const auto add = [&hash](std::string_view text) { hash = hash * 1000003 + std::hash<std::string_view>()(text); };
  for (const std::string& word : words) add(word);
  for (const auto& [name, text] : program.headers) add(name), add(text);
  for (const auto& header : standin::embedded_headers()) add(header.text);
  std::error_code failed;
  const std::filesystem::path shared = std::filesystem::temp_directory_path(failed) /
                                       ("hnstandin-headers-" + std::to_string(geteuid()) + "-" + std::to_string(hash));
  if (is_own_folder(shared)) return shared;
  const Folder made;
  if (!write_headers(program, made.path())) return {};
  const std::string header = (made.path() / "prelude.h").string();
  run(with(words, {"-I" + made.path().string(), "-x", "c++-header", header, "-o", header + ".gch"}),
      made.path() / "log");                              // if it fails, the header serves as text
  std::filesystem::rename(made.path(), shared, failed);  // fails if another process was faster
  return is_own_folder(shared) ? shared : std::filesystem::path();
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(//[^\n]*|/\*([^*]|\*(?!/))*\*/)"), " ");
}

// The names of plain kernels that have the names of C: those declared extern "C", alone or in a block.
std::set<std::string> plain_kernels(const std::string& text) {
  static const std::regex declaration(R"(((?:template\s*<[^;{}]*>|extern\s*"C")\s*)?__global__\b)"
                                      R"([^;{}()]*(?:\([^()]*\))?[^;{}()]*?\b(\w+)\s*\()");
  static const std::regex block_of_c(R"(extern\s*"C"\s*\{)");
  const bool all_of_c = std::regex_search(text, block_of_c);
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) {
    const std::string before = (*at)[1];
    const bool is_template = before.rfind("template", 0) == 0;
    if (!is_template && (all_of_c || !before.empty())) names.insert((*at)[2]);
  }
  return names;
}

// g++ has no word for memory whose size the launch tells.
std::string with_dynamic_shared(const std::string& text) {
  static const std::regex declaration(
      R"(extern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*)?([^;\[\]]*?)\b(\w+)\s*\[\s*\]\s*;)");
  return std::regex_replace(text, declaration, "static $1* const $2 = reinterpret_cast<$1*>(hn_dynamic_shared);");
}

// The text as data, which recordings name the kernel by.
std::string own_text(const Program& program) {
  if (!standin::is_recording()) return "";
  return "\nextern \"C\" __attribute__((visibility(\"default\"))) const char hn_kernel_text[] = R\"hn_text(" +
         program.text + ")hn_text\";\n";
}

// The text with descriptors of its plain kernels at the end, so that the numbers of its lines stay.
std::string described(Program& program) {
  if (program.text.find("__global__") == std::string::npos) return program.text + own_text(program);
  std::string text = with_dynamic_shared(program.text) + "\n";
  for (const std::string& name : plain_kernels(without_comments(program.text)))
    text += "HN_PLAIN_KERNEL(" + name + ", " + name + ")\n";
  program.lowered.clear();
  for (const std::string& expression : program.expressions) {
    program.lowered.push_back("hn_export_" + std::to_string(program.lowered.size()));
    text += "HN_PLAIN_KERNEL(" + program.lowered.back() + ", " + expression + ")\n";
  }
  return text;
}

int compile(Program& program, const std::vector<std::string>& options) {
  const Folder folder;
  const std::vector<std::string> words = compiler_words(options);
  const std::filesystem::path headers = shared_headers(program, words);
  if (headers.empty() || folder.path().empty() || !write_file(folder.path() / "text.cu", described(program))) {
    program.log = "hnstandin: the temporary folder cannot be written";
    return kInternalError;
  }
  const auto output = folder.path() / "log";
  const std::string at = folder.path().string();
  const int status =
      run(with(words, {"-shared", "-Wl,-Bsymbolic", "-I" + headers.string(), "-include",
                       (headers / "prelude.h").string(), "-o", at + "/image.so", "-x", "c++", at + "/text.cu"}),
          output);
  program.log = read_file(output);
  replace_all(program.log, folder.path().string() + "/text.cu", program.name);
  replace_all(program.log, headers.string() + "/", "");
  replace_all(program.log, folder.path().string() + "/", "");
  if (status < 0) {
    program.log = "hnstandin: the compiler '" + compiler() + "' cannot be started; set HNSTANDIN_CXX";
    return kInternalError;
  }
  if (status != 0) return kCompilation;
  program.image = read_file(folder.path() / "image.so");
  return program.image.empty() ? kInternalError : kSuccess;
}

int copy_out(const std::string& text, char* to, bool with_end) {
  if (!to) return kInvalidInput;
  std::memcpy(to, text.data(), text.size());
  if (with_end) to[text.size()] = '\0';
  return kSuccess;
}

}  // namespace

extern "C" {

// The minor number is a hash of what images depend on, above any real one: images in a cache of the caller are not
// mixed with those of NVRTC or of another build of this library.
int nvrtcVersion(int* major, int* minor) {
  if (!major || !minor) return kInvalidInput;
  size_t hash = (fast() ? 1 : 0) + (standin::is_recording() ? 2 : 0);
  for (const auto& header : standin::embedded_headers())
    hash = hash * 1000003 + std::hash<std::string_view>()(header.text);
  hash = hash * 1000003 + std::hash<std::string>()(compiler());
#if defined(__x86_64__)
  hash = hash * 3 + (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 0);
#endif
  *major = 12;
  *minor = 1000 + static_cast<int>(hash % 1000000);
  return kSuccess;
}

const char* nvrtcGetErrorString(int result) {
  switch (result) {
    case 0:
      return "NVRTC_SUCCESS";
    case kInvalidInput:
      return "NVRTC_ERROR_INVALID_INPUT";
    case kInvalidProgram:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case kCompilation:
      return "NVRTC_ERROR_COMPILATION";
    case kInternalError:
      return "NVRTC_ERROR_INTERNAL_ERROR";
    default:
      return "NVRTC_ERROR unknown";
  }
}

int nvrtcCreateProgram(Program** result, const char* text, const char* name, int count, const char* const* headers,
                       const char* const* names) {
  if (!result || !text || count < 0 || (count > 0 && (!headers || !names))) return kInvalidInput;
  auto* program = new Program{text, name && *name ? name : "default_program", {}, {}, {}, {}, {}};
  for (int i = 0; i < count; ++i) program->headers.emplace_back(names[i], headers[i]);
  *result = program;
  return kSuccess;
}

int nvrtcDestroyProgram(Program** program) {
  if (!program || !*program) return kInvalidProgram;
  delete *program;
  *program = nullptr;
  return kSuccess;
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  if (!program) return kInvalidProgram;
  if (count < 0 || (count > 0 && !options)) return kInvalidInput;
  return compile(*program, kept_options(count, options));
}

int nvrtcAddNameExpression(Program* program, const char* expression) {
  if (!program || !expression) return program ? kInvalidInput : kInvalidProgram;
  program->expressions.emplace_back(expression);
  return kSuccess;
}
int nvrtcGetLoweredName(Program* program, const char* expression, const char** name) {
  if (!program || !expression || !name) return program ? kInvalidInput : kInvalidProgram;
  for (size_t i = 0; i < program->lowered.size(); ++i) {
    if (program->expressions[i] != expression) continue;
    *name = program->lowered[i].c_str();
    return kSuccess;
  }
  return kInvalidInput;
}

int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  if (!program || !bytes) return program ? kInvalidInput : kInvalidProgram;
  *bytes = program->log.size() + 1;
  return kSuccess;
}
int nvrtcGetProgramLog(Program* program, char* to) {
  return program ? copy_out(program->log, to, true) : kInvalidProgram;
}
int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  if (!program || !bytes) return program ? kInvalidInput : kInvalidProgram;
  *bytes = program->image.size();
  return kSuccess;
}
int nvrtcGetCUBIN(Program* program, char* to) {
  if (!program) return kInvalidProgram;
  const int result = copy_out(program->image, to, false);
  if (result == kSuccess && program->image.size() >= sizeof(Elf64_Ehdr))
    std::memcpy(to + offsetof(Elf64_Ehdr, e_flags), &hn_host::kFinishedImage, sizeof(hn_host::kFinishedImage));
  return result;
}
int nvrtcGetPTXSize(Program* program, size_t* bytes) { return nvrtcGetCUBINSize(program, bytes); }
int nvrtcGetPTX(Program* program, char* to) { return program ? copy_out(program->image, to, false) : kInvalidProgram; }

int nvrtcGetNumSupportedArchs(int* count) {
  if (!count) return kInvalidInput;
  *count = 6;
  return kSuccess;
}
int nvrtcGetSupportedArchs(int* architectures) {
  if (!architectures) return kInvalidInput;
  const int all[] = {75, 80, 86, 89, 90, 100};
  std::memcpy(architectures, all, sizeof(all));
  return kSuccess;
}

}  // extern "C"
