// The objects behind the handles of c_api.h. A handle is not a pointer but a kind, a table index and a generation: a
// handle that was freed, has another kind or was never issued causes an error, not a crash.
#pragma once

#include <memory>
#include <utility>

namespace hybridnet::c_api {

enum class HandleKind : unsigned char { kNone, kArray, kModel, kOp, kSession, kBatcher, kTrainer };

// Base of objects with handles. A derived class has a member `static constexpr HandleKind kKind`.
class Handled {
 public:
  virtual ~Handled() = default;
};

namespace detail {
struct Slot;
void* add(HandleKind kind, std::unique_ptr<Handled> object);
// Keeps the object alive until unpin(), even if the handle is freed. Throws ValueError for invalid handles.
Slot* pin(const void* handle, HandleKind kind, const char* function, const char* argument);
void unpin(Slot* slot) noexcept;
Handled* object_of(const Slot* slot);
void free(const void* handle, HandleKind kind, const char* function);
}  // namespace detail

// Returns a new handle, which the caller of the C function must free.
template <typename T>
void* make_handle(std::unique_ptr<T> object) {
  return detail::add(T::kKind, std::move(object));
}

// Frees the handle; the object is destroyed when no call uses it any more. NULL is allowed; throws ValueError for other
// invalid handles.
template <typename T>
void free_handle(const void* handle, const char* function) {
  detail::free(handle, T::kKind, function);
}

// Gives access to the object of a handle and keeps it alive. Throws ValueError naming function and argument.
template <typename T>
class Pinned {
 public:
  Pinned(const void* handle, const char* function, const char* argument)
      : slot_(detail::pin(handle, T::kKind, function, argument)) {}
  ~Pinned() { detail::unpin(slot_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  T* operator->() const { return static_cast<T*>(detail::object_of(slot_)); }
  T& operator*() const { return *operator->(); }

 private:
  detail::Slot* slot_;
};

}  // namespace hybridnet::c_api
