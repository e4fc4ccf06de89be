// Modules of compiled kernels, and their launches.
// Threads: world().mutex.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host_interface.h"
#include "world.h"

namespace standin {

struct Module;
struct Function {
  Module* module = nullptr;
  std::string name;
  hn_host::Kernel* kernel = nullptr;
  unsigned max_dynamic_shared = 48 << 10;  // bytes; cuFuncSetAttribute raises it
};

struct Module {
  Context* context = nullptr;
  void* library = nullptr;  // null: unloaded
  Clock used;               // its launches
  std::map<std::string, std::unique_ptr<Function>> functions;
};

// A launch: the arguments are copied when it is made.
struct Launch {
  Function* function = nullptr;
  hn_host::Index3 grid{}, block{};
  std::vector<std::max_align_t> arguments;

  // from: the address of each parameter's value.
  void copy_arguments(void* const* from);
};

Module* load_module(const void* image);  // null: not an image of nvrtc.cc, or it cannot be loaded
Function* find_function(Module& module, const std::string& name);
// kSuccess, or why a GPU would refuse it.
Result check_launch(const Launch& launch);
Result run_launch(World& w, Launch& launch);

}  // namespace standin
