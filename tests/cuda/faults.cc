#include "faults.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#include <ucontext.h>
#endif

#include "fibers.h"
#include "memory.h"
#include "reports.h"

namespace standin {
namespace {

struct Running {
  int device;
  uintptr_t address = 0;  // that ended it
  int signal = 0;
  Result result = kSuccess;
  sigjmp_buf escape;
};
thread_local Running* t_running = nullptr;
thread_local bool t_forwarding = false;
struct sigaction g_old_segv, g_old_fpe;

// x86-64 says whether a fault was a write; elsewhere a write of memory that is open for reading faults again.
bool is_write(const void* context, const Allocation& allocation) {
#if defined(__x86_64__)
  (void)allocation;
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  (void)context;
  return allocation.opened == Opened::kRead;
#endif
}

[[noreturn]] void end_process(uintptr_t address, const void* context) {
  World& w = world();
  const bool locked = w.mutex.try_lock();  // another thread may be in the driver: the table is then read without it
  const Allocation* allocation = find(w, address);
  std::string text = "host access: host code touched device memory " + hex(address);
  if (allocation) {
    text = std::string("host access: host code ") + (is_write(context, *allocation) ? "wrote" : "read") +
           " device memory " + hex(allocation->address) + " + " +
           std::to_string(static_cast<int64_t>(address - allocation->address)) + " of an allocation of " +
           std::to_string(allocation->bytes) + " bytes";
    if (!allocation->freed_by.empty()) text += ", freed by " + allocation->freed_by;
  }
  if (locked) w.mutex.unlock();
  report(text);
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  std::abort();
}

// To the handler that was there before; without one the instruction faults again and ends the process.
void forward(int signal, siginfo_t* info, void* context) {
  const struct sigaction& old = signal == SIGSEGV ? g_old_segv : g_old_fpe;
  const bool has_handler = (old.sa_flags & SA_SIGINFO) != 0 || (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN);
  if (t_forwarding || !has_handler) {
    ::signal(signal, SIG_DFL);
    return;
  }
  t_forwarding = true;
  if ((old.sa_flags & SA_SIGINFO) != 0)
    old.sa_sigaction(signal, info, context);
  else
    old.sa_handler(signal);
  t_forwarding = false;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool of_device = signal == SIGSEGV && in_device_range(address);
  if (!t_running) return of_device ? end_process(address, context) : forward(signal, info, context);
  if (of_device) {
    World& w = world();
    Allocation* allocation = find(w, address);
    if (allocation && allocation->device == t_running->device) {
      ++w.counters.faults;
      return open(*allocation, is_write(context, *allocation) ? Opened::kWrite : Opened::kRead);
    }
  }
  t_running->address = address;
  t_running->signal = signal;
  t_running->result = signal == SIGFPE ? kLaunchFailed : kIllegalAddress;
  siglongjmp(t_running->escape, 1);
}

// Handlers that were installed after ours (a debugger's, Python's) come second.
void install(int signal, struct sigaction* old) {
  struct sigaction current;
  sigaction(signal, nullptr, &current);
  if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_fault) return;
  *old = current;
  struct sigaction ours;
  std::memset(&ours, 0, sizeof(ours));
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(signal, &ours, nullptr);
}

// Faults are handled on a stack of their own: that of a kernel's thread is small.
class SignalStack {
 public:
  void ensure() {
    if (checked_) return;
    checked_ = true;
    stack_t current;
    if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::malloc(kBytes);
    stack_t own{};
    own.ss_sp = memory_;
    own.ss_size = kBytes;
    sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    std::free(memory_);
  }

 private:
  static constexpr size_t kBytes = 128 << 10;
  bool checked_ = false;
  void* memory_ = nullptr;
};
thread_local SignalStack t_signal_stack;

std::string why(const Running& running) {
  if (is_end_of_stack(running.address)) return "needs more than the stack of a thread, 60 KiB here";
  if (running.signal == SIGFPE) return "divides an integer by zero";
  const Allocation* allocation = find(world(), running.address);
  if (!allocation) return "touches " + hex(running.address) + ", which belongs to no allocation";
  return "touches " + describe(*allocation) + " of another device";
}

}  // namespace

void prepare_for_faults() {
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs now, not in the handler
  install(SIGSEGV, &g_old_segv);
  install(SIGFPE, &g_old_fpe);
}

Result run_guarded(World&, const std::string& name, int device, const std::function<Result()>& body) {
  install(SIGSEGV, &g_old_segv);
  install(SIGFPE, &g_old_fpe);
  t_signal_stack.ensure();
  Running running;
  running.device = device;
#if defined(__x86_64__)
  const unsigned float_state = _mm_getcsr();
  _mm_setcsr(0x1f80);  // round to nearest, subnormals kept, whatever the host thread has
#endif
  if (sigsetjmp(running.escape, 1) == 0) {
    t_running = &running;
    running.result = body();
  }
  t_running = nullptr;
#if defined(__x86_64__)
  _mm_setcsr(float_state);
#endif
  if (running.signal != 0) report("bad access: kernel '" + name + "' " + why(running));
  return running.result;
}

void end_kernel(Result result) {
  t_running->result = result;
  siglongjmp(t_running->escape, 1);
}

}  // namespace standin
