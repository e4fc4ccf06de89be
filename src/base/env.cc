#include "hybridnet/env.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>
#include <string_view>

#include "hybridnet/error.h"

namespace hybridnet {
namespace {

std::string_view read(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

std::string read_first(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const std::string_view value = read(name); !value.empty()) return std::string(value);
  }
  return {};
}

[[noreturn]] void throw_bad_value(const char* name, std::string expected, std::string_view given) {
  throw ValueError({.expected = std::move(expected),
                    .given = "'" + std::string(given) + "'",
                    .message = std::string("environment variable ") + name,
                    .fix = std::string("correct or unset ") + name});
}

int64_t read_int(const char* name, int64_t low, int64_t high, int64_t otherwise) {
  const std::string_view text = read(name);
  if (text.empty()) return otherwise;
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    throw_bad_value(name, "an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]", text);
  }
  return value;
}

bool read_bool(const char* name, bool otherwise = false) {
  const std::string_view text = read(name);
  if (text.empty()) return otherwise;
  if (text == "0" || text == "false" || text == "off") return false;
  if (text == "1" || text == "true" || text == "on") return true;
  throw_bad_value(name, "0 or 1", text);
}

std::string read_choice(const char* name, std::span<const std::string_view> choices, std::string_view otherwise) {
  const std::string_view text = read(name);
  if (text.empty()) return std::string(otherwise);
  std::string listed;
  for (std::string_view choice : choices) {
    if (text == choice) return std::string(text);
    listed += (listed.empty() ? "" : " | ") + std::string(choice);
  }
  throw_bad_value(name, listed, text);
}

std::string read_choice(const char* name, std::initializer_list<std::string_view> choices, std::string_view otherwise) {
  return read_choice(name, std::span(choices.begin(), choices.size()), otherwise);
}

// Whether a variable lists a name: names with commas between, 0 for none of them, 1 for all, as if it is unset.
bool read_names(const char* name, std::initializer_list<std::string_view> known, std::string_view wanted) {
  const std::string_view text = read(name);
  if (text.empty() || text == "1") return true;
  if (text == "0") return false;
  bool found = false;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    if (std::find(known.begin(), known.end(), one) == known.end()) {
      std::string listed = "0, 1, or names with commas between:";
      for (const std::string_view each : known) listed += " " + std::string(each);
      throw_bad_value(name, listed, text);
    }
    found = found || one == wanted;
    begin = end + 1;
  }
  return found;
}

// Kernels use the value from the load of the library, so a different later value is an error.
std::string max_isa() {
  std::string word = read_choice("HYBRIDNET_MAX_ISA", kIsaWords, "");
  if (word == max_isa_at_load()) return word;
  throw ValueError({.expected = "'" + max_isa_at_load() + "', as when the library was loaded",
                    .given = "'" + word + "'",
                    .message = "environment variable HYBRIDNET_MAX_ISA",
                    .fix = "set HYBRIDNET_MAX_ISA before the process loads libhybridnet.so"});
}

// OMP_NUM_THREADS belongs to OpenMP, so a value that OpenMP ignores is ignored here too. It may be a list with one
// number for each level of nesting: the first counts.
int omp_num_threads() {
  const std::string_view text = read("OMP_NUM_THREADS");
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value > 0 ? value : 0;
}

// A program written for MXNet may choose one of MXNet's engines; each threaded one selects ours.
std::string engine_type() {
  const std::string name = read_first({"HYBRIDNET_ENGINE_TYPE", "MXNET_ENGINE_TYPE"});
  if (name.empty()) return "ThreadedEnginePerDevice";
  if (name == "ThreadedEngine" || name == "ThreadedEnginePerDevice" || name == "NaiveEngine") return name;
  throw_bad_value(read("HYBRIDNET_ENGINE_TYPE").empty() ? "MXNET_ENGINE_TYPE" : "HYBRIDNET_ENGINE_TYPE",
                  "ThreadedEnginePerDevice | ThreadedEngine | NaiveEngine", name);
}

