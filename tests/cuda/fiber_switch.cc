#include "fiber_switch.h"

#include <cstdint>

#if defined(__x86_64__)

// hnstandin_switch(void** save, void* load): keeps the registers that a function must keep, on the stack.
// hnstandin_start: the first return of a fiber comes here, with its function in rbx and the argument in r12.
asm(R"(
.pushsection .text
.globl hnstandin_switch
.hidden hnstandin_switch
.type hnstandin_switch, @function
hnstandin_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size hnstandin_switch, .-hnstandin_switch
.globl hnstandin_start
.hidden hnstandin_start
.type hnstandin_start, @function
hnstandin_start:
  movq %r12, %rdi
  call *%rbx
  ud2
.size hnstandin_start, .-hnstandin_start
.popsection
)");
extern "C" void hnstandin_switch(void** save, void* load);
extern "C" void hnstandin_start();

namespace standin {

void Fiber::prepare(char* stack, size_t bytes, Entry entry, void* argument) {
  auto** top = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t{15});
  *--top = nullptr;  // keeps the alignment that a call has
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(hnstandin_start);
  *--top = nullptr;                         // rbp
  *--top = reinterpret_cast<void*>(entry);  // rbx
  *--top = argument;                        // r12
  for (int i = 0; i < 3; ++i) *--top = nullptr;
  fiber_ = top;
}
void Fiber::resume() { hnstandin_switch(&owner_, fiber_); }
void Fiber::pause() { hnstandin_switch(&fiber_, owner_); }

}  // namespace standin

#else

namespace standin {
namespace {
void start(unsigned entry_low, unsigned entry_high, unsigned low, unsigned high) {
  const auto entry = static_cast<uintptr_t>(entry_low) | static_cast<uintptr_t>(entry_high) << 32;
  const auto argument = static_cast<uintptr_t>(low) | static_cast<uintptr_t>(high) << 32;
  reinterpret_cast<Fiber::Entry>(entry)(reinterpret_cast<void*>(argument));
}
}  // namespace

void Fiber::prepare(char* stack, size_t bytes, Entry entry, void* argument) {
  getcontext(&fiber_);
  fiber_.uc_stack.ss_sp = stack;
  fiber_.uc_stack.ss_size = bytes;
  fiber_.uc_link = nullptr;
  const auto e = reinterpret_cast<uintptr_t>(entry), a = reinterpret_cast<uintptr_t>(argument);
  makecontext(&fiber_, reinterpret_cast<void (*)()>(start), 4, static_cast<unsigned>(e), static_cast<unsigned>(e >> 32),
              static_cast<unsigned>(a), static_cast<unsigned>(a >> 32));
}
void Fiber::resume() { swapcontext(&owner_, &fiber_); }
void Fiber::pause() { swapcontext(&fiber_, &owner_); }

}  // namespace standin

#endif
