/* SPDX-License-Identifier: Apache-2.0 */
/* saccade doctor: prints what sac_doctor_run finds. */
#include <string.h>

#include <saccade/doctor.h>

#include "json.h"
#include "term.h"
#include "verbs.h"

struct report {
    struct json json;
    bool        as_json;
    char        area[32]; /* of the previous finding */
    int         missing, faults;
};

static const char *level_name(enum sac_finding_level level)
{
    static const char *const names[] = {"ok", "note", "missing", "fault"};
    return names[level];
}

static void print_json(struct report *report, const struct sac_finding *finding)
{
    json_open(&report->json, NULL, '{');
    json_text(&report->json, "area", finding->area);
    json_text(&report->json, "level", level_name(finding->level));
    json_text(&report->json, "text", finding->text);
    json_text(&report->json, "mend", finding->mend);
    json_close(&report->json, '}');
}

static void print_text(struct report *report, const struct sac_finding *finding)
{
    bool again = strcmp(report->area, finding->area) == 0;
    printf("%-8s %-8s %s\n", again ? "" : finding->area, level_name(finding->level), finding->text);
    if (finding->mend)
        printf("%-8s %-8s fix it with: %s\n", "", "", finding->mend);
    snprintf(report->area, sizeof report->area, "%s", finding->area);
}

static void on_finding(void *user, const struct sac_finding *finding)
{
    struct report *report = user;
    report->missing += finding->level == SAC_FINDING_MISSING;
    report->faults += finding->level == SAC_FINDING_FAULT;
    if (report->as_json)
        print_json(report, finding);
    else
        print_text(report, finding);
}

int verb_doctor(struct settings *s, struct fault *fault)
{
    struct report report = {.json = {.out = stdout}, .as_json = s->json};
    sac_context  *ctx = NULL;
    int           status = term_context(s, &ctx, fault);
    if (status != STATUS_OK)
        return status;
    if (s->json) {
        json_open(&report.json, NULL, '{');
        json_text(&report.json, "version", sac_version());
        json_open(&report.json, "findings", '[');
    } else {
        printf("saccade %s\n", sac_version());
    }
    sac_doctor_run(ctx, on_finding, &report);
    if (s->json) {
        json_close(&report.json, ']');
        json_close(&report.json, '}');
        putchar('\n');
    } else if (!report.faults) {
        printf("Tracking works on this machine%s.\n",
               report.missing ? "; with what is missing above it would be faster or support more"
                              : "");
    }
    sac_context_destroy(&ctx);
    if (report.faults)
        return fault_failure(fault, "tracking can't run on this machine: see the faults above");
    return STATUS_OK;
}
