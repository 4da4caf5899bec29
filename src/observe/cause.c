/* SPDX-License-Identifier: Apache-2.0 */
/* Why a figure may have changed: another one that changed with it, and by enough to explain it. The
 * first row of the table that applies is named: what comes from outside the run before what the run
 * does itself. It is evidence, not proof, so both values are in the sentence. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "observe/monitor.h"

struct cause {
    const char *name;  /* of the figure; or what it begins with, and then a star */
    double      rise;  /* it must have risen by this much, in its own unit; below 0: fallen */
    double      ratio; /* and to this many times itself; 0: whatever it was */
    const char *text;  /* with its name's rest, its value now, and before */
};
static const struct cause causes[] = {
    {"gpu*throttled by heat", 0.5, 0, "the GPU slows itself down for its heat%.0s%.0s%.0s"},
    {"gpu*throttled by power", 0.5, 0, "the GPU slows itself down at its power limit%.0s%.0s%.0s"},
    {"gpu*throttled by hardware", 0.5, 0,
     "the GPU slows itself down to protect itself%.0s%.0s%.0s"},
    {"gpu*processes", 0.5, 0, "%.0s%s processes compute on the GPU, and %s did"},
    {"gpu*memory beside the pool", 512e6, 1.25,
     "%.0sothers hold %s of the GPU's memory, and held %s"},
    {"cpu held back", 0.1, 0,
     "%.0sthe control group holds the CPUs back for %s of the time, was %s"},
    {"cpu of others", 0.15, 0, "%.0sother programs use %s of the CPUs, and used %s"},
    {"wait *", 0.15, 0, "thread %s is kept waiting for a CPU for %s of the time, was %s"},
    {"objects", 2, 1.4, "%.0sa frame has %s objects, and had %s"},
    {"batch", 0.5, 1.3, "%.0sa batch has %s, and had %s"},
    {"batch", -0.5, 0.75, "%.0sa batch has %s, and had %s"},
    {"stage *", 0.5, 1.4, "stage %s takes %s, and took %s"},
    {"gpu stage *", 0.5, 1.4, "stage %s takes %s on the GPU, and took %s"},
    {"thread *", -0.1, 0.6, "thread %s runs on %s, and ran on %s"},
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
        most = fabs(now - before);
        sac_monitor_format(now, w->unit, now_text, sizeof now_text);
        sac_monitor_format(before, w->unit, before_text, sizeof before_text);
        snprintf(buf, size, "; ");
        snprintf(buf + 2, size - 2, cause->text, rest, now_text, before_text);
    }
    return most > 0;
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
}

void sac_monitor_cause(const sac_monitor *m, const struct sac_watched *of, char *buf, size_t size)
{
    buf[0] = '\0';
    if (of->alarm.rule == SAC_ALARM_BYTES) {
        tell_owner(m, of, buf, size);
        return;
    }
    const bool timed = of->alarm.rule == SAC_ALARM_TIME || of->alarm.rule == SAC_ALARM_RATE;
    for (size_t i = 0; timed && i < SAC_COUNT(causes); i++)
        if (tell(m, &causes[i], of, buf, size))
            return;
    if (timed)
        snprintf(buf, size, "; no other figure tells why");
}
