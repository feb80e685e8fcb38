// The jail: starts one confined child and reports how it ended.
//
//   jail kernel  library=PATH place=DIR arena=FD size=BYTES control=FD reply=FD status=FD [limits]
//   jail command place=DIR status=FD [mask=DIR ...] [confined=1] [limits] -- PROGRAM ARGUMENTS...
//
// limits: memory=BYTES cpu=SECONDS processes=N files=N file_bytes=BYTES stack=BYTES; user=BASE of the users that a jail
// run by root takes for its kernels; instrumented=1 for a jail that is compiled with a sanitizer.
// confined=1: the program runs a candidate's code, so it becomes a user of its own, and reads the machine's programs and
// `place` alone; where the machine has no Landlock it is not run.
// The supervisor (this process) never runs a kernel's code and alone holds the status pipe.

#include <omp.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <string>

#include "confine.h"
#include "filter.h"
#include "serve.h"

namespace {

using namespace jail;

struct Options {
    std::map<std::string, std::string> values;
    std::vector<std::string> masks;
    std::vector<char *> program;

    int64_t number(const std::string &name, int64_t otherwise = -1) const {
        const auto found = values.find(name);
        return found == values.end() ? otherwise : std::atoll(found->second.c_str());
    }
    std::string text(const std::string &name) const {
        const auto found = values.find(name);
        return found == values.end() ? std::string() : found->second;
    }
};

[[noreturn]] void fail(const char *doing, int code) {
    const int error = errno;
    dprintf(2, "jail: %s: %s\n", doing, code == LOAD_FAILED ? dlerror() : strerror(error));
    _exit(code);
}

void close_all_but(std::vector<int> keep) {
    std::sort(keep.begin(), keep.end());
    unsigned from = 3;
    for (int fd : keep) {
        if (fd < static_cast<int>(from)) continue;
        if (fd > static_cast<int>(from)) close_range(from, static_cast<unsigned>(fd) - 1, 0);
        from = static_cast<unsigned>(fd) + 1;
    }
    close_range(from, ~0U, 0);
}

void set_limits(const Options &options, int64_t extra_memory) {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_MEMLOCK, 0);
    limit(RLIMIT_MSGQUEUE, 0);
    limit(RLIMIT_AS, options.number("memory", 1LL << 30) + extra_memory);
    limit(RLIMIT_CPU, options.number("cpu", 60));
    limit(RLIMIT_FSIZE, options.number("file_bytes", 0));
    limit(RLIMIT_NOFILE, options.number("files", 16));
    limit(RLIMIT_STACK, options.number("stack", 8 << 20));
}

// Runs in the worker; does not return. Libraries that a kernel may need are mapped before the root goes away.
// Start every thread of OpenMP's pool now: any thread beyond them is then the kernel's own, and stands out by number.
void fill_pool() {
    volatile int never = 0;
#pragma omp parallel
    if (never) never = 1;
}

[[noreturn]] void be_kernel(const Options &options, const std::string &library, int64_t measures) {
    const int control = static_cast<int>(options.number("control"));
    const int reply = static_cast<int>(options.number("reply"));
    const int arena_fd = static_cast<int>(options.number("arena"));
    const size_t size = static_cast<size_t>(options.number("size"));
    char *arena = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, arena_fd, 0));
    if (arena == MAP_FAILED) fail("mapping the arena", SETUP_FAILED);
    const int library_fd = static_cast<int>(options.number("library_fd"));
    const bool instrumented = options.number("instrumented", 0) != 0;
    close_all_but({control, reply, library_fd});
    note = reinterpret_cast<Note *>(arena);
    std::set_new_handler(out_of_memory);
    set_limits(options, static_cast<int64_t>(size));
    if (measures & (OWN_USER | USER_NAMESPACE)) limit(RLIMIT_NPROC, options.number("processes", 64));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("giving up new privileges", SETUP_FAILED);
    if (measures & LANDLOCK) landlock();
    watch_signals();
    if (measures & FILTER && !Filter(reply).install(true, instrumented)) fail("installing the first filter", SETUP_FAILED);
    if (options.number("pool", 0)) fill_pool();
    void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) fail("loading the kernel", LOAD_FAILED);
    close(library_fd);
    const Entry entry = reinterpret_cast<Entry>(dlsym(handle, "sagebook_kernel"));
    if (!entry) fail("finding sagebook_kernel", LOAD_FAILED);
    if (measures & FILTER && !Filter(reply).install(false, instrumented)) fail("installing the second filter", SETUP_FAILED);
    _exit(serve(entry, control, reply, arena));
}

[[noreturn]] void be_command(Options &options, int64_t measures) {
    close_all_but({});
    set_limits(options, 0);
    if (measures & (OWN_USER | USER_NAMESPACE)) limit(RLIMIT_NPROC, options.number("processes", 64));
    drop_capabilities();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (options.number("confined", 0) && !landlock_program(options.text("place").c_str()))
        fail("confining a program by Landlock", SETUP_FAILED);
    options.program.push_back(nullptr);
    execvp(options.program[0], options.program.data());
    fail(options.program[0], SETUP_FAILED);
}

// The first process of a new process namespace: when it goes, the machine kills whatever else is in there.
pid_t start_init() {
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_range(0, ~0U, 0);
        for (;;) pause();
    }
    return pid;
}

