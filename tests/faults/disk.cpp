// Preloaded under a process that writes a ledger file, to be the disk that fails it. Build: g++ -shared -fPIC disk.cpp -ldl
//
//   SHIM_FILES   only files whose path contains this text
//   SHIM_FAIL    the number of the sync, counted from 1, from which on every sync fails with EIO
//   SHIM_SPACE   bytes that a file may have; a write past them fails with ENOSPC
//   SHIM_POWER   the number of the sync before which the power goes: the process ends at once, and of what was written since
//                the sync before nothing is left, or, with SHIM_TORN, the first half of the first write alone
//
// What was written and not synced is kept in a list of what stood there before; at the end of power it is put back.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

namespace {
struct Undo { off_t offset; std::vector<char> before; off_t size; size_t length; };
struct File { std::vector<Undo> undo; };
std::recursive_mutex guard;
std::map<std::pair<dev_t, ino_t>, File> files;
long syncs = 0;

template <typename F> F real(const char *name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }
long number(const char *name) { const char *text = getenv(name); return text ? atol(text) : 0; }

bool ours(int fd) {
    const char *wanted = getenv("SHIM_FILES");
    if (!wanted) return false;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return false;
    path[length] = 0;
    // The shared-memory index is no part of what must last.
    return strstr(path, wanted) && !strstr(path, "-shm") && !strstr(path, ".lock");
}

File &file_of(int fd, off_t *size) {
    struct stat found;
    fstat(fd, &found);
    if (size) *size = found.st_size;
    return files[{found.st_dev, found.st_ino}];
}

void remember(int fd, off_t offset, size_t length) {
    off_t size;
    File &file = file_of(fd, &size);
    Undo undo{offset, std::vector<char>(length), size, length};
    ssize_t got = real<ssize_t (*)(int, void *, size_t, off_t)>("pread")(fd, undo.before.data(), length, offset);
    undo.before.resize(got > 0 ? got : 0);
    file.undo.push_back(std::move(undo));
}

void cut_power() {
    auto write_at = real<ssize_t (*)(int, const void *, size_t, off_t)>("pwrite");
    bool torn = number("SHIM_TORN");
    for (auto &entry : files) {
        int target = -1;
        for (int other = 0; other < 256 && target < 0; other++) {
            struct stat found;
            if (fstat(other, &found) == 0 && found.st_dev == entry.first.first && found.st_ino == entry.first.second &&
                (fcntl(other, F_GETFL) & O_ACCMODE) == O_RDWR) target = other;
        }
        if (target < 0) continue;
        auto &undo = entry.second.undo;
        for (size_t i = undo.size(); i-- > 0;) {
            std::vector<char> half;
            bool keep = torn && i == 0;
            if (keep) {
                half.resize(undo[i].length / 2);
                if (real<ssize_t (*)(int, void *, size_t, off_t)>("pread")(target, half.data(), half.size(), undo[i].offset) < 0) keep = false;
            }
            if (write_at(target, undo[i].before.data(), undo[i].before.size(), undo[i].offset) < 0) _exit(98);
            if (real<int (*)(int, off_t)>("ftruncate")(target, undo[i].size) != 0) _exit(98);
            if (keep && write_at(target, half.data(), half.size(), undo[i].offset) < 0) _exit(98);
        }
    }
    _exit(99);
}

int synced(int fd, const char *name) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (ours(fd)) {
        syncs++;
        if (number("SHIM_POWER") && syncs >= number("SHIM_POWER")) cut_power();
        if (number("SHIM_FAIL") && syncs >= number("SHIM_FAIL")) { errno = EIO; return -1; }
        file_of(fd, nullptr).undo.clear();
    }
    return real<int (*)(int)>(name)(fd);
}
}  // namespace

extern "C" {
ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (ours(fd)) {
        if (number("SHIM_SPACE") && offset + static_cast<off_t>(length) > number("SHIM_SPACE")) { errno = ENOSPC; return -1; }
        remember(fd, offset, length);
    }
    return real<ssize_t (*)(int, const void *, size_t, off_t)>("pwrite64")(fd, data, length, offset);
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return pwrite64(fd, data, length, offset); }
ssize_t write(int fd, const void *data, size_t length) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (ours(fd)) {
        off_t offset = lseek(fd, 0, SEEK_CUR);
        if (number("SHIM_SPACE") && offset + static_cast<off_t>(length) > number("SHIM_SPACE")) { errno = ENOSPC; return -1; }
        remember(fd, offset, length);
    }
    return real<ssize_t (*)(int, const void *, size_t)>("write")(fd, data, length);
}
int ftruncate64(int fd, off_t size) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    struct stat found;
    if (ours(fd) && fstat(fd, &found) == 0 && found.st_size > size) remember(fd, size, found.st_size - size);
    return real<int (*)(int, off_t)>("ftruncate64")(fd, size);
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }
}
