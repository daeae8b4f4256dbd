# tests/golden/events.py - read an event file with TensorBoard itself and print what it finds.
#
#   python tests/golden/events.py FOLDER
#
# Needs the package tensorboard. The specs do not: they compare bytes with those of a file that this
# script has read (tests/spec/train/events_spec.lua).
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
accumulator.Reload()
tags = accumulator.Tags()
for tag in sorted(tags["scalars"]):
    for event in accumulator.Scalars(tag):
        print("scalar", tag, event.step, event.value, event.wall_time)
for tag in sorted(tags["tensors"]):
    for event in accumulator.Tensors(tag):
        print("tensor", tag, event.step, tensor_util.make_ndarray(event.tensor_proto).tolist())
for tag in sorted(tags["histograms"]):
    for event in accumulator.Histograms(tag):
        h = event.histogram_value
        print("histogram", tag, event.step, h.min, h.max, h.num, h.sum, h.sum_squares, h.bucket_limit, h.bucket)
