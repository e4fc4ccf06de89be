// The contract between kernel text that g++ compiled (host_kernels.h) and the stand-in library that runs it.
// Owner:   the compiled text owns its descriptors and built-in variables; the library owns the services.
// Threads: one kernel runs at a time, on the thread that holds the library's lock.
#ifdef HN_EMBED
HN_EMBED(host_interface)
#else
#pragma once

namespace hn_host {

constexpr unsigned kFinishedImage = 1;          // in e_flags of an image: it is a cubin, not PTX
constexpr unsigned kMaxDynamicShared = 232448;  // bytes of a block, on request (227 KiB)

struct Index3 {
  unsigned x, y, z;
};

// threadIdx, blockIdx, blockDim and gridDim of the running thread.
struct Builtins {
  Index3 thread, block, block_dim, grid_dim;
};

// The order in which `count` threads or blocks run: start, start + stride, start + 2 stride, ... modulo count.
struct Order {
  unsigned long long start, stride;
};

enum class Exchange : int { kXor, kDown, kUp, kIndex, kBallot, kWarpBarrier };
enum class SharedFault : int {
  kReadAfterWrite,   // another thread wrote the element in this epoch
  kWriteAfterWrite,  // the same, and this thread writes
  kWriteAfterRead,   // another thread read the element in this epoch
  kNeverWritten,     // read before any thread of the block wrote
  kOutOfRange,
};

// Codes beside the numbers of threads: several threads of a warp (added to its number), of several warps, atomics.
constexpr unsigned short kSeveralReaders = 0x4000, kAtomicWriter = 0xfffe;

// Functions and state of the library for block kernels. An epoch ends when all threads of the block passed a barrier.
struct Services {
  void (*barrier)(int line);
  unsigned long long (*exchange)(Exchange kind, unsigned mask, unsigned long long bits, int operand, int width,
                                 int line);
  void (*shared_fault)(const char* array, long long index, unsigned other, SharedFault fault);
  void (*trap)(const char* text);
  void (*set_condition)(unsigned long long handle, unsigned value);
  unsigned epoch;           // grows with every barrier and every block
  unsigned block_epoch;     // the first epoch of this block
  unsigned thread;          // number of the running thread in its block
  unsigned warp_epoch[32];  // grows with every __syncwarp of a warp
};

constexpr unsigned long long kKernelMagic = 0x484e4b45524e4c34ull;

// The place of a parameter among the arguments of a launch, in bytes.
struct Parameter {
  unsigned long long offset, bytes;
};

// The descriptor of one kernel: the symbol hn_kernel_<name>.
struct Kernel {
  unsigned long long magic;
  unsigned long long argument_bytes;
  bool cooperates;       // HN_BLOCK_KERNEL: run() runs one thread; else run() runs the whole grid
  unsigned max_threads;  // of a block
  Builtins* builtins;
  Services** services;
  void (*run)(const void* arguments, const Order& blocks, const Order& threads);
  const Parameter* parameters;  // null unless HN_PLAIN_KERNEL declares the kernel
  unsigned parameter_count;
};

}  // namespace hn_host
#endif
