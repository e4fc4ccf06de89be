#include "schedule.h"

#include <algorithm>

#include "graphs.h"
#include "memory.h"
#include "reports.h"

namespace standin {
namespace {

bool can_run(const Stream& stream) {
  if (stream.queue.empty()) return false;
  const Work& work = stream.queue.front();
  return !work.waits_for || work.waits_for->done >= work.waits_ticket;
}

void run_front(World& w, Stream& stream) {
  Work& work = stream.queue.front();
  if ((work.run || work.launch) && w.broken == kSuccess) {
    const Result result = work.launch ? run_launch(w, *work.launch) : work.run(work);
    if (result != kSuccess) w.broken = result;
    close_opened(work);
  }
  stream.done = work.ticket;
  stream.queue.pop_front();
}

bool run_random(World& w) {
  std::vector<Stream*> ready;
  for (const auto& stream : w.streams)
    if (can_run(*stream)) ready.push_back(stream.get());
  if (ready.empty()) return false;
  run_front(w, *ready[w.random() % ready.size()]);
  return true;
}

void maybe_run_some(World& w) {
  if (!w.random_order) return;
  while (w.random() % 3 == 0 && run_random(w)) {
  }
}

}  // namespace

uint64_t push(World& w, Stream& stream, Work work) {
  if (stream.capture) {
    capture(*stream.capture, stream, std::move(work));
    return 0;
  }
  work.ticket = ++stream.pushed;
  work.stream = stream.number;
  join(stream.clock, w.known);
  const auto self = static_cast<size_t>(stream.number);
  if (stream.clock.size() <= self) stream.clock.resize(self + 1, 0);
  stream.clock[self] = work.ticket;
  work.clock = stream.clock;
  const uint64_t ticket = work.ticket;
  stream.queue.push_back(std::move(work));
  maybe_run_some(w);
  return ticket;
}

Result run_until(World& w, Stream& stream, uint64_t ticket) {
  while (stream.done < ticket && !stream.queue.empty()) {
    maybe_run_some(w);
    if (stream.done >= ticket || stream.queue.empty()) break;
    const Work& work = stream.queue.front();
    if (work.waits_for) run_until(w, *work.waits_for, work.waits_ticket);
    if (stream.done < ticket && can_run(stream)) run_front(w, stream);
  }
  return w.broken;
}

bool run_one(World& w, Stream* preferred) {
  if (!w.random_order && preferred) {
    Stream* stream = preferred;
    for (size_t depth = 0; depth <= w.streams.size() && !can_run(*stream); ++depth) {
      if (stream->queue.empty()) return false;
      stream = stream->queue.front().waits_for;
    }
    if (!can_run(*stream)) return false;
    run_front(w, *stream);
    return true;
  }
  return run_random(w);
}

Result refuse_in_capture(Stream& stream, const char* what) {
  stream.capture->invalid = true;
  report(std::string("graph: ") + what + " in the capture of a stream");
  return kCaptureUnsupported;
}

void learn(World& w, const Clock& clock) { join(w.known, clock); }

Result synchronize(World& w, Stream& stream) {
  if (stream.capture) return refuse_in_capture(stream, "a wait");
  const Clock clock = stream.clock;
  const Result result = run_until(w, stream, stream.pushed);
  learn(w, clock);
  collect_released(w);
  return result;
}

}  // namespace standin
