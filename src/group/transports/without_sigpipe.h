// Keeps SIGPIPE from this thread, and from the threads that it starts, while an object lives: a write to a connection
// that has ended is then an error alone. The signal's handler belongs to the program and stays as it is.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <ctime>

namespace hybridnet::group {

class WithoutSigpipe {
 public:
  WithoutSigpipe() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pending_before_ = pending();
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec now{};
    if (!pending_before_ && pending()) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  static bool pending() noexcept {
    sigset_t signals;
    sigpending(&signals);
    return sigismember(&signals, SIGPIPE) == 1;
  }

  sigset_t pipe_, before_;
  bool pending_before_;
};

}  // namespace hybridnet::group
