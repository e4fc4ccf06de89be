// How MPI starts and ends in a process.
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "group/transports/mpi_exit.h"
#include "group/transports/mpi_world.h"

namespace hybridnet::group::mpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto kTimeForOthers = milliseconds(1500);  // to say why they stop, once one of them failed

// The machine and the name space of a process: whether its number means anything to another one.
struct Identity {
  char host[64] = {};
  uint64_t numbers = 0;  // the name space of process numbers
  int64_t process = 0;

  static Identity of_this_process() {
    Identity own;
    ::gethostname(own.host, sizeof own.host - 1);
    struct stat state {};
    if (::stat("/proc/self/ns/pid", &state) == 0) own.numbers = state.st_ino;
    own.process = ::getpid();
    return own;
  }
  bool sees(const Identity& other) const {
    return numbers == other.numbers && std::memcmp(host, other.host, sizeof host) == 0;
  }
};

MPI_Comm processes_of(const TransportRequest& request) {
  if (request.communicator == 0) return MPI_COMM_WORLD;
  return MPI_Comm(request.communicator);  // an int in MPICH, a pointer in Open MPI
}

// The job has failed, whatever this process says.
void end_job(int status) { ends_with(std::max(status, 1)); }

}  // namespace

// ---- start

World& World::of(const TransportRequest& request) {
  static std::mutex mutex;
  static World* world = nullptr;
  const std::lock_guard lock(mutex);
  if (world == nullptr) world = new World(request);
  if (world->stopped_)
    throw std::runtime_error("a group of this process failed, and MPI cannot be used again in the same process");
  if (!world->connects(processes_of(request)))
    throw std::runtime_error(
        "a group of this process had the processes of another communicator, and MPI connects them "
        "once in a program");
  if (world->rank_ != request.rank || world->size_ != request.size)
    throw std::runtime_error("MPI says that this is process " + std::to_string(world->rank_) + " of " +
                             std::to_string(world->size_) + ", but the environment says " +
                             std::to_string(request.rank) + " of " + std::to_string(request.size) +
                             ": the program was started by the mpirun of another MPI");
  return *world;
}

World::World(const TransportRequest& request) {
  const auto end = Clock::now() + milliseconds(request.timeout_ms);
  initialize(request, end);
  connect(processes_of(request), end);
}

void World::require(int code, const char* call) const {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int bytes = 0;
  MPI_Error_string(code, text, &bytes);
  throw std::runtime_error(std::string(call) + ": " + text);
}

