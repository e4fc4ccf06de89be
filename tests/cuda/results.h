// Failures that the caller does not check. A function returns a number, and the stand-in cannot see whether it is
// read; so it asks for a sign: a caller that has seen a failure asks cuGetErrorName for its name, before its thread
// calls another function. Reported only where a test requires it (HNSTANDIN_CHECK_RESULTS).
// Threads: any; world().mutex is not needed.
#pragma once

#include "world.h"

namespace standin {

// Reports the failure that this thread has not asked about, at its next call.
void check_last_result(const char* function);
Result keep_result(const char* function, Result result);  // returns the result
void forget_result(Result result);                        // this thread asks for its name
void report_unchecked_results();                          // of all threads, at the end of a test

}  // namespace standin