std::string home() {
  if (std::string named = read_first({"HYBRIDNET_HOME", "MXNET_HOME"}); !named.empty()) return named;
  const std::string_view user = read("HOME");
  return user.empty() ? std::string(".hybridnet") : std::string(user) + "/.hybridnet";
}

std::string cache() {
  if (const std::string_view named = read("HYBRIDNET_CACHE"); !named.empty()) return std::string(named);
  if (const std::string_view all = read("XDG_CACHE_HOME"); !all.empty()) return std::string(all) + "/hybridnet";
  const std::string_view user = read("HOME");
  return user.empty() ? std::string() : std::string(user) + "/.cache/hybridnet";
}

// How an MPI tells a process its place.
struct MpiLauncher {
  const char *engine, *rank, *size, *local_size;
};
constexpr MpiLauncher kMpiLaunchers[] = {
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    {"openmpi", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}};  // srun --mpi=pmix

// Null if no MPI has started this process, or HYBRIDNET_GROUP_SIZE says which group it belongs to.
const MpiLauncher* mpi_launcher() {
  if (!read("HYBRIDNET_GROUP_SIZE").empty()) return nullptr;
  for (const MpiLauncher& launcher : kMpiLaunchers)
    if (!read(launcher.rank).empty() && !read(launcher.size).empty()) return &launcher;
  return nullptr;
}

// The cores of each process, if processes of one machine may use all cores of it. mpirun says how many processes there
// are; Open MPI may also bind each to some cores.
int cores_beside_others(const MpiLauncher& launcher) {
  int64_t processes = 1;
  const std::string_view text = read(launcher.local_size);
  std::from_chars(text.data(), text.data() + text.size(), processes);
  cpu_set_t usable;
  if (processes <= 1 || ::sched_getaffinity(0, sizeof usable, &usable) != 0) return 0;
  const int cores = CPU_COUNT(&usable);
  if (cores < ::sysconf(_SC_NPROCESSORS_ONLN)) return 0;
  return static_cast<int>(std::max<int64_t>(1, cores / processes));
}

void read_group(Environment& env) {
  constexpr int64_t kMaxProcesses = 65'536, kMaxSeconds = 1'000'000;
  const MpiLauncher* const mpi = mpi_launcher();
  env.group_size = static_cast<int>(read_int(mpi == nullptr ? "HYBRIDNET_GROUP_SIZE" : mpi->size, 1, kMaxProcesses, 1));
  env.group_rank =
      static_cast<int>(read_int(mpi == nullptr ? "HYBRIDNET_GROUP_RANK" : mpi->rank, 0, env.group_size - 1, 0));
  if (mpi != nullptr && env.num_threads == 0) env.num_threads = cores_beside_others(*mpi);
  env.mpi_library = read("HYBRIDNET_MPI_LIBRARY");
  if (!read("HYDI_CONTROL_FD").empty())
    env.mpi_abort_descriptor = static_cast<int>(read_int("PMI_FD", 0, kMaxProcesses, -1));
  env.group_shards = static_cast<int>(read_int("HYBRIDNET_GROUP_SHARDS", 0, kMaxProcesses, 0));
  env.group_store = read("HYBRIDNET_GROUP_STORE");
  env.group_token_file = read("HYBRIDNET_GROUP_TOKEN_FILE");
  if (const std::string_view address = read("HYBRIDNET_GROUP_ADDRESS"); !address.empty()) env.group_address = address;
  if (const std::string_view name = read("HYBRIDNET_GROUP_NAME"); !name.empty()) env.group_name = name;
  env.group_engine =
      read_choice("HYBRIDNET_GROUP_ENGINE", {"gloo", "mpich", "openmpi"}, mpi == nullptr ? "gloo" : mpi->engine);
  env.group_timeout_ms = 1000 * read_int("HYBRIDNET_GROUP_TIMEOUT", 1, kMaxSeconds, env.group_timeout_ms / 1000);
}

