/* Disk errors and clock jumps for one process, loaded before the C library (LD_PRELOAD).

   BLACKBOX_CONTROL names a file of one struct control, which the tester writes while the process runs. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int32_t failures; /* how many of the next calls fail */
    volatile int32_t error;    /* with which errno */
    volatile int64_t seconds;  /* by which the clock is ahead */
};

static struct control none;

static struct control *control(void) {
    static struct control *found;
    if (found == NULL) {
        const char *path = getenv("BLACKBOX_CONTROL");
        int file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
        void *mapped = MAP_FAILED;
        if (file >= 0) {
            mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            close(file);
        }
        found = mapped == MAP_FAILED ? &none : mapped;
    }
    return found;
}

/* Only what lies in a party's state directory: its transcript, boxes, deliveries and status. */
static int fails(int file) {
    struct control *said = control();
    char link[64], path[4096];
    if (said->failures <= 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    if (strstr(path, "/state/") == NULL)
        return 0;
    said->failures -= 1;
    errno = said->error;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t count) {
    static __typeof__(&write) real;
    if (real == NULL)
        real = REAL(write);
    return fails(file) ? -1 : real(file, bytes, count);
}

int fsync(int file) {
    static __typeof__(&fsync) real;
    if (real == NULL)
        real = REAL(fsync);
    return fails(file) ? -1 : real(file);
}

int fdatasync(int file) {
    static __typeof__(&fdatasync) real;
    if (real == NULL)
        real = REAL(fdatasync);
    return fails(file) ? -1 : real(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static __typeof__(&clock_gettime) real;
    if (real == NULL)
        real = REAL(clock_gettime);
    int ended = real(clock, time);
    if (ended == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += control()->seconds;
    return ended;
}
