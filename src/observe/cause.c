/* SPDX-License-Identifier: Apache-2.0 */
/* Why a figure may have changed: another one that changed with it, and by enough to explain it. The
 * first row of the table that applies is named: what comes from outside the run before what the run
 * does itself. It is evidence, not proof, so both values are in the sentence. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "observe/monitor.h"

static const double WORK_MIN = 0.3, STRETCH_MIN = 1.2;

enum named { NAMED_NONE, NAMED_NEW, NAMED_ALL };

struct cause {
    const char *name;  /* of the figure; or what it begins with, and then a star */
    double      rise;  /* it must have risen by this much, in its own unit; below 0: fallen */
    double      ratio; /* and to this many times itself; 0: whatever it was */
    const char *text;  /* with its name's rest, its value now, and before */
    bool        work;  /* for fewer frames it must fill a good part of the time */
    bool        held;  /* the run's threads must have been kept waiting for CPUs as well */
    enum named  named; /* processes on the GPU that are added to the text */
};
static const struct cause causes[] = {
    {"gpu*throttled by heat", 0.5, 0, "the GPU slows itself down for its heat%.0s%.0s%.0s"},
    {"gpu*throttled by power", 0.5, 0, "the GPU slows itself down at its power limit%.0s%.0s%.0s"},
    {"gpu*throttled by hardware", 0.5, 0,
     "the GPU slows itself down to protect itself%.0s%.0s%.0s"},
    {"gpu*processes", 0.5, 0, "%.0s%s processes compute on the GPU, and %s did",
     .named = NAMED_NEW},
    {"gpu*memory beside the pool", 512e6, 1.25,
     "%.0sothers hold %s of the GPU's memory, and held %s", .named = NAMED_ALL},
    {"cpu held back", 0.1, 0,
     "%.0sthe control group holds the CPUs back for %s of the time, was %s"},
    {"cpu stolen", 0.1, 0,
     "%.0sthe machine's host keeps %s of the CPUs' time from it, and kept %s"},
    {"cpu of others", 0.15, 0, "%.0sother programs use %s of the CPUs, and used %s", .held = true},
    {"disk wait", 0.2, 0, "%.0sprograms wait for the disks for %s of the time, and waited for %s"},
    {"wait *", 0.15, 0, "thread %s is kept waiting for a CPU for %s of the time, was %s"},
    {"objects", 2, 1.4, "%.0sa frame has %s objects, and had %s"},
    {"batch", 0.5, 1.3, "%.0sa batch has %s, and had %s"},
    {"stage *", 0.5, 1.4, "stage %s takes %s, and took %s", .work = true},
    {"gpu stage *", 0.5, 1.4, "stage %s takes %s on the GPU, and took %s", .work = true},
    /* what stands still holds up all before it, so the last full one tells who */
    {"queue write", 0.3, 0, "%.0sthe queue before writing is %s full, and was %s"},
    {"queue track", 0.3, 0, "%.0sthe queue before tracking is %s full, and was %s"},
    {"queue detect", 0.3, 0, "%.0sthe queue before the network is %s full, and was %s"},
    {"input", -1, 0.8, "%.0sthe inputs bring %s, and brought %s"},
    {"batch", -0.5, 0.75, "%.0sa batch has %s, and had %s"},
    {"thread *", -0.1, 0.6, "thread %s runs on %s, and ran on %s"},
    /* nothing waits for them, but caches and memory are shared */
    {"cpu of others", 0.15, 0, "%.0sother programs use %s of the CPUs, and used %s"},
};

/* Whether the name is of this kind; rest: what the star stands for. */
static bool is_of(const char *name, const char *kind, char rest[48])
{
    const char  *star = strchr(kind, '*');
    const size_t head = star ? (size_t)(star - kind) : strlen(kind);
    const size_t tail = star ? strlen(star + 1) : 0, length = strlen(name);
    if (strncmp(name, kind, head) != 0 || length < head + tail || (!star && length != head) ||
        strcmp(name + length - tail, star ? star + 1 : "") != 0)
        return false;
    snprintf(rest, 48, "%.*s", (int)(length - head - tail), name + head);
    return true;
}

static bool explains(const struct cause *cause, double before, double now)
{
    if (cause->rise > 0)
        return now - before >= cause->rise && (cause->ratio <= 0 || now >= before * cause->ratio);
    return now - before <= cause->rise && now <= before * cause->ratio;
}

/* The share of the time that work of so many milliseconds takes at the present rate; a stage of
 * which a batch is one is overrated. */
static double busy_of(const sac_monitor *m, double ms)
{
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->watched[i]->name, "frames") == 0)
            return ms * 1e-3 * sac_series_mean(&m->watched[i]->series, 0, m->setup.hold);
    return 1;
}

/* Whether work takes longer than usual for want of CPUs. */
static bool is_held_up(const sac_monitor *m)
{
    double before, now;
    for (int i = 0; i < m->count; i++) {
        const struct sac_watched *w = m->watched[i];
        if (w->alarm.rule == SAC_ALARM_STRETCH &&
            sac_alarm_compare(&w->alarm, &w->series, &m->setup, &before, &now))
            return now >= before * STRETCH_MIN;
    }
    return false;
}

