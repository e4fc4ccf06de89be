#include "base/native_code.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/cache_folder.h"
#include "base/process_end.h"
#include "hybridnet/env.h"

extern char** environ;

namespace hybridnet {

struct NativeFunctionWriter {
  static void set(NativeFunction& function, void* address) {
    function.address_.store(address, std::memory_order_release);
  }
};

namespace {

constexpr char kFormat[] = "hybridnet native code 1";
// Results equal those of the kernels to the bit: no fused or reordered arithmetic.
constexpr const char* kFlags[] = {
    "-O2", "-shared", "-s", "-fPIC", "-w", "-ffp-contract=off", "-fno-math-errno", "-fwrapv", "-fno-strict-aliasing"};

// ---- the compiler
std::string find_compiler() {
  const Environment& env = environment();
  const std::string& wanted = env.c_compiler;
  if (wanted.find('/') != std::string::npos) return access(wanted.c_str(), X_OK) == 0 ? wanted : std::string();
  const std::vector<std::string> names =
      wanted.empty() ? std::vector<std::string>{"cc", "gcc", "clang"} : std::vector<std::string>{wanted};
  for (const std::string& name : names) {
    for (size_t begin = 0; begin < env.path.size();) {
      const size_t end = std::min(env.path.find(':', begin), env.path.size());
      const std::string file = env.path.substr(begin, end - begin) + "/" + name;
      if (file[0] == '/' && access(file.c_str(), X_OK) == 0) return file;
      begin = end + 1;
    }
  }
  return {};
}

const std::string& compiler() {
  static const std::string found = environment().jit == "0" ? std::string() : find_compiler();
  return found;
}

// A text that changes with the compiler.
std::string compiler_version() {
  struct stat about {};
  if (stat(compiler().c_str(), &about) != 0) return compiler();
  return compiler() + " " + std::to_string(about.st_size) + " " + std::to_string(about.st_mtime);
}

// ---- files
// The last bytes of a kept file, which the loader of shared objects ignores.
std::string trailer_of(std::string_view object, const std::string& key) {
  return std::string(kFormat) + "\n" + key + "\n" + TextHash().add(object).str() + "\n";
}

bool write_file(const std::string& path, std::string_view content, bool append) {
  const int mode = append ? O_WRONLY | O_APPEND | O_CLOEXEC : O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const int file = open(path.c_str(), mode, S_IRUSR | S_IWUSR);
  if (file < 0) return false;
  bool good = true;
  while (good && !content.empty()) {
    const ssize_t count = write(file, content.data(), content.size());
    good = count > 0;
    if (good) content.remove_prefix(static_cast<size_t>(count));
  }
  return close(file) == 0 && good;
}

// The folder of kept objects, or, if it cannot be used, a temporary folder that is removed after the compilation.
class Folder {
 public:
  Folder() {
    const std::string& cache = environment().cache;
    if (!cache.empty()) {
      path_ = cache + "/native";
      if (make_own_folder(path_)) return;
    }
    char own[] = "/tmp/hybridnet-native-XXXXXX";
    path_ = mkdtemp(own) ? own : "";
    temporary_ = !path_.empty();
  }
  ~Folder() {
    if (temporary_) rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  const std::string& path() const { return path_; }
  bool temporary() const { return temporary_; }

 private:
  std::string path_;
  bool temporary_ = false;
};

// ---- compiling
std::atomic<pid_t> running_child{0};

// All flags of a function, separated by blanks.
std::string flags_of(const NativeFunction& function) {
  std::string flags;
  for (const char* flag : kFlags) flags += std::string(flag) + " ";
  return flags + function.flags();
}

bool run_compiler(const std::string& flags, const std::string& source, const std::string& made) {
  std::vector<std::string> words{compiler()};
  std::istringstream given(flags);
  words.insert(words.end(), std::istream_iterator<std::string>(given), {});
  words.insert(words.end(), {"-x", "c", source, "-o", made});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {0, 1, 2}) posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  pid_t child = 0;
  const int failure = posix_spawn(&child, compiler().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return false;
  running_child.store(child);
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  running_child.store(0);
  // If the program has reaped the child itself, the object shows whether the compiler has succeeded.
  return ended == child ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : access(made.c_str(), R_OK) == 0;
}

void* load(const std::string& path, const std::string& entry) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, entry.c_str()) : nullptr;
}

bool is_whole(const std::string& path, const std::string& key) {
  const std::optional<std::string> content = read_own_file(path);
  const size_t length = trailer_of("", key).size();
  if (!content || content->size() < length) return false;
  const std::string_view object(content->data(), content->size() - length);
  return content->compare(object.size(), length, trailer_of(object, key)) == 0;
}

void* compile(const NativeFunction& function) {
  const std::string flags = flags_of(function);
  const std::string key =
      TextHash().add(kFormat).add(compiler_version()).add(flags).add(function.entry()).add(function.source()).str();
  const Folder folder;
  if (folder.path().empty()) return nullptr;
  const std::string kept = folder.path() + "/" + key + ".so";
  if (is_whole(kept, key))
    if (void* const known = load(kept, function.entry())) return known;
  static std::atomic<int> number{0};
  const std::string own = kept + "." + std::to_string(getpid()) + "." + std::to_string(number.fetch_add(1));
  const std::string source = own + ".c", made = own + ".tmp";
  bool good = write_file(source, function.source(), false) && run_compiler(flags, source, made);
  if (good) {
    const std::optional<std::string> object = read_own_file(made);
    good = object && !object->empty() && chmod(made.c_str(), S_IRUSR | S_IWUSR | S_IXUSR) == 0 &&
           write_file(made, trailer_of(*object, key), true) && rename(made.c_str(), kept.c_str()) == 0;
  }
  unlink(source.c_str());
  unlink(made.c_str());
  void* const address = good ? load(kept, function.entry()) : nullptr;
  if (folder.temporary()) unlink(kept.c_str());
  return address;
}

// A thread that compiles the pushed functions. It ends with the process: a compiler that still runs is stopped.
class Background {
 public:
  static Background& get() {
    static Background* const one = new Background;  // never destroyed: other threads may use it until the process ends
    return *one;
  }

  void push(const std::shared_ptr<NativeFunction>& function) {
    if (getpid() != process_) return;
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    waiting_.push_back(function);
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { work(); });
      at_process_end([] { get().stop(); });
    }
    changed_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::shared_ptr<NativeFunction> function;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
        if (stopped_) return;
        function = std::move(waiting_.front());
        waiting_.pop_front();
      }
      NativeFunctionWriter::set(*function, compile(*function));
    }
  }

  void stop() {
    if (getpid() != process_) return;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    if (const pid_t child = running_child.load(); child > 0) kill(child, SIGTERM);
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<NativeFunction>> waiting_;
  std::thread thread_;
  bool stopped_ = false;
};

}  // namespace

bool native_code_available() { return !compiler().empty(); }
bool native_code_is_awaited() { return environment().jit == "now"; }

void make_native(const std::shared_ptr<NativeFunction>& function) {
  if (!native_code_available()) return;
  if (native_code_is_awaited())
    NativeFunctionWriter::set(*function, compile(*function));
  else
    Background::get().push(function);
}

}  // namespace hybridnet
