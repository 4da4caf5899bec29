/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a run as rows: what each is called, where it lies in the structures of
 * <saccade/stats.h>, its unit, how those of several streams or devices add up, and whether a
 * summary shows it. The JSON report and its schema (docs/stats.schema.json), the sums over streams
 * and devices and the summary's lines come from these rows, so a new figure is a field and a row.
 *
 *     sac_figures_add(&sac_figures_source, &sum, &one);
 *     sac_figures_write(&json, &sac_figures_run, &stats); // members into an open object
 */
#ifndef SAC_OBSERVE_FIGURES_H
#define SAC_OBSERVE_FIGURES_H

#include <saccade/monitor.h>
#include <saccade/stacks.h>
#include <saccade/stats.h>

#include "base/json.h"

enum { SAC_MONITOR_EVENTS = 64, SAC_MONITOR_FIGURES = 256 }; /* at most */

enum sac_figure_type {
    SAC_FIGURE_COUNT,  /* int, int64_t or uint64_t, not negative */
    SAC_FIGURE_AMOUNT, /* double, not negative */
    SAC_FIGURE_SHARE,  /* double, 0 to 1 */
    SAC_FIGURE_KNOWN,  /* double, not negative; NAN: null */
    SAC_FIGURE_POINTS, /* an array of float, each as KNOWN; its length as a list's */
    SAC_FIGURE_NAME,   /* char[], never empty */
    SAC_FIGURE_TEXT,   /* char[]; empty: null */
    SAC_FIGURE_HELD,   /* const char *, never empty */
    SAC_FIGURE_GROUP,  /* a structure with rows of its own */
    SAC_FIGURE_INLINE, /* the same; its rows belong to this group */
    SAC_FIGURE_LIST    /* an array of groups, or of names */
};

enum sac_figure_sum {
    SAC_SUM_KEEP, /* it belongs to the whole run, or is computed from others: the first one's */
    SAC_SUM_ADD
};

/* The lines of a summary that show the figure where it is not 0. */
enum sac_figure_shown { SAC_SHOWN_NEVER, SAC_SHOWN_ALWAYS, SAC_SHOWN_DETAILS };

struct sac_figure {
    const char          *name; /* in the report; NULL: not there */
    enum sac_figure_type type;
    size_t               offset, size; /* in the group's structure */
    size_t               stride; /* a list: to the next element; in a group that lies in several
                                    arrays: to the next element of this one */
    const char         *unit;    /* "ms", "bytes"; NULL: a number of things, or a text */
    enum sac_figure_sum sum;
    const char         *meaning; /* for the schema; or NULL */

    const struct sac_figures *group; /* of a group or list; NULL: a list of names */
    size_t                    count; /* a list's length: where the int lies */
    int                       fixed; /* or, where this is not 0, itself */
    const char *(*key)(int i);       /* the list is an object with these keys */
    bool optional;                   /* a list that is left out when it is empty */

    double (*compute)(const void *group); /* instead of a value at offset */

    enum sac_figure_shown shown;
    const char           *label, *one, *many; /* "input", "timestamp repaired", ... */
};

struct sac_figures {
    const char              *name; /* in the schema's $defs */
    const struct sac_figure *rows;
    size_t                   row_count;
    bool (*is_known)(const void *group); /* else the group is null; NULL: always */
};

/* struct sac_pipeline_stats up to its streams; struct sac_stream_stats; what follows the streams:
 * struct sac_pipeline_stats again. */
extern const struct sac_figures sac_figures_run, sac_figures_stream, sac_figures_judgement;
extern const struct sac_figures sac_figures_source, sac_figures_queue;

/* What was held at most: sac_device_get_allocations. */
struct sac_held {
    int                   count;
    struct sac_allocation item[SAC_ALLOCATIONS_MAX];
};
extern const struct sac_figures sac_figures_held; /* "allocations": the items */

/* What a sampler of call stacks found, as two members: "sampling", and a list, "stacks". */
struct sac_sampled {
    bool                      known;
    struct sac_stacks_summary summary;
};
extern const struct sac_figures sac_figures_sampled, sac_figures_stack; /* the latter: sac_stack */

/* What a monitor knows at one time. */
struct sac_monitor_view {
    bool                      known;
    double                    interval_s, elapsed_s, cost;
    int                       figure_count, event_count;
    struct sac_monitor_figure figure[SAC_MONITOR_FIGURES];
    struct sac_monitor_told {
        char                     kind[16]; /* by name */
        struct sac_monitor_event event;    /* ended_s: NAN: it goes on */
    } event[SAC_MONITOR_EVENTS];
};
extern const struct sac_figures sac_figures_monitor; /* its members */
extern const struct sac_figures sac_figures_watched; /* "monitor": them, or null */

void sac_figures_write(struct sac_json *json, const struct sac_figures *figures, const void *group);
/* A list of n groups under a key. */
void sac_figures_write_list(struct sac_json *json, const char *key,
                            const struct sac_figures *figures, const void *first, size_t stride,
                            int n);
/* Add the figures of `one` to those of `sum`; both are structures of this group. */
void sac_figures_add(const struct sac_figures *figures, void *sum, const void *one);
/* Set the rates and means that follow from counts and elapsed_s. */
void sac_figures_set_rates(struct sac_pipeline_stats *stats);

#endif
