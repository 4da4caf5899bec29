/* SPDX-License-Identifier: Apache-2.0 */
/* saccade, the program: finds the verb, reads its options, runs it and turns the outcome into one
 * sentence and an exit status. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <saccade/context.h>

#include "../base/bad_end.h"
#include "../base/nearest.h"
#include "verbs.h"
#include "wrap.h"

/* Without a verb the first word is an input; a word that can't be one is a mistyped verb. */
static bool looks_like_input(const char *word)
{
    return strcmp(word, "-") == 0 || strpbrk(word, "./%:") || access(word, F_OK) == 0;
}

static int choose_verb(const char *word, const struct verb **out, int *skip, struct fault *fault)
{
    struct sac_nearest best = {0};
    *out = verb_find(word);
    *skip = *out ? 1 : 0;
    if (*out)
        return STATUS_OK;
    *out = verb_find("track");
    if ((word[0] == '-' && word[1]) || looks_like_input(word))
        return STATUS_OK;
    if (word[strspn(word, "0123456789")] == '\0')
        return fault_usage(fault, "'%s' is neither a verb nor a file; a webcam is /dev/video%s",
                           word, word);
    for (size_t i = 0; i < verb_count; i++)
        sac_nearest_offer(&best, word, verbs[i].name);
    if (best.word)
        return fault_usage(fault, "'%s' is neither a verb nor a file; did you mean '%s'?", word,
                           best.word);
    return fault_usage(fault, "'%s' is neither a verb nor a file; 'saccade --help' lists the verbs",
                       word);
}

/* After an option, where an input is expected. */
static bool is_late_verb(const char *word)
{
    return verb_find(word) && access(word, F_OK) != 0;
}

static int check_arguments(const struct verb *verb, const struct text_list *args,
                           struct fault *fault)
{
    if (args->count < verb->args_min)
        return fault_usage(fault, "%s needs %s; see 'saccade %s --help'", verb->name,
                           verb->arguments, verb->name);
    if (args->count > verb->args_max)
        return fault_usage(fault, "%s: '%s' is one argument too many", verb->name,
                           args->items[verb->args_max]);
    return STATUS_OK;
}

/* The command line as one text, for the header of the JSON lines. */
static const char *join_command(struct settings *s, int argc, char **argv)
{
    size_t size = 1;
    for (int i = 0; i < argc; i++)
        size += strlen(argv[i]) + 1;
    char *text = calloc(1, size);
    for (int i = 0; text && i < argc; i++) {
        strcat(text, i ? " " : "");
        strcat(text, argv[i]);
    }
    const char *held = text ? settings_hold(s, text) : NULL;
    free(text);
    return held;
}

/* The system shows a process's arguments to every user (ps, /proc), so passwords in addresses are
 * erased there. The program uses a copy, owned by the caller. */
static char **take_arguments(struct settings *s, int argc, char **argv)
{
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    for (int i = 0; copy && i < argc; i++) {
        const size_t length = strlen(argv[i]);
        char        *held = (char *)settings_hold(s, argv[i]);
        if (!held) {
            free(copy);
            return NULL;
        }
        memset(argv[i], 0, length);
        sac_hide_secrets(held, argv[i], length + 1);
        copy[i] = held;
    }
    return copy;
}

/* OpenMP's workers, which oneDNN has, must not spin between frames (docs/design.md has the
 * figures). libgomp reads the environment once, when it is loaded. If FFmpeg's libraries load it,
 * that is before main, and the program executes itself again. If that fails, it continues, only
 * slower beside other work. No thread has been started yet. */
static void calm_workers(char **argv)
{
    char    self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") ||
        setenv("GOMP_SPINCOUNT", "1000", 1) != 0)
        return;
    void *loaded = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!loaded)
        return; /* it will read the value set above */
    dlclose(loaded);
    if (length > 0) {
        self[length] = '\0';
        execv(self, argv);
    }
}

