//! Bytes that an application has received, against time.

use base::Instant;

use super::series::Series;

/// How many bytes an application had received when, in bounded room.
#[derive(Clone, Debug, Default)]
pub struct ProgressTrace {
    marks: Series<(Instant, u64)>,
    latest: Option<(Instant, u64)>,
}

impl ProgressTrace {
    /// The application has `received` bytes now.
    pub(super) fn note(&mut self, now: Instant, received: u64) {
        if self.latest.is_none_or(|(_, before)| received > before) {
            self.marks.push((now, received));
            self.latest = Some((now, received));
        }
    }

    /// Times, each with all bytes received by then: an even choice where there are too many, and the last in any case.
    #[must_use]
    pub fn points(&self) -> Vec<(Instant, u64)> {
        let mut points = self.marks.marks().to_vec();
        if points.last() != self.latest.as_ref() {
            points.extend(self.latest);
        }
        points
    }
}