// MPI_Init waits for all processes without a deadline, so a thread of its own calls it.
void World::initialize(const TransportRequest& request, Clock::time_point end) {
  int is_initialized = 0, is_finalized = 0, threads = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  if (is_finalized != 0) throw std::runtime_error("MPI was ended by MPI_Finalize, and cannot start again");
  if (is_initialized != 0) {
    MPI_Query_thread(&threads);
    if (threads == MPI_THREAD_MULTIPLE) return;
    throw std::runtime_error("the program has initialized MPI without MPI_THREAD_MULTIPLE");
  }
  if (request.abort_descriptor >= 0)
    watch_by_child(request.abort_descriptor, "rank " + std::to_string(request.rank) + " of " +
                                                 std::to_string(request.size) + " (pid " + std::to_string(::getpid()) +
                                                 ")");
  struct Start {
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    int code = MPI_SUCCESS, threads = MPI_THREAD_SINGLE;
  };
  const auto start = std::make_shared<Start>();
  std::thread([start] {
    int provided = MPI_THREAD_SINGLE;
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    const std::lock_guard lock(start->mutex);
    start->code = code;
    start->threads = provided;
    start->over = true;
    start->changed.notify_all();
  }).detach();
  std::unique_lock lock(start->mutex);
  if (!start->changed.wait_until(lock, end, [&] { return start->over; })) {
    call_at_exit(&end_job);
    throw std::runtime_error("MPI_Init did not return in time: not all processes of the job have called it");
  }
  require(start->code, "MPI_Init_thread");
  if (start->threads < MPI_THREAD_SERIALIZED) throw std::runtime_error("this MPI supports no MPI_THREAD_SERIALIZED");
  owns_mpi_ = true;
  // Errors of requests go to one of these, whatever their communicator is.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

void World::finish_request(MPI_Request* request, Clock::time_point end, const char* what) {
  for (int done = 0;;) {
    require(MPI_Test(request, &done, MPI_STATUS_IGNORE), what);
    if (done != 0) return;
    if (Clock::now() >= end) throw std::runtime_error(std::string(what) + " did not finish in time");
    std::this_thread::sleep_for(microseconds(200));
  }
}

bool World::connects(MPI_Comm processes) const {
  int found = MPI_UNEQUAL;
  const std::lock_guard lock(mutex_);
  return MPI_Comm_compare(processes, all_, &found) == MPI_SUCCESS && (found == MPI_IDENT || found == MPI_CONGRUENT);
}

void World::connect(MPI_Comm processes, Clock::time_point end) {
  MPI_Comm_rank(processes, &rank_);
  MPI_Comm_size(processes, &size_);
  MPI_Request made = MPI_REQUEST_NULL;
  require(MPI_Comm_idup(processes, &all_, &made), "MPI_Comm_idup");
  finish_request(&made, end, "MPI_Comm_idup");
  MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  peers_.resize(static_cast<size_t>(size_));
  watch_peers(end);
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) listen(peer);
  call_at_exit([this](int status) {
    try {
      finish(status);
    } catch (const std::exception&) {  // MPI failed
      end_job(status);
    }
  });
}

// Opens descriptors that tell when a process of this machine has ended: MPI does not tell.
void World::watch_peers(Clock::time_point end) {
  const Identity own = Identity::of_this_process();
  std::vector<Identity> all(static_cast<size_t>(size_));
  MPI_Request made = MPI_REQUEST_NULL;
  require(MPI_Iallgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, all_, &made), "MPI_Iallgather");
  finish_request(&made, end, "MPI_Iallgather");
  for (int peer = 0; peer < size_; ++peer) {
    const Identity& other = all[static_cast<size_t>(peer)];
    if (peer == rank_ || !own.sees(other)) continue;
    Peer& known = peers_[static_cast<size_t>(peer)];
    known.ended_descriptor = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(other.process), 0));
    known.dead = known.ended_descriptor < 0 && errno == ESRCH;
  }
}

// ---- end

bool World::all_have_ended(bool* in_order) const {
  bool all = true;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const Peer& known = peers_[static_cast<size_t>(peer)];
    *in_order = *in_order && !known.dead && !known.failed;
    all = all && (known.dead || known.ended);
  }
  return all;
}

// Processes that end in order wait for each other, as MPI asks for, but without a core. After a failure mpirun ends all
// processes as soon as one has ended, so each gives the others a moment to say why they stop.
void World::finish(int status) {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (!owns_mpi_ || is_finalized != 0) return;
  bool in_order = status == 0;
  {
    const std::lock_guard lock(mutex_);
    in_order = in_order && !failed_;
    send_to_all({.kind = NoteHead::kEnd, .unfinished = !in_order});
  }
  auto end = Clock::time_point::max();
  for (;;) {
    if (!in_order && end == Clock::time_point::max()) end = Clock::now() + kTimeForOthers;
    {
      const std::lock_guard lock(mutex_);
      progress();
      if (all_have_ended(&in_order)) break;
    }
    if (Clock::now() >= end) break;
    std::this_thread::sleep_for(std::max(pause(), microseconds(100)));
  }
  const std::lock_guard lock(mutex_);
  if (in_order) MPI_Finalize();
  in_order ? ends_with(0) : end_job(status);
}

}  // namespace hybridnet::group::mpi
