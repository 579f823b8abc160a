/* A clock of the day that goes back by a day once the file CLOCK_MARK has CLOCK_AFTER bytes. Others are as they are. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    struct stat mark;
    const char *path = getenv("CLOCK_MARK"), *after = getenv("CLOCK_AFTER");
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME && path && after && !stat(path, &mark) && mark.st_size >= atol(after))
        now->tv_sec -= 86400;
    return failed;
}
