// What the judge and the jail say to each other. Every message is a row of 64-bit little-endian words; the same
// numbers are written out in device/sandbox.py.
#pragma once

#include <cstdint>

namespace jail {

// First page of the arena: what a dying worker leaves for the judge. The kernel could write here too, so the judge
// reads it only to word a failure, never to grant anything.
struct Note {
    int64_t signal;   // signal that a handler saw, 0 if none
    int64_t address;  // faulting address, for SIGSEGV and SIGBUS
    int64_t error;    // errno at that moment; ENOMEM says that an allocation had been refused
    int64_t syscall;  // number of the system call that the filter stopped, -1 if none
    int64_t refused;  // allocations that `operator new` could not serve
};

// Judge -> worker, on the control pipe: [words that follow, command, ...].
enum Command : int64_t {
    DESCRIBE = 1,  // [slot, n_in, n_out, n_attr, tensors: (offset, dtype, ndim, shape..., strides...), attributes]
    CALL = 2,      // [token, count, slots...]: call the kernel once for each slot, one after the other
};

// Worker -> judge, on the reply pipe: once when the kernel is loaded (token READY), then once for each CALL.
constexpr int64_t READY = -1;
struct Reply {
    int64_t token;
    int64_t code;   // the kernel's return code; of the first call that did not return 0
    int64_t begin;  // CLOCK_MONOTONIC in ns
    int64_t end;
};

// Supervisor -> judge, on the status pipe: one Started, then one Ended. The worker never holds this pipe.
struct Started {
    int64_t pid;       // of the worker, in the judge's process namespace
    int64_t measures;  // bits of Measure: what is in force
};
struct Ended {
    int64_t status;  // as from wait(2)
    int64_t max_rss_kib;
    int64_t cpu_ns;
};

enum Measure : int64_t {
    USER_NAMESPACE = 1 << 0,
    MOUNT_NAMESPACE = 1 << 1,
    PID_NAMESPACE = 1 << 2,
    NET_NAMESPACE = 1 << 3,
    IPC_NAMESPACE = 1 << 4,
    PRIVATE_ROOT = 1 << 5,
    READ_ONLY_ROOT = 1 << 6,
    OWN_USER = 1 << 7,
    FILTER = 1 << 8,
    LANDLOCK = 1 << 9,
};

// Exit codes of the jail itself, beyond what a kernel is likely to choose; the judge tells them apart by the Ended
// message, which is there only when a worker had started.
enum Exit : int { BAD_USAGE = 120, SETUP_FAILED = 121, LOAD_FAILED = 122 };

}  // namespace jail
