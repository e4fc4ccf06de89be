#include "device/program.h"

#include <algorithm>
#include <unordered_map>

#include "device/last_launches.h"
#include "device/launch_batch.h"

namespace hybridnet::device {

struct Program::All {
  static All& get() {
    static auto* const one = new All;  // never destroyed: workers may use it while the process ends
    return *one;
  }
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Program>> by_text;
};

Program& Program::of(const std::string& text, ImageKind kind) {
  All& all = All::get();
  const std::lock_guard lock(all.mutex);
  std::unique_ptr<Program>& program = all.by_text[text];
  if (!program) program.reset(new Program(text, kind));
  return *program;
}

std::vector<std::string> Program::texts() {
  All& all = All::get();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> found;
  for (const auto& [text, program] : all.by_text) found.push_back(text);
  return found;
}

Program::Found Program::find(const char* entry, Device device) {
  const std::lock_guard lock(mutex_);
  for (const Entry& known : entries_)
    if (known.device == device.id && known.name == entry) return {known.function, known.name.c_str()};
  auto module = modules_.find(device.id);
  if (module == modules_.end()) {
    const std::string image = backend()->compile(text_, backend()->info(device.id).architecture, kind_);
    module = modules_.emplace(device.id, backend()->load(image)).first;
  }
  const Backend::Function function = backend()->function(module->second, entry);
  entries_.push_back({device.id, entry, function});
  return {function, entries_.back().name.c_str()};
}

thread_local DryRun* DryRun::t_current = nullptr;

void Program::launch(const char* entry, const Geometry& geometry, const void* arguments, size_t bytes) {
  if (DryRun::t_current) [[unlikely]] {
    ++DryRun::t_current->launches_;
    return;
  }
  Stream& stream = *current();
  const auto [function, name] = find(entry, stream.device());
  note_launch(name);
  if (LaunchBatch* const batch = LaunchBatch::current())
    return batch->add({.function = function, .geometry = geometry, .arguments = arguments, .bytes = bytes});
  backend()->launch(function, geometry, stream.handle(), arguments, bytes);
}

void Program::launch_setting(const char* entry, uint32_t conditions, const void* arguments, size_t bytes) {
  const auto [function, name] = find(entry, current()->device());
  note_launch(name);
  LaunchBatch::current()->add(
      {.function = function, .arguments = arguments, .bytes = bytes, .set_conditions = conditions});
}

Geometry geometry_for(int64_t n) {
  constexpr int64_t kThreads = 256, kMaxBlocks = 1 << 16;
  const int64_t blocks = std::clamp<int64_t>((n + kThreads - 1) / kThreads, 1, kMaxBlocks);
  return {.grid = {static_cast<uint32_t>(blocks), 1, 1}, .block = {kThreads, 1, 1}};
}

Geometry geometry_for_rows(int64_t blocks, int threads) {
  constexpr int64_t kMaxBlocks = 1 << 20;
  return {.grid = {static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, kMaxBlocks)), 1, 1},
          .block = {static_cast<uint32_t>(threads), 1, 1}};
}

}  // namespace hybridnet::device
