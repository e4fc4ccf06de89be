// `__cxa_atexit` of the copy of oneDNN, cmake/rebind_dnnl.py. Its static objects, most of them machine code that the
// first calls compile, are never destroyed: at the end of a process, threads may still run this code.
extern "C" int HNxa_atexit(void (*)(void*), void*, void*) { return 0; }
