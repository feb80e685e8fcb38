// Namespaces, private roots, limits, dropped privileges: each is asked for, and reported if the machine grants it.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "protocol.h"

namespace jail {

inline bool write_text(const char *path, const std::string &text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
    return ok;
}

// Enter new namespaces. Root needs no user namespace; anyone else gets one that maps only their own id.
inline int64_t enter_namespaces() {
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    struct Wanted {
        int flag;
        int64_t bit;
    };
    const Wanted wanted[] = {{CLONE_NEWNS, MOUNT_NAMESPACE},
                             {CLONE_NEWPID, PID_NAMESPACE},
                             {CLONE_NEWNET, NET_NAMESPACE},
                             {CLONE_NEWIPC, IPC_NAMESPACE}};
    int64_t got = 0;
    if (uid != 0 || unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER) != 0) return 0;
        got |= USER_NAMESPACE;
        write_text("/proc/self/setgroups", "deny");
        write_text("/proc/self/uid_map", std::to_string(uid) + " " + std::to_string(uid) + " 1");
        write_text("/proc/self/gid_map", std::to_string(gid) + " " + std::to_string(gid) + " 1");
    } else {
        got |= MOUNT_NAMESPACE;
    }
    for (const Wanted &w : wanted)
        if (!(got & w.bit) && unshare(w.flag) == 0) got |= w.bit;
    if (got & MOUNT_NAMESPACE) mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    return got;
}

inline bool copy_all(int from, int to) {
    char block[1 << 16];
    ssize_t n;
    while ((n = read(from, block, sizeof block)) > 0)
        if (write(to, block, static_cast<size_t>(n)) != n) return false;
    return n == 0;
}

// Without a private root the worker's own user may not reach the library's folder: it gets a copy by descriptor.
inline int copy_to_memory(const std::string &library) {
    const int from = open(library.c_str(), O_RDONLY | O_CLOEXEC);
    const int to = memfd_create("kernel", 0);
    const bool ok = from >= 0 && to >= 0 && fchmod(to, 0444) == 0 && copy_all(from, to);
    close(from);
    return ok ? to : -1;
}

// A root that holds one file, the kernel, and nothing can be written to it. `place` is an empty directory.
inline bool private_root(const std::string &place, const std::string &library, std::string &inside) {
    if (mount("none", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=256m,nr_inodes=16,mode=755") != 0) return false;
    inside = "/kernel.so";
    const std::string copy = place + inside;
    int from = open(library.c_str(), O_RDONLY | O_CLOEXEC);
    int to = open(copy.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (from < 0 || to < 0) return false;
    const bool copied = copy_all(from, to);
    close(from);
    close(to);
    if (!copied) return false;
    if (mount("none", place.c_str(), nullptr, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0) return false;
    if (chdir(place.c_str()) != 0) return false;
    if (syscall(SYS_pivot_root, ".", ".") != 0) return false;
    if (umount2(".", MNT_DETACH) != 0) return false;
    return chdir("/") == 0;
}

// Everything read-only but `place`; the directories in `masks` are empty to those inside.
inline bool read_only_root(const std::string &place, const std::vector<std::string> &masks) {
#ifdef SYS_mount_setattr
    struct {
        uint64_t set, clear, propagation, userns;
    } attributes = {MOUNT_ATTR_RDONLY, 0, 0, 0};
    if (mount(place.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attributes, sizeof attributes) != 0) return false;
    attributes = {0, MOUNT_ATTR_RDONLY, 0, 0};
    if (syscall(SYS_mount_setattr, AT_FDCWD, place.c_str(), 0, &attributes, sizeof attributes) != 0) return false;
    bool hidden = true;
    for (const std::string &mask : masks)
        hidden &= mount("none", mask.c_str(), "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=700") == 0;
    return hidden && chdir(place.c_str()) == 0;  // the old working directory is below the bind mount
#else
    (void)place, (void)masks;
    return false;
#endif
}

inline void limit(int resource, rlim_t value) {
    struct rlimit now {};
    if (getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return;
    if (now.rlim_max != RLIM_INFINITY && value > now.rlim_max) value = now.rlim_max;
    struct rlimit wanted = {value, value};
    setrlimit(static_cast<__rlimit_resource_t>(resource), &wanted);
}

// Whether that user exists here: a container may map only some.
inline bool is_mapped(uid_t uid) {
    FILE *file = fopen("/proc/self/uid_map", "re");
    if (!file) return false;
    unsigned long long first = 0, outside = 0, count = 0;
    bool found = false;
    while (fscanf(file, "%llu %llu %llu", &first, &outside, &count) == 3) found |= uid >= first && uid - first < count;
    fclose(file);
    return found;
}

// Root becomes a user that owns nothing, so that limits on processes hold and no file or process is in reach.
inline bool become_nobody(uid_t uid) {
    if (geteuid() != 0) return false;
    const bool ok = setgroups(0, nullptr) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0;
    return ok;
}

inline void drop_capabilities() {
    for (int cap = 0; cap <= 63; ++cap) prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    syscall(SYS_capset, &header, none);
}

struct Allowed {
    const char *path;
    uint64_t rights;
};

// Take every right on files away but those named; false where the machine has no Landlock.
inline bool landlock_but(const std::vector<Allowed> &allowed) {
#ifdef SYS_landlock_create_ruleset
    const uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // the thirteen rights of the first ABI
    landlock_ruleset_attr attr = {};
    attr.handled_access_fs = all;
    const int rules = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0));
    if (rules < 0) return false;
    for (const Allowed &one : allowed) {
        const int fd = open(one.path, O_PATH | O_CLOEXEC);
        if (fd < 0) continue;
        struct stat what {};
        const uint64_t of_files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
        const bool folder = fstat(fd, &what) == 0 && S_ISDIR(what.st_mode);
        landlock_path_beneath_attr beneath = {};
        beneath.allowed_access = folder ? one.rights : one.rights & of_files;
        beneath.parent_fd = fd;
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
        close(fd);
    }
    const bool ok = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return ok;
#else
    (void)allowed;
    return false;
#endif
}

// Without a private root, Landlock still keeps the kernel from everything but reading the machine's libraries.
inline bool landlock() {
    const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    return landlock_but({{"/usr/lib", reading}, {"/lib", reading}, {"/lib64", reading}});
}

// A program that runs a candidate's code: it may run and read the machine's programs, and read and write `place`.
inline bool landlock_program(const char *place) {
    const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    const uint64_t running = reading | LANDLOCK_ACCESS_FS_EXECUTE;
    const uint64_t writing = running | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                             LANDLOCK_ACCESS_FS_REMOVE_FILE;
    return landlock_but({{"/usr", running},
                         {"/lib", running},
                         {"/lib64", running},
                         {"/bin", running},
                         {"/etc/ld.so.cache", reading},
                         {"/dev/null", reading | LANDLOCK_ACCESS_FS_WRITE_FILE},
                         {"/proc/self", reading},
                         {place, writing}});
}

}  // namespace jail
