// The system calls that a kernel may make. Two filters: a wide one while the shared object is loaded (its constructors
// already run under it), then a narrow one that opens nothing and maps no new code.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

namespace jail {

class Filter {
  public:
    explicit Filter(int reply_fd) : reply_fd_(reply_fd) {
#if defined(__x86_64__)
        const uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
        const uint32_t machine = AUDIT_ARCH_AARCH64;
#else
#error "the jail knows the system calls of x86-64 and aarch64 only"
#endif
        load(offsetof(seccomp_data, arch));
        jump_equal(machine, 1, 0);
        give(SECCOMP_RET_KILL_PROCESS);
        load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));  // the x32 calls
        give(SECCOMP_RET_KILL_PROCESS);
#endif
    }

    // Whether this machine filters system calls at all: without a program the answer is EFAULT, else EINVAL.
    static bool known() {
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr) != 0 && errno == EFAULT;
    }

    void allow(int number) {
        jump_equal(number, 0, 1);
        give(SECCOMP_RET_ALLOW);
    }
    void fail(int number, int error) {
        jump_equal(number, 0, 1);
        give(SECCOMP_RET_ERRNO | error);
    }
    // Allowed (or `then`) when (argument & mask) == value, else `otherwise`.
    void allow_if(int number, int argument, uint32_t mask, uint32_t value, uint32_t otherwise = SECCOMP_RET_TRAP,
                  uint32_t then = SECCOMP_RET_ALLOW) {
        jump_equal(number, 0, 5);
        load(offsetof(seccomp_data, args) + 8 * argument);
        code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
        jump_equal(value, 0, 1);
        give(then);
        give(otherwise);
    }

    // `instrumented`: a sanitizer in the process asks in old ways for files of /proc, and is told that there are none.
    bool install(bool loading, bool instrumented) {
        const int free_calls[] = {
            SYS_read,         SYS_munmap,        SYS_mremap,         SYS_madvise,       SYS_brk,
            SYS_futex,        SYS_set_robust_list, SYS_exit,         SYS_exit_group,    SYS_sched_yield,
            SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_getrandom, SYS_clock_gettime, SYS_clock_getres,
            SYS_clock_nanosleep, SYS_nanosleep,  SYS_gettimeofday,   SYS_getpid,        SYS_gettid,
            SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,   SYS_getcpu,        SYS_membarrier,
            SYS_sysinfo,      SYS_uname,         SYS_get_mempolicy,  SYS_restart_syscall, SYS_getrusage,
            SYS_rt_sigaction, SYS_close,         SYS_rt_sigsuspend,  SYS_ppoll,
#ifdef SYS_rseq
            SYS_rseq,
#endif
#ifdef SYS_pause
            SYS_pause,        SYS_poll,
#endif
#ifdef SYS_time
            SYS_time,
#endif
#ifdef SYS_arch_prctl
            SYS_arch_prctl,
#endif
        };
        for (int number : free_calls) allow(number);
        // Writing: standard output and error (both bounded), and the reply pipe. glibc's stdio asks fstat and ioctl.
        jump_equal(SYS_write, 0, 6);
        load(offsetof(seccomp_data, args));
        jump_equal(1, 2, 0);
        jump_equal(2, 1, 0);
        jump_equal(reply_fd_, 0, 1);
        give(SECCOMP_RET_ALLOW);
        give(SECCOMP_RET_TRAP);
        jump_equal(SYS_writev, 0, 4);
        load(offsetof(seccomp_data, args));
        jump_equal(2, 0, 1);
        give(SECCOMP_RET_ALLOW);
        give(SECCOMP_RET_TRAP);
        // Threads, never processes. clone3 hides its flags behind a pointer: glibc falls back to clone.
        allow_if(SYS_clone, 0, CLONE_THREAD | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET, CLONE_THREAD);
        fail(SYS_clone3, ENOSYS);
        // Signals to this process only, so that abort() works.
        allow_if(SYS_tgkill, 0, 0xffffffff, static_cast<uint32_t>(getpid()));
        allow_if(SYS_kill, 0, 0xffffffff, static_cast<uint32_t>(getpid()));
        allow_if(SYS_prlimit64, 2, 0xffffffff, 0, SECCOMP_RET_ERRNO | EPERM);  // reading a limit
        fail(SYS_ioctl, ENOTTY);
        fail(SYS_mbind, EPERM);
        if (instrumented) {
#ifdef SYS_open
            fail(SYS_open, ENOENT);
            fail(SYS_readlink, ENOENT);
            fail(SYS_stat, ENOENT);
#endif
            fail(SYS_readlinkat, ENOENT);
            fail(SYS_getppid, EPERM);
            fail(SYS_pipe2, EMFILE);
        }
        const uint32_t writing = O_ACCMODE | O_CREAT | O_TRUNC;
        if (loading) {
            allow_if(SYS_openat, 2, writing, 0);
            allow_if(SYS_prctl, 0, 0xffffffff, PR_SET_SECCOMP, SECCOMP_RET_ERRNO | EPERM);
            for (int number : {SYS_mmap, SYS_mprotect, SYS_fstat, SYS_lseek, SYS_pread64, SYS_newfstatat}) allow(number);
#ifdef SYS_access
            fail(SYS_access, ENOENT);
#endif
            fail(SYS_readlinkat, ENOENT);
        } else {
            allow_if(SYS_mmap, 2, PROT_EXEC, 0);
            allow_if(SYS_mprotect, 2, PROT_EXEC, 0);
            // Looking at /sys or /proc (glibc counts processors there) finds nothing; asking to write is refused.
            allow_if(SYS_openat, 2, writing, 0, SECCOMP_RET_TRAP, SECCOMP_RET_ERRNO | ENOENT);
            fail(SYS_prctl, EPERM);
            for (int number : {SYS_fstat, SYS_lseek, SYS_newfstatat}) fail(number, EBADF);
        }
        give(SECCOMP_RET_TRAP);
        const sock_fprog program = {static_cast<unsigned short>(code_.size()), code_.data()};
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    }

  private:
    void load(uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
    void jump_equal(uint32_t value, uint8_t yes, uint8_t no) {
        code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no));
    }
    void give(uint32_t verdict) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, verdict)); }

    int reply_fd_;
    std::vector<sock_filter> code_;
};

}  // namespace jail