static bool is_time(const struct sac_watched *of)
{
    return of->alarm.rule == SAC_ALARM_TIME || of->alarm.rule == SAC_ALARM_WORK;
}

static void tell_processes(const sac_monitor *m, enum named named, char *buf, size_t size)
{
    const size_t length = strlen(buf);
    char         names[150];
    sac_monitor_name_processes(m, named == NAMED_NEW, names, sizeof names);
    if (names[0] && length < size)
        snprintf(buf + length, size - length, named == NAMED_NEW ? "; new: %s" : ": %s", names);
}

/* Of several figures of one kind the one that changed the most. */
static bool tell(const sac_monitor *m, const struct cause *cause, const struct sac_watched *of,
                 char *buf, size_t size)
{
    double      most = 0;
    char        rest[48], now_text[32], before_text[32];
    const char *own = of->name;
    for (int i = 0; i < m->count; i++) {
        const struct sac_watched *w = m->watched[i];
        double                    before, now;
        if (strcmp(w->name, own) == 0 || !is_of(w->name, cause->name, rest) ||
            !sac_alarm_compare(&w->alarm, &w->series, &m->setup, &before, &now) ||
            !explains(cause, before, now) || fabs(now - before) <= most)
            continue;
        if (cause->work && !is_time(of) && !(busy_of(m, now) >= WORK_MIN))
            continue;
        most = fabs(now - before);
        sac_monitor_format(now, w->unit, now_text, sizeof now_text);
        sac_monitor_format(before, w->unit, before_text, sizeof before_text);
        snprintf(buf, size, "; ");
        snprintf(buf + 2, size - 2, cause->text, rest, now_text, before_text);
    }
    if (most > 0 && cause->named)
        tell_processes(m, cause->named, buf, size);
    return most > 0;
}

/* Where most of what was added is none of the pool's: libraries', or the program's own. */
static void tell_outside(const sac_monitor *m, const struct sac_watched *of, double grown,
                         char *buf, size_t size)
{
    double before, now;
    char   text[32];
    for (int i = 0; i < m->count; i++) {
        const struct sac_watched *w = m->watched[i];
        if (w == of || strcmp(w->name, "pool") != 0 ||
            !sac_alarm_compare(&w->alarm, &w->series, &m->setup, &before, &now) ||
            now - before > grown / 2)
            continue;
        sac_monitor_format(now, w->unit, text, sizeof text);
        snprintf(buf, size, "; it is held outside of the pool, which lends out %s", text);
    }
}

/* The stage whose memory grew most, where that is most of it. */
static void tell_owner(const sac_monitor *m, const struct sac_watched *of, char *buf, size_t size)
{
    double before, now, most = 0;
    char   rest[48], text[32];
    if (!sac_alarm_compare(&of->alarm, &of->series, &m->setup, &before, &now))
        return;
    const double grown = now - before;
    for (int i = 0; i < m->count; i++) {
        const struct sac_watched *w = m->watched[i];
        if (strcmp(w->name, of->name) == 0 || !is_of(w->name, "memory *", rest) ||
            !sac_alarm_compare(&w->alarm, &w->series, &m->setup, &before, &now) ||
            now - before <= SAC_MAX(most, grown / 2))
            continue;
        most = now - before;
        sac_monitor_format(most, w->unit, text, sizeof text);
        snprintf(buf, size, "; %s of it more are held by %s", text, rest);
    }
    if (most == 0)
        tell_outside(m, of, grown, buf, size);
}

/* Less than is due: whether it is not there, or not done. */
static void tell_shortfall(const sac_monitor *m, char *buf, size_t size)
{
    for (int i = 0; i < m->count; i++) {
        const struct sac_watched *w = m->watched[i];
        if (strcmp(w->name, "queue detect") != 0)
            continue;
        const bool full = sac_series_mean(&w->series, 0, m->setup.hold) >= 0.5;
        snprintf(buf, size,
                 full ? "; the run is too slow for its inputs"
                      : "; the inputs bring no more, what they bring is done");
    }
}

void sac_monitor_cause(const sac_monitor *m, const struct sac_watched *of, char *buf, size_t size)
{
    buf[0] = '\0';
    if (of->alarm.rule == SAC_ALARM_BYTES) {
        tell_owner(m, of, buf, size);
        return;
    }
    const bool behind = of->alarm.rule == SAC_ALARM_BEHIND;
    const bool timed = behind || is_time(of) || of->alarm.rule == SAC_ALARM_RATE;
    const bool held = timed && is_held_up(m);
    for (size_t i = 0; timed && i < SAC_COUNT(causes); i++)
        if ((held || !causes[i].held) && tell(m, &causes[i], of, buf, size))
            return;
    if (behind) /* from the beginning, it may be */
        tell_shortfall(m, buf, size);
    else if (timed)
        snprintf(buf, size, "; no other figure tells why");
}
