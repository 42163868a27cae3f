"""Additive increase, multiplicative decrease (RFC 5681), in Python: packet for packet what `congestion = "reno"` does."""

import longhaul as lh


class Aimd(lh.Controller):
    def __init__(self, start: lh.Start) -> None:
        super().__init__(start)
        self.ssthresh, self.restart_window = float(start.ssthresh), start.initial_window
        self.limit, self.after_timeout, self.acked = start.byte_counting_limit, False, 0

    def on_ack(self, sample: lh.AckSample) -> None:
        if sample.recovering or sample.bytes == 0:
            return
        if self.window < (self.ssthresh or 0):  # slow start, with appropriate byte counting (RFC 3465)
            most = (1 if self.after_timeout else self.limit) * self.mss
            self.window += min(sample.opening_bytes, most) if sample.fills(self.window, True) else 0
        elif sample.limited_by_window:  # a segment for each window's worth of bytes
            self.acked += sample.opening_bytes
            if self.acked >= self.window:
                self.acked -= int(self.window)
                self.window += self.mss

    def on_congestion(self, event: lh.Congestion) -> None:
        self.ssthresh = max(event.flight_size // 2, 2 * self.mss)
        self.window = self.mss if event.cause == "timeout" else self.ssthresh
        self.acked, self.after_timeout = 0, event.cause == "timeout"

    def on_restart(self, now_s: float) -> None:
        self.window = min(self.window, self.restart_window)

    def set_window(self, window: int, ssthresh: int | None) -> None:
        if ssthresh is not None:
            self.ssthresh, self.after_timeout = ssthresh, False
        self.window = max(window, self.mss)
