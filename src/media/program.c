/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where a transport stream's program map changes a stream's codec, which libavformat does not
 * check again. Sections are as in ISO/IEC 13818-1, 2.4.4; one that does not fit into a packet is
 * ignored. */
#include <libavutil/crc.h>

#include "media/media.h"

enum { PACKET = 188, SYNC = 0x47 };

sac_result sac_program_open(sac_context *ctx, const char *path, int pid,
                            struct sac_program *program)
{
    *program =
        (struct sac_program){.file = fopen(path, "rb"), .pid = pid, .map_pid = -1, .type = -1};
    return program->file ? SAC_OK : SAC_FAIL(ctx, SAC_ERR_IO, "%s: cannot be read", path);
}

void sac_program_close(struct sac_program *program)
{
    if (program->file)
        fclose(program->file);
    program->file = NULL;
}

/* The undamaged section that begins in a packet, and its size; NULL: none. */
static const uint8_t *section_of(const uint8_t *packet, int table, size_t *size)
{
    const bool begins = packet[1] & 0x40, has_payload = packet[3] & 0x10, adapts = packet[3] & 0x20;
    size_t     at = 4 + (adapts ? 1u + packet[4] : 0);
    if (!begins || !has_payload || at >= PACKET)
        return NULL;
    at += 1u + packet[at]; /* the pointer */
    if (at + 12 > PACKET || packet[at] != table)
        return NULL;
    *size = 3 + ((packet[at + 1] & 0x0fu) << 8 | packet[at + 2]);
    const bool whole =
        *size >= 16 && at + *size <= PACKET &&
        av_crc(av_crc_get_table(AV_CRC_32_IEEE), UINT32_MAX, packet + at, *size) == 0;
    return whole ? packet + at : NULL;
}

/* The type of our stream in a program map; -1: it is not listed. */
static int type_in(const uint8_t *section, size_t size, int pid)
{
    size_t at = 12 + ((section[10] & 0x0fu) << 8 | section[11]);
    for (; at + 5 <= size - 4; at += 5 + ((section[at + 3] & 0x0fu) << 8 | section[at + 4]))
        if (((section[at + 1] & 0x1f) << 8 | section[at + 2]) == pid)
            return section[at];
    return -1;
}

/* Note the PID of a program map, until one that lists our stream is known. */
static void note_maps(struct sac_program *program, const uint8_t *section, size_t size)
{
    bool found = false;
    for (size_t at = 8; at + 4 <= size - 4; at += 4)
        found |= ((section[at + 2] & 0x1f) << 8 | section[at + 3]) == program->map_pid;
    if (!found)
        program->map_pid = -1;
    for (size_t at = 8; program->map_pid < 0 && at + 4 <= size - 4; at += 4)
        if (section[at] || section[at + 1]) /* program 0 is the network table */
            program->map_pid = (section[at + 2] & 0x1f) << 8 | section[at + 3];
}

/* Whether this packet changes our stream's type. */
static bool changes(struct sac_program *program, const uint8_t *packet)
{
    const int      pid = (packet[1] & 0x1f) << 8 | packet[2];
    size_t         size;
    const uint8_t *section =
        pid == 0 || pid == program->map_pid ? section_of(packet, pid == 0 ? 0 : 2, &size) : NULL;
    if (!section)
        return false;
    if (pid == 0) {
        note_maps(program, section, size);
        return false;
    }
    const int type = type_in(section, size, program->pid), before = program->type;
    if (type >= 0)
        program->type = type;
    return type >= 0 && before >= 0 && type != before;
}

int64_t sac_program_change(struct sac_program *program, int64_t until)
{
    uint8_t packet[PACKET];
    if (program->at < 0)
        program->at = until / PACKET * PACKET;
    if (ftello(program->file) != program->at)
        fseeko(program->file, program->at, SEEK_SET);
    while (program->at + PACKET <= until) {
        const int64_t at = program->at;
        if (fread(packet, 1, PACKET, program->file) != PACKET || packet[0] != SYNC) {
            sac_program_close(program); /* not plain 188-byte packets: give up */
            return 0;
        }
        program->at += PACKET;
        if (changes(program, packet))
            return at;
    }
    return 0;
}
