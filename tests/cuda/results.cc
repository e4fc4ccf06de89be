#include "results.h"

#include <atomic>
#include <map>
#include <thread>

#include "reports.h"

namespace standin {
namespace {

struct Failed {
  std::string function;
  Result result;
};
struct Unchecked {
  std::mutex mutex;
  std::map<std::thread::id, Failed> last;
};
Unchecked& unchecked() {
  static Unchecked& it = *new Unchecked;
  return it;
}
std::atomic<bool>& is_required() {
  static std::atomic<bool> it = setting("HNSTANDIN_CHECK_RESULTS", 0) != 0;
  return it;
}

std::string text_of(const Failed& failed) {
  const char* const name = name_of(failed.result);
  return "unchecked failure: " + failed.function + " returned " + (name ? name : std::to_string(failed.result)) +
         ", and its thread ";
}

}  // namespace

void check_last_result(const char* function) {
  if (!is_required()) return;
  Unchecked& all = unchecked();
  const std::lock_guard lock(all.mutex);
  const auto found = all.last.find(std::this_thread::get_id());
  if (found == all.last.end()) return;
  report(text_of(found->second) + "called " + function + " without having looked at it");
  all.last.erase(found);
}

// Not ready is an answer, no failure.
Result keep_result(const char* function, Result result) {
  if (result == kSuccess || result == kNotReady || !is_required()) return result;
  Unchecked& all = unchecked();
  const std::lock_guard lock(all.mutex);
  all.last[std::this_thread::get_id()] = {function, result};
  return result;
}

void forget_result(Result result) {
  Unchecked& all = unchecked();
  const std::lock_guard lock(all.mutex);
  const auto found = all.last.find(std::this_thread::get_id());
  if (found != all.last.end() && found->second.result == result) all.last.erase(found);
}

void report_unchecked_results() {
  Unchecked& all = unchecked();
  const std::lock_guard lock(all.mutex);
  for (const auto& [thread, failed] : all.last) report(text_of(failed) + "has not looked at it");
  all.last.clear();
}

}  // namespace standin

// Whether unchecked failures are reported from now on.
extern "C" void hnstandin_check_results(int required) {
  standin::is_required() = required != 0;
  const std::lock_guard lock(standin::unchecked().mutex);
  standin::unchecked().last.clear();
}