Environment read_environment() {
  constexpr int64_t kMaxThreads = 4096;
  constexpr int64_t kMaxMegabytes = int64_t{1} << 40;
  constexpr int64_t kMaxMilliseconds = int64_t{1} << 40;
  Environment env;
  env.engine_type = engine_type();
  env.max_isa = max_isa();
  env.num_threads = static_cast<int>(read_int("HYBRIDNET_NUM_THREADS", 0, kMaxThreads, 0));
  if (env.num_threads == 0) env.num_threads = omp_num_threads();
  env.workers = static_cast<int>(read_int("HYBRIDNET_CPU_WORKER_NTHREADS", 0, kMaxThreads, 0));
  env.inline_limit_ns = 1000 * read_int("HYBRIDNET_INLINE_LIMIT_US", 0, int64_t{1} << 40, env.inline_limit_ns / 1000);
  env.pool_reserve_mb = read_int("HYBRIDNET_POOL_LIMIT_MB", -1, kMaxMegabytes, env.pool_reserve_mb);
  env.packed_limit_mb = read_int("HYBRIDNET_PACKED_LIMIT_MB", -1, kMaxMegabytes, env.packed_limit_mb);
  env.map_params = read_int("HYBRIDNET_MAP_PARAMS", 0, 1, 1) != 0;
  env.plan_limit = static_cast<int>(read_int("HYBRIDNET_PLAN_LIMIT", 1, 1 << 20, env.plan_limit));
  env.plan_limit_mb = read_int("HYBRIDNET_PLAN_LIMIT_MB", -1, kMaxMegabytes, env.plan_limit_mb);
  const int64_t ahead_ms = read_int("HYBRIDNET_RUN_AHEAD_MS", -1, kMaxMilliseconds, env.run_ahead_ns / 1'000'000);
  env.run_ahead_ns = ahead_ms < 0 ? -1 : ahead_ms * 1'000'000;
  env.loop_mode = read_choice("HYBRIDNET_LOOP_MODE", {"auto", "inline", "ahead"}, "auto");
  env.loop_ahead = static_cast<int>(read_int("HYBRIDNET_LOOP_AHEAD", 0, kMaxThreads, 0));
  env.passes = read_first({"HYBRIDNET_PASSES"});
  env.pass_dump = read_bool("HYBRIDNET_PASS_DUMP");
  env.on_rewrite_error = read_choice("HYBRIDNET_ON_REWRITE", {"warn", "raise", "ignore"}, "warn");
  env.strict = read_bool("HYBRIDNET_STRICT");
  env.jit = read_choice("HYBRIDNET_JIT", {"0", "1", "now"}, "1");
  env.c_compiler = read("HYBRIDNET_CC");
  env.cache = cache();
  env.cuda_driver = read("HYBRIDNET_CUDA_DRIVER");
  env.cuda_path = read("HYBRIDNET_CUDA_PATH");
  env.cuda_sync = read_bool("HYBRIDNET_CUDA_SYNC");
  env.cuda_check = read_bool("HYBRIDNET_CUDA_CHECK");
  env.cuda_graphs = read_bool("HYBRIDNET_CUDA_GRAPHS", true);
  const std::initializer_list<std::string_view> libraries = {"cublaslt", "cudnn"};
  env.cuda_cublas_lt = read_names("HYBRIDNET_CUDA_LIBRARIES", libraries, "cublaslt");
  env.cuda_cudnn = read_names("HYBRIDNET_CUDA_LIBRARIES", libraries, "cudnn");
  env.gpu_fallback = read_choice("HYBRIDNET_GPU_FALLBACK", {"warn", "error", "ignore"}, "warn");
  read_group(env);
  env.path = read("PATH");
  env.home = home();
  return env;
}

}  // namespace

const std::string& max_isa_at_load() {
  static const std::string word(read("HYBRIDNET_MAX_ISA"));
  return word;
}

TemporaryVariable::TemporaryVariable(const char* name, const char* value) : name_(value ? name : nullptr) {
  if (!name_) return;
  if (const char* before = std::getenv(name)) before_ = before;
  setenv(name_, value, 1);
}

TemporaryVariable::~TemporaryVariable() {
  if (!name_) return;
  before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_);
}

const Environment& environment() {
  static const Environment env = read_environment();
  return env;
}

}  // namespace hybridnet
