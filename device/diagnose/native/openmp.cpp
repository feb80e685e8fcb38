// What libgomp orders, told to ThreadSanitizer. libgomp is not compiled with it and waits by futex, so that every parallel
// region would look like a race. The linker puts these functions before libgomp's own (`--wrap`): a region orders what
// came before it, its threads, and what comes after; a barrier, a critical section and a lock order what the OpenMP
// standard says they do. Tasks are left out.
#include <atomic>
#include <cstdint>

extern "C" {
void __tsan_acquire(void *);
void __tsan_release(void *);

typedef void (*Body)(void *);

#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name

struct Team {
    Body body;
    void *data;
    char begin, end;  // two marks: a thread that is done is no reason why another may begin
};
static thread_local unsigned turn;  // barriers of the present region that this thread has come to
static void in_team(void *given) {
    Team *team = static_cast<Team *>(given);
    const unsigned outer = turn;
    turn = 0;
    __tsan_acquire(&team->begin);
    team->body(team->data);
    __tsan_release(&team->end);
    turn = outer;
}

#define REGION(name, parameters, ...)      \
    void REAL(name) parameters;            \
    void WRAP(name) parameters {           \
        Team team = {body, data, 0, 0};    \
        __tsan_release(&team.begin);       \
        {                                  \
            Body body = in_team;           \
            void *data = &team;            \
            REAL(name)(__VA_ARGS__);       \
        }                                  \
        __tsan_acquire(&team.end);         \
    }

REGION(GOMP_parallel, (Body body, void *data, unsigned n, unsigned flags), body, data, n, flags)
REGION(GOMP_parallel_sections, (Body body, void *data, unsigned n, unsigned count, unsigned flags), body, data, n, count,
       flags)
#define LOOP(name)                                                                                                   \
    REGION(name, (Body body, void *data, unsigned n, long begin, long end, long step, long chunk, unsigned flags), body, \
           data, n, begin, end, step, chunk, flags)
#define LOOP_WITHOUT_CHUNK(name)                                                                             \
    REGION(name, (Body body, void *data, unsigned n, long begin, long end, long step, unsigned flags), body, data, n, \
           begin, end, step, flags)
LOOP(GOMP_parallel_loop_static)
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)
LOOP_WITHOUT_CHUNK(GOMP_parallel_loop_runtime)
LOOP_WITHOUT_CHUNK(GOMP_parallel_loop_nonmonotonic_runtime)
LOOP_WITHOUT_CHUNK(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

// A barrier: whoever leaves it comes after all who entered. Two marks in turn, since a quick thread may stand at the next
// barrier before a slow one has left this one.
static char marks[2];
#define BARRIER(name)                    \
    void REAL(name)(void);               \
    void WRAP(name)(void) {              \
        char *mark = marks + turn++ % 2; \
        __tsan_release(mark);            \
        REAL(name)();                    \
        __tsan_acquire(mark);            \
    }
BARRIER(GOMP_barrier)
BARRIER(GOMP_loop_end)
BARRIER(GOMP_sections_end)

static char critical, atomic_mark, ordered, copied;
#define ENTER(name, mark)      \
    void REAL(name)(void);     \
    void WRAP(name)(void) {    \
        REAL(name)();          \
        __tsan_acquire(&mark); \
    }
#define LEAVE(name, mark)      \
    void REAL(name)(void);     \
    void WRAP(name)(void) {    \
        __tsan_release(&mark); \
        REAL(name)();          \
    }
ENTER(GOMP_critical_start, critical)
LEAVE(GOMP_critical_end, critical)
ENTER(GOMP_atomic_start, atomic_mark)
LEAVE(GOMP_atomic_end, atomic_mark)
ENTER(GOMP_ordered_start, ordered)
LEAVE(GOMP_ordered_end, ordered)

void REAL(GOMP_critical_name_start)(void **);
void WRAP(GOMP_critical_name_start)(void **name) {
    REAL(GOMP_critical_name_start)(name);
    __tsan_acquire(name);
}
void REAL(GOMP_critical_name_end)(void **);
void WRAP(GOMP_critical_name_end)(void **name) {
    __tsan_release(name);
    REAL(GOMP_critical_name_end)(name);
}

void *REAL(GOMP_single_copy_start)(void);
void *WRAP(GOMP_single_copy_start)(void) {
    void *data = REAL(GOMP_single_copy_start)();
    if (data) __tsan_acquire(&copied);
    return data;
}
void REAL(GOMP_single_copy_end)(void *);
void WRAP(GOMP_single_copy_end)(void *data) {
    __tsan_release(&copied);
    REAL(GOMP_single_copy_end)(data);
}

#define LOCK(set, unset, test)          \
    void REAL(set)(void *);             \
    void WRAP(set)(void *lock) {        \
        REAL(set)(lock);                \
        __tsan_acquire(lock);           \
    }                                   \
    void REAL(unset)(void *);           \
    void WRAP(unset)(void *lock) {      \
        __tsan_release(lock);           \
        REAL(unset)(lock);              \
    }                                   \
    int REAL(test)(void *);             \
    int WRAP(test)(void *lock) {        \
        const int got = REAL(test)(lock); \
        if (got) __tsan_acquire(lock);  \
        return got;                     \
    }
LOCK(omp_set_lock, omp_unset_lock, omp_test_lock)
LOCK(omp_set_nest_lock, omp_unset_nest_lock, omp_test_nest_lock)

}  // extern "C"
