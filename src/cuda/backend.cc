#include "cuda/backend.h"

#include <atomic>
#include <utility>

#include "cuda/errors.h"
#include "cuda/process_state.h"
#include "hybridnet/env.h"

namespace hybridnet::cuda {
namespace {

// The device that this thread made current. Other libraries may change the thread's context, so make_current() sets it
// each time; the members that follow a make_current() rely on it.
struct CurrentDevice {
  uint64_t backend = 0;  // 0: none
  int device = 0;
};
thread_local CurrentDevice t_current;

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

StreamHandle handle(device::Backend::Stream stream) { return reinterpret_cast<StreamHandle>(stream); }
EventHandle handle(device::Backend::Event event) { return reinterpret_cast<EventHandle>(event); }
Pointer address(const void* memory) { return reinterpret_cast<Pointer>(memory); }
size_t size(int64_t bytes) { return static_cast<size_t>(bytes); }

bool has_conditions(const Driver& driver) {
  int version = 0;
  return driver.condition_create && driver.graph_add_node && succeeded(driver.driver_version(&version)) &&
         version >= kOldestWithConditions;
}

}  // namespace

CudaBackend::CudaBackend(std::unique_ptr<const Driver> driver, int num_devices, BackendOptions options)
    : driver_(std::move(driver)),
      options_(std::move(options)),
      id_(next_id()),
      images_(options_.image_folder),
      has_conditions_(has_conditions(*driver_)) {
  devices_.resize(static_cast<size_t>(num_devices));
  for (int i = 0; i < num_devices; ++i) {
    Device& device = devices_[static_cast<size_t>(i)];
    call(driver_->device_get, &device.number, i);
    device.info = describe(device.number);
    device.staging = std::make_unique<Staging>(*driver_);
    device.memory = std::make_unique<DeviceMemory>(*driver_, device.number);
  }
}

CudaBackend::~CudaBackend() {
  if (process_is_forked() || process_is_ending()) return;
  for (int i = 0; i < num_devices(); ++i) finish(i);  // all of them use pinned memory
  for (int i = 0; i < num_devices(); ++i) release(i);
  if (t_current.backend == id_) t_current = {};
}

// Results are not checked: after an error of the device these calls fail, and nothing can be done about it.
void CudaBackend::finish(int index) noexcept {
  const Device& device = devices_[static_cast<size_t>(index)];
  if (!device.context || !succeeded(driver_->set_context(device.context))) return;
  for (const auto& [owner, stream] : streams_)
    if (owner == index) note_handled(driver_->stream_synchronize(stream));
}

void CudaBackend::release(int index) noexcept {
  Device& device = devices_[static_cast<size_t>(index)];
  if (!device.context || !succeeded(driver_->set_context(device.context))) return;
  free_graphs_of(index);
  if (products_) products_->release(index);
  if (convolutions_) convolutions_->release(index);
  device.staging->release();
  for (void* const memory : std::exchange(pinned_, {})) note_handled(driver_->free_pinned(memory));
  for (const auto& [owner, event] : events_)
    if (owner == index) note_handled(driver_->event_destroy(event));
  for (const auto& [owner, stream] : streams_)
    if (owner == index) note_handled(driver_->stream_destroy(stream));
  for (const auto& [owner, module] : modules_)
    if (owner == index) note_handled(driver_->module_unload(module));
  for (const auto& [block, owner] : blocks_)
    if (owner == index) note_handled(device.memory->free(block).result);
  device.memory->release();
  note_handled(driver_->set_context(nullptr));
  note_handled(driver_->release_context(device.number));
}

// ---- devices
device::DeviceInfo CudaBackend::describe(DeviceNumber number) const {
  char name[256] = {};
  size_t bytes = 0;
  int major = 0, minor = 0;
  device::DeviceInfo info;
  call(driver_->device_name, name, static_cast<int>(sizeof name - 1), number);
  call(driver_->device_memory, &bytes, number);
  call(driver_->device_attribute, &major, kAttributeMajor, number);
  call(driver_->device_attribute, &minor, kAttributeMinor, number);
  call(driver_->device_attribute, &info.multiprocessors, kAttributeMultiprocessors, number);
  info.name = name;
  info.architecture = "sm_" + std::to_string(major * 10 + minor);
  info.total_bytes = static_cast<int64_t>(bytes);
  return info;
}

device::DeviceInfo CudaBackend::info(int device) const { return devices_.at(static_cast<size_t>(device)).info; }

void CudaBackend::enter() const {
  if (process_is_forked()) [[unlikely]]
    throw_forked();
}

void CudaBackend::use_some_device() {
  if (t_current.backend == id_ && !process_is_forked()) [[likely]]
    return;
  make_current(0);
}

int CudaBackend::current_device() const { return t_current.device; }

void CudaBackend::make_current(int device) {
  enter();
  call(driver_->set_context, context_of(device));
  t_current = {id_, device};
}

Context CudaBackend::context_of(int index) {
  Device& device = devices_.at(static_cast<size_t>(index));
  const std::lock_guard lock(mutex_);
  if (!device.context) call(driver_->retain_context, &device.context, device.number);
  return device.context;
}

// ---- memory
void* CudaBackend::allocate(int64_t bytes) {
  use_some_device();
  Pointer memory = 0;
  const Outcome given = devices_[static_cast<size_t>(t_current.device)].memory->allocate(&memory, size(bytes));
  if (given.result == kOutOfMemory) {
    note_handled(given.result);
    return nullptr;
  }
  check(given.result, given.function);
  const std::lock_guard lock(mutex_);
  blocks_.emplace(memory, t_current.device);
  return reinterpret_cast<void*>(memory);
}

// Destructors of arrays call this, so in a forked child, whose memory this is not, and at exit it does nothing.
void CudaBackend::free(void* memory) {
  if (process_is_forked() || process_is_ending()) return;
  int owner = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(address(memory));
    if (block == blocks_.end()) throw_failure(kInvalidValue, driver_->free.name, "the block is not of this backend");
    owner = block->second;
    blocks_.erase(block);
  }
  const CurrentDevice before = t_current;
  const bool there = before.backend == id_ && before.device == owner;
  const Result entered = there ? kSuccess : driver_->set_context(context_of(owner));
  const Outcome freed = entered == kSuccess ? devices_[static_cast<size_t>(owner)].memory->free(address(memory))
                                            : Outcome{entered, driver_->set_context.name};
  note_handled(freed.result);
  if (freed.failed() && !is_sticky(freed.result)) {  // the memory is still there: it can be freed again
    const std::lock_guard lock(mutex_);
    blocks_.emplace(address(memory), owner);
  }
  Result returned = kSuccess;
  if (entered == kSuccess && !there) {
    if (before.backend == id_) returned = driver_->set_context(context_of(before.device));
    if (before.backend != id_ || returned != kSuccess) t_current = {id_, owner};
  }
  // After an error of a kernel no memory can be freed, and a destructor could not report it: the next launch or wait
  // does.
  note_handled(returned);
  if (freed.result != kDeinitialized && !is_sticky(freed.result)) check(freed.result, freed.function);
  if (returned != kDeinitialized && !is_sticky(returned)) check(returned, driver_->set_context.name);
}

