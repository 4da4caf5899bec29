// SPDX-License-Identifier: Apache-2.0
// Track OpenCV's images: opencv in.mp4 (or the number of a camera). Their pixels are not copied on
// the CPU; a GPU gets a copy.
//
//     c++ -std=c++17 opencv.cpp $(pkg-config --cflags --libs saccade opencv4)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <opencv2/opencv.hpp>
#include <saccade/saccade.h>

// A frame that shares the pixels of an 8-bit image with 1, 3 or 4 channels, or of a part of one. It
// holds a reference to them; they must not change until the frame's result has arrived.
static sac_result frame_of(sac_device *host, const cv::Mat &mat, int64_t pts_us, sac_frame **out)
{
    sac_frame desc{};
    desc.format = mat.channels() == 1   ? SAC_PIXEL_GRAY8
                  : mat.channels() == 3 ? SAC_PIXEL_BGR24
                                        : SAC_PIXEL_BGRA;
    desc.width = mat.cols;
    desc.height = mat.rows;
    desc.plane[0] = mat.data;
    desc.pitch_bytes[0] = mat.step;
    desc.pts_us = pts_us;
    auto      *kept = new cv::Mat(mat);
    auto       let_go = [](void *user) { delete static_cast<cv::Mat *>(user); };
    sac_result res = sac_frame_wrap(host, &desc, let_go, kept, out);
    if (res != SAC_OK)
        delete kept;
    return res;
}

// The time of the last image. Cameras report none, or always 0.
static int64_t time_of(const cv::VideoCapture &in, bool camera)
{
    using namespace std::chrono;
    if (camera)
        return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
    return static_cast<int64_t>(in.get(cv::CAP_PROP_POS_MSEC) * 1000);
}

static sac_result track(sac_session *s, sac_device *host, cv::VideoCapture &in, bool camera)
{
    sac_result res = SAC_OK;
    for (int64_t number = 0; res == SAC_OK; number++) {
        cv::Mat                   picture; // a new one each time: the last one may still be read
        sac_frame                *frame = nullptr;
        struct sac_session_result r = {};
        if (!in.read(picture))
            break;
        res = frame_of(host, picture, time_of(in, camera), &frame);
        if (res == SAC_OK)
            res = sac_session_submit(s, frame, number);
        if (res == SAC_OK)
            res = sac_session_result_wait(s, -1, &r); // more frames at once are faster: see push.c
        if (res == SAC_OK)
            res = r.status;
        for (size_t i = 0; i < r.count; i++)
            cv::rectangle(picture, cv::Point2f(r.tracks[i].x0, r.tracks[i].y0),
                          cv::Point2f(r.tracks[i].x1, r.tracks[i].y1), cv::Scalar(0, 255, 0), 2);
        std::printf("frame %lld: %zu tracks\n", static_cast<long long>(number), r.count);
        sac_session_result_finish(&r);
        sac_frame_unref(&frame);
    }
    return res;
}

int main(int argc, char **argv)
{
    // With person_det, person_reid and BoT-SORT.
    struct sac_session_params params = sac_session_params_default();

    sac_context     *ctx = nullptr;
    sac_device      *host = nullptr;
    sac_session     *s = nullptr;
    cv::VideoCapture in;
    if (argc != 2 || sac_context_create(nullptr, &ctx) != SAC_OK)
        return std::fprintf(stderr, "usage: opencv VIDEO|CAMERA\n"), 2;
    const std::string name = argv[1];
    const bool camera = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    if (!(camera ? in.open(std::atoi(argv[1])) : in.open(name))) {
        sac_context_destroy(&ctx);
        return std::fprintf(stderr, "opencv: %s: OpenCV cannot open it\n", argv[1]), 1;
    }
    sac_result res = sac_device_open(ctx, "cpu", nullptr, &host); // where OpenCV's pixels are
    if (res == SAC_OK)
        res = sac_session_create(ctx, &params, &s);
    if (res == SAC_OK)
        res = sac_session_start(s);
    if (res == SAC_OK)
        res = track(s, host, in, camera);
    char why[512];
    if (res != SAC_OK && sac_context_last_error(ctx, why, sizeof why))
        std::fprintf(stderr, "opencv: %s\n", why);
    sac_session_destroy(&s);
    sac_device_unref(&host);
    sac_context_destroy(&ctx);
    return res == SAC_OK ? 0 : 1;
}
