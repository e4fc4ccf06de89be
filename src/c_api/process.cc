// What concerns the whole process: version, engine, cores, random numbers, profiler, log.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>

#include "base/front_end.h"
#include "base/pinning.h"
#include "c_api/status.h"
#include "engine/profile.h"
#include "hybridnet/c_api.h"
#include "hybridnet/imperative.h"
#include "hybridnet/op.h"
#include "hybridnet/threads.h"
#include "kernels/isa.h"

extern "C" const char* hybridnet_version();  // made by CMake from the one place that holds it

using namespace hybridnet;  // the functions below are C: they have no namespace of their own
using c_api::guarded;
using c_api::require;

namespace {

struct LogTarget {
  HnLogCallback callback = nullptr;
  void* context = nullptr;
};
std::mutex log_mutex;
LogTarget log_target;

void log_warning(const std::string& warning, SourceLocation where) {
  const std::string text = where.known() ? where.str() + ": " + warning : warning;
  const std::lock_guard lock(log_mutex);
  if (log_target.callback)
    log_target.callback(text.c_str(), log_target.context);
  else
    std::fprintf(stderr, "hybridnet: %s\n", text.c_str());
}

std::string json_text(const char* text) {
  std::string result = "\"";
  for (const char* c = text; *c; ++c) {
    if (*c == '"' || *c == '\\') result += '\\';
    if (static_cast<unsigned char>(*c) >= 0x20) result += *c;
  }
  return result + '"';
}

}  // namespace

int hn_abi_version(void) { return HN_ABI_VERSION; }
const char* hn_version(void) { return hybridnet_version(); }
const char* hn_isa(void) { return kernels::isa_report(); }

int hn_engine_type(const char** out) {
  return guarded([&] {
    require(out, "hn_engine_type", "out");
    *out = Runtime::get().engine().type_name();
  });
}

int hn_wait_all(void) {
  return guarded([] { Runtime::get().engine().wait_all(); });
}

int hn_num_threads(int* out) {
  return guarded([&] {
    require(out, "hn_num_threads", "out");
    *out = cpu_cores();
  });
}

int hn_set_num_threads(int cores) {
  return guarded([&] {
    if (cores < 1)
      throw ValueError(
          {.op = "hn_set_num_threads", .input = "cores", .expected = "at least 1", .given = std::to_string(cores)});
    set_cpu_cores(cores);
  });
}

int hn_pin_thread(size_t num_cores, const int* cores) {
  return guarded([&] {
    if (num_cores > 0) require(cores, "hn_pin_thread", "cores");
    pin_thread({cores, num_cores});
  });
}

int hn_seed(uint64_t seed_value) {
  return guarded([&] { seed(seed_value); });
}

int hn_set_np_shape(int on, int* before) {
  return guarded([&] {
    const bool was = set_np_shape(on != 0);
    if (before) *before = was;
  });
}

int hn_is_np_shape(int* out) {
  return guarded([&] {
    require(out, "hn_is_np_shape", "out");
    *out = is_np_shape();
  });
}

int hn_profiler_start(void) {
  return guarded([] { profile::start(); });
}

int hn_profiler_stop(void) {
  return guarded([] { profile::stop(); });
}

int hn_profiler_save(const char* path) {
  return guarded([&] {
    require(path, "hn_profiler_save", "path");
    std::ofstream file(path);
    file << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    const char* separator = "\n";
    for (const profile::Event& e : profile::take()) {
      file << std::exchange(separator, ",\n") << "{\"name\": " << json_text(e.name)
           << ", \"cat\": " << json_text(e.category) << ", \"ph\": \"X\", \"pid\": 0, \"tid\": " << e.thread
           << ", \"ts\": " << static_cast<double>(e.begin_ns) / 1e3
           << ", \"dur\": " << static_cast<double>(e.end_ns - e.begin_ns) / 1e3
           << ", \"args\": {\"node\": " << json_text(e.node) << ", \"block\": " << json_text(e.block)
           << ", \"inputs\": " << json_text(e.inputs.c_str()) << "}}";
    }
    file << "\n]}\n";
    if (!file.flush())
      throw FileError({.input = path, .message = std::string("cannot write the file: ") + std::strerror(errno)});
  });
}

int hn_set_log_callback(HnLogCallback callback, void* context) {
  return guarded([&] {
    const std::lock_guard lock(log_mutex);
    log_target = {callback, context};
    set_warning_function(log_warning);
  });
}
