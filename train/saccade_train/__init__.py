# SPDX-License-Identifier: Apache-2.0
"""Training of saccade's own small models: person detector, ReID and segmenter."""
