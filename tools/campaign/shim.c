/* Fails the n-th call of one kind, once or from then on, or kills the process there.
   Kinds are calls that open, write, sync or rename a file, or start a process or a thread.

   Preloaded into the process under test, which arms it by `fault_arm`. Calls are counted in the
   arming process alone, not in what it forks. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN, WRITE, FSYNC, RENAME, FORK, THREAD, KINDS };

static atomic_long counts[KINDS];
static int armed_kind = -1, armed_error, armed_for_good;
static long armed_at;
static pid_t armed_process;

/* `error` 0 only counts, -1 kills. */
void fault_arm(int kind, long at, int error, int for_good) {
    for (int k = 0; k < KINDS; k++) atomic_store(&counts[k], 0);
    armed_at = at;
    armed_error = error;
    armed_for_good = for_good;
    armed_process = getpid();
    armed_kind = kind;
}

long fault_count(int kind) { return atomic_load(&counts[kind]); }

static int fails(int kind) {
    if (armed_process == 0 || getpid() != armed_process) return 0;
    long number = atomic_fetch_add(&counts[kind], 1) + 1;
    if (kind != armed_kind || armed_error == 0) return 0;
    if (number != armed_at && !(armed_for_good && number > armed_at)) return 0;
    if (armed_error < 0) kill(getpid(), SIGKILL);
    errno = armed_error;
    return 1;
}

#define REAL(name, type) \
    static __typeof__(type) real; \
    if (!real) real = (__typeof__(type))dlsym(RTLD_NEXT, name)

typedef int (*open_type)(const char *, int, ...);
typedef int (*openat_type)(int, const char *, int, ...);

#define OPEN_LIKE(name)                                             \
    int name(const char *path, int flags, ...) {                    \
        REAL(#name, open_type);                                     \
        va_list rest;                                               \
        va_start(rest, flags);                                      \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                               \
        return fails(OPEN) ? -1 : real(path, flags, mode);          \
    }
OPEN_LIKE(open)
OPEN_LIKE(open64)

#define OPENAT_LIKE(name)                                           \
    int name(int folder, const char *path, int flags, ...) {        \
        REAL(#name, openat_type);                                   \
        va_list rest;                                               \
        va_start(rest, flags);                                      \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                               \
        return fails(OPEN) ? -1 : real(folder, path, flags, mode);  \
    }
OPENAT_LIKE(openat)
OPENAT_LIKE(openat64)

/* A write that is to fail for want of room writes its first half before, as disks do. */
ssize_t write(int file, const void *data, size_t size) {
    REAL("write", ssize_t (*)(int, const void *, size_t));
    static _Thread_local int is_short;
    if (!fails(WRITE)) return real(file, data, size);
    if (errno == ENOSPC && size > 1 && !is_short) {
        is_short = 1;
        atomic_fetch_sub(&counts[WRITE], 1);
        return real(file, data, size / 2);
    }
    is_short = 0;
    errno = armed_error;
    return -1;
}

int fsync(int file) {
    REAL("fsync", int (*)(int));
    return fails(FSYNC) ? -1 : real(file);
}

int fdatasync(int file) {
    REAL("fdatasync", int (*)(int));
    return fails(FSYNC) ? -1 : real(file);
}

int rename(const char *from, const char *to) {
    REAL("rename", int (*)(const char *, const char *));
    return fails(RENAME) ? -1 : real(from, to);
}

pid_t fork(void) {
    REAL("fork", pid_t (*)(void));
    return fails(FORK) ? -1 : real();
}

/* A vfork cannot be wrapped: its child would return from here, and spoil the parent's stack. Where
   it fails, Python takes fork. */
pid_t vfork(void) {
    errno = ENOSYS;
    return -1;
}

#define SPAWN_LIKE(name)                                                                        \
    int name(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,         \
             const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) { \
        REAL(#name, __typeof__(&posix_spawn));                                                  \
        return fails(FORK) ? armed_error : real(child, path, actions, attributes, arguments, environment); \
    }
SPAWN_LIKE(posix_spawn)
SPAWN_LIKE(posix_spawnp)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *given) {
    REAL("pthread_create", __typeof__(&pthread_create));
    return fails(THREAD) ? armed_error : real(thread, attributes, start, given);
}
