/* SPDX-License-Identifier: Apache-2.0 */
#include "media/turns.h"

#include "base/thread.h"

/* A picture, then its packet. */
struct place {
    AVFrame  *picture;
    AVPacket *packet;
    bool      coded;
    int       err; /* what the encoder gave */
};

struct turn {
    struct sac_turns *all;
    AVCodecContext   *avc;
    pthread_t         thread;
    bool              started;
    int64_t           next; /* the picture that it encodes next */
};

/* Pictures are numbered from 0; number n is in place n % place_count until it is received. */
struct sac_turns {
    struct turn   turn[SAC_TURNS_MAX];
    int           count, group, picture_max;
    struct place *place; /* [place_count] */
    int           place_count;
    /* The lock guards what follows, and places other than those being encoded. */
    pthread_mutex_t lock;
    pthread_cond_t  sent_one, coded_one;
    int64_t         sent, received;
    int             pictures; /* that wait or are encoded */
    bool            ended, stopped;
};

int sac_turns_pictures(int encoders, int group)
{
    /* When an encoder is done with a group, the next one with its second to last, and so on, the
     * pictures of (encoders - 1) / 2 groups wait on average. */
    return group * (encoders - 1) / 2 + encoders;
}

/* ---- an encoder's thread ---- */

static bool begins_group(const struct sac_turns *turns, int64_t n)
{
    return n % turns->group == 0;
}

/* The packet stays empty where the encoder drops the picture. */
static int encode(const struct turn *turn, struct place *place, bool key)
{
    int err = avcodec_send_frame(turn->avc, place->picture);
    av_frame_unref(place->picture);
    if (err < 0)
        return err;
    err = avcodec_receive_packet(turn->avc, place->packet);
    if (err == AVERROR(EAGAIN))
        return 0;
    /* Else it would depend on pictures that the decoder has not seen. */
    return err >= 0 && key && !(place->packet->flags & AV_PKT_FLAG_KEY) ? AVERROR_BUG : err;
}

static void go_on(struct turn *turn)
{
    const struct sac_turns *all = turn->all;
    turn->next++;
    if (begins_group(all, turn->next))
        turn->next += (int64_t)all->group * (all->count - 1);
}

static void *turn_main(void *arg)
{
    struct turn      *turn = arg;
    struct sac_turns *all = turn->all;
    pthread_mutex_lock(&all->lock);
    for (;;) {
        while (!all->stopped && turn->next >= all->sent)
            pthread_cond_wait(&all->sent_one, &all->lock);
        if (all->stopped)
            break;
        struct place *place = &all->place[turn->next % all->place_count];
        pthread_mutex_unlock(&all->lock);
        const int err = encode(turn, place, begins_group(all, turn->next));
        pthread_mutex_lock(&all->lock);
        place->err = err;
        place->coded = true;
        all->pictures--;
        go_on(turn);
        pthread_cond_signal(&all->coded_one);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* ---- create ---- */

static bool create_places(struct sac_turns *turns)
{
    /* Encoders of one speed have, behind the picture that is received next, at most the groups of
     * the others and what waits. Those that are faster stop there. */
    turns->place_count = turns->group * (turns->count - 1) + turns->picture_max + 1;
    turns->place = sac_calloc((size_t)turns->place_count, sizeof *turns->place);
    for (int i = 0; turns->place && i < turns->place_count; i++) {
        turns->place[i].picture = av_frame_alloc();
        turns->place[i].packet = av_packet_alloc();
        if (!turns->place[i].picture || !turns->place[i].packet)
            return false;
    }
    return turns->place != NULL;
}

static sac_result start_threads(sac_context *ctx, struct sac_turns *turns)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < turns->count && res == SAC_OK; i++) {
        struct turn *turn = &turns->turn[i];
        turn->next = (int64_t)i * turns->group;
        res = sac_thread_start(ctx, &turn->thread, "sac-encode", turn_main, turn);
        turn->started = res == SAC_OK;
    }
    return res;
}

static void free_contexts(AVCodecContext *const *avc, int encoders)
{
    for (int i = 1; i < encoders; i++) {
        AVCodecContext *own = avc[i];
        avcodec_free_context(&own);
    }
}

