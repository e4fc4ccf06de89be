// Device memory: a reserved range of addresses that host code cannot touch. The work that runs opens the allocations
// that it touches, for itself, and its accesses are kept.
// Threads: world().mutex; find() may be called by the fault handler of the thread that holds it.
#pragma once

#include "world.h"

namespace standin {

constexpr unsigned char kPoison = 0xff;  // NaN in every floating type

bool in_device_range(uintptr_t address);
// The allocation that contains an address (a freed one, too, until its pages go back); null if there is none.
Allocation* find(World& w, uintptr_t address);
// Null: no memory left.
Allocation* allocate(World& w, int64_t bytes, int device);
int64_t device_bytes();  // size of each device's memory
int64_t used_bytes(const World& w, int device);
// Marks it as freed; its pages go back when the streams have done what was pushed so far.
void release(World& w, Allocation& allocation, const std::string& by);
void collect_released(World& w);

// Makes an allocation accessible to the work that runs now.
void open(Allocation& allocation, Opened how);
// Protects what the work opened, and keeps its accesses: whole allocations.
void close_opened(const Work& work);
// Opens an allocation for a function that reads or writes bytes [begin, end) of it.
void access(Allocation& allocation, const Work& work, int64_t begin, int64_t end, bool write,
            const std::function<void(unsigned char*)>& body);
// Reads an allocation for a check of the stand-in itself: it is no access.
void peek(const Allocation& allocation, const std::function<void(const unsigned char*)>& body);
// Compares an access with those of other streams, and keeps it.
void note_access(Allocation& allocation, const Work& work, int64_t begin, int64_t end, bool write);

}  // namespace standin