static int run_verb(const struct verb *verb, int argc, char **argv, bool named, struct settings *s,
                    struct fault *fault)
{
    int status = options_parse(s, verb->bit, argc, argv, fault);
    if (!named && !s->help && s->args.count > 0 && is_late_verb(s->args.items[0]))
        return fault_usage(fault, "the verb comes first: saccade %s, then options and inputs",
                           s->args.items[0]);
    if (s->help) {
        fault->sentence[0] = '\0';
        named ? help_verb(verb, stdout) : help_program(stdout);
        return STATUS_OK;
    }
    if (status == STATUS_OK && s->version) {
        printf("saccade %s\n", sac_version());
        return STATUS_OK;
    }
    if (status == STATUS_OK)
        status = check_arguments(verb, &s->args, fault);
    if (status == STATUS_OK)
        status = verb->run(s, fault);
    return status;
}

/* The write may have failed long ago, so errno may be lost. */
static bool reader_left(void)
{
    struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return errno == EPIPE || (poll(&fd, 1, 0) > 0 && (fd.revents & POLLERR));
}

/* A closed pipe (saccade help | head) is not reported; a full disk is. */
static int finish_output(int status, struct fault *fault)
{
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    int  why = errno;
    if (!failed || status != STATUS_OK)
        return status;
    return reader_left() ? STATUS_FAILURE
                         : fault_failure(fault, "cannot write standard output: %s",
                                         strerror(why ? why : EIO));
}

/* A supervisor may start the program with these closed. The first files that a run opens would get
 * their numbers, and what is meant for standard error would be written into them. What stands in is
 * open the other way round, so that reading and writing fail as before. */
static void keep_standard_files(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return; /* nothing stands in, as without this */
}

/* ---- bad ends ---- */

#if defined(__GLIBC__) && !SAC_SANITIZED /* they report a crash themselves */
/* The process ends by the same signal, so that its status and a core file say so. A second thread
 * that comes here waits for that. */
static void report_bad_end(int number)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    static const char what[] = "saccade: crashed, by a defect of its own or of a library or driver "
                               "that it uses; please report it with these stacks. The thread that "
                               "crashed was at\n";
    if (atomic_flag_test_and_set(&begun))
        for (;;)
            pause();
    sac_stack_show(what);
    sac_stacks_show((int)syscall(SYS_gettid));
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_for_bad_ends(void)
{
    static const int bad[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction report = {.sa_handler = report_bad_end};
    sigemptyset(&report.sa_mask);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        sigaddset(&report.sa_mask, bad[i]); /* a fault in the report itself ends the process */
    sac_stacks_prepare();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        sigaction(bad[i], &report, NULL);
}
#else
static void watch_for_bad_ends(void)
{
}
#endif

int main(int argc, char **argv)
{
    struct fault       fault = {0};
    struct settings    settings;
    const struct verb *verb = NULL;
    char             **args = NULL;
    int                skip = 0, status;
    /* A closed pipe, or a file over the limit, is a failed write, which is handled where it
     * happens. */
    keep_standard_files();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    watch_for_bad_ends();
    settings_init(&settings);
    if (argc < 2) {
        help_program(stderr);
        status = STATUS_USAGE;
    } else {
        settings.run.command = join_command(&settings, argc, argv);
        status = choose_verb(argv[1], &verb, &skip, &fault);
        if (status == STATUS_OK && (verb->bit & (VERB_VIDEO | VERB_INFER | VERB_BENCH)))
            calm_workers(argv);
        if (status == STATUS_OK && !(args = take_arguments(&settings, argc, argv)))
            status = fault_failure(&fault, "out of memory");
        if (status == STATUS_OK)
            status = run_verb(verb, argc - 1 - skip, args + 1 + skip, skip, &settings, &fault);
    }
    free(args);
    settings_finish(&settings);
    status = finish_output(status, &fault);
    if (fault.sentence[0]) {
        fputs("saccade: ", stderr);
        print_clean(stderr, fault.sentence);
        fputc('\n', stderr);
    }
    return status;
}
