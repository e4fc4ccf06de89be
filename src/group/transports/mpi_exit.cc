#include "group/transports/mpi_exit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hybridnet::group::mpi {
namespace {

constexpr useconds_t kMomentForOthers = 1'500'000;  // in µs
constexpr int kRunning = -1;
std::atomic<int>* end_code = nullptr;  // in memory that the child shares

void write_all(int descriptor, const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text, std::strlen(text));
}

// Runs in the child, where only functions that are safe in signal handlers may be called. `ended` becomes readable when
// the watched process has ended.
[[noreturn]] void watch(int ended, int descriptor, const char* message) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "hybridnet-watch");
  ::dup2(descriptor, 3);
  ::dup2(ended, 4);
  ::syscall(SYS_close_range, 5U, ~0U, 0U);
  ::close(0);
  ::close(1);
  pollfd waited{4, POLLIN, 0};
  while (::poll(&waited, 1, -1) < 0) continue;
  const int code = end_code->load();
  if (code == 0) ::_exit(0);
  if (code == kRunning) {
    write_all(2, message);
    ::usleep(kMomentForOthers);
  }
  // A command of PMI, the protocol between MPICH's mpirun and its processes.
  const int digits = code == kRunning ? 1 : std::min(code, 255);
  char command[] = "cmd=abort exitcode=000\n";
  char* const number = std::strchr(command, '0');
  number[0] = static_cast<char>('0' + digits / 100);
  number[1] = static_cast<char>('0' + digits / 10 % 10);
  number[2] = static_cast<char>('0' + digits % 10);
  write_all(3, command);
  ::_exit(0);
}

// A child of a child: the program may wait for any child of its own.
void start_child(int ended, int descriptor, const char* message) {
  const pid_t between = ::fork();
  if (between == 0) {
    if (::fork() == 0) watch(ended, descriptor, message);
    ::_exit(0);
  }
  if (between > 0) ::waitpid(between, nullptr, 0);
}

// Numbers from 16 are out of the way of those that the child sets up.
int copy_of(int descriptor) { return ::fcntl(descriptor, F_DUPFD_CLOEXEC, 16); }

struct AtExit {
  pid_t process;
  std::function<void(int)> function;
};

}  // namespace

void watch_by_child(int descriptor, const std::string& name) {
  void* const memory = ::mmap(nullptr, sizeof *end_code, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  end_code = new (memory) std::atomic<int>(kRunning);
  const std::string message = "hybridnet: " + name + " was killed, or ended without leaving its group\n";
  const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  const int ended = copy_of(self), connection = copy_of(descriptor);
  if (ended >= 0 && connection >= 0) start_child(ended, connection, message.c_str());
  for (const int opened : {self, ended, connection})
    if (opened >= 0) ::close(opened);
}

void ends_with(int code) noexcept {
  if (end_code != nullptr) end_code->store(code);
}

void call_at_exit(std::function<void(int)> function) {
  auto* const kept = new AtExit{::getpid(), std::move(function)};  // lives until the process has ended
  ::on_exit(
      [](int status, void* argument) {
        const auto* const at_exit = static_cast<const AtExit*>(argument);
        if (::getpid() == at_exit->process) at_exit->function(status);
      },
      kept);
}

}  // namespace hybridnet::group::mpi
