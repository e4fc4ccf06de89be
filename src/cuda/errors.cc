#include "cuda/errors.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "device/last_launches.h"
#include "hybridnet/error.h"

namespace hybridnet::cuda {
namespace {

struct Known {
  Result result;
  const char* name;
  const char* because;  // null: the name says enough
  const char* fix;      // null: no advice
};

constexpr const char* kReportKernel =
    "run again with HYBRIDNET_CUDA_SYNC=1, which names the kernel; if the operator is one of HybridNet's, report it";
constexpr const char* kUpdateDriver =
    "update the NVIDIA driver, or install the NVRTC of its CUDA version (pip install nvidia-cuda-nvrtc-cu12 for 12)";
constexpr const char* kCheckHardware = "look for Xid messages in the system's log, and test the GPU";

// In the order of the numbers, which find() relies on.
constexpr Known kKnown[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", nullptr, nullptr},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "the GPU has no memory left", "use smaller batches, or end other users of the GPU"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", nullptr, nullptr},
    {4, "CUDA_ERROR_DEINITIALIZED", "the process is ending, and the driver has shut down", nullptr},
    {34, "CUDA_ERROR_STUB_LIBRARY", "the library is the toolkit's stub for linking, not a driver",
     "remove the toolkit's folder 'stubs' from LD_LIBRARY_PATH"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "another process uses the GPU exclusively", nullptr},
    {100, "CUDA_ERROR_NO_DEVICE", "the driver finds no GPU, or CUDA_VISIBLE_DEVICES hides it", nullptr},
    {101, "CUDA_ERROR_INVALID_DEVICE", nullptr, nullptr},
    {200, "CUDA_ERROR_INVALID_IMAGE", "the compiled kernel is not one that this driver reads", kUpdateDriver},
    {201, "CUDA_ERROR_INVALID_CONTEXT", nullptr, nullptr},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the kernel was compiled for another architecture", kUpdateDriver},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "the GPU's memory has a defect", kCheckHardware},
    {218, "CUDA_ERROR_INVALID_PTX", nullptr, kUpdateDriver},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "the link between GPUs has a defect", kCheckHardware},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "NVRTC is newer than the driver", kUpdateDriver},
    {226, "CUDA_ERROR_CONTAINED", "the GPU's memory has a defect", kCheckHardware},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", nullptr, nullptr},
    {400, "CUDA_ERROR_INVALID_HANDLE", nullptr, nullptr},
    {500, "CUDA_ERROR_NOT_FOUND", nullptr, nullptr},
    {600, "CUDA_ERROR_NOT_READY", nullptr, nullptr},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an earlier kernel used memory that is not its own", kReportKernel},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "the kernel needs more registers or threads than the GPU has", nullptr},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel ran longer than the GPU of a display may", kReportKernel},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "other code of the process has reset the GPU", nullptr},
    {710, "CUDA_ERROR_ASSERT", "an assertion of an earlier kernel failed", kReportKernel},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "an earlier kernel damaged its stack", kReportKernel},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an earlier kernel ran an illegal instruction", kReportKernel},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "an earlier kernel used an address that is not aligned", kReportKernel},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "an earlier kernel used an address of another space", kReportKernel},
    {718, "CUDA_ERROR_INVALID_PC", "an earlier kernel jumped to an invalid address", kReportKernel},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "an earlier kernel failed while it ran", kReportKernel},
    {801, "CUDA_ERROR_NOT_SUPPORTED", nullptr, nullptr},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "a system service of the GPU does not run (nvidia-fabricmanager)", nullptr},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "the driver's library and kernel module differ in version",
     "restart the machine after the update of the driver"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "the compatibility library does not support this GPU",
     "remove the folder 'compat' from LD_LIBRARY_PATH"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "the stream records a graph, which cannot hold this", nullptr},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the stream records a graph, and an earlier call was not allowed",
     nullptr},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", nullptr, nullptr},
    {999, "CUDA_ERROR_UNKNOWN", nullptr, "restart the machine if nvidia-smi fails, too"},
};

const Known* find(Result result) {
  const Known* at = std::lower_bound(std::begin(kKnown), std::end(kKnown), result,
                                     [](const Known& known, Result wanted) { return known.result < wanted; });
  return at != std::end(kKnown) && at->result == result ? at : nullptr;
}

std::atomic<ErrorNameFunction> names_of_driver{nullptr};

// Null: it has none.
const char* name_of_driver(Result result) noexcept {
  const char* name = nullptr;
  const ErrorNameFunction ask = names_of_driver.load();
  return ask && ask(result, &name) == kSuccess ? name : nullptr;
}

std::string name_of(Result result) {
  const char* const of_driver = name_of_driver(result);
  if (const Known* known = find(result)) return known->name;
  return of_driver ? of_driver : "error";
}

}  // namespace

void note_handled(Result result) noexcept {
  if (result != kSuccess) [[unlikely]]
    name_of_driver(result);
}

std::string error_text(Result result) { return name_of(result) + " (" + std::to_string(result) + ")"; }

std::string failure_text(Result result, const char* function) {
  std::string text = std::string(function) + " failed: " + error_text(result);
  const Known* const known = find(result);
  if (known && known->because) text += ": " + std::string(known->because);
  if (known && known->fix) text += "; " + std::string(known->fix);
  return text;
}

bool is_sticky(Result result) {
  switch (result) {
    case 214:
    case 220:
    case 226:
    case 700:
    case 702:
    case 709:
    case 710:
      return true;
    default:
      return result >= 714 && result <= 719;
  }
}

void throw_failure(Result result, std::string_view function, const std::string& detail) {
  const Known* const known = find(result);
  ErrorFields fields{.message = "CUDA: " + std::string(function) + " failed: " + error_text(result)};
  if (!detail.empty()) fields.message += ": " + detail;
  if (known && known->because) fields.because = known->because;
  if (known && known->fix) fields.fix = known->fix;
  if (is_sticky(result)) {
    if (const std::string launches = device::last_launches(); !launches.empty() && detail.empty())
      fields.because += (fields.because.empty() ? "" : "; ") +
                        ("an earlier kernel may be the cause; the last ones, newest first: " + launches);
    fields.fix = "restart the process: after this error every later use of the GPU fails, too" +
                 (fields.fix.empty() ? "" : "; then " + fields.fix);
  }
  throw EngineError(std::move(fields));
}

void set_error_names(ErrorNameFunction name_of) { names_of_driver.store(name_of); }

}  // namespace hybridnet::cuda
