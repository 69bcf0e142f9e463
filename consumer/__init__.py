"""The consumer: releases its target, and receives the points that were chosen."""
