// Reports of wrong use: to stderr, and kept for hnstandin_reports(); failures that tests ask for.
// Threads: any; reports have a lock of their own.
#pragma once

#include <cstdint>
#include <string>

#include "world.h"

namespace standin {

void report(const std::string& text);
void report_in_child(const std::string& text);  // after a fork, when locks may be held for good: to stderr alone
void report_leaks(const World& w);
std::string describe(const Allocation& allocation);  // "allocation 7 at 0x..., 4096 bytes"
std::string hex(uint64_t value);

// The error that a test wants this call to return, or kSuccess.
Result injected_failure(const char* function);
const char* name_of(Result result);            // "CUDA_ERROR_OUT_OF_MEMORY"; null if unknown
Result result_named(const std::string& name);  // a name or a number; kUnknown if neither

}  // namespace standin
