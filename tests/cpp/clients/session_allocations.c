/* Counts the allocations of a session and the locks that it takes.
 *
 *   session_allocations SYMBOL PARAMS RUNS NAME SIZE... [NAME SIZE...]
 *
 * Inputs are float32 arrays; their sizes follow their names. Runs the session 100 times, then RUNS times, and prints
 * for the latter the number of calls of malloc and similar functions, the number of locked mutexes, both over all
 * threads, and the microseconds of one run.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hybridnet/c_api.h"

static atomic_int counting;
static atomic_long allocations, locks;
static void count(void) {
  if (atomic_load_explicit(&counting, memory_order_relaxed)) atomic_fetch_add(&allocations, 1);
}

/* Aliases of the C library's functions. */
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  count();
  return __libc_calloc(n, size);
}
void* realloc(void* block, size_t size) {
  count();
  return __libc_realloc(block, size);
}
void* memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  count();
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static _Atomic(int (*)(pthread_mutex_t*)) found;
  int (*lock)(pthread_mutex_t*) = atomic_load_explicit(&found, memory_order_relaxed);
  if (!lock) {
    *(void**)&lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    atomic_store_explicit(&found, lock, memory_order_relaxed);
  }
  if (atomic_load_explicit(&counting, memory_order_relaxed)) atomic_fetch_add(&locks, 1);
  return lock(mutex);
}

static void check(int status) {
  if (status == 0) return;
  fprintf(stderr, "%s: %s\n", hn_last_error_kind(), hn_last_error());
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  HnModel model;
  check(hn_model_load(argv[1], argv[2], &model));
  const long runs = atol(argv[3]);
  size_t num_inputs;
  check(hn_model_num_inputs(model, &num_inputs));
  HnArray inputs[64];
  for (size_t i = 0; i < num_inputs && i < 64; ++i) {
    const char* name;
    check(hn_model_input_name(model, i, &name));
    int64_t shape[HN_MAX_NDIM];
    int ndim = 0, at = 4;
    while (at < argc && strcmp(argv[at], name) != 0) ++at;
    if (at == argc) return 3;
    for (++at; at < argc && argv[at][0] >= '0' && argv[at][0] <= '9'; ++at) shape[ndim++] = atoll(argv[at]);
    check(hn_array_create(shape, ndim, HN_FLOAT32, NULL, &inputs[i]));
  }
  HnSession session;
  HnArray output;
  check(hn_session_create(model, num_inputs, inputs, 0, NULL, &session));
  check(hn_session_output(session, 0, &output));
  int64_t size;
  check(hn_array_size(inputs[0], &size));
  float* data = malloc((size_t)size * sizeof(float));
  for (int64_t i = 0; i < size; ++i) data[i] = (float)(i % 17) / 17;
  int64_t out_size;
  check(hn_array_size(output, &out_size));
  float* result = malloc((size_t)out_size * sizeof(float));
  double begin = 0;
  for (long i = -100; i < runs; ++i) {
    if (i == 0) {
      begin = now();
      atomic_store(&counting, 1);
    }
    check(hn_array_copy_from(inputs[0], data, (size_t)size * sizeof(float)));
    check(hn_session_run(session));
    check(hn_array_copy_to(output, result, (size_t)out_size * sizeof(float)));
  }
  atomic_store(&counting, 0);
  printf("%ld allocations, %ld locks, %.2f us\n", atomic_load(&allocations), atomic_load(&locks),
         (now() - begin) / (double)runs);
  return 0;
}