bool landlock_known() {
#ifdef SYS_landlock_create_ruleset
    return syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) > 0;
#else
    return false;
#endif
}

// Without a process namespace an orphan is handed to this process (a subreaper), which ends it.
void end_orphans() {
    for (;;) {
        std::string text;
        char block[4096];
        const int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            for (ssize_t n; (n = read(fd, block, sizeof block)) > 0;) text.append(block, static_cast<size_t>(n));
            close(fd);
        }
        bool any = false;
        for (const char *at = text.c_str(); *at;) {
            char *end = nullptr;
            const long pid = strtol(at, &end, 10);
            if (end == at) break;
            if (pid > 1) kill(static_cast<pid_t>(pid), SIGKILL), any = true;
            at = end;
        }
        while (waitpid(-1, nullptr, any ? 0 : WNOHANG) > 0) {
        }
        if (!any) return;
    }
}

// A fork bomb outruns one that ends its processes one by one; as their own user all can be ended at once.
void end_all_of(uid_t user) {
    const pid_t pid = fork();
    if (pid == 0) {
        if (become_nobody(user)) kill(-1, SIGKILL);
        _exit(0);
    }
    waitpid(pid, nullptr, 0);
}

int supervise(const std::string &kind, Options &options) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const int status = static_cast<int>(options.number("status"));
    const bool kernel = kind == "kernel";
    std::vector<int> keep = {status};
    if (kernel)
        for (const char *name : {"arena", "control", "reply"}) keep.push_back(static_cast<int>(options.number(name)));
    close_all_but(keep);
    if (kernel) {
        dlopen("libmvec.so.1", RTLD_NOW | RTLD_GLOBAL);  // what -ffast-math kernels call; absent on some machines
        omp_get_max_threads();                           // the OpenMP library reads its settings and the machine now
    }
    const bool lands = kernel && landlock_known();
    int64_t measures = options.number("namespaces", 1) ? enter_namespaces() : 0;
    std::string library = options.text("library");
    if (measures & MOUNT_NAMESPACE) {
        std::string inside;
        if (kernel && private_root(options.text("place"), library, inside)) {
            measures |= PRIVATE_ROOT;
            library = inside;
        } else if (!kernel && read_only_root(options.text("place"), options.masks)) {
            measures |= READ_ONLY_ROOT;
        }
    }
    if (kernel && !(measures & PRIVATE_ROOT)) {
        const int fd = copy_to_memory(library);
        if (fd < 0) fail("copying the kernel", SETUP_FAILED);
        options.values["library_fd"] = std::to_string(fd);
        library = "/proc/self/fd/" + std::to_string(fd);
        keep.push_back(fd);
    }
    if (kernel && options.number("filter", 1) && Filter::known()) measures |= FILTER;
    if (lands && !(measures & PRIVATE_ROOT)) measures |= LANDLOCK;
    // A user for this jail alone, so that all that it started can be ended together.
    const uid_t user = static_cast<uid_t>(options.number("user", 2000000000) + getpid());
    const bool foreign = kernel || options.number("confined", 0) != 0;
    if (foreign && geteuid() == 0 && is_mapped(user)) measures |= OWN_USER;
    const pid_t init = measures & PID_NAMESPACE ? start_init() : 0;
    const pid_t worker = fork();
    if (worker < 0) fail("starting the child", SETUP_FAILED);
    if (worker == 0) {
        close(status);
        if (kernel) {
            const bool own = measures & OWN_USER && become_nobody(user);
            drop_capabilities();
            prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user clears it
            if (measures & OWN_USER && !own) fail("becoming another user", SETUP_FAILED);
            be_kernel(options, library, measures);
        }
        if (measures & OWN_USER && !become_nobody(user)) fail("becoming another user", SETUP_FAILED);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_command(options, measures);
    }
    for (int fd : keep)
        if (fd != status) close(fd);
    const Started started = {worker, measures};
    if (write(status, &started, sizeof started) != sizeof started) kill(worker, SIGKILL);
    int ended = 0;
    struct rusage used {};
    while (wait4(worker, &ended, 0, &used) < 0 && errno == EINTR) {
    }
    if (init > 0) {
        kill(init, SIGKILL);
        waitpid(init, nullptr, 0);
    } else if (measures & OWN_USER) {
        end_all_of(user);
    }
    end_orphans();
    const auto ns = [](const timeval &t) { return t.tv_sec * INT64_C(1000000000) + t.tv_usec * INT64_C(1000); };
    const Ended report = {ended, used.ru_maxrss, ns(used.ru_utime) + ns(used.ru_stime)};
    return write(status, &report, sizeof report) == sizeof report ? 0 : SETUP_FAILED;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) return BAD_USAGE;
    Options options;
    for (int i = 2; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--") {
            options.program.assign(argv + i + 1, argv + argc);
            break;
        }
        const size_t equals = argument.find('=');
        if (equals == std::string::npos) return BAD_USAGE;
        const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
        if (name == "mask")
            options.masks.push_back(value);
        else
            options.values[name] = value;
    }
    const std::string kind = argv[1];
    if (kind != "kernel" && kind != "command") return BAD_USAGE;
    return supervise(kind, options);
}
