// A stack with a function that runs on it in pieces.
// Threads: a fiber is used by one thread at a time.
#pragma once

#include <cstddef>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace standin {

class Fiber {
 public:
  using Entry = void (*)(void*);  // never returns
  // Starts the function at the next resume().
  void prepare(char* stack, size_t bytes, Entry entry, void* argument);
  void resume();  // by the owner: runs the fiber until it calls pause()
  void pause();   // by the fiber

 private:
#if defined(__x86_64__)
  void* fiber_ = nullptr;
  void* owner_ = nullptr;
#else
  ucontext_t fiber_, owner_;
#endif
};

}  // namespace standin
