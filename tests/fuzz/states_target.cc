// Untrusted files of optimizer states: a trainer that accepts one continues training and saves it again. Training files
// (gluon.save_training) contain these and .params files behind checksums, which tests/python/hostile repairs.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz.h"

namespace {

// The parameters for the files of corpora.py.
struct Parameters {
  Parameters() {
    const HnTensorSpec specs[] = {{{4}, 1, HN_FLOAT32}, {{3, 2}, 2, HN_FLOAT32}, {{2, 2}, 2, HN_FLOAT16}};
    for (size_t i = 0; i < 3; ++i) {
      hn_array_create(specs[i].shape, specs[i].ndim, specs[i].dtype, nullptr, arrays[i].out());
      handles[i] = arrays[i].get();
    }
  }
  const char* names[3] = {"bias", "table", "thin"};
  fuzz::Array arrays[3];
  HnArray handles[3];
};

void backward(const Parameters& parameters) {
  HnArray heads[3] = {};
  fuzz::Array owned[3];
  const char *key = "scalar", *value = "0.5";
  hn_autograd_set_recording(1, nullptr);
  for (size_t i = 0; i < 3; ++i) {
    size_t room = 1;
    hn_invoke("_mul_scalar", 1, &key, &value, 1, &parameters.handles[i], &room, owned[i].out());
    heads[i] = owned[i].get();
  }
  hn_autograd_set_recording(0, nullptr);
  hn_autograd_backward(3, heads, nullptr, 0, 1);
}

// A file in memory that has a path.
class File {
 public:
  File() : descriptor_(memfd_create("states", 0)) {}
  ~File() { close(descriptor_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  bool write(const uint8_t* data, size_t size) const {
    return ::write(descriptor_, data, size) == static_cast<ssize_t>(size);
  }

 private:
  int descriptor_;
};

void train_on(HnTrainer trainer, const Parameters& parameters) {
  double rate = 0;
  for (int step = 0; step < 2; ++step) {
    backward(parameters);
    hn_trainer_learning_rate(trainer, &rate);
    hn_trainer_step(trainer, 2, 0);
  }
  hn_wait_all();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string saved = "/dev/shm/hybridnet-fuzz-" + std::to_string(getpid()) + ".states";
  const File file;
  if (!file.write(data, size)) return 0;
  for (const char* multi_precision : {"False", "True"}) {
    const Parameters parameters;
    const char* key = "multi_precision";
    fuzz::Trainer trainer;
    if (hn_trainer_create(3, parameters.names, parameters.handles, "sgd", 1, &key, &multi_precision, trainer.out()) !=
        0)
      abort();
    if (hn_trainer_load_states(trainer.get(), file.path().c_str()) != 0) continue;
    // If a trainer accepts states, it can also write them, and read them again.
    if (hn_trainer_save_states(trainer.get(), saved.c_str()) != 0 ||
        hn_trainer_load_states(trainer.get(), saved.c_str()) != 0) {
      std::fprintf(stderr, "%s: %s\n", hn_last_error_kind(), hn_last_error());
      abort();
    }
    train_on(trainer.get(), parameters);
    hn_trainer_save_states(trainer.get(), saved.c_str());
  }
  std::remove(saved.c_str());
  return 0;
}
