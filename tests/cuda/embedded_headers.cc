#include "embedded_headers.h"

// A header includes its own file as bytes where it is compiled with HN_EMBED: __FILE__ is its path there.
#define HN_EMBED(name)                                                                                  \
  asm(".pushsection .rodata\n.globl hnstandin_" #name "\n.hidden hnstandin_" #name "\nhnstandin_" #name \
      ":\n.incbin \"" __FILE__ "\"\n.byte 0\n.popsection\n");
#include "host_interface.h"
#include "host_intrinsics.h"
#include "host_kernels.h"
#include "host_shared.h"

extern "C" {
extern const char hnstandin_host_interface[] __attribute__((visibility("hidden")));
extern const char hnstandin_host_intrinsics[] __attribute__((visibility("hidden")));
extern const char hnstandin_host_kernels[] __attribute__((visibility("hidden")));
extern const char hnstandin_host_shared[] __attribute__((visibility("hidden")));
}

namespace standin {

const std::vector<EmbeddedHeader>& embedded_headers() {
  static const auto& all = *new std::vector<EmbeddedHeader>{
      {"host_interface.h", hnstandin_host_interface},
      {"host_intrinsics.h", hnstandin_host_intrinsics},
      {"host_kernels.h", hnstandin_host_kernels},
      {"host_shared.h", hnstandin_host_shared},
  };
  return all;
}

}  // namespace standin
