//! How long a queue was.

use core::ops::Range;

use base::{Instant, time};

/// A queue's length whenever it changed, and the average that it goes by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueTrace {
    /// In the order of their times; the last of those that share one holds.
    pub marks: Vec<QueueMark>,
}

/// A queue as of a time, until the next mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueMark {
    /// When.
    pub at: Instant,
    /// Packets that wait. One that found the line free is not among them.
    pub packets: u32,
    /// Bytes that wait.
    pub bytes: u64,
    /// The average length in packets that the queue goes by, as of the last packet that came: RED's alone.
    pub average: Option<f64>,
}

impl QueueTrace {
    /// The queue is as long as that from now on.
    pub fn note(&mut self, at: Instant, packets: usize, bytes: u64, average: Option<f64>) {
        let mark = QueueMark { at, packets: packets as u32, bytes, average };
        match self.marks.last_mut() {
            Some(last) if last.at == at => *last = mark,
            _ => self.marks.push(mark),
        }
    }

    /// The mean over a time of packets that waited; `None` of no time.
    #[must_use]
    pub fn mean_packets(&self, span: &Range<Instant>) -> Option<f64> {
        self.mean(span, |mark| Some(mark.packets.into()))
    }

    /// The mean over a time of the average that the queue goes by; `None` of no time, or if it goes by none.
    #[must_use]
    pub fn mean_average(&self, span: &Range<Instant>) -> Option<f64> {
        self.mean(span, |mark| mark.average)
    }

    /// The mean of `value` over a time; what holds before the first mark is nothing.
    fn mean(&self, span: &Range<Instant>, value: impl Fn(&QueueMark) -> Option<f64>) -> Option<f64> {
        let length = span.end.saturating_since(span.start);
        if length.is_zero() {
            return None;
        }
        let ends = self.marks.iter().skip(1).map(|mark| mark.at).chain([Instant::MAX]);
        let mut sum = 0.0;
        for (mark, end) in self.marks.iter().zip(ends) {
            let holds = time::overlap(&(mark.at..end), span);
            if !holds.is_zero() {
                sum += holds.as_nanos() as f64 * value(mark)?;
            }
        }
        Some(sum / length.as_nanos() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_count_how_long_each_length_held() {
        let at = Instant::from_nanos;
        let mut trace = QueueTrace::default();
        for (time, packets, average) in [(10, 1, 0.5), (20, 9, 9.0), (20, 4, 1.0), (40, 0, 2.0)] {
            trace.note(at(time), packets, 0, Some(average));
        }
        assert_eq!(trace.marks.len(), 3);
        // 10 of nothing, 10 of one, 20 of four.
        assert_eq!(trace.mean_packets(&(at(0)..at(40))), Some(90.0 / 40.0));
        assert_eq!(trace.mean_packets(&(at(30)..at(50))), Some(2.0));
        assert_eq!(trace.mean_average(&(at(30)..at(50))), Some(1.5));
        assert_eq!(trace.mean_packets(&(at(5)..at(5))), None);
        trace.note(at(50), 1, 0, None);
        assert_eq!(trace.mean_average(&(at(30)..at(60))), None);
    }
}
