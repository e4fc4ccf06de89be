// Chains of elementwise functions as one kernel of a device. A chain is recorded: while a FusedRecording lives, the
// device forms of functions (device_map.h) note what they are asked instead of launching, with value_pointer(v) for the
// memory of value v. So the steps of a chain need no description besides the code that runs them one by one.
// Owner:   the caller; compiled kernels belong to the process.
// Threads: a recording belongs to its thread; a FusedChain may run on any.
// Throws:  DeviceError.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/program.h"
#include "kernels/elementwise/device_map.h"

namespace hybridnet::kernels {

// How an input is read: element i of the result, its only element, or by axes.
struct FusedInput {
  bool full = true;
  std::vector<int64_t> dims{}, strides{};  // from the outermost; empty and not full: a single element
};

class FusedRecording {
 public:
  explicit FusedRecording(int num_inputs) : num_values_(num_inputs) { current_ = this; }
  ~FusedRecording() { current_ = nullptr; }
  FusedRecording(const FusedRecording&) = delete;
  static FusedRecording* current() { return current_; }

  // Stands for the memory of a value; it is never read.
  static void* value_pointer(int value) { return reinterpret_cast<void*>((static_cast<intptr_t>(value) + 1) << 12); }
  // The value that `pointer` stands for since it was last written.
  int value_of(const void* pointer) const;
  bool failed() const { return failed_ || blocked_.launches() > 0; }

  // Called by device_map.cc.
  void map(const DeviceFunction& function, const void* const* in, void* out, const double* scalars, Repeat repeat);
  void number(const DeviceFunction& function, double number, Repeat side, const void* data, void* out);

 private:
  friend class FusedChain;
  std::string begin_step(const DeviceFunction& function);
  void end_step(std::string call, void* out);

  static thread_local FusedRecording* current_;
  const device::DryRun blocked_;
  int num_values_;
  bool failed_ = false;
  std::vector<std::pair<const void*, int>> written_;  // memory that was written, with the value that it has
  std::set<std::string> headers_;
  std::string lines_;
  std::vector<double> numbers_;
};

class FusedChain {
 public:
  // outputs: the recorded values to write.
  FusedChain(const FusedRecording& recording, DType dtype, std::vector<FusedInput> inputs, std::vector<int> outputs);
  // False: the parameters exceed those of a kernel.
  bool fits() const { return bytes() <= kMostBytes; }
  void run(const void* const* in, void* const* out, int64_t n) const;
  const std::string& text() const { return text_; }

 private:
  static constexpr int64_t kMostBytes = 4000;
  int64_t bytes() const;
  std::string input_line(size_t input, int repeated) const;

  std::vector<FusedInput> inputs_;
  std::vector<double> numbers_;
  int num_outputs_, repeated_ = 0, dims_ = 1;
  std::string text_;
  device::Program* program_;
};

}  // namespace hybridnet::kernels
