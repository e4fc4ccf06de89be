#include "device/user_program.h"

#include <algorithm>
#include <memory>

namespace hybridnet::device {

UserProgram& UserProgram::of(const UserSource& source) {
  static std::mutex mutex;
  static auto* const programs = new std::map<UserSource, std::unique_ptr<UserProgram>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<UserProgram>& program = (*programs)[source];
  if (!program) program.reset(new UserProgram(source));
  return *program;
}

void UserProgram::load(Device device) {
  const std::lock_guard lock(mutex_);
  loaded(device);
}

const UserProgram::Kernel* UserProgram::find(const std::string& name, Device device) {
  const std::lock_guard lock(mutex_);
  Loaded& at = loaded(device);
  if (const auto known = at.kernels.find(name); known != at.kernels.end()) return &known->second;
  const Backend::Function function = backend()->find_function(at.module, symbol_of(name, at).c_str());
  if (function == nullptr) return nullptr;
  return &at.kernels.emplace(name, Kernel{function, backend()->parameter_bytes(function)}).first->second;
}

// Under mutex_.
UserProgram::Loaded& UserProgram::loaded(Device device) {
  Stream::of(device);  // throws if there is no such device
  backend()->make_current(device.id);
  if (const auto known = devices_.find(device.id); known != devices_.end()) return known->second;
  const UserImage image = backend()->compile(source_, backend()->info(device.id).architecture);
  return devices_.emplace(device.id, Loaded{backend()->load(image.image), image.symbols, {}}).first->second;
}

const std::string& UserProgram::symbol_of(const std::string& name, const Loaded& loaded) const {
  const auto found = std::find(source_.exports.begin(), source_.exports.end(), name);
  return found == source_.exports.end() ? name : loaded.symbols[static_cast<size_t>(found - source_.exports.begin())];
}

}  // namespace hybridnet::device
