"""Calibrations: how far a judge can be believed, by the labels of people; and cascades of two judges."""
