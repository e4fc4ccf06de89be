// The driver's streams and events.
#include "driver.h"
#include "graphs.h"
#include "schedule.h"

namespace standin {

Stream* stream_of(World& w, void* handle, const char* function, Result* result) {
  *result = kInvalidContext;
  if (!t_context) return nullptr;
  // The legacy default stream, by its two names, and the default stream of the thread, which is the same one here.
  if (reinterpret_cast<uintptr_t>(handle) <= 2) {
    *result = kSuccess;
    return w.default_streams[static_cast<size_t>(t_context->device)];
  }
  *result = kInvalidHandle;
  for (const auto& stream : w.streams) {
    if (stream.get() != handle) continue;
    if (stream->destroyed) {
      report(std::string("stale stream: ") + function + " gets a destroyed stream");
      return nullptr;
    }
    *result = kSuccess;
    return stream.get();
  }
  report(std::string("stale stream: ") + function + " gets " + hex(reinterpret_cast<uintptr_t>(handle)) +
         ", which is no stream");
  return nullptr;
}

Event* event_of(World& w, void* handle, const char* function) {
  const auto found = w.events.find(static_cast<Event*>(handle));
  if (found != w.events.end() && !(*found)->destroyed) return *found;
  report(std::string("stale event: ") + function + " gets a " +
         (found == w.events.end() ? "handle that is no" : "destroyed") + " event");
  return nullptr;
}

}  // namespace standin

using namespace standin;

namespace {

// A stream that waits for an event of a capture belongs to the capture from then on.
Result wait_in_capture(Stream& stream, const Event& event) {
  Graph& graph = *event.captured_in;
  const bool ended = !graph.origin;
  if (ended || (stream.capture && stream.capture != &graph)) {
    report("stale event: cuStreamWaitEvent gets an event of a capture that ended, or of another one");
    return kCaptureIsolation;
  }
  if (!stream.capture) {
    if (lane_of(graph, stream) == graph.lanes.size()) add_lane(graph, &stream);
    stream.capture = &graph;
  }
  capture_wait(graph, stream, event.captured_lane, event.captured_steps);
  return kSuccess;
}

}  // namespace

extern "C" {

int cuStreamCreate(Stream** stream, unsigned) {
  return call(__func__, [&](World& w) {
    if (!t_context) return kInvalidContext;
    auto made = std::make_unique<Stream>();
    made->number = static_cast<int>(w.streams.size());
    made->context = t_context;
    *stream = made.get();
    w.streams.push_back(std::move(made));
    return kSuccess;
  });
}

// Queued work still runs.
int cuStreamDestroy_v2(Stream* handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamDestroy", &result);
    if (!stream) return result;
    stream->destroyed = true;
    return kSuccess;
  });
}

int cuStreamSynchronize(Stream* handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamSynchronize", &result);
    return stream ? synchronize(w, *stream) : result;
  });
}

// Each question lets one piece of work happen, so that a caller who polls comes to an end.
int cuStreamQuery(Stream* handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamQuery", &result);
    if (!stream) return result;
    if (stream->capture) return refuse_in_capture(*stream, "cuStreamQuery");
    if (stream->done < stream->pushed) run_one(w, stream);
    if (w.broken != kSuccess) return w.broken;
    if (stream->done < stream->pushed) return kNotReady;
    learn(w, stream->clock);
    return kSuccess;
  });
}

int cuStreamWaitEvent(Stream* handle, Event* event_handle, unsigned) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuStreamWaitEvent", &result);
    if (!stream) return result;
    Event* event = event_of(w, event_handle, "cuStreamWaitEvent");
    if (!event) return kInvalidHandle;
    if (!event->recorded) {
      report("stale event: cuStreamWaitEvent gets an event that was never recorded");
      return kSuccess;
    }
    if (event->captured_in) return wait_in_capture(*stream, *event);
    if (stream->capture) {
      refuse_in_capture(*stream, "cuStreamWaitEvent for an event from outside");
      return kCaptureIsolation;
    }
    join(stream->clock, event->clock);
    Work work;
    work.name = "cuStreamWaitEvent";
    work.waits_for = event->stream == stream ? nullptr : event->stream;
    work.waits_ticket = event->ticket;
    push(w, *stream, std::move(work));
    return kSuccess;
  });
}

int cuEventCreate(Event** event, unsigned) {
  return call(__func__, [&](World& w) {
    if (!t_context) return kInvalidContext;
    *event = *w.events.insert(new Event).first;
    (*event)->context = t_context;
    return kSuccess;
  });
}

int cuEventDestroy_v2(Event* handle) {
  return call(__func__, [&](World& w) {
    Event* event = event_of(w, handle, "cuEventDestroy");
    if (!event) return kInvalidHandle;
    event->destroyed = true;
    event->clock = {};
    return kSuccess;
  });
}

int cuEventRecord(Event* handle, Stream* stream_handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, stream_handle, "cuEventRecord", &result);
    if (!stream) return result;
    Event* event = event_of(w, handle, "cuEventRecord");
    if (!event) return kInvalidHandle;
    if (event->context != stream->context) {
      report("wrong context: cuEventRecord of an event of device " + std::to_string(event->context->device) +
             " in a stream of device " + std::to_string(stream->context->device));
      return kInvalidHandle;
    }
    event->recorded = true;
    event->captured_in = stream->capture;
    if (stream->capture) {
      event->captured_lane = lane_of(*stream->capture, *stream);
      event->captured_steps = stream->capture->lane_steps[event->captured_lane];
      return kSuccess;
    }
    event->stream = stream;
    event->ticket = stream->pushed;
    event->clock = stream->clock;
    return kSuccess;
  });
}

int cuEventQuery(Event* handle) {
  return call(__func__, [&](World& w) {
    Event* event = event_of(w, handle, "cuEventQuery");
    if (!event) return kInvalidHandle;
    if (!event->recorded) return kSuccess;
    if (event->captured_in) return kCapturedEvent;
    if (event->stream->done < event->ticket) run_one(w, event->stream);
    if (w.broken != kSuccess) return w.broken;
    if (event->stream->done < event->ticket) return kNotReady;
    learn(w, event->clock);
    return kSuccess;
  });
}

int cuEventSynchronize(Event* handle) {
  return call(__func__, [&](World& w) {
    Event* event = event_of(w, handle, "cuEventSynchronize");
    if (!event) return kInvalidHandle;
    if (!event->recorded) return kSuccess;
    if (event->captured_in) return kCapturedEvent;
    const Result result = run_until(w, *event->stream, event->ticket);
    learn(w, event->clock);
    return result;
  });
}

}  // extern "C"