std::pair<int64_t, int64_t> CudaBackend::free_and_total_bytes(int device) {
  const CurrentDevice before = t_current;
  make_current(device);
  size_t free = 0, total = 0;
  const Result result = driver_->memory_info(&free, &total);
  note_handled(result);
  if (before.backend == id_) make_current(before.device);
  check(result, driver_->memory_info.name);
  return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

void* CudaBackend::allocate_pinned(int64_t bytes) {
  use_some_device();
  void* memory = nullptr;
  const bool is_there = succeeded(driver_->allocate_pinned(&memory, size(bytes), kPinnedForAllContexts));
  if (!is_there) return nullptr;
  const std::lock_guard lock(mutex_);
  pinned_.insert(memory);
  return memory;
}

void CudaBackend::free_pinned(void* memory) {
  use_some_device();
  call(driver_->free_pinned, memory);
  const std::lock_guard lock(mutex_);
  pinned_.erase(memory);
}

void CudaBackend::copy_in_pinned(Stream stream, void* to, const void* from, int64_t bytes) {
  use_some_device();
  call(driver_->copy_in, address(to), from, size(bytes), handle(stream));
}

// ---- streams and events
device::Backend::Stream CudaBackend::make_stream() {
  use_some_device();
  StreamHandle stream = nullptr;
  call(driver_->stream_create, &stream, kStreamNonBlocking);
  const std::lock_guard lock(mutex_);
  streams_.emplace_back(t_current.device, stream);
  return reinterpret_cast<Stream>(stream);
}

device::Backend::Event CudaBackend::make_event() {
  use_some_device();
  EventHandle event = nullptr;
  call(driver_->event_create, &event, kEventDisableTiming);
  const std::lock_guard lock(mutex_);
  events_.emplace_back(t_current.device, event);
  return reinterpret_cast<Event>(event);
}

void CudaBackend::record(Event event, Stream stream) {
  use_some_device();
  call(driver_->event_record, handle(event), handle(stream));
}

void CudaBackend::wait(Stream stream, Event event) {
  use_some_device();
  call(driver_->stream_wait, handle(stream), handle(event), 0u);
}

bool CudaBackend::is_done(Event event) {
  use_some_device();
  const Result result = driver_->event_query(handle(event));
  if (result != kNotReady) check(result, driver_->event_query.name);
  return result == kSuccess;
}

void CudaBackend::synchronize(Event event) {
  use_some_device();
  call(driver_->event_synchronize, handle(event));
}

void CudaBackend::synchronize(Stream stream) {
  use_some_device();
  call(driver_->stream_synchronize, handle(stream));
}

// ---- copies
void CudaBackend::copy_in(Stream stream, void* to, const void* from_host, int64_t bytes) {
  use_some_device();
  Staging& staging = *devices_[static_cast<size_t>(t_current.device)].staging;
  staging.copy_in(handle(stream), address(to), from_host, size(bytes));
}

void CudaBackend::copy_out(Stream stream, void* to_host, const void* from, int64_t bytes) {
  use_some_device();
  call(driver_->copy_out, to_host, address(from), size(bytes), handle(stream));
  call(driver_->stream_synchronize, handle(stream));
}

void CudaBackend::copy(Stream stream, void* to, const void* from, int64_t bytes) {
  use_some_device();
  call(driver_->copy, address(to), address(from), size(bytes), handle(stream));
}

void CudaBackend::fill_bytes(Stream stream, void* to, uint8_t value, int64_t bytes) {
  use_some_device();
  call(driver_->fill, address(to), static_cast<unsigned char>(value), size(bytes), handle(stream));
}

// ---- the backend of the process
std::unique_ptr<device::Backend> make_cuda_backend(const BackendOptions& options, std::string* why_none) {
  std::unique_ptr<const Driver> driver = load_driver(options.driver, why_none);
  return driver ? make_cuda_backend(std::move(driver), options, why_none) : nullptr;
}

std::unique_ptr<device::Backend> make_cuda_backend(std::unique_ptr<const Driver> driver, const BackendOptions& options,
                                                   std::string* why_none) {
  int count = 0;
  const Result started = driver->init(0);
  const Result counted = started == kSuccess ? driver->device_count(&count) : started;
  if (counted == kNoDevice || (counted == kSuccess && count <= 0)) {
    note_handled(counted);
    *why_none = "the driver reports no device";
  } else if (counted != kSuccess) {
    *why_none = failure_text(counted, started != kSuccess ? driver->init.name : driver->device_count.name);
  } else {
    watch_process();
    return std::make_unique<CudaBackend>(std::move(driver), count, options);
  }
  return nullptr;
}

std::unique_ptr<device::Backend> make_cuda_backend(std::string* why_none) {
  const Environment& env = environment();
  return make_cuda_backend({.driver = env.cuda_driver,
                            .library_folders = env.cuda_path,
                            .image_folder = image_folder(),
                            .synchronous = env.cuda_sync,
                            .graphs = env.cuda_graphs && !env.cuda_check,  // the check waits for each kernel
                            .cublas_lt = env.cuda_cublas_lt,
                            .cudnn = env.cuda_cudnn},
                           why_none);
}

}  // namespace hybridnet::cuda
