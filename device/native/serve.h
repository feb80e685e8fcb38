// The worker: loads one shared object and calls it when told. It holds no expected value and judges nothing.
#pragma once

#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <vector>

#include "../languages/sagebook_kernel.h"
#include "protocol.h"

namespace jail {

using Entry = int (*)(const sb_tensor *, int64_t, sb_tensor *, int64_t, const double *, int64_t);

inline Note *note = nullptr;

inline int64_t now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

// Leave what is known about a fatal signal in the note, then let the signal do its work.
inline void on_fatal(int signal, siginfo_t *info, void *) {
    const int error = errno;
    if (note && !note->signal) {
        note->signal = signal;
        note->error = error;
        note->address = (signal == SIGSEGV || signal == SIGBUS) ? reinterpret_cast<int64_t>(info->si_addr) : 0;
        if (signal == SIGSYS) note->syscall = info->si_syscall;
    }
    struct sigaction plain {};
    plain.sa_handler = SIG_DFL;
    sigaction(signal, &plain, nullptr);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    raise(signal);
}

inline void watch_signals() {
    static char stack[1 << 16];
    const stack_t alternate = {stack, 0, sizeof stack};
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fatal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGXCPU, SIGXFSZ})
        sigaction(signal, &action, nullptr);
}

inline void out_of_memory() {
    if (note) ++note->refused;
    throw std::bad_alloc();
}

// What one slot of the arena holds; kept apart from what the kernel is given, which is copied out anew for each call.
struct Slot {
    std::vector<sb_tensor> inputs, outputs;
    std::vector<int64_t> sizes;  // shape and strides of all tensors, end to end
    std::vector<double> attributes;
};

struct Call {
    std::vector<sb_tensor> inputs, outputs;
    std::vector<int64_t> sizes;
    std::vector<double> attributes;

    explicit Call(const Slot &slot)
        : inputs(slot.inputs), outputs(slot.outputs), sizes(slot.sizes), attributes(slot.attributes) {
        size_t at = 0;
        for (auto *tensors : {&inputs, &outputs})
            for (sb_tensor &t : *tensors) {
                t.shape = sizes.data() + at;
                t.strides = sizes.data() + at + t.ndim;
                at += 2 * t.ndim;
            }
    }
    int run(Entry entry) {
        return entry(inputs.data(), static_cast<int64_t>(inputs.size()), outputs.data(),
                     static_cast<int64_t>(outputs.size()), attributes.data(), static_cast<int64_t>(attributes.size()));
    }
};

inline bool read_words(int fd, int64_t *words, size_t count) {
    char *at = reinterpret_cast<char *>(words);
    for (size_t left = count * sizeof(int64_t); left;) {
        const ssize_t n = read(fd, at, left);
        if (n <= 0) {
            if (n < 0 && errno == EINTR) continue;
            return false;
        }
        at += n;
        left -= static_cast<size_t>(n);
    }
    return true;
}

inline void describe(std::map<int64_t, Slot> &slots, const std::vector<int64_t> &message, char *arena) {
    Slot slot;
    size_t at = 5;
    for (int side = 0; side < 2; ++side)
        for (int64_t i = 0; i < message[2 + side]; ++i) {
            sb_tensor t = {arena + message[at], message[at + 2], nullptr, nullptr, static_cast<int32_t>(message[at + 1])};
            at += 3;
            slot.sizes.insert(slot.sizes.end(), message.begin() + at, message.begin() + at + 2 * t.ndim);
            at += 2 * t.ndim;
            (side ? slot.outputs : slot.inputs).push_back(t);
        }
    slot.attributes.resize(message[4]);
    if (message[4]) memcpy(slot.attributes.data(), message.data() + at, message[4] * sizeof(double));
    slots[message[1]] = std::move(slot);
}

// What a kernel finds on the stack where it never wrote: the same byte as in fresh memory of the heap.
inline int fill() {
    const char *asked = getenv("MALLOC_PERTURB_");
    return asked ? ~atoi(asked) & 0xff : 0;
}

__attribute__((noinline)) inline void fill_stack(int byte) {
    volatile char room[128 << 10];
    for (size_t i = 0; i < sizeof room; ++i) room[i] = static_cast<char>(byte);
}

// Answers commands until the control pipe closes. After each reply the whole process stops until the judge wakes it: no
// thread works on after the clock has stopped, or on the next inputs before it starts.
inline int serve(Entry entry, int control, int reply, char *arena) {
    std::map<int64_t, Slot> slots;
    std::vector<int64_t> message;
    const int byte = fill();
    const Reply ready = {READY, 0, 0, 0};
    if (write(reply, &ready, sizeof ready) != sizeof ready) return BAD_USAGE;
    for (int64_t length; read_words(control, &length, 1);) {
        message.resize(length);
        if (!read_words(control, message.data(), length)) return BAD_USAGE;
        if (message[0] == DESCRIBE) {
            describe(slots, message, arena);
            continue;
        }
        std::vector<Call> calls;
        for (int64_t i = 0; i < message[2]; ++i) calls.emplace_back(slots.at(message[3 + i]));
        Reply answer = {message[1], 0, 0, 0};
        if (byte) fill_stack(byte);
        answer.begin = now_ns();
        for (Call &call : calls) {
            const int code = call.run(entry);
            if (code && !answer.code) answer.code = code;
        }
        answer.end = now_ns();
        if (write(reply, &answer, sizeof answer) != sizeof answer) return BAD_USAGE;
        kill(getpid(), SIGSTOP);
    }
    return 0;
}

}  // namespace jail
