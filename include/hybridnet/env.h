// Every environment variable of the project. src/base/env.cc reads each of them once; no other file reads any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hybridnet {

// Values of HYBRIDNET_MAX_ISA, from the narrowest instruction set to the widest.
inline constexpr std::string_view kIsaWords[] = {"sse4", "avx2", "avx512", "avx512_bf16", "amx"};
// HYBRIDNET_MAX_ISA when the library was loaded, valid or not: the only variable that is needed so early.
const std::string& max_isa_at_load();

struct Environment {
  // HYBRIDNET_ENGINE_TYPE (else MXNET_ENGINE_TYPE): ThreadedEnginePerDevice | ThreadedEngine | NaiveEngine
  std::string engine_type;
  int num_threads = 0;                // HYBRIDNET_NUM_THREADS, else OMP_NUM_THREADS; 0: all cores
  int workers = 0;                    // HYBRIDNET_CPU_WORKER_NTHREADS; 0: default
  int64_t inline_limit_ns = 100'000;  // HYBRIDNET_INLINE_LIMIT_US: tasks declared cheaper run inline; 0: none does
  std::string max_isa;                // HYBRIDNET_MAX_ISA: one of kIsaWords; empty: the widest of the machine
  // HYBRIDNET_POOL_LIMIT_MB: above this much pooled memory, blocks go back to the system; -1: no limit
  int64_t pool_reserve_mb = -1;
  // HYBRIDNET_PACKED_LIMIT_MB: memory for packed weights and other data derived from parameters; -1: no limit
  int64_t packed_limit_mb = -1;
  // HYBRIDNET_MAP_PARAMS: large parameters are mapped from their file instead of copied (load_arrays)
  bool map_params = true;
  int plan_limit = 32;  // HYBRIDNET_PLAN_LIMIT: plans that a graph keeps, one per signature of its inputs
  // HYBRIDNET_PLAN_LIMIT_MB: memory of these plans, without the arena that they share; -1: no limit
  int64_t plan_limit_mb = 256;
  // HYBRIDNET_RUN_AHEAD_MS: threads that push work wait while tasks of more than this declared time are queued;
  // -1: they never wait
  int64_t run_ahead_ns = 50'000'000;
  // HYBRIDNET_LOOP_MODE: auto | inline | ahead; how independent iterations of a loop run
  std::string loop_mode = "auto";
  int loop_ahead = 0;            // HYBRIDNET_LOOP_AHEAD: number of iterations that may run at once; 0: one per core
  std::string passes;            // HYBRIDNET_PASSES: pipeline query
  bool pass_dump = false;        // HYBRIDNET_PASS_DUMP
  std::string on_rewrite_error;  // HYBRIDNET_ON_REWRITE: warn | raise | ignore
  // HYBRIDNET_STRICT: errors instead of warnings for mistakes that MXNet accepts silently
  bool strict = false;
  // HYBRIDNET_JIT: 0: no machine code is made; 1: small loops that have run often are compiled in the background;
  // now: they are compiled before their first run
  std::string jit = "1";
  std::string c_compiler;  // HYBRIDNET_CC: the C compiler for this code; empty: cc, gcc or clang, the first in PATH
  std::string cache;  // HYBRIDNET_CACHE: folder of this code; else hybridnet in XDG_CACHE_HOME or ~/.cache; empty: none
  // HYBRIDNET_CUDA_DRIVER: the file of the CUDA driver; empty: libcuda.so.1; none: no GPU; stand-in: the tests' driver
  std::string cuda_driver;
  std::string cuda_path;    // HYBRIDNET_CUDA_PATH: folders of CUDA's libraries, separated by colons; searched first
  bool cuda_sync = false;   // HYBRIDNET_CUDA_SYNC: each kernel of a GPU is waited for, so that errors name it
  bool cuda_check = false;  // HYBRIDNET_CUDA_CHECK: kernels of operators on a GPU run on the CPU, too, and are compared
  bool cuda_graphs = true;  // HYBRIDNET_CUDA_GRAPHS: a plan that repeats its kernels on a GPU runs as CUDA graphs
  // HYBRIDNET_CUDA_LIBRARIES: the optional libraries of a GPU that are used, with commas between; 0: none, 1: all
  bool cuda_cublas_lt = true;  // cublaslt
  bool cuda_cudnn = true;      // cudnn
  // HYBRIDNET_GPU_FALLBACK: warn | error | ignore; operators of a GPU that run on the CPU, with copies
  std::string gpu_fallback = "warn";
  // The place of this process in a group of processes, as launchers set it (docs/distributed.md):
  int group_rank = 0;            // HYBRIDNET_GROUP_RANK, else that of MPI
  int group_size = 1;            // HYBRIDNET_GROUP_SIZE, else that of MPI
  int group_shards = 0;          // HYBRIDNET_GROUP_SHARDS: parts of sums; 0: one for each process
  std::string group_store;       // HYBRIDNET_GROUP_STORE: where the processes meet, folder:/PATH or tcp://HOST:PORT
  std::string group_token_file;  // HYBRIDNET_GROUP_TOKEN_FILE: the secret of the job, readable by its owner only
  std::string group_name = "0";  // HYBRIDNET_GROUP_NAME: distinguishes the groups that meet there, one after the other
  // HYBRIDNET_GROUP_ADDRESS: the address of this machine that others can reach, a name or an IP
  std::string group_address = "127.0.0.1";
  // HYBRIDNET_GROUP_ENGINE: moves the bytes; gloo, or mpich or openmpi if their mpirun has started this process
  std::string group_engine = "gloo";
  std::string mpi_library;        // HYBRIDNET_MPI_LIBRARY: file of the MPI; empty: that of the mpirun
  int mpi_abort_descriptor = -1;  // PMI_FD: the connection to MPICH's mpirun; -1: another launcher
  // HYBRIDNET_GROUP_TIMEOUT: seconds that a process waits for another one before that is an error
  int64_t group_timeout_ms = 60'000;
  std::string path;  // PATH
  std::string home;  // HYBRIDNET_HOME (else MXNET_HOME): data and model cache
};
const Environment& environment();  // read at first use

// Sets a variable that another library reads while it is loaded, unless value is null. The destructor restores the old
// value, so that child processes and other copies of that library do not see the new one.
class TemporaryVariable {
 public:
  TemporaryVariable(const char* name, const char* value);
  ~TemporaryVariable();
  TemporaryVariable(const TemporaryVariable&) = delete;

 private:
  const char* name_;  // null: nothing was set
  std::optional<std::string> before_;
};

}  // namespace hybridnet
