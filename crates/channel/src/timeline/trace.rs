//! Outages as they were recorded: a CSV of intervals, one `start,end` in seconds a line.
//!
//! Blank lines, lines that start with `#`, and one header line are skipped.

use core::ops::Range;
use std::sync::Arc;

use base::{Duration, Instant};

/// Blocked during the intervals of a recording, and never after its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    outages: Arc<[Range<Instant>]>,
    next: usize,
}

/// A recording that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}: {kind}")]
pub struct TraceError {
    /// The offending line, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// What is wrong with it.
    pub kind: TraceErrorKind,
}

/// What is wrong with a line of a recording, and what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceErrorKind {
    /// Not two numbers.
    #[error("not an outage; write its start and end in seconds, as in \"12.5,14\"")]
    NotAnOutage,
    /// It ends before it starts, or at once.
    #[error("an empty outage; it must end after it starts")]
    Empty,
    /// It starts before the one before it has ended.
    #[error("starts before the outage above it ends; outages must be in order and apart")]
    OutOfOrder,
}

impl Trace {
    /// Reads a recording.
    ///
    /// # Errors
    /// [`TraceError`] names the first line that is not an outage, is empty, or is out of order.
    pub fn parse(csv: &str) -> Result<Self, TraceError> {
        let mut outages: Vec<Range<Instant>> = Vec::new();
        let mut may_be_header = true;
        for (index, text) in csv.lines().enumerate() {
            let text = text.trim().trim_start_matches('\u{feff}');
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let is_header = core::mem::take(&mut may_be_header) && text.starts_with(char::is_alphabetic);
            if is_header {
                continue;
            }
            let wrong = |kind| TraceError { line: index + 1, text: text.to_owned(), kind };
            let outage = parse_outage(text).ok_or_else(|| wrong(TraceErrorKind::NotAnOutage))?;
            if outage.is_empty() {
                return Err(wrong(TraceErrorKind::Empty));
            }
            match outages.last_mut() {
                Some(last) if outage.start < last.end => return Err(wrong(TraceErrorKind::OutOfOrder)),
                Some(last) if outage.start == last.end => last.end = outage.end,
                _ => outages.push(outage),
            }
        }
        Ok(Self { outages: outages.into(), next: 0 })
    }

    /// The recorded outages, in order.
    #[must_use]
    pub fn outages(&self) -> &[Range<Instant>] {
        &self.outages
    }
}

impl Iterator for Trace {
    type Item = Range<Instant>;
    fn next(&mut self) -> Option<Range<Instant>> {
        let outage = self.outages.get(self.next)?.clone();
        self.next += 1;
        Some(outage)
    }
}

fn parse_outage(text: &str) -> Option<Range<Instant>> {
    let mut fields = text.split(',').map(|field| parse_seconds(field.trim()));
    let (start, end) = (fields.next()??, fields.next()??);
    fields.next().is_none().then_some(start..end)
}

fn parse_seconds(field: &str) -> Option<Instant> {
    let secs: f64 = field.parse().ok()?;
    (0.0..LAST_SECOND).contains(&secs).then(|| Instant::ZERO + Duration::from_secs_f64(secs))
}

/// A run lasts less than this many seconds (584 years).
const LAST_SECOND: f64 = 1.8e10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn a_recording_is_read_with_header_and_comments() {
        let trace = Trace::parse("start_s,end_s\n# the tunnel\n 1, 2.0\n\n2,3\n10,12\n").unwrap();
        assert_eq!(trace.collect::<Vec<_>>(), [at(1)..at(3), at(10)..at(12)]);
        assert_eq!(Trace::parse("").unwrap().outages(), []);
        assert_eq!(Trace::parse("# c\nfrom;to\r\n1,2\r\n").unwrap().outages().len(), 1);
    }

    #[test]
    fn a_wrong_line_is_named_with_what_is_allowed() {
        let complaint = |csv| Trace::parse(csv).unwrap_err().to_string();
        assert_eq!(
            complaint("start_s,end_s\n1;2\n"),
            "line 2: 1;2: not an outage; write its start and end in seconds, as in \"12.5,14\""
        );
        for wrong in ["1", "1,2,3", "-1,2", "1,NaN", "1,inf", "1,1e300", "a,b\nc,d"] {
            assert!(complaint(wrong).contains("not an outage"), "{wrong}");
        }
        assert!(complaint("2,2").ends_with("it must end after it starts"));
        assert!(complaint("1,4\n3,5").starts_with("line 2: 3,5: starts before"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(csv in "[0-9a-z,.# \\-\n]{0,80}") {
            if let Ok(trace) = Trace::parse(&csv) {
                prop_assert!(trace.outages().iter().all(|outage| outage.start < outage.end));
                prop_assert!(trace.outages().windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
