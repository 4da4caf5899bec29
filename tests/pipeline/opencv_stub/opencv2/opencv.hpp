// SPDX-License-Identifier: Apache-2.0
// As much of OpenCV as examples/opencv.cpp names, with OpenCV's types, so that the tests compile it
// without OpenCV.
#pragma once

#include <cstddef>
#include <string>

namespace cv
{

struct MatStep {
    operator size_t() const
    {
        return 0;
    }
};

class Mat
{
  public:
    int            channels() const;
    int            rows, cols;
    unsigned char *data;
    MatStep        step;
};

struct Point2f {
    Point2f(float x, float y);
};
struct Scalar {
    Scalar(double a, double b, double c, double d = 0);
};
void rectangle(Mat &picture, Point2f a, Point2f b, const Scalar &colour, int thickness);

enum VideoCaptureProperties { CAP_PROP_POS_MSEC = 0 };

class VideoCapture
{
  public:
    bool   open(const std::string &name);
    bool   open(int camera);
    bool   read(Mat &picture);
    double get(int property) const;
};

} // namespace cv