sac_result sac_turns_create(sac_context *ctx, AVCodecContext *const *avc, int encoders, int group,
                            int picture_max, struct sac_turns **out)
{
    struct sac_turns *turns = sac_new(struct sac_turns);
    if (!turns) {
        free_contexts(avc, encoders);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for encoders that take turns");
    }
    turns->count = encoders;
    turns->group = group;
    turns->picture_max = picture_max;
    for (int i = 0; i < encoders; i++)
        turns->turn[i] = (struct turn){.all = turns, .avc = avc[i]};
    pthread_mutex_init(&turns->lock, NULL);
    pthread_cond_init(&turns->sent_one, NULL);
    pthread_cond_init(&turns->coded_one, NULL);
    sac_result res = create_places(turns)
                         ? start_threads(ctx, turns)
                         : SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for pictures to encode");
    if (res == SAC_OK)
        *out = turns;
    else
        sac_turns_destroy(&turns);
    return res;
}

static void stop(struct sac_turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    turns->stopped = true;
    pthread_cond_broadcast(&turns->sent_one);
    pthread_mutex_unlock(&turns->lock);
    for (int i = 0; i < turns->count; i++)
        if (turns->turn[i].started)
            pthread_join(turns->turn[i].thread, NULL);
}

void sac_turns_destroy(struct sac_turns **turns_at)
{
    struct sac_turns *turns = *turns_at;
    if (!turns)
        return;
    stop(turns);
    for (int i = 1; i < turns->count; i++)
        avcodec_free_context(&turns->turn[i].avc);
    for (int i = 0; turns->place && i < turns->place_count; i++) {
        av_frame_free(&turns->place[i].picture);
        av_packet_free(&turns->place[i].packet);
    }
    sac_free(turns->place);
    pthread_cond_destroy(&turns->coded_one);
    pthread_cond_destroy(&turns->sent_one);
    pthread_mutex_destroy(&turns->lock);
    sac_free(turns);
    *turns_at = NULL;
}

/* ---- pictures in, packets out ---- */

static bool is_full(const struct sac_turns *turns)
{
    return turns->sent - turns->received == turns->place_count;
}

static void put(struct sac_turns *turns, AVFrame *picture)
{
    struct place *place = &turns->place[turns->sent % turns->place_count];
    av_frame_move_ref(place->picture, picture);
    place->picture->pict_type =
        begins_group(turns, turns->sent) ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
    place->coded = false;
    turns->sent++;
    turns->pictures++;
    pthread_cond_broadcast(&turns->sent_one); /* one of them waits for this number */
}

int sac_turns_send_wait(struct sac_turns *turns, AVFrame *picture)
{
    int err = 0;
    pthread_mutex_lock(&turns->lock);
    while (picture && turns->pictures == turns->picture_max)
        pthread_cond_wait(&turns->coded_one, &turns->lock);
    if (!picture)
        turns->ended = true;
    else if (turns->ended)
        err = AVERROR_EOF;
    else if (is_full(turns))
        err = AVERROR(EAGAIN);
    else
        put(turns, picture);
    pthread_mutex_unlock(&turns->lock);
    return err;
}

static int take(struct sac_turns *turns, AVPacket *packet)
{
    struct place *place = &turns->place[turns->received++ % turns->place_count];
    av_packet_move_ref(packet, place->packet);
    return place->err;
}

int sac_turns_receive_wait(struct sac_turns *turns, AVPacket *packet)
{
    int err = AVERROR(EAGAIN);
    pthread_mutex_lock(&turns->lock);
    while (err == AVERROR(EAGAIN)) {
        const struct place *first = &turns->place[turns->received % turns->place_count];
        if (turns->received == turns->sent) {
            err = turns->ended ? AVERROR_EOF : err;
            break;
        }
        if (first->coded) {
            err = take(turns, packet);
            if (err == 0 && !packet->data) /* dropped by the encoder */
                err = AVERROR(EAGAIN);
        } else if (turns->ended || is_full(turns)) {
            pthread_cond_wait(&turns->coded_one, &turns->lock);
        } else {
            break;
        }
    }
    pthread_mutex_unlock(&turns->lock);
    return err;
}
