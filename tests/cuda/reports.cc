#include "reports.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "results.h"

namespace standin {
namespace {

constexpr size_t kKeptBytes = 1 << 20;

struct Reports {
  std::mutex mutex;
  int count = 0;
  std::string text;  // the first kKeptBytes
};
Reports& reports() {
  static Reports& it = *new Reports;
  return it;
}

struct Failure {
  std::string function;  // or "any"
  int64_t after;         // fails at this call from now on
  Result result;
};
struct Failures {
  std::mutex mutex;
  std::vector<Failure> wanted;
  std::map<std::string, int64_t> calls;  // by function, since the last hnstandin_calls()
  void add(const std::string& specification);
};

// "name:N[:code],..."
void Failures::add(const std::string& specification) {
  for (size_t begin = 0; begin < specification.size();) {
    const size_t end = std::min(specification.find(',', begin), specification.size());
    const std::string one = specification.substr(begin, end - begin);
    begin = end + 1;
    const size_t colon = one.find(':');
    if (colon == std::string::npos) continue;
    const size_t second = one.find(':', colon + 1);
    const Result result = second == std::string::npos ? kUnknown : result_named(one.substr(second + 1));
    wanted.push_back({one.substr(0, colon), std::atoll(one.c_str() + colon + 1), result});
  }
}

Failures& failures() {
  static Failures& it = []() -> Failures& {
    auto& made = *new Failures;
    if (const char* text = std::getenv("HNSTANDIN_FAIL")) made.add(text);
    return made;
  }();
  return it;
}

struct Name {
  Result result;
  const char* name;
};
constexpr Name kNames[] = {
    {kSuccess, "CUDA_SUCCESS"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED"},
    {kDeinitialized, "CUDA_ERROR_DEINITIALIZED"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
    {kIllegalState, "CUDA_ERROR_ILLEGAL_STATE"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND"},
    {kNotReady, "CUDA_ERROR_NOT_READY"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {kOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
    {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {kCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    {kCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    {kCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    {kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT"},
    {kUnknown, "CUDA_ERROR_UNKNOWN"},
};

}  // namespace

const char* name_of(Result result) {
  for (const Name& known : kNames)
    if (known.result == result) return known.name;
  return nullptr;
}

Result result_named(const std::string& name) {
  for (const Name& known : kNames)
    if (name == known.name) return known.result;
  const int number = std::atoi(name.c_str());
  return number > 0 ? number : kUnknown;
}

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

std::string describe(const Allocation& allocation) {
  return "allocation " + std::to_string(allocation.number) + " at " + hex(allocation.address) + " of " +
         std::to_string(allocation.bytes) + " bytes";
}

void report(const std::string& text) {
  Reports& all = reports();
  std::lock_guard lock(all.mutex);
  ++all.count;
  if (all.text.size() + text.size() < kKeptBytes) all.text += text + "\n";
  std::fprintf(stderr, "hnstandin: %s\n", text.c_str());
}

void report_in_child(const std::string& text) {
  const std::string line = "hnstandin: " + text + "\n";
  static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
}

void report_leaks(const World& w) {
  for (const auto& [pages, allocation] : w.allocations)
    if (allocation.freed_by.empty()) report("leak: " + describe(allocation) + " was not freed");
}

Result injected_failure(const char* function) {
  Failures& all = failures();
  std::lock_guard lock(all.mutex);
  ++all.calls[function];
  Result result = kSuccess;
  for (Failure& failure : all.wanted)
    if ((failure.function == function || failure.function == "any") && --failure.after == 0) result = failure.result;
  return result;
}

}  // namespace standin

using standin::world;

// For tests, by ctypes. Returns the number of reports since the last reset; their texts, one a line, go to `text`.
extern "C" int hnstandin_reports(char* text, int size) {
  standin::report_unchecked_results();
  auto& all = standin::reports();
  std::lock_guard lock(all.mutex);
  if (text && size > 0) {
    const size_t bytes = std::min(all.text.size(), static_cast<size_t>(size) - 1);
    std::memcpy(text, all.text.data(), bytes);
    text[bytes] = '\0';
  }
  return all.count;
}

// Forgets the reports, the counters, the failures that were asked for and a broken context. Memory and queues stay.
extern "C" void hnstandin_reset() {
  {
    auto& all = standin::reports();
    std::lock_guard lock(all.mutex);
    all.count = 0;
    all.text.clear();
  }
  {
    auto& all = standin::failures();
    std::lock_guard lock(all.mutex);
    all.wanted.clear();
  }
  std::lock_guard lock(world().mutex);
  auto& counters = world().counters;
  counters.launches = counters.bytes_in = counters.bytes_out = counters.allocations = counters.faults = 0;
  counters.graph_launches = counters.nodes_set = counters.rounds = 0;
  counters.products = counters.tf32_products = counters.product_choices = 0;
  counters.convolutions = counters.tf32_convolutions = counters.convolution_choices = 0;
  world().broken = standin::kSuccess;
}

// Reports what is allocated now, as HNSTANDIN_LEAKS=1 does at exit. Returns the number of allocations.
extern "C" int hnstandin_leaks() {
  std::lock_guard lock(world().mutex);
  standin::report_leaks(world());
  return static_cast<int>(world().counters.live_allocations);
}

// Fails a later call: "cuLaunchKernel:3", "cuMemAlloc_v2:1:CUDA_ERROR_OUT_OF_MEMORY", "any:7:2", several with commas.
extern "C" void hnstandin_fail(const char* specification) {
  auto& all = standin::failures();
  std::lock_guard lock(all.mutex);
  all.wanted.clear();
  if (specification) all.add(specification);
}

// The functions that were called since the last call, and how often: "cuLaunchKernel 7", one a line.
extern "C" void hnstandin_calls(char* text, int size) {
  auto& all = standin::failures();
  std::lock_guard lock(all.mutex);
  std::string lines;
  for (const auto& [function, count] : all.calls) lines += function + " " + std::to_string(count) + "\n";
  all.calls.clear();
  if (text && size > 0) std::snprintf(text, static_cast<size_t>(size), "%s", lines.c_str());
}

// launches, bytes in, bytes out, allocations, faults since the last reset; live allocations, live bytes; launches of
// graphs, nodes whose parameters were set, live graphs; products of cuBLASLt, those in TF32, choices of algorithms,
// live objects of libraries; runs of bodies of conditional nodes; convolutions of cuDNN, those in TF32, choices of
// engines: up to `count`.
extern "C" int hnstandin_counters(long long* values, int count) {
  std::lock_guard lock(world().mutex);
  const auto& c = world().counters;
  const int64_t all[] = {c.launches,
                         c.bytes_in,
                         c.bytes_out,
                         c.allocations,
                         c.faults,
                         c.live_allocations,
                         c.live_bytes,
                         c.graph_launches,
                         c.nodes_set,
                         c.live_graphs,
                         c.products,
                         c.tf32_products,
                         c.product_choices,
                         c.live_library_objects,
                         c.rounds,
                         c.convolutions,
                         c.tf32_convolutions,
                         c.convolution_choices};
  const int kept = std::min<int>(count, static_cast<int>(std::size(all)));
  for (int i = 0; i < kept; ++i) values[i] = all[i];
  return kept;
}

// Another order of the work of different streams from now on; 0: as late as possible.
extern "C" void hnstandin_seed(unsigned long long seed) {
  std::lock_guard lock(world().mutex);
  world().random.seed(seed);
  world().random_order = seed != 0;
}
