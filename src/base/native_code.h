// Machine code that is made while the process runs: C source, compiled to a shared object by the machine's C compiler.
// Objects are kept in a folder (HYBRIDNET_CACHE) for later processes. An object there is checked before it is loaded: a
// damaged object, one of another version, or one that others may write is compiled again.
// Threads: every function from any thread. A process that was forked makes none.
#pragma once

#include <atomic>
#include <memory>
#include <string>

namespace hybridnet {

// True if HYBRIDNET_JIT allows it and there is a C compiler.
bool native_code_available();
// True if code must be ready before its first use (HYBRIDNET_JIT=now); else other code does its work until it is ready.
bool native_code_is_awaited();

class NativeFunction {
 public:
  // The function `entry` of a C source that includes nothing and calls only functions that it receives as arguments.
  // flags: compiler flags separated by blanks, in addition to those that keep its arithmetic equal to the kernels'.
  NativeFunction(std::string source, std::string entry, std::string flags = "")
      : source_(std::move(source)), entry_(std::move(entry)), flags_(std::move(flags)) {}
  // The address of the function; null: it is not ready yet, or cannot be made.
  void* get() const { return address_.load(std::memory_order_acquire); }
  const std::string& source() const { return source_; }
  const std::string& entry() const { return entry_; }
  const std::string& flags() const { return flags_; }

 private:
  friend struct NativeFunctionWriter;
  const std::string source_, entry_, flags_;
  std::atomic<void*> address_{nullptr};
};

// Compiles the function: before this returns if native_code_is_awaited(), else in the background. To be called once.
// Failures are silent: get() stays null.
void make_native(const std::shared_ptr<NativeFunction>& function);

}  // namespace hybridnet
