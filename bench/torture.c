/* Makes chosen system calls on the files of one folder fail. bench/torture.py compiles it and loads it by LD_PRELOAD.
 *
 * FAULT_FOLDER: the folder, with its final slash. FAULTS: "3=28,4=-1": the third of all calls on its files fails with
 * errno 28, and the fourth, a write, accepts half of its data. FAULT_LOG: a file to which each call is appended.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SHORT (-1)
#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name); real; })
#define REFUSE(call, inside) do { int fault = (inside) ? fault_of(call) : 0; if (fault > 0) { errno = fault; return -1; } } while (0)

static const char *folder, *faults;
static int calls, log_fd = -1;

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("FAULT_LOG");
    folder = getenv("FAULT_FOLDER");
    faults = getenv("FAULTS");
    if (folder && log) {
        int fd = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        log_fd = fcntl(fd, F_DUPFD_CLOEXEC, 200); /* Not a number that the program expects for its own files. */
        REAL(close)(fd);
    }
    unsetenv("LD_PRELOAD"); /* The server runs without it. */
}

static int is_inside(const char *path) { return folder && !strncmp(path, folder, strlen(folder)); }

static int has_file(int fd) {
    char link[64], path[4096];
    if (!folder) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_inside(path);
}

/* Returns the errno of this call, SHORT, or 0. */
static int fault_of(const char *call) {
    char line[64];
    int number = ++calls, found = 0;
    for (const char *at = faults; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (atoi(at) == number) found = atoi(strchr(at, '=') + 1);
    if (log_fd >= 0) {
        int size = snprintf(line, sizeof line, "%d %s %d\n", number, call, found);
        if (REAL(write)(log_fd, line, size) < 0) abort();
    }
    return found;
}

ssize_t write(int fd, const void *data, size_t size) {
    int fault = has_file(fd) ? fault_of("write") : 0;
    if (fault > 0) { errno = fault; return -1; }
    return REAL(write)(fd, data, fault == SHORT && size > 1 ? size / 2 : size);
}

ssize_t writev(int fd, const struct iovec *buffers, int count) {
    int fault = has_file(fd) ? fault_of("writev") : 0;
    if (fault > 0) { errno = fault; return -1; }
    return REAL(writev)(fd, buffers, fault == SHORT && count > 1 ? count / 2 : count);
}

int fsync(int fd) { REFUSE("fsync", has_file(fd)); return REAL(fsync)(fd); }
int fdatasync(int fd) { REFUSE("fdatasync", has_file(fd)); return REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t size) { REFUSE("ftruncate", has_file(fd)); return REAL(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { REFUSE("ftruncate", has_file(fd)); return REAL(ftruncate64)(fd, size); }
int flock(int fd, int operation);
int flock(int fd, int operation) { REFUSE("flock", has_file(fd)); return REAL(flock)(fd, operation); }
int fstat(int fd, struct stat *status) { REFUSE("fstat", has_file(fd)); return REAL(fstat)(fd, status); }
int fstat64(int fd, struct stat64 *status) { REFUSE("fstat", has_file(fd)); return REAL(fstat64)(fd, status); }
int rename(const char *from, const char *to) { REFUSE("rename", is_inside(to)); return REAL(rename)(from, to); }
int unlink(const char *path) { REFUSE("unlink", is_inside(path)); return REAL(unlink)(path); }
int mkdir(const char *path, mode_t mode) { REFUSE("mkdir", is_inside(path)); return REAL(mkdir)(path, mode); }

int close(int fd) {
    int fault = has_file(fd) ? fault_of("close") : 0;
    int result = REAL(close)(fd); /* Linux closes the descriptor also if it returns an error. */
    if (fault > 0) { errno = fault; return -1; }
    return result;
}

static int mode_of(int flags, va_list arguments) { return flags & O_CREAT ? va_arg(arguments, int) : 0; }

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = mode_of(flags, arguments);
    va_end(arguments);
    REFUSE("open", is_inside(path));
    return REAL(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = mode_of(flags, arguments);
    va_end(arguments);
    REFUSE("open", is_inside(path));
    return REAL(open64)(path, flags, mode);
}
