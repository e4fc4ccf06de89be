// Machine code that is made while the process runs: C, turned into a shared object by the compiler of the machine.
// Objects are kept in a folder (HYBRIDNET_CACHE) for later processes. What lies there is checked before it is loaded: a
// damaged object, one of another version, or one that others may write is made anew.
// Threads: every function from any thread. A process that was forked makes none.
#pragma once

#include <atomic>
#include <memory>
#include <string>

namespace hybridnet {

// Does HYBRIDNET_JIT allow it, and is there a C compiler?
bool native_code_available();
// Must code be there before it is used first (HYBRIDNET_JIT=now)? Else it is made while other code does its work.
bool native_code_is_awaited();

class NativeFunction {
 public:
  // The function `entry` of a C source that includes nothing and calls nothing but what it is given. flags: for the
  // compiler, with blanks between, beside those that keep its arithmetic that of the kernels.
  NativeFunction(std::string source, std::string entry, std::string flags = "")
      : source_(std::move(source)), entry_(std::move(entry)), flags_(std::move(flags)) {}
  // Null: it is not made yet, or cannot be made.
  void* get() const { return address_.load(std::memory_order_acquire); }
  const std::string& source() const { return source_; }
  const std::string& entry() const { return entry_; }
  const std::string& flags() const { return flags_; }

 private:
  friend struct NativeFunctionWriter;
  const std::string source_, entry_, flags_;
  std::atomic<void*> address_{nullptr};
};

// Makes the function ready: before this returns where code is awaited, else in the background. Asked for once. Failures
// are silent: get() stays null.
void make_native(const std::shared_ptr<NativeFunction>& function);

}  // namespace hybridnet
