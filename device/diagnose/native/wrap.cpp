// Compiled into every candidate that is diagnosed: the judge calls `sagebook_kernel` here, which calls the candidate's
// own. One more output than the operator has comes last and is a region of memory: what SB_DUMP records goes there, so
// that a diagnosis needs no file and nothing that a judged kernel does not have.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "sagebook_kernel.h"
#undef sagebook_kernel

namespace {

// The numbers of device/diagnose/region.py. Everything is 64-bit words; a record's data is padded to 8 bytes.
constexpr int64_t MAGIC = 0x53424456, NAME_BYTES = 64;
struct Header {
    int64_t magic, capacity;
    std::atomic<int64_t> used, lost;  // bytes of records; records that found no room
};
struct Record {
    std::atomic<int64_t> ready;  // 1 once all of it is there
    int64_t bytes, dtype, count, first;
    char name[NAME_BYTES];
};

Header *region = nullptr;

int64_t element_bytes(int32_t dtype) {
    switch (dtype) {
        case SB_FLOAT64: case SB_INT64: case SB_COMPLEX64: return 8;
        case SB_FLOAT32: case SB_INT32: return 4;
        case SB_FLOAT16: case SB_BFLOAT16: return 2;
        case SB_INT8: case SB_UINT8: case SB_BOOL: return 1;
        default: return 0;
    }
}

void open_region(const sb_tensor &last) {
    region = static_cast<Header *>(last.data);
    region->magic = MAGIC;
    region->capacity = last.shape[0] - static_cast<int64_t>(sizeof(Header));
    region->used = 0;
    region->lost = 0;
}

#ifdef __SANITIZE_ADDRESS__
extern "C" {
void __asan_poison_memory_region(void const volatile *, size_t);
void __asan_unpoison_memory_region(void const volatile *, size_t);
void __asan_set_error_report_callback(void (*)(const char *));
void *__asan_get_report_address();
}

constexpr int64_t ZONE = 4096;  // device.arena.GUARD: the judge keeps so much free around each tensor
struct Known {
    const char *begin, *end;
    const char *kind;
    int64_t number;
};
Known known[256];
int64_t known_count = 0;

int64_t reach(const sb_tensor &t) {
    int64_t last = 0;
    for (int64_t d = 0; d < t.ndim; ++d) last += (t.shape[d] - 1) * t.strides[d];
    return (last + 1) * element_bytes(t.dtype);
}

// An address in the judge's memory means nothing to a reader: say which tensor it lies beside.
void say_where(const char *) {
    const char *at = static_cast<const char *>(__asan_get_report_address());
    for (int64_t i = 0; i < known_count; ++i) {
        const Known &k = known[i];
        char text[160];
        int n = 0;
        if (at >= k.end && at < k.end + ZONE)
            n = snprintf(text, sizeof text, "\nsagebook: %lld bytes after the end of %s %lld\n",
                         static_cast<long long>(at - k.end), k.kind, static_cast<long long>(k.number));
        else if (at < k.begin && at >= k.begin - ZONE)
            n = snprintf(text, sizeof text, "\nsagebook: %lld bytes before the begin of %s %lld\n",
                         static_cast<long long>(k.begin - at), k.kind, static_cast<long long>(k.number));
        if (n > 0) {
            if (write(2, text, static_cast<size_t>(n)) < 0) return;
            return;
        }
    }
}

// AddressSanitizer knows heap, stack and globals; the judge's tensors are neither, so their surroundings are closed by hand.
void fence(const sb_tensor *tensors, int64_t count, const char *kind, bool close) {
    for (int64_t i = 0; i < count && known_count < 256; ++i) {
        const char *begin = static_cast<const char *>(tensors[i].data), *end = begin + reach(tensors[i]);
        if (close) {
            __asan_poison_memory_region(begin - ZONE, ZONE);
            __asan_poison_memory_region(end, ZONE);
            known[known_count++] = {begin, end, kind, i};
        } else {
            __asan_unpoison_memory_region(begin - ZONE, ZONE);
            __asan_unpoison_memory_region(end, ZONE);
        }
    }
}
#endif

}  // namespace

extern "C" void sagebook_dump(const char *name, const void *data, int64_t count, int32_t dtype, int64_t first) {
    const int64_t size = element_bytes(dtype) * count;
    if (!region || count < 0 || size < 0 || (count && element_bytes(dtype) == 0)) return;
    const int64_t need = static_cast<int64_t>(sizeof(Record)) + (size + 7) / 8 * 8;
    int64_t at = region->used.load();
    do {
        if (need > region->capacity - at) {
            ++region->lost;
            return;
        }
    } while (!region->used.compare_exchange_weak(at, at + need));
    Record *record = reinterpret_cast<Record *>(reinterpret_cast<char *>(region + 1) + at);
    record->ready = 0;
    record->bytes = need;
    record->dtype = dtype;
    record->count = count;
    record->first = first;
    strncpy(record->name, name, NAME_BYTES - 1);
    record->name[NAME_BYTES - 1] = 0;
    if (size) memcpy(record + 1, data, static_cast<size_t>(size));
    record->ready = 1;
}

extern "C" int sagebook_candidate(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                                  const double *attributes, int64_t n_attributes);

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
    open_region(outputs[n_outputs - 1]);
#ifdef __SANITIZE_ADDRESS__
    known_count = 0;
    __asan_set_error_report_callback(say_where);
    fence(inputs, n_inputs, "input", true);
    fence(outputs, n_outputs - 1, "output", true);
#endif
    const int code = sagebook_candidate(inputs, n_inputs, outputs, n_outputs - 1, attributes, n_attributes);
#ifdef __SANITIZE_ADDRESS__
    known_count = 0;
    fence(inputs, n_inputs, "input", false);
    fence(outputs, n_outputs - 1, "output", false);
#endif
    return code;
}
